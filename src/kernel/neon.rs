//! NEON: a table lookup in the block fetches the bytes of eight probes; eight keys per iteration.
//!
//! A probe's top six bits select the byte, the next three its bit. Two keys share the registers in
//! which bits are compared. Insertion is scalar: NEON has no scatter, and computing a mask of 64
//! bytes takes longer than setting the bits.

use core::arch::aarch64::*;

use super::InstructionSet;
use super::driver::{batch_for, for_each_word};
use super::prefetch::Prefetch;
use super::scalar;
use super::table::{Table, address, powers};
use crate::probe::Block;

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Neon,
    is_supported: || cfg!(target_feature = "neon"),
    group,
    batch,
    overlapped: 8,
    short_calls: 8,
    ..scalar::TABLE
};

/// Keys per iteration: each has half a word of a register.
const KEYS: usize = 8;

/// Tests 1 to 64 hashes; returns one bit per hash.
///
/// # Safety
///
/// See [`Table`].
#[target_feature(enable = "neon")]
unsafe fn group(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    let mut word = [0];
    // SAFETY: the caller's promises about CPU, blocks and probes are passed on unchanged; the
    // caller promises at most 64 hashes, which have one word.
    unsafe { batch(blocks, Prefetch::Off, probes, hashes, &mut word) };
    word[0]
}

/// Tests any number of hashes.
///
/// # Safety
///
/// See [`Table`].
#[target_feature(enable = "neon")]
unsafe fn batch(
    blocks: &[Block],
    prefetch: Prefetch,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller's promises about CPU, blocks, probes and `hits` are passed on unchanged,
    // and `batch_for` selects rounds for at least as many probes.
    unsafe { batch_for!(batch_of, [1, 2, 4], blocks, prefetch, probes, hashes, hits) }
}

/// Tests up to `8 * ROUNDS` probes, and prefetches `LINES` cache lines per key. Not inlined, so
/// that `tools/codegen.sh` finds each instance.
///
/// # Safety
///
/// See [`Table`]; also, `probes <= 8 * ROUNDS`.
#[inline(never)]
#[target_feature(enable = "neon")]
unsafe fn batch_of<const LINES: usize, const ROUNDS: usize>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let test = unsafe { Test::<ROUNDS>::new(blocks, probes) };
    for_each_word::<KEYS, LINES>(blocks, hashes, hits, |keys| {
        watch!(ran("neon"));
        test.eight(keys)
    });
}

/// The constants of a batch.
struct Test<'a, const ROUNDS: usize> {
    /// 1 to 2^32 - 1 blocks.
    blocks: &'a [Block],
    /// Per round, eight powers of `G`.
    powers: [[uint32x4_t; 2]; ROUNDS],
    /// Per round and for two keys, a one in every byte that holds a probe; the others have an empty
    /// mask.
    ones: [uint8x16_t; ROUNDS],
    /// One bit per key of an iteration.
    weights: uint16x8_t,
}

impl<'a, const ROUNDS: usize> Test<'a, ROUNDS> {
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn new(blocks: &'a [Block], probes: u32) -> Self {
        const POWERS: [u32; 32] = powers();
        let mut rounds = [[vdupq_n_u32(0); 2]; ROUNDS];
        let mut ones = [vdupq_n_u8(0); ROUNDS];
        for (round, (powers, ones)) in rounds.iter_mut().zip(&mut ones).enumerate() {
            let first = &POWERS[8 * round..][..8];
            // SAFETY: reads the first four words of a slice of eight.
            powers[0] = unsafe { vld1q_u32(first.as_ptr()) };
            // SAFETY: reads the last four words of a slice of eight.
            powers[1] = unsafe { vld1q_u32(first[4..].as_ptr()) };
            let used: [u8; 16] =
                core::array::from_fn(|lane| u8::from(8 * round + lane % 8 < probes as usize));
            // SAFETY: reads an array of sixteen bytes.
            *ones = unsafe { vld1q_u8(used.as_ptr()) };
        }
        let weights: [u16; 8] = core::array::from_fn(|key| 1 << key);
        // SAFETY: reads an array of eight 16-bit integers.
        let weights = unsafe { vld1q_u16(weights.as_ptr()) };
        Test { blocks, powers: rounds, ones, weights }
    }

    /// Returns one bit per key, set if the key may be present.
    #[inline]
    #[target_feature(enable = "neon")]
    fn eight(&self, hashes: &[u64; KEYS]) -> u64 {
        let &[a, b, c, d, e, f, g, h] = hashes;
        // Pairwise maxima keep non-zero values: eight bytes per key become four, then two.
        let low = vpmaxq_u8(self.test_pair([a, b]), self.test_pair([c, d]));
        let high = vpmaxq_u8(self.test_pair([e, f]), self.test_pair([g, h]));
        let missing = vpmaxq_u8(low, high);
        let hit = vceqzq_u16(vreinterpretq_u16_u8(missing));
        u64::from(vaddvq_u16(vandq_u16(hit, self.weights)))
    }

    /// Returns the bits of two keys that are not set in their blocks, in eight bytes per key.
    #[inline]
    #[target_feature(enable = "neon")]
    fn test_pair(&self, hashes: [u64; 2]) -> uint8x16_t {
        let (first, second) = (self.line(hashes[0]), self.line(hashes[1]));
        // The second and the last 32-bit lane are the high halves.
        // SAFETY: reads the two hashes of an array.
        let halves = vreinterpretq_u32_u64(unsafe { vld1q_u64(hashes.as_ptr()) });
        let mut missing = vdupq_n_u8(0);
        for (powers, &ones) in self.powers.iter().zip(&self.ones) {
            let top_of_first = top_halves(
                vmulq_laneq_u32::<1>(powers[0], halves),
                vmulq_laneq_u32::<1>(powers[1], halves),
            );
            let top_of_second = top_halves(
                vmulq_laneq_u32::<3>(powers[0], halves),
                vmulq_laneq_u32::<3>(powers[1], halves),
            );
            let top =
                vuzp2q_u8(vreinterpretq_u8_u16(top_of_first), vreinterpretq_u8_u16(top_of_second));
            let byte = vshrq_n_u8::<2>(top);
            let bit = vshrn_high_n_u16::<7>(vshrn_n_u16::<7>(top_of_first), top_of_second);
            let bit = vreinterpretq_s8_u8(vandq_u8(bit, vdupq_n_u8(7)));
            // Both keys are looked up in both blocks: cheaper than moving the second key's indices.
            let bytes = vcombine_u8(
                vget_low_u8(vqtbl4q_u8(first, byte)),
                vget_high_u8(vqtbl4q_u8(second, byte)),
            );
            missing = vorrq_u8(missing, vbicq_u8(vshlq_u8(ones, bit), bytes));
        }
        missing
    }

    /// Loads the hash's block.
    #[inline]
    #[target_feature(enable = "neon")]
    fn line(&self, hash: u64) -> uint8x16x4_t {
        // SAFETY: the caller of `new` promised 1 to 2^32 - 1 blocks.
        let block = unsafe { address(self.blocks, hash) };
        // SAFETY: reads the 64 bytes of one of `blocks`; the load needs no alignment.
        unsafe { vld1q_u8_x4(block.cast()) }
    }
}

/// Returns the upper halves of eight products.
#[inline]
#[target_feature(enable = "neon")]
fn top_halves(low: uint32x4_t, high: uint32x4_t) -> uint16x8_t {
    vuzp2q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high))
}
