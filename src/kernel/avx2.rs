//! AVX2: eight probes of one key in a register; the answers of four keys are collected together.
//!
//! The 64-byte block is two registers. A probe's top bit selects the half, the next three bits the
//! 32-bit word, the next five the bit.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::InstructionSet;
use super::blocks::{BlockTest, test_each};
use super::driver::{batch_for, for_each_of_few, for_each_word};
use super::prefetch::Prefetch;
use super::scalar;
use super::table::{Table, Tile, address, powers};
use crate::probe::{self, Block, MAX_PROBES};

cpufeatures::new!(detect, "avx2");

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Avx2,
    is_supported: detect::get,
    contains_one,
    group,
    batch,
    insert,
    overlapped: 8,
    short_calls: 8,
};

/// Up to this many hashes of a group are tested one by one.
const MAX_SINGLE_TESTS: usize = 16;

/// Keys per iteration: their results fill one register of bytes.
const KEYS: usize = 4;

/// Tests any number of hashes.
///
/// # Safety
///
/// See [`Table`].
#[target_feature(enable = "avx2")]
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

/// Tests up to `8 * ROUNDS` probes, and prefetches `LINES` cache lines per key.
///
/// # Safety
///
/// See [`Table`]; also, `probes <= 8 * ROUNDS`.
#[target_feature(enable = "avx2")]
unsafe fn batch_of<const LINES: usize, const ROUNDS: usize>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let test = unsafe { Test::<ROUNDS>::new(blocks, probes) };
    for_each_word::<KEYS, LINES>(blocks, hashes, hits, |keys| {
        watch!(ran("avx2"));
        test.test_four(keys)
    });
}

/// The constants of a batch.
struct Test<'a, const ROUNDS: usize> {
    /// 1 to 2^32 - 1 blocks.
    blocks: &'a [Block],
    probes: Probes<ROUNDS>,
    /// Per round, a one in every lane that holds a probe; the other lanes have an empty mask.
    ones: [__m256i; ROUNDS],
}

impl<'a, const ROUNDS: usize> Test<'a, ROUNDS> {
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn new(blocks: &'a [Block], probes: u32) -> Self {
        let mut ones = [_mm256_setzero_si256(); ROUNDS];
        for (round, ones) in ones.iter_mut().enumerate() {
            *ones = probing_lanes((probes as usize).saturating_sub(8 * round));
        }
        Test { blocks, probes: Probes::new(), ones }
    }

    /// Returns one bit per key, set if the key may be present.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn test_four(&self, hashes: &[u64; KEYS]) -> u64 {
        // Without `map`: it would call the closure from a function without AVX2, into which the
        // closure cannot be inlined.
        let missing = [
            self.missing(&hashes[0]),
            self.missing(&hashes[1]),
            self.missing(&hashes[2]),
            self.missing(&hashes[3]),
        ];
        zero_mask(missing)
    }

    /// Returns the bits of the key that are not set in its block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn missing(&self, hash: &u64) -> __m256i {
        let [lo, hi] = halves(hash);
        // SAFETY: the caller of `new` promised 1 to 2^32 - 1 blocks.
        let block = unsafe { address(self.blocks, lo.into()) };
        // SAFETY: `address` returns one of `blocks`, which are borrowed.
        let line = keep_in_registers(unsafe { load(block) });
        let mut missing = _mm256_setzero_si256();
        for (product, &ones) in self.probes.products(hi).into_iter().zip(&self.ones) {
            let (words, bits) = words_and_bits(line, product, ones);
            missing = _mm256_or_si256(missing, _mm256_andnot_si256(words, bits));
        }
        missing
    }
}

/// Loads the low and the high half of a hash separately. After a single load of both, the compiler
/// moves the high half through a general register to a vector's first lane and then to the others:
/// three instructions instead of one broadcasting load, which cost 10 % of a query in the
/// first-level cache (Zen 3).
#[inline]
#[target_feature(enable = "avx2")]
fn halves(hash: &u64) -> [u32; 2] {
    let halves = core::ptr::from_ref(hash).cast::<u32>();
    // SAFETY: reads the first four of the reference's eight bytes, which are the low half on x86.
    let low = unsafe { halves.read() };
    // SAFETY: reads the other four; `wrapping_add` stays inside the eight bytes.
    let high = unsafe { halves.wrapping_add(1).read() };
    [low, high]
}

