//! NEON: a table lookup in the line fetches the bytes of eight probes; eight keys an iteration.
//!
//! A probe's top six bits pick the byte, the next three its bit; two keys share the registers in
//! which bits are compared. Inserting is scalar: there is no scatter, and 64 bytes take longer to
//! make than the bits to set.

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

/// Keys an iteration: half a word of a register for each.
const KEYS: usize = 8;

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "neon")]
unsafe fn group(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    let mut word = [0];
    // SAFETY: the caller's promises are passed on; there is a word for up to 64 hashes.
    unsafe { batch(blocks, Prefetch::Off, probes, hashes, &mut word) };
    word[0]
}

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "neon")]
unsafe fn batch(
    blocks: &[Block],
    prefetch: Prefetch,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller's promises are passed on.
    unsafe { batch_for!(batch_of, [1, 2, 4], blocks, prefetch, probes, hashes, hits) }
}

/// Tests `ROUNDS` times eight probes, and prefetches `LINES` lines per key. Not inlined, so that
/// `tools/codegen.sh` finds each instance.
///
/// # Safety
///
/// As [`Table`] says, and `probes <= 8 * ROUNDS`.
#[inline(never)]
#[target_feature(enable = "neon")]
unsafe fn batch_of<const LINES: usize, const ROUNDS: usize>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller promised the number of blocks.
    let test = unsafe { Test::<ROUNDS>::new(blocks, probes) };
    for_each_word::<KEYS, LINES>(blocks, hashes, hits, |keys| {
        watch!(ran("neon"));
        test.eight(keys)
    });
}

/// What all keys of a batch share.
struct Test<'a, const ROUNDS: usize> {
    /// 1 to 2^32 - 1.
    blocks: &'a [Block],
    /// Per round, eight powers of `G`.
    powers: [[uint32x4_t; 2]; ROUNDS],
    /// Per round and for two keys, a one in every byte that probes; others make an empty mask.
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
            // SAFETY: four of eight words.
            powers[0] = unsafe { vld1q_u32(first.as_ptr()) };
            // SAFETY: the other four.
            powers[1] = unsafe { vld1q_u32(first[4..].as_ptr()) };
            let used: [u8; 16] =
                core::array::from_fn(|lane| u8::from(8 * round + lane % 8 < probes as usize));
            // SAFETY: sixteen bytes.
            *ones = unsafe { vld1q_u8(used.as_ptr()) };
        }
        let weights: [u16; 8] = core::array::from_fn(|key| 1 << key);
        // SAFETY: eight halves of words.
        let weights = unsafe { vld1q_u16(weights.as_ptr()) };
        Test { blocks, powers: rounds, ones, weights }
    }

    /// One bit per key, set if it may be present.
    #[inline]
    #[target_feature(enable = "neon")]
    fn eight(&self, hashes: &[u64; KEYS]) -> u64 {
        let &[a, b, c, d, e, f, g, h] = hashes;
        // Pairwise maxima keep what is not zero: eight bytes per key, four, two.
        let low = vpmaxq_u8(self.test_pair([a, b]), self.test_pair([c, d]));
        let high = vpmaxq_u8(self.test_pair([e, f]), self.test_pair([g, h]));
        let missing = vpmaxq_u8(low, high);
        let hit = vceqzq_u16(vreinterpretq_u16_u8(missing));
        u64::from(vaddvq_u16(vandq_u16(hit, self.weights)))
    }

    /// Eight bytes for each of two keys: the bits that are not set in its line.
    #[inline]
    #[target_feature(enable = "neon")]
    fn test_pair(&self, hashes: [u64; 2]) -> uint8x16_t {
        let (first, second) = (self.line(hashes[0]), self.line(hashes[1]));
        // SAFETY: two words. Of four half words, the second and last are high halves.
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
            // Both lines are looked up for both keys: cheaper than moving the second's indices.
            let bytes = vcombine_u8(
                vget_low_u8(vqtbl4q_u8(first, byte)),
                vget_high_u8(vqtbl4q_u8(second, byte)),
            );
            missing = vorrq_u8(missing, vbicq_u8(vshlq_u8(ones, bit), bytes));
        }
        missing
    }

    /// The hash's line.
    #[inline]
    #[target_feature(enable = "neon")]
    fn line(&self, hash: u64) -> uint8x16x4_t {
        // SAFETY: `new` was promised the number of blocks.
        let block = unsafe { address(self.blocks, hash) };
        // SAFETY: the 64 bytes of a block in `blocks`; the load has no alignment to respect.
        unsafe { vld1q_u8_x4(block.cast()) }
    }
}

/// The upper halves of eight products.
#[inline]
#[target_feature(enable = "neon")]
fn top_halves(low: uint32x4_t, high: uint32x4_t) -> uint16x8_t {
    vuzp2q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high))
}
