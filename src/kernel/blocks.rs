//! Tests of one key in blocks of several filters.

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::{Block, Kernel, MAX_PROBES};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::{InstructionSet, avx2};

/// A block and its test: the high half of a hash in bits 32 to 63, the number of probes below.
pub(super) type BlockTest<'a> = (&'a Block, u64);

/// Returns one bit per block: whether it passes its test. `same` is the common test, if all blocks
/// have one.
#[inline]
pub(super) fn test_blocks(kernel: Kernel, tests: &[BlockTest<'_>], same: Option<u64>) -> u64 {
    match (kernel.instructions(), same) {
        // SAFETY: a `Kernel` is only made after detection, which covers the function's features.
        #[cfg(target_arch = "x86_64")]
        (InstructionSet::Avx512, _) => unsafe { avx512_blocks(tests, same) },
        // SAFETY: a `Kernel` is only made after detection.
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        (InstructionSet::Avx2, Some(test)) => unsafe { avx2::test_same(tests, test) },
        _ => test_one_by_one(kernel, tests),
    }
}

/// Not inlined, so that the loop that collects the blocks keeps its registers.
#[inline(never)]
fn test_one_by_one(kernel: Kernel, tests: &[BlockTest<'_>]) -> u64 {
    test_each(tests, |block, test| kernel.contains_one(block, (test as u32).min(MAX_PROBES), test))
}

/// Tests each block. Always inlined, so that `has` is compiled for the instruction set of the
/// caller.
#[inline(always)]
pub(super) fn test_each(tests: &[BlockTest<'_>], mut has: impl FnMut(&Block, u64) -> bool) -> u64 {
    let (mut word, mut place) = (0, 1);
    // In this order, since the first lines that were prefetched arrive first.
    for &(block, test) in tests {
        word |= if has(block, test) { place } else { 0 };
        place <<= 1;
    }
    word
}

/// Tests each block. For `same`, the compiler hoists the work that depends only on the test out of
/// the loop.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
fn avx512_blocks(tests: &[BlockTest<'_>], same: Option<u64>) -> u64 {
    let probes = |test| (test as u32).min(MAX_PROBES);
    // SAFETY: `contains_one` requires only the CPU's features, which this function has.
    let has = |block: &Block, test| unsafe { avx512::contains_one(block, probes(test), test) };
    match same {
        Some(test) => test_each(tests, |block, _| has(block, test)),
        None => test_each(tests, has),
    }
}