/// Returns its arguments unchanged, but keeps the compiler from merging their loads with the
/// shuffles. On Zen 3, `vpermd` takes 2.0 cycles with its table in memory and 1.35 with the table
/// in a register. The difference is 3 % of a query in the first-level cache, 10 % in the second.
#[inline]
#[target_feature(enable = "avx2")]
fn keep_in_registers((mut low, mut high): (__m256i, __m256i)) -> (__m256i, __m256i) {
    // SAFETY: the assembly contains no instruction.
    unsafe {
        core::arch::asm!(
            "/* {0} {1} */", inout(ymm_reg) low, inout(ymm_reg) high,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    (low, high)
}

/// Returns a one in each of the first `probes` lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn probing_lanes(probes: usize) -> __m256i {
    const ONES: [u32; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let ones = &ONES[8 - probes.min(8)..][..8];
    // SAFETY: reads the eight words of the slice; the load needs no alignment.
    unsafe { _mm256_loadu_si256(ones.as_ptr().cast()) }
}

/// Returns the words of eight probes and the probes' bits, each in the lane of its product. Lanes
/// in which `ones` is 0 have no bit.
#[inline]
#[target_feature(enable = "avx2")]
fn words_and_bits(
    (low, high): (__m256i, __m256i),
    product: __m256i,
    ones: __m256i,
) -> (__m256i, __m256i) {
    let word = _mm256_srli_epi32::<28>(product);
    let from_low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, word));
    let from_high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, word));
    // `vblendvps` selects by the sign, which is the top bit of the word's index.
    let words = _mm256_blendv_ps(from_low, from_high, _mm256_castsi256_ps(product));
    let bit = _mm256_srli_epi32::<27>(_mm256_slli_epi32::<4>(product));
    (_mm256_castps_si256(words), _mm256_sllv_epi32(ones, bit))
}

/// Whether all bits are set in the words. `vptest` of one register with itself is avoided, since
/// the compiler replaces it by eight instructions.
#[inline]
#[target_feature(enable = "avx2")]
fn all_set((words, bits): (__m256i, __m256i)) -> bool {
    _mm256_testc_si256(words, bits) == 1
}

/// Whether the block has all bits of the hash.
///
/// # Safety
///
/// See [`Table`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn contains_one(line: &Block, probes: u32, hash: u64) -> bool {
    watch!(ran("avx2"));
    // SAFETY: `line` is a reference, so its 64 bytes may be read.
    let halves = unsafe { load(line) };
    let scheme = Probes::<1>::new();
    let [mut product] = scheme.products((hash >> 32) as u32);
    let mut probes = probes as usize;
    while probes > 8 {
        if !all_set(words_and_bits(halves, product, probing_lanes(8))) {
            return false;
        }
        probes -= 8;
        product = _mm256_mullo_epi32(product, scheme.next_round);
    }
    all_set(words_and_bits(halves, product, probing_lanes(probes)))
}

/// Tests 1 to 64 hashes; returns one bit per hash.
///
/// # Safety
///
/// See [`Table`].
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one arm of a match")]
#[target_feature(enable = "avx2")]
unsafe fn group(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    if let [hash] = *hashes {
        // SAFETY: the caller's promises about CPU and blocks are passed on unchanged.
        return unsafe { test_one(blocks, probes, hash) }.into();
    }
    // SAFETY: the caller's promises about CPU, blocks, probes and hashes are passed on unchanged,
    // and each arm has rounds for at least as many probes.
    unsafe {
        match probes {
            _ if hashes.len() < 4 => test_few(blocks, probes, hashes),
            ..=8 => group_of::<1>(blocks, probes, hashes),
            9..=16 => group_of::<2>(blocks, probes, hashes),
            _ => group_of::<4>(blocks, probes, hashes),
        }
    }
}

/// Whether the key may be present.
///
/// # Safety
///
/// See [`Table`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn test_one(blocks: &[Block], probes: u32, hash: u64) -> bool {
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let block = unsafe { address(blocks, hash) };
    // SAFETY: `address` returns one of `blocks`, which are borrowed.
    let block = unsafe { &*block };
    // SAFETY: the caller promises AVX2, and `contains_one` requires nothing else.
    unsafe { contains_one(block, probes, hash) }
}

/// [`group`] for two or three hashes: they are tested before the constants of a [`Test`] would be
/// computed. Not inlined, for the same reason as [`group_of`].
///
/// # Safety
///
/// See [`Table`].
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn test_few(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    // SAFETY: the caller's promises about CPU and blocks are passed on unchanged.
    for_each_of_few(hashes, |&hash| unsafe { test_one(blocks, probes, hash) })
}

