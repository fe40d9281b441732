//! Insertion. The mask of a key is computed as a product of bit matrices: `gf2p8affineqb`
//! multiplies matrices of eight by eight bits over GF(2).
//!
//! Each of eight probes sets bit `y` of byte `x` of the block. The mask has 64 bytes of 8 bits. It
//! is the product of a 64 by 8 matrix, "probe `p` is in byte `x`", and an 8 by 8 matrix, "probe `p`
//! sets bit `y`". For the first matrix, each of the block's eight words looks up one byte per
//! probe, `1 << x % 8` if the probe is in this word and 0 otherwise, and these bytes are
//! transposed. That takes five vector operations per key, besides six that compute `x` and `y` for
//! eight keys together.
//!
//! Over GF(2), two equal positions cancel. The second matrix therefore clears the bit of a position
//! that an earlier probe also has. A position repeats an earlier one if the smallest of its
//! differences to the earlier ones is 0. Comparisons with each of them would write mask registers,
//! at most one per cycle on Zen 5: ten of those for eight keys took 25 % of the time.
//!
//! In the attributes, `avx512vbmi` implies `avx512f` and `avx512bw`.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::super::scalar;
use super::super::table::{Tile, powers};
use crate::probe::Block;

/// Keys per iteration: their hashes fill a register.
const KEYS: usize = 8;

/// Iterations between the computation of a key's positions and their use. Blocks are prefetched
/// twice as early; 32 keys ahead took 1.3x that time in filters larger than the cache (Zen 5).
const PIPELINE_DEPTH: usize = 4;

/// Byte `i` is `1 << i`. As a matrix of bits, this is the identity.
const BITS_OF_BYTES: u64 = 0x8040_2010_0804_0201;

/// Number of slots, a power of two: the iterations ahead and the current one fit.
const RING: usize = 2 * PIPELINE_DEPTH;

/// Fewer keys are inserted probe by probe: a matrix takes the same time for one key as for eight.
const MATRIX_MIN_KEYS: usize = 4;

/// Sets the bits of every hash.
///
/// # Safety
///
/// See [`Table`](super::super::table::Table).
#[target_feature(enable = "avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")]
pub(super) unsafe fn insert(tile: Tile<'_>, probes: u32, hashes: &[u64], new: &mut [u64]) {
    if hashes.len() < MATRIX_MIN_KEYS {
        return scalar::insert(tile, probes, hashes, new);
    }
    match new.is_empty() {
        true => insert_by::<false>(tile, probes, hashes, new),
        false => insert_by::<true>(tile, probes, hashes, new),
    }
}

#[target_feature(enable = "avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")]
fn insert_by<const NEW: bool>(tile: Tile<'_>, probes: u32, hashes: &[u64], new: &mut [u64]) {
    match probes {
        ..=2 => fill::<1, 1, NEW>(tile, probes, hashes, new),
        3..=4 => fill::<1, 2, NEW>(tile, probes, hashes, new),
        5..=6 => fill::<1, 3, NEW>(tile, probes, hashes, new),
        7..=8 => fill::<1, 4, NEW>(tile, probes, hashes, new),
        9..=10 => fill::<2, 1, NEW>(tile, probes, hashes, new),
        11..=12 => fill::<2, 2, NEW>(tile, probes, hashes, new),
        13..=14 => fill::<2, 3, NEW>(tile, probes, hashes, new),
        15..=16 => fill::<2, 4, NEW>(tile, probes, hashes, new),
        17..=24 => fill::<3, 4, NEW>(tile, probes, hashes, new),
        _ => fill::<4, 4, NEW>(tile, probes, hashes, new),
    }
}

