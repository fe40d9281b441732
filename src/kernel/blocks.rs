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
///
/// Not inlined, so that the caller's loop keeps its registers.
#[inline(never)]
pub(super) fn test_blocks(kernel: Kernel, tests: &[BlockTest<'_>], same: Option<u64>) -> u64 {
    let probes = |test| (test as u32).min(MAX_PROBES);
    match (kernel.instructions(), same) {
        // SAFETY: a `Kernel` is only made after detection.
        #[cfg(target_arch = "x86_64")]
        (InstructionSet::Avx512, Some(test)) => unsafe { avx512_same(tests, probes(test), test) },
        // SAFETY: a `Kernel` is only made after detection.
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        (InstructionSet::Avx2, Some(test)) => unsafe { avx2::test_same(tests, probes(test), test) },
        _ => test_each(tests, |block, test| kernel.contains_one(block, probes(test), test)),
    }
}

/// Tests each block. Always inlined, so that `contains` is compiled for the instruction set of the
/// caller.
#[inline(always)]
pub(super) fn test_each(tests: &[BlockTest<'_>], contains: impl Fn(&Block, u64) -> bool) -> u64 {
    let (mut word, mut place) = (0, 1);
    // In this order, since the first lines that were prefetched arrive first.
    for &(block, test) in tests {
        word |= if contains(block, test) { place } else { 0 };
        place <<= 1;
    }
    word
}

/// Tests the same hash and number of probes in each block. The compiler hoists the work that
/// depends only on these two out of the loop.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
fn avx512_same(tests: &[BlockTest<'_>], probes: u32, hash: u64) -> u64 {
    // SAFETY: `contains_one` requires only the CPU's features, which this function has.
    test_each(tests, |block, _| unsafe { avx512::contains_one(block, probes, hash) })
}
