//! NEON: two 64-bit columns in a register, or one 128-bit column. Set bits are counted per byte and
//! summed pairwise.

use core::arch::aarch64::*;

use blocked_bloom::InstructionSet;

use super::driver::{self, Source, for_lines};
use super::{Table, scalar};
use crate::scheme::Shards;
use crate::scheme::rocksdb::Segments;

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Neon,
    contains_64: for_lines!(batch_64),
    contains_128: for_lines!(batch_128),
    ..scalar::TABLE
};

/// # Safety
///
/// The caller must keep the promises of [`Table`] for NEON.
#[target_feature(enable = "neon")]
unsafe fn batch_64<const LINES: usize>(shards: &Shards<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("neon");
    driver::batch_singly::<_, LINES>(shards, hashes, hits, |equation, column| {
        let left = vreinterpretq_u8_u64(vdupq_n_u64(*equation.left));
        let right = vreinterpretq_u8_u64(vdupq_n_u64(*equation.right));
        let at = shards.bytes().as_ptr().wrapping_add(equation.start + 8 * column);
        let two = |at: *const u8| {
            // SAFETY: `batch_singly` tests four columns beginning at `column`, and
            // `Source::equation` promises that they are within the bytes. This reads two.
            let first = unsafe { vld1q_u8(at) };
            // SAFETY: the same promise covers the next block (the same one if `next` is 0).
            let next = unsafe { vld1q_u8(at.wrapping_add(equation.next)) };
            vcntq_u8(veorq_u8(vandq_u8(first, left), vandq_u8(next, right)))
        };
        parities(vpaddq_u8(two(at), two(at.wrapping_add(16))))
    });
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for NEON.
#[target_feature(enable = "neon")]
unsafe fn batch_128<const LINES: usize>(segments: &Segments<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("neon");
    driver::batch_singly::<_, LINES>(segments, hashes, hits, |equation, column| {
        let (left, right) = (load_128(equation.left), load_128(equation.right));
        let at = segments.bytes().as_ptr().wrapping_add(equation.start + 16 * column);
        let one = |column: usize| {
            let at = at.wrapping_add(16 * column);
            // SAFETY: `batch_singly` tests four columns beginning at `column`, and
            // `Source::equation` promises that they are within the bytes. This reads one.
            let first = unsafe { vld1q_u8(at) };
            // SAFETY: the same promise covers the next block (the same one if `next` is 0).
            let next = unsafe { vld1q_u8(at.wrapping_add(equation.next)) };
            vcntq_u8(veorq_u8(vandq_u8(first, left), vandq_u8(next, right)))
        };
        let (low, high) = (vpaddq_u8(one(0), one(1)), vpaddq_u8(one(2), one(3)));
        parities(vpaddq_u8(low, high))
    });
}

/// Returns the parities of four sums, each of four neighbouring bytes, in bits 0 to 3.
#[inline]
#[target_feature(enable = "neon")]
fn parities(bytes: uint8x16_t) -> u32 {
    let pairs = vpaddq_u8(bytes, bytes);
    // Each byte is at most 128.
    let sums = vreinterpretq_u32_u8(vpaddq_u8(pairs, pairs));
    let bits = vgetq_lane_u32::<0>(sums) & 0x0101_0101;
    (bits | bits >> 7 | bits >> 14 | bits >> 21) & 15
}

#[inline]
#[target_feature(enable = "neon")]
fn load_128(word: &u128) -> uint8x16_t {
    // SAFETY: reads the 16 bytes of the reference, in memory order, which is the register's order.
    unsafe { vld1q_u8(core::ptr::from_ref(word).cast()) }
}
