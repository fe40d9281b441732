//! NEON: one split block in two registers; tests eight keys per iteration and collects their
//! results together. Insertion is scalar, which the compiler translates to the same instructions.

use core::arch::aarch64::*;

use blocked_bloom::InstructionSet;

use super::{Table, address, for_each_group, scalar};
use crate::split_block::{SALTS, SplitBlock};

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Neon,
    contains: [contains::<0>, contains::<1>, contains::<2>],
    ..scalar::TABLE
};

/// Keys per iteration: their results fill two registers of words.
const KEYS: usize = 8;

/// # Safety
///
/// The caller must keep the promises of [`Table`] for NEON.
#[target_feature(enable = "neon")]
unsafe fn contains<const LINES: usize>(blocks: &[SplitBlock], hashes: &[u64], hits: &mut [u64]) {
    ran!("neon");
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let test = unsafe { Test::new(blocks) };
    for_each_group::<KEYS, LINES>(blocks, hashes, hits, |keys| test.eight(keys));
}

/// Values that all keys of a batch share.
struct Test<'a> {
    /// 1 to 2^32 - 1.
    blocks: &'a [SplitBlock],
    salts: [uint32x4_t; 2],
    ones: uint32x4_t,
    /// One bit per key of an iteration.
    weights: [uint32x4_t; 2],
}

impl<'a> Test<'a> {
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn new(blocks: &'a [SplitBlock]) -> Self {
        const WEIGHTS: [u32; KEYS] = [1, 2, 4, 8, 16, 32, 64, 128];
        Test {
            blocks,
            salts: registers(&SALTS),
            ones: vdupq_n_u32(1),
            weights: registers(&WEIGHTS),
        }
    }

    /// Returns one bit per key, set if the key may be present.
    #[inline]
    #[target_feature(enable = "neon")]
    fn eight(&self, hashes: &[u64; KEYS]) -> u64 {
        let &[a, b, c, d, e, f, g, h] = hashes;
        let low = vandq_u32(self.test_four([a, b, c, d]), self.weights[0]);
        let high = vandq_u32(self.test_four([e, f, g, h]), self.weights[1]);
        u64::from(vaddvq_u32(vorrq_u32(low, high)))
    }

    /// Returns one word per key: all ones if the key may be present, otherwise zero.
    #[inline]
    #[target_feature(enable = "neon")]
    fn test_four(&self, hashes: [u64; 4]) -> uint32x4_t {
        let [a, b, c, d] = hashes;
        // Pairwise maxima keep non-zero words: four words per key, then two, then one.
        let low = vpmaxq_u32(self.missing(a), self.missing(b));
        let high = vpmaxq_u32(self.missing(c), self.missing(d));
        vceqzq_u32(vpmaxq_u32(low, high))
    }

    /// Returns the key's bits that are not set in its block; words `i` and `4 + i` are combined.
    #[inline]
    #[target_feature(enable = "neon")]
    fn missing(&self, hash: u64) -> uint32x4_t {
        // SAFETY: the caller of `new` promised 1 to 2^32 - 1 blocks.
        let block = unsafe { address(self.blocks, hash) };
        // SAFETY: reads the 32 bytes of a block in `blocks`; loads of bytes allow any alignment.
        let words = unsafe { vld1q_u8_x2(block.cast()) };
        let low = vbicq_u32(self.bits::<0>(hash), vreinterpretq_u32_u8(words.0));
        let high = vbicq_u32(self.bits::<1>(hash), vreinterpretq_u32_u8(words.1));
        vorrq_u32(low, high)
    }

    /// Returns the key's bit in each word of half `HALF` of its block.
    #[inline]
    #[target_feature(enable = "neon")]
    fn bits<const HALF: usize>(&self, hash: u64) -> uint32x4_t {
        let products = vmulq_n_u32(self.salts[HALF], hash as u32);
        vshlq_u32(self.ones, vreinterpretq_s32_u32(vshrq_n_u32::<27>(products)))
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn registers(words: &[u32; 8]) -> [uint32x4_t; 2] {
    // SAFETY: reads the first four of eight words.
    let low = unsafe { vld1q_u32(words.as_ptr()) };
    // SAFETY: reads the last four of eight words.
    let high = unsafe { vld1q_u32(words[4..].as_ptr()) };
    [low, high]
}
