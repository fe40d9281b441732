//! Tests of one key in blocks of several filters.
//!
//! The answer is the same for all kernels. AVX2 computes the bits of the key as a mask of a block;
//! AVX-512 keeps the words and bits of the probes in registers, and does not need the mask.

use core::convert::identity;

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::{InstructionSet, Kernel};
use crate::probe::{self, Block, MAX_PROBES};

/// A block, and the high half of a hash above the number of probes with which it is tested.
pub(super) type BlockTest<'a> = (&'a Block, u64);

/// Tests each block; returns one bit per block. If `is_same`, all have the hash and the probes of
/// the first.
///
/// Not inlined, so that the caller's loop keeps its registers.
#[inline(never)]
pub(super) fn test_blocks(kernel: Kernel, tests: &[BlockTest<'_>], is_same: bool) -> u64 {
    match kernel.instructions() {
        // SAFETY: a `Kernel` is only made after detection.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => unsafe { with_avx512(tests, is_same) },
        // SAFETY: a `Kernel` is only made after detection.
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        InstructionSet::Avx2 => unsafe { avx2::test_blocks(tests, is_same) },
        _ => test_each(tests, is_same, identity, |block, (probes, hash)| {
            probe::contains(block, hash, probes)
        }),
    }
}

/// Calls `prepare` for the probes and the hash of each test, or once if `is_same`, and then
/// `contains` for the block. Always inlined, so that both are compiled for the instruction set of
/// the caller.
#[inline(always)]
pub(super) fn test_each<P: Copy>(
    tests: &[BlockTest<'_>],
    is_same: bool,
    prepare: impl Fn((u32, u64)) -> P,
    contains: impl Fn(&Block, P) -> bool,
) -> u64 {
    let prepare = |test| prepare(((test as u32).min(MAX_PROBES), test));
    let (mut word, mut place) = (0, 1);
    let mut test = |block, prepared| {
        word |= if contains(block, prepared) { place } else { 0 };
        place <<= 1;
    };
    // In this order, since the first lines that were prefetched arrive first. In one loop for both
    // cases, AVX-512 took 1.5 of the time.
    match *tests {
        [(_, first), ..] if is_same => {
            let prepared = prepare(first);
            tests.iter().for_each(|(block, _)| test(block, prepared));
        }
        _ => tests.iter().for_each(|&(block, own)| test(block, prepare(own))),
    }
    word
}

/// If all tests are the same, the compiler moves what depends on the hash alone out of the loop.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
fn with_avx512(tests: &[BlockTest<'_>], is_same: bool) -> u64 {
    test_each(tests, is_same, identity, |block, (probes, hash)| {
        // SAFETY: `contains_one` requires only the CPU's features, which this function has.
        unsafe { avx512::contains_one(block, probes, hash) }
    })
}
