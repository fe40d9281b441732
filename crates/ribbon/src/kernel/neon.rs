//! NEON: two 64-bit columns in a register, or one 128-bit column. Set bits are counted per byte and
//! summed pairwise.

use core::arch::aarch64::*;

use blocked_bloom::InstructionSet;

use super::Table;
use super::driver::{
    Equation, Source, batch_by_fours, for_lines, holds_in, prepare_each, test_singly,
};
use super::scalar;
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
    let bytes = shards.bytes();
    let prepare = |ring: &mut _, keys: &_, slot| prepare_each(shards, ring, keys, slot);
    let holds = |equation: &Equation<&_>, columns, results| {
        holds_in(columns, results, |column| {
            let left = vreinterpretq_u8_u64(vdupq_n_u64(*equation.left));
            let right = vreinterpretq_u8_u64(vdupq_n_u64(*equation.right));
            let at = bytes.as_ptr().wrapping_add(equation.start + 8 * column);
            let two = |at: *const u8| {
                // SAFETY: `TestColumns` requires four columns beginning at `column`, and
                // `Source::equation` promises that they are within the bytes. This reads two.
                let first = unsafe { load(at) };
                // SAFETY: the same promise covers the next block (the same one if `next` is 0).
                let next = unsafe { load(at.wrapping_add(equation.next)) };
                vcntq_u8(veorq_u8(vandq_u8(first, left), vandq_u8(next, right)))
            };
            parities(vpaddq_u8(two(at), two(at.wrapping_add(16))))
        })
    };
    let first = |ring: &_, slot| test_singly(shards, ring, slot, holds);
    batch_by_fours::<_, LINES>(shards, hashes, hits, prepare, first, holds);
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for NEON.
#[target_feature(enable = "neon")]
unsafe fn batch_128<const LINES: usize>(segments: &Segments<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("neon");
    let bytes = segments.bytes();
    let prepare = |ring: &mut _, keys: &_, slot| prepare_each(segments, ring, keys, slot);
    let holds = |equation: &Equation<&_>, columns, results| {
        holds_in(columns, results, |column| {
            let (left, right) = (load_128(equation.left), load_128(equation.right));
            let at = bytes.as_ptr().wrapping_add(equation.start + 16 * column);
            let one = |column: usize| {
                let at = at.wrapping_add(16 * column);
                // SAFETY: `TestColumns` requires four columns beginning at `column`, and
                // `Source::equation` promises that they are within the bytes. This reads one.
                let first = unsafe { load(at) };
                // SAFETY: the same promise covers the next block (the same one if `next` is 0).
                let next = unsafe { load(at.wrapping_add(equation.next)) };
                vcntq_u8(veorq_u8(vandq_u8(first, left), vandq_u8(next, right)))
            };
            let (low, high) = (vpaddq_u8(one(0), one(1)), vpaddq_u8(one(2), one(3)));
            parities(vpaddq_u8(low, high))
        })
    };
    let first = |ring: &_, slot| test_singly(segments, ring, slot, holds);
    batch_by_fours::<_, LINES>(segments, hashes, hits, prepare, first, holds);
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

/// # Safety
///
/// The 16 bytes at `at` must be readable.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(at: *const u8) -> uint8x16_t {
    // SAFETY: the caller promises 16 readable bytes; loads of bytes allow any alignment.
    unsafe { vld1q_u8(at) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_128(word: &u128) -> uint8x16_t {
    // SAFETY: reads the 16 bytes of the reference, in memory order, which is the register's order.
    unsafe { vld1q_u8(core::ptr::from_ref(word).cast()) }
}