/// Inserts with eight probes in each of `ROUNDS` except the last, which has up to two probes in
/// each of `REGISTERS`. If `NEW`, reports which hashes were new. Not inlined, so that
/// `tools/codegen.sh` finds each instance.
#[inline(never)]
#[target_feature(enable = "avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")]
fn fill<const ROUNDS: usize, const REGISTERS: usize, const NEW: bool>(
    tile: Tile<'_>,
    probes: u32,
    hashes: &[u64],
    new: &mut [u64],
) {
    let places = BlockPositions::<ROUNDS, REGISTERS>::new(&tile, probes);
    let mut staged = Staged::<ROUNDS>::new();
    // For each key of a word of results, one bit per word of its block that it changed. Storing a
    // byte uses no vector port.
    let mut added = [0; 64];
    let blocks = tile.blocks.as_mut_ptr();
    let mut next = hashes.chunks(KEYS);
    // Scalar code computes the addresses, since its ports are idle; vector registers cost more.
    let mut ahead = tile.prefetcher(hashes);
    // `stage` is called in one place, so that it is inlined: a call would reload its constants for
    // each eight keys.
    for i in 0..hashes.len().div_ceil(KEYS) + PIPELINE_DEPTH {
        if let Some(keys) = next.next() {
            places.stage::<NEW>(keys, &mut staged, i % RING);
        }
        if i >= PIPELINE_DEPTH {
            let i = i - PIPELINE_DEPTH;
            ahead.advance(KEYS);
            watch!(ran("avx512"));
            // The keys that were staged `PIPELINE_DEPTH` iterations before.
            let keys = KEYS.min(hashes.len() - i * KEYS);
            if keys == KEYS {
                for key in 0..KEYS {
                    // SAFETY: `key < keys`, so hash `i * KEYS + key` exists. It was staged in slot
                    // `i % RING` and is still there, since `PIPELINE_DEPTH < RING`. `places` was
                    // made for this tile, whose blocks are borrowed mutably during the loop.
                    unsafe { add::<ROUNDS, NEW>(blocks, &staged, i, key, &mut added) };
                }
            } else {
                for key in 0..keys {
                    // SAFETY: `key < keys`, so hash `i * KEYS + key` exists. It was staged in slot
                    // `i % RING` and is still there, since `PIPELINE_DEPTH < RING`. `places` was
                    // made for this tile, whose blocks are borrowed mutably during the loop.
                    unsafe { add::<ROUNDS, NEW>(blocks, &staged, i, key, &mut added) };
                }
            }
            let left = hashes.len() - i / 8 * 64;
            if NEW && (i % 8 == 7 || left <= (i % 8 + 1) * KEYS) {
                // SAFETY: reads the 64 bytes of `added`; the load needs no alignment.
                let added = unsafe { _mm512_loadu_si512(added.as_ptr().cast()) };
                new[i / 8] = _bzhi_u64(_mm512_test_epi8_mask(added, added), left.min(64) as u32);
            }
        }
    }
}