/// [`group`] with up to `8 * ROUNDS` probes. Not inlined, so that calls with one key save no
/// registers.
///
/// # Safety
///
/// See [`Table`]; also, `probes <= 8 * ROUNDS`.
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn group_of<const ROUNDS: usize>(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    watch!(ran("avx2"));
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let test = unsafe { Test::<ROUNDS>::new(blocks, probes) };
    if hashes.len() > MAX_SINGLE_TESTS {
        let mut word = [0];
        for_each_word::<KEYS, 0>(blocks, hashes, &mut word, |keys| test.test_four(keys));
        return word[0];
    }
    for_each_of_few(hashes, |hash| all_set((_mm256_setzero_si256(), test.missing(hash))))
}

/// Tests the same hash and number of probes in each block, with a mask of the bits.
#[target_feature(enable = "avx2")]
pub(super) fn test_same(tests: &[BlockTest<'_>], test: u64) -> u64 {
    watch!(ran("avx2"));
    let zero = _mm256_setzero_si256();
    let mut mask = (zero, zero);
    for bit in probe::bits(test, (test as u32).min(MAX_PROBES)) {
        mask = with_bit(mask, bit);
    }
    test_each(tests, |block, _| {
        // SAFETY: `block` is a reference, so its 64 bytes may be read.
        let (low, high) = unsafe { load(block) };
        let (low, high) = (_mm256_andnot_si256(low, mask.0), _mm256_andnot_si256(high, mask.1));
        all_set((zero, _mm256_or_si256(low, high)))
    })
}

/// Sets a bit, `0 .. 512`, in the two halves of a block.
#[inline]
#[target_feature(enable = "avx2")]
fn with_bit((low, high): (__m256i, __m256i), bit: u32) -> (__m256i, __m256i) {
    // Lane j of a mask is `1 << (bit - 32 j)` with unsigned counts: all lanes except one shift
    // their one out.
    let low_lanes = _mm256_setr_epi32(0, -32, -64, -96, -128, -160, -192, -224);
    let high_lanes = _mm256_add_epi32(low_lanes, _mm256_set1_epi32(-256));
    let (one, bit) = (_mm256_set1_epi32(1), _mm256_set1_epi32(bit as i32));
    let low_mask = _mm256_sllv_epi32(one, _mm256_add_epi32(bit, low_lanes));
    let high_mask = _mm256_sllv_epi32(one, _mm256_add_epi32(bit, high_lanes));
    (_mm256_or_si256(low, low_mask), _mm256_or_si256(high, high_mask))
}

/// Returns one bit per register, set if the register is zero.
#[inline]
#[target_feature(enable = "avx2")]
fn zero_mask(registers: [__m256i; 4]) -> u64 {
    // Packing with saturation, 32 bits to 16 and 16 to 8, never turns a non-zero value into zero.
    // Afterwards, each half of the result has four bytes of each register.
    let low = _mm256_packs_epi32(registers[0], registers[1]);
    let high = _mm256_packs_epi32(registers[2], registers[3]);
    let all = _mm256_packs_epi16(low, high);
    let zero = _mm256_cmpeq_epi32(all, _mm256_setzero_si256());
    let zero = _mm256_movemask_ps(_mm256_castsi256_ps(zero)) as u32;
    u64::from(zero & (zero >> 4) & 15)
}

/// Loads both halves of the block.
///
/// # Safety
///
/// `block` may be read.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(block: *const Block) -> (__m256i, __m256i) {
    let halves = block.cast::<__m256i>();
    // SAFETY: reads the first 32 bytes of a block that may be read; the load needs no alignment.
    let low = unsafe { _mm256_loadu_si256(halves) };
    // SAFETY: reads its other 32 bytes; `wrapping_add` stays inside the block.
    let high = unsafe { _mm256_loadu_si256(halves.wrapping_add(1)) };
    (low, high)
}

/// Sets the bits of every hash.
///
/// # Safety
///
/// See [`Table`].
#[target_feature(enable = "avx2")]
unsafe fn insert(tile: Tile<'_>, probes: u32, hashes: &[u64], new: &mut [u64]) {
    let fill = if new.is_empty() { fill_for::<false>(probes) } else { fill_for::<true>(probes) };
    // SAFETY: `fill` requires AVX2, which the caller promises.
    unsafe { fill(tile, probes, hashes, new) }
}