/// Sets the bits of a key of iteration `i`. If `NEW`, stores which words of its block changed.
///
/// # Safety
///
/// The key was staged for the tile that `blocks` belongs to, and nothing else accesses its blocks.
#[inline]
#[target_feature(enable = "avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")]
unsafe fn add<const ROUNDS: usize, const NEW: bool>(
    blocks: *mut Block,
    staged: &Staged<ROUNDS>,
    i: usize,
    key: usize,
    added: &mut [u8; 64],
) {
    /// For each byte, the index of the first byte of its word.
    const WORDS: [[u8; 8]; 8] =
        [[0; 8], [8; 8], [16; 8], [24; 8], [32; 8], [40; 8], [48; 8], [56; 8]];
    /// Byte `i` is `1 << i` if it is in the first word, otherwise 0.
    const ONES: [u64; 8] = [BITS_OF_BYTES, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: reads the 64 bytes of `WORDS`; the load needs no alignment.
    let words = unsafe { _mm512_loadu_si512(WORDS.as_ptr().cast()) };
    // SAFETY: reads the 64 bytes of `ONES`; the load needs no alignment.
    let ones = unsafe { _mm512_loadu_si512(ONES.as_ptr().cast()) };
    let slot = i % RING;
    // SAFETY: the caller promises that the key was staged, which initialised its offset.
    let offset = unsafe { staged.offset[slot][key].assume_init() };
    let block = blocks.wrapping_byte_add(offset as usize);
    // SAFETY: `stage` checked that the block is in the tile; the load needs no alignment.
    let before = unsafe { _mm512_loadu_si512(block.cast()) };
    let mut line = before;
    for round in 0..ROUNDS {
        // SAFETY: the caller promises that the key was staged, which initialised its bytes.
        let bytes = unsafe { staged.bytes[round][slot][key].assume_init() };
        // SAFETY: the caller promises that the key was staged, which initialised its bits.
        let bits = unsafe { staged.bits[round][slot][key].assume_init() };
        // Index of the lookup: the probe's byte XOR the word's first byte, below 8 only in its own
        // word. `vpermb` takes it modulo 64, which drops the two bits above the byte.
        let difference = _mm512_xor_si512(_mm512_set1_epi64(bytes as i64), words);
        let bytes = _mm512_permutexvar_epi8(difference, ones);
        // Transposes eight matrices: "the byte of a probe" becomes "the probes of a byte".
        let identity = _mm512_set1_epi64(BITS_OF_BYTES as i64);
        let probes = _mm512_gf2p8affine_epi64_epi8::<0>(identity, bytes);
        let mask = _mm512_gf2p8affine_epi64_epi8::<0>(probes, _mm512_set1_epi64(bits as i64));
        line = _mm512_or_si512(line, mask);
    }
    // SAFETY: `stage` checked that the block is in the tile, and the caller promises exclusive
    // access; the store needs no alignment.
    unsafe { _mm512_storeu_si512(block.cast(), line) };
    if NEW {
        added[i % 8 * KEYS + key] = _mm512_cmpneq_epi64_mask(before, line);
    }
}

/// The positions of the keys of several iterations. Initialising the memory would take 10 % of the
/// time of a call with 32 keys.
#[repr(align(64))]
struct Staged<const ROUNDS: usize> {
    /// Offset of the key's block from the start of the tile, in bytes; checked to be in the tile.
    offset: [Words; RING],
    /// The bytes of eight probes in the block, modulo 64.
    bytes: [[Words; RING]; ROUNDS],
    /// The matrix of the bits that eight probes set in their bytes.
    bits: [[Words; RING]; ROUNDS],
}

type Words = [MaybeUninit<u64>; KEYS];

impl<const ROUNDS: usize> Staged<ROUNDS> {
    fn new() -> Self {
        let none = [[MaybeUninit::uninit(); KEYS]; RING];
        Staged { offset: none, bytes: [none; ROUNDS], bits: [none; ROUNDS] }
    }
}

/// Computes, from hashes, the blocks in a tile and the bit positions in the blocks.
struct BlockPositions<const ROUNDS: usize, const REGISTERS: usize> {
    len: usize,
    first: u32,
    total: u32,
    /// Pairs of powers of `G`.
    powers: [[__m512i; 4]; ROUNDS],
    /// Ones in the bytes that hold a probe, in the order of [`round`](Self::round).
    used: [__m512i; ROUNDS],
}

impl<const ROUNDS: usize, const REGISTERS: usize> BlockPositions<ROUNDS, REGISTERS> {
    #[inline]
    #[target_feature(enable = "avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")]
    fn new(tile: &Tile<'_>, probes: u32) -> Self {
        const POWERS: [u32; 32] = powers();
        let mut powers = [[_mm512_setzero_si512(); 4]; ROUNDS];
        let mut used = [_mm512_setzero_si512(); ROUNDS];
        for round in 0..ROUNDS {
            let registers = if round + 1 == ROUNDS { REGISTERS } else { 4 };
            let mut bytes = 0;
            for (register, powers) in powers[round].iter_mut().enumerate().take(registers) {
                let probe = 8 * round + 2 * register;
                let [even, odd] = [POWERS[probe], POWERS[probe + 1]].map(i64::from);
                *powers = _mm512_set1_epi64(even | odd << 32);
                let one = 0xff_i64 << (8 * (registers - 1 - register));
                bytes |= match (probes as usize).saturating_sub(probe) {
                    0 => 0,
                    1 => one,
                    _ => one | one << 32,
                };
            }
            used[round] = _mm512_set1_epi64(bytes);
        }
        BlockPositions {
            len: tile.blocks.len(),
            first: tile.first,
            total: tile.total,
            powers,
            used,
        }
    }

    /// Stores the positions of up to eight keys. With fewer keys, the remaining lanes get unused
    /// values.
    ///
    /// # Panics
    ///
    /// If a block is not in the tile.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")]
    fn stage<const NEW: bool>(&self, hashes: &[u64], staged: &mut Staged<ROUNDS>, slot: usize) {
        let lanes = _bzhi_u32(0xff, hashes.len() as u32) as u8;
        // SAFETY: the mask limits the load to `hashes.len()` lanes; it needs no alignment.
        let keys = unsafe { _mm512_maskz_loadu_epi64(lanes, hashes.as_ptr().cast()) };
        let index = _mm512_mul_epu32(keys, _mm512_set1_epi64(self.total.into()));
        let index = _mm512_srli_epi64::<32>(index);
        let index = _mm512_sub_epi64(index, _mm512_set1_epi64(self.first.into()));
        // As unsigned numbers: a block before the tile wraps around.
        let len = _mm512_set1_epi64(self.len as i64);
        let other = _mm512_mask_cmpge_epu64_mask(lanes, index, len);
        assert!(other == 0, "a hash of another tile");
        store(&mut staged.offset[slot], _mm512_slli_epi64::<6>(index));
        let high = _mm512_castps_si512(_mm512_movehdup_ps(_mm512_castsi512_ps(keys)));
        for round in 0..ROUNDS {
            let (bytes, bits) = match round + 1 == ROUNDS {
                true => self.round::<REGISTERS>(round, high),
                false => self.round::<4>(round, high),
            };
            store(&mut staged.bytes[round][slot], bytes);
            store(&mut staged.bits[round][slot], bits);
        }
    }

    /// Returns the bytes of eight probes, and the matrices of their bits, for eight keys. Each word
    /// of `high` holds the high half of a key's hash twice.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")]
    fn round<const N: usize>(&self, round: usize, high: __m512i) -> (__m512i, __m512i) {
        const BITS: [u64; 8] = [BITS_OF_BYTES; 8];
        // One bit, in the lower halves.
        let lower = _mm512_set1_epi64(1);
        let one = _mm512_set1_epi32(1);
        let mut before = [(one, one); N];
        let (mut packed, mut again, mut fourth) = (one, one, one);
        for register in 0..N {
            let products = _mm512_mullo_epi32(high, self.powers[round][register]);
            let position = _mm512_srli_epi32::<23>(products);
            let exchanged = _mm512_rol_epi64::<32>(position);
            // The smallest difference to an earlier position: that of the lower half, for the upper
            // one, or one of an earlier register. It has nine bits, so subtracting one sets the top
            // byte only if it was 0.
            let mut least = _mm512_or_si512(_mm512_xor_si512(position, exchanged), lower);
            for &(before, exchanged) in &before[..register] {
                least = _mm512_min_epu32(least, _mm512_xor_si512(position, before));
                least = _mm512_min_epu32(least, _mm512_xor_si512(position, exchanged));
            }
            let same = _mm512_sub_epi32(least, one);
            before[register] = (position, exchanged);
            // Nine bits per position: three positions fit into half a word.
            (packed, again) = match register {
                0 => (position, _mm512_srli_epi32::<24>(same)),
                1 | 2 => (
                    _mm512_shldi_epi32::<9>(packed, products),
                    _mm512_shldi_epi32::<8>(again, same),
                ),
                _ => (packed, _mm512_shldi_epi32::<8>(again, same)),
            };
            fourth = position;
        }
        let mut bytes = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(fields::<N>(3)), packed);
        let mut bits = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(fields::<N>(0)), packed);
        if N == 4 {
            // The last register belongs in the first byte of each half. A ternary operation puts it
            // there instead of a masked `vpmultishiftqb`, since Bochs masks words where the
            // instruction masks bytes.
            const SELECT: i32 = 0b1100_1010;
            let first = _mm512_set1_epi32(0xff);
            let byte = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(35 << 32 | 3), fourth);
            let bit = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(32 << 32), fourth);
            bytes = _mm512_ternarylogic_epi32::<SELECT>(first, byte, bytes);
            bits = _mm512_ternarylogic_epi32::<SELECT>(first, bit, bits);
        }
        // SAFETY: reads the 64 bytes of `BITS`; the load needs no alignment.
        let table = unsafe { _mm512_loadu_si512(BITS.as_ptr().cast()) };
        let bits = _mm512_permutexvar_epi8(bits, table);
        let bits = _mm512_andnot_si512(again, _mm512_and_si512(bits, self.used[round]));
        // Transposed, since the instruction expects the rows of a matrix.
        let reversed = _mm512_set1_epi64(0x0102_0408_1020_4080);
        (bytes, _mm512_gf2p8affine_epi64_epi8::<0>(reversed, bits))
    }
}

/// Returns the shift counts of `vpmultishiftqb`: for each byte of a word, the bit at `offset` in a
/// probe's position. The positions of up to three of `N` registers are packed in each half of the
/// word, the last register in the first byte.
const fn fields<const N: usize>(offset: i64) -> i64 {
    let (mut fields, mut register) = (0, 0);
    while register < N && register < 3 {
        let start = 9 * (if N < 3 { N } else { 3 } - 1 - register) as i64 + offset;
        fields |= (start | (start + 32) << 32) << (8 * (N - 1 - register));
        register += 1;
    }
    fields
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(words: &mut Words, register: __m512i) {
    // SAFETY: writes the eight words of the reference; the store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) };
}