type Fill = unsafe fn(Tile<'_>, u32, &[u64], &mut [u64]);

fn fill_for<const NEW: bool>(probes: u32) -> Fill {
    match probes {
        1 => fill::<1, 1, NEW>,
        2 => fill::<2, 1, NEW>,
        3 => fill::<3, 1, NEW>,
        4 => fill::<4, 1, NEW>,
        5 => fill::<5, 1, NEW>,
        6 => fill::<6, 1, NEW>,
        7 => fill::<7, 1, NEW>,
        8 => fill::<8, 1, NEW>,
        ..=16 => fill::<0, 2, NEW>,
        // With more probes, setting the bits one by one is faster than computing masks.
        _ => scalar::insert,
    }
}

/// Inserts with `PROBES` probes, or `probes` if `PROBES` is 0, at most `8 * ROUNDS`. If `NEW`,
/// reports which hashes were new.
///
/// All bit positions of 64 keys are computed before any mask: loading a position immediately after
/// a wider store wrote it would wait for that store.
///
/// # Safety
///
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn fill<const PROBES: usize, const ROUNDS: usize, const NEW: bool>(
    tile: Tile<'_>,
    probes: u32,
    hashes: &[u64],
    new: &mut [u64],
) {
    let probes = if PROBES > 0 { PROBES } else { probes as usize };
    let scheme = Probes::<ROUNDS>::new();
    let mut ahead = tile.prefetcher(hashes);
    let mut positions = [[[0_u32; 8]; ROUNDS]; 64];
    for (word, chunk) in hashes.chunks(64).enumerate() {
        let mut bits = 0;
        for (hash, positions) in chunk.iter().zip(&mut positions) {
            scheme.positions(hash, positions);
        }
        for (i, (&hash, positions)) in chunk.iter().zip(&positions).enumerate() {
            ahead.advance(1);
            watch!(ran("avx2"));
            let index = tile.index(hash);
            let block = &mut tile.blocks[index];
            // SAFETY: `block` is a reference, so its 64 bytes may be read.
            let before = unsafe { load(block) };
            let (mut low, mut high) = before;
            for &position in &positions.as_flattened()[..probes] {
                (low, high) = with_bit((low, high), position);
            }
            let halves = core::ptr::from_mut(block).cast::<__m256i>();
            // SAFETY: writes the first 32 bytes of `block`; the store needs no alignment.
            unsafe { _mm256_storeu_si256(halves, low) };
            // SAFETY: writes its other 32 bytes; `wrapping_add` stays inside the block.
            unsafe { _mm256_storeu_si256(halves.wrapping_add(1), high) };
            if NEW {
                let added = _mm256_or_si256(
                    _mm256_xor_si256(before.0, low),
                    _mm256_xor_si256(before.1, high),
                );
                bits |= u64::from(_mm256_testz_si256(added, added) == 0) << i;
            }
        }
        if NEW {
            new[word] = bits;
        }
    }
}

/// The products of the probe scheme, eight per round.
#[derive(Clone, Copy)]
struct Probes<const ROUNDS: usize> {
    /// `G^0 .. G^7`.
    powers: __m256i,
    /// `G^8`, the factor from one round to the next.
    next_round: __m256i,
}

impl<const ROUNDS: usize> Probes<ROUNDS> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Self {
        const POWERS: [u32; 9] = powers();
        // SAFETY: reads the first eight of nine words; the load needs no alignment.
        let powers = unsafe { _mm256_loadu_si256(POWERS.as_ptr().cast()) };
        Probes { powers, next_round: _mm256_set1_epi32(POWERS[8] as i32) }
    }

    /// Returns the products of a key's probes for the high half of its hash. The top nine bits of a
    /// product are the bit position.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn products(&self, hi: u32) -> [__m256i; ROUNDS] {
        let hi = _mm256_set1_epi32(hi as i32);
        let mut products = [_mm256_mullo_epi32(hi, self.powers); ROUNDS];
        for round in 1..ROUNDS {
            products[round] = _mm256_mullo_epi32(products[round - 1], self.next_round);
        }
        products
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn positions(&self, hash: &u64, positions: &mut [[u32; 8]; ROUNDS]) {
        let [_, hi] = halves(hash);
        for (product, positions) in self.products(hi).into_iter().zip(positions) {
            let bits = _mm256_srli_epi32::<23>(product);
            // SAFETY: writes the 32 bytes of `positions`; the store needs no alignment.
            unsafe { _mm256_storeu_si256(positions.as_mut_ptr().cast(), bits) };
        }
    }
}
