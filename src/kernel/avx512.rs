//! AVX-512: sixteen probes in a register, of two keys where eight are enough for one; eight keys per iteration.
//!
//! The 64-byte line is one register; a probe's top four bits are the 32-bit word, five more the bit. Needs the extensions F, BW,
//! DQ, VL and VBMI2: Ice Lake, Zen 4 and later. Older parts with AVX-512 lower their clock for it and take the AVX2 kernel.

mod set;
use core::arch::x86_64::*;

use super::driver::batch_for;
use super::prefetch::{AHEAD, Ahead, Prefetch, prefetch_lines};
use super::table::{Table, Tile, powers};
use super::{avx2, scalar};
use crate::probe::Block;

// AVX2 comes with every AVX-512 there is; it is asked for since this kernel takes AVX2's functions for one key and for
// filling split blocks.
cpufeatures::new!(detect, "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi2");

pub(super) const TABLE: Table = Table {
    name: "avx512",
    is_supported: detect::get,
    fits: FITS_BYTES,
    contains,
    insert,
    one: Some(avx2::one),
    mask: set::mask,
    covers: set::covers,
};

/// The second-level cache of the CPUs that have these extensions, from 1 MiB; not measured.
const FITS_BYTES: usize = 1 << 20;

/// Keys per iteration: their hashes fill a register.
const KEYS: usize = 8;

/// Prefetch distance, in iterations.
const ITERATIONS_AHEAD: usize = AHEAD / KEYS;

/// A power of two that holds the iterations ahead and the current one.
const RING: usize = 2 * ITERATIONS_AHEAD;

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn contains(
    blocks: &[Block],
    ahead: Ahead<'_>,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let batch = batch_for!(batch, ahead.prefetch, probes, [8, 16, 32]);
    // SAFETY: the caller's promises are passed on.
    unsafe { batch(blocks, ahead, probes, hashes, hits) }
}

/// Requests `LINES` lines per key ahead, and tests up to `LANES` probes.
///
/// # Safety
///
/// As [`Table`] says, and `probes <= LANES`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn batch<const LINES: usize, const LANES: usize>(
    blocks: &[Block],
    mut ahead: Ahead<'_>,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller promised the number of blocks.
    let test = unsafe { Test::<LANES>::new(blocks, probes) };
    let (iterations, rest) = hashes.as_chunks::<KEYS>();
    // Through memory, and stored an iteration before they are needed: taking eight numbers out of a register costs twice as much.
    let mut aligned = Offsets([[0; KEYS]; 2]);
    let Offsets(offsets) = &mut aligned;
    let mut following = iterations.iter().enumerate();
    if let Some((i, keys)) = following.next() {
        offsets[i % 2] = test.offsets(load(keys));
    }
    for (iterations, word) in iterations.chunks(64 / KEYS).zip(hits.iter_mut()) {
        *word = 0;
        for (i, keys) in iterations.iter().enumerate() {
            if LINES > 0 {
                ahead.prefetch::<LINES>(KEYS);
            }
            if let Some((i, keys)) = following.next() {
                offsets[i % 2] = test.offsets(load(keys));
            }
            let hashes = load(keys);
            // SAFETY: the offsets of this iteration, stored by the one before.
            *word |= unsafe { test.eight(hashes, &offsets[i % 2]) } << (i * KEYS);
        }
    }
    if !rest.is_empty() {
        let hashes = load_some(rest);
        let used = (1 << rest.len()) - 1;
        let offsets = test.offsets(hashes);
        // SAFETY: the offsets of these hashes.
        let bits = unsafe { test.eight(hashes, &offsets) } & used;
        let before = iterations.len() % (64 / KEYS) * KEYS;
        let word = &mut hits[iterations.len() / (64 / KEYS)];
        *word = if before == 0 { bits } else { *word | bits << before };
    }
}

/// Where the blocks of two times eight keys begin. Aligned, since what straddles two lines of the stack is stored and loaded twice: up to
/// twice the time of a batch in the cache (Zen 5).
#[repr(align(64))]
struct Offsets([[u64; KEYS]; 2]);

/// What all keys of a batch share.
struct Test<'a, const LANES: usize> {
    /// 1 to 2^32 - 1.
    blocks: &'a [Block],
    count: __m512i,
    probes: Probes,
    /// Lanes that probe: of both keys of a register, of one key, and of its second round.
    of_two: u16,
    of_one: u16,
    of_second_round: u16,
    /// Which of two lines a lane's word comes from.
    line: __m512i,
    one: __m512i,
}

impl<'a, const LANES: usize> Test<'a, LANES> {
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn new(blocks: &'a [Block], probes: u32) -> Self {
        let lanes = (1_u64 << probes) - 1;
        Test {
            blocks,
            count: _mm512_set1_epi64(blocks.len() as i64),
            probes: Probes::new(LANES),
            of_two: (lanes & 0xff | lanes << 8) as u16,
            of_one: lanes as u16,
            of_second_round: (lanes >> 16) as u16,
            line: _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
            one: _mm512_set1_epi32(1),
        }
    }

    /// Where the blocks of eight keys begin, in bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn offsets(&self, hashes: __m512i) -> [u64; KEYS] {
        let index = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hashes, self.count));
        store(_mm512_slli_epi64::<6>(index))
    }

    /// One bit per key, set if it may be present.
    ///
    /// # Safety
    ///
    /// `offsets` came from [`offsets`](Self::offsets) of this test.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn eight(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        if LANES == 8 {
            // SAFETY: the caller's promise is passed on.
            let a = unsafe { self.two::<0>(hashes, offsets) };
            // SAFETY: as above.
            let b = unsafe { self.two::<1>(hashes, offsets) };
            // SAFETY: as above.
            let c = unsafe { self.two::<2>(hashes, offsets) };
            // SAFETY: as above.
            let d = unsafe { self.two::<3>(hashes, offsets) };
            let missing = _mm_cvtsi64_si128((a | b << 16 | c << 32 | d << 48) as i64);
            u64::from(_mm_testn_epi8_mask(missing, missing) as u8)
        } else {
            // SAFETY: the caller's promise is passed on.
            let low = unsafe { self.four::<0, 1, 2, 3>(hashes, offsets) };
            // SAFETY: as above.
            let high = unsafe { self.four::<4, 5, 6, 7>(hashes, offsets) };
            let missing = _mm_set_epi64x(high as i64, low as i64);
            u64::from(_mm_testn_epi16_mask(missing, missing))
        }
    }

    /// What [`one`](Self::one) gives for four keys.
    ///
    /// # Safety
    ///
    /// As [`eight`](Self::eight).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn four<const A: usize, const B: usize, const C: usize, const D: usize>(
        &self,
        hashes: __m512i,
        offsets: &[u64; KEYS],
    ) -> u64 {
        // SAFETY: the caller's promise is passed on.
        let a = unsafe { self.one::<A>(hashes, offsets) };
        // SAFETY: as above.
        let b = unsafe { self.one::<B>(hashes, offsets) };
        // SAFETY: as above.
        let c = unsafe { self.one::<C>(hashes, offsets) };
        // SAFETY: as above.
        let d = unsafe { self.one::<D>(hashes, offsets) };
        a | b << 16 | c << 32 | d << 48
    }

    /// Eight bits for each key of pair `PAIR`, set where a probe's bit is not.
    ///
    /// # Safety
    ///
    /// As [`eight`](Self::eight).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn two<const PAIR: usize>(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        // SAFETY: the caller promised that the offset is of a block.
        let first = unsafe { self.block(offsets[2 * PAIR]) };
        // SAFETY: the caller promised that the offset is of a block.
        let second = unsafe { self.block(offsets[2 * PAIR + 1]) };
        let products = self.probes.of_two::<PAIR>(hashes);
        // The top four bits of the product, and above them which of the two lines.
        let word = _mm512_shldi_epi32::<4>(self.line, products);
        let words = _mm512_permutex2var_epi32(first, word, second);
        u64::from(_mm512_mask_testn_epi32_mask(self.of_two, words, self.bit(products)))
    }

    /// A bit per probe of key `KEY`, or per probe of either round, set where the probe's bit is not.
    ///
    /// # Safety
    ///
    /// As [`eight`](Self::eight).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn one<const KEY: usize>(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        // SAFETY: the caller promised that the offset is of a block.
        let line = unsafe { self.block(offsets[KEY]) };
        let products = self.probes.of_one::<KEY>(hashes);
        let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), line);
        let missing = _mm512_mask_testn_epi32_mask(self.of_one, words, self.bit(products));
        if LANES <= 16 {
            return u64::from(missing);
        }
        let products = _mm512_mullo_epi32(products, self.probes.next_round);
        let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), line);
        let bits = self.bit(products);
        u64::from(missing | _mm512_mask_testn_epi32_mask(self.of_second_round, words, bits))
    }

    /// The probe's bit in its word: a rotation takes its count modulo 32.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn bit(&self, products: __m512i) -> __m512i {
        _mm512_rolv_epi32(self.one, _mm512_srli_epi32::<23>(products))
    }

    /// # Safety
    ///
    /// `offset` is 64 times the index of a block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn block(&self, offset: u64) -> __m512i {
        let block = self.blocks.as_ptr().wrapping_byte_add(offset as usize);
        // SAFETY: the caller promised that it is a block of `blocks`; the load has no alignment to respect.
        unsafe { _mm512_loadu_si512(block.cast()) }
    }
}

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn insert(tile: Tile<'_>, probes: u32, hashes: &[u64]) {
    let fill = match probes {
        1 => fill::<1, 8>,
        2 => fill::<2, 8>,
        3 => fill::<3, 8>,
        4 => fill::<4, 8>,
        5 => fill::<5, 8>,
        6 => fill::<6, 8>,
        7 => fill::<7, 8>,
        8 => fill::<8, 8>,
        ..=16 => fill::<0, 16>,
        // Rare; a second round would double the ring.
        _ => return scalar::insert(tile, probes, hashes),
    };
    // SAFETY: the caller's promise that there is AVX-512 is passed on.
    unsafe { fill(tile, probes, hashes) }
}

/// Where the bits of the next keys are: a position that is loaded right after it was stored in a wider piece would wait for the
/// store.
#[repr(align(64))]
struct Ring<const LANES: usize> {
    /// Per key, the bit positions in its block.
    positions: [[[u32; LANES]; KEYS]; RING],
    /// Per key, the index of its block in the tile; checked when it is written.
    blocks: [[u64; KEYS]; RING],
}

/// Inserts with `PROBES` probes, or `probes` if `PROBES` is 0; there are `LANES` at most.
///
/// # Safety
///
/// The CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn fill<const PROBES: usize, const LANES: usize>(
    tile: Tile<'_>,
    probes: u32,
    hashes: &[u64],
) {
    let probes = if PROBES > 0 { PROBES } else { probes as usize };
    let one = _mm512_set1_epi32(1);
    // Lane j of a mask is `1 << (bit - 32 j)`, with counts taken as unsigned: all lanes but one shift their one out.
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let lanes = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(-32));
    let place = Place::new(&tile, LANES);
    let mut ring = Ring { positions: [[[0; LANES]; KEYS]; RING], blocks: [[0; KEYS]; RING] };
    let (iterations, rest) = hashes.as_chunks::<KEYS>();
    for (i, keys) in iterations.iter().take(ITERATIONS_AHEAD).enumerate() {
        place.eight(keys, &mut ring, i);
    }
    for i in 0..iterations.len() {
        if let Some(keys) = iterations.get(i + ITERATIONS_AHEAD) {
            place.eight(keys, &mut ring, i + ITERATIONS_AHEAD);
        }
        for (positions, &index) in ring.positions[i % RING].iter().zip(&ring.blocks[i % RING]) {
            let block = tile.blocks.as_mut_ptr().wrapping_add(index as usize);
            // SAFETY: `eight` checked that the tile has the block; the load has no alignment to respect.
            let mut line = unsafe { _mm512_loadu_si512(block.cast()) };
            let (pairs, last) = positions[..probes].as_chunks::<2>();
            for &[a, b] in pairs {
                let a = _mm512_add_epi32(_mm512_set1_epi32(a as i32), lanes);
                let b = _mm512_add_epi32(_mm512_set1_epi32(b as i32), lanes);
                let (a, b) = (_mm512_sllv_epi32(one, a), _mm512_sllv_epi32(one, b));
                line = _mm512_ternarylogic_epi32::<0xfe>(line, a, b);
            }
            if let &[a] = last {
                let a = _mm512_add_epi32(_mm512_set1_epi32(a as i32), lanes);
                line = _mm512_or_si512(line, _mm512_sllv_epi32(one, a));
            }
            // SAFETY: as the load; the tile is borrowed mutably.
            unsafe { _mm512_storeu_si512(block.cast(), line) };
        }
    }
    scalar::insert(tile, probes as u32, rest);
}

/// From hashes to blocks of a tile and positions in them.
struct Place {
    start: *const Block,
    /// Blocks in the tile, in every lane; so are the others.
    len: __m512i,
    first: __m512i,
    total: __m512i,
    probes: Probes,
    prefetching: bool,
}

impl Place {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn new(tile: &Tile<'_>, lanes: usize) -> Self {
        Place {
            start: tile.blocks.as_ptr(),
            len: _mm512_set1_epi64(tile.blocks.len() as i64),
            first: _mm512_set1_epi64(i64::from(tile.first)),
            total: _mm512_set1_epi64(i64::from(tile.total)),
            probes: Probes::new(lanes),
            prefetching: !matches!(Prefetch::of(tile.blocks, FITS_BYTES), Prefetch::No),
        }
    }

    /// Writes the places of eight keys to the ring and prefetches their blocks.
    ///
    /// # Panics
    ///
    /// If a block is not in the tile.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn eight<const LANES: usize>(
        &self,
        hashes: &[u64; KEYS],
        ring: &mut Ring<LANES>,
        iteration: usize,
    ) {
        let hashes = load(hashes);
        let index = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hashes, self.total));
        let index = _mm512_sub_epi64(index, self.first);
        // As unsigned numbers: a block before the tile wraps around.
        assert!(_mm512_cmpge_epu64_mask(index, self.len) == 0, "a hash of another tile");
        let blocks = &mut ring.blocks[iteration % RING];
        *blocks = store(index);
        if self.prefetching {
            for &index in blocks.iter() {
                prefetch_lines::<1>(self.start.wrapping_add(index as usize));
            }
        }
        let (registers, _) =
            ring.positions[iteration % RING].as_flattened_mut().as_chunks_mut::<16>();
        match registers {
            [a, b, c, d] => {
                *a = positions(self.probes.of_two::<0>(hashes));
                *b = positions(self.probes.of_two::<1>(hashes));
                *c = positions(self.probes.of_two::<2>(hashes));
                *d = positions(self.probes.of_two::<3>(hashes));
            }
            [a, b, c, d, e, f, g, h] => {
                *a = positions(self.probes.of_one::<0>(hashes));
                *b = positions(self.probes.of_one::<1>(hashes));
                *c = positions(self.probes.of_one::<2>(hashes));
                *d = positions(self.probes.of_one::<3>(hashes));
                *e = positions(self.probes.of_one::<4>(hashes));
                *f = positions(self.probes.of_one::<5>(hashes));
                *g = positions(self.probes.of_one::<6>(hashes));
                *h = positions(self.probes.of_one::<7>(hashes));
            }
            _ => unreachable!("eight keys of 8 or 16 lanes"),
        }
    }
}

/// Sixteen probes at once, whose products' top nine bits are the bit positions.
struct Probes {
    /// `G^0 .. G^15`, or `G^0 .. G^7` twice for two keys.
    powers: __m512i,
    /// `G^16`: from one round of a key to the next.
    next_round: __m512i,
}

impl Probes {
    /// For keys with up to `lanes` probes: 8 of two keys, else 16 of one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn new(lanes: usize) -> Self {
        const POWERS: [u32; 17] = powers();
        let mut powers = [0; 16];
        for (i, power) in powers.iter_mut().enumerate() {
            *power = POWERS[i % lanes];
        }
        // SAFETY: sixteen words; the load has no alignment to respect.
        let powers = unsafe { _mm512_loadu_si512(powers.as_ptr().cast()) };
        Probes { powers, next_round: _mm512_set1_epi32(POWERS[16] as i32) }
    }

    /// Eight products each of keys `2 PAIR` and `2 PAIR + 1` of the register.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn of_two<const PAIR: usize>(&self, hashes: __m512i) -> __m512i {
        let (a, b) = (4 * PAIR as i32 + 1, 4 * PAIR as i32 + 3);
        let lanes = _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
        _mm512_mullo_epi32(_mm512_permutexvar_epi32(lanes, hashes), self.powers)
    }

    /// Sixteen products of key `KEY` of the register.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn of_one<const KEY: usize>(&self, hashes: __m512i) -> __m512i {
        let lanes = _mm512_set1_epi32(2 * KEY as i32 + 1);
        _mm512_mullo_epi32(_mm512_permutexvar_epi32(lanes, hashes), self.powers)
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn positions(products: __m512i) -> [u32; 16] {
    let bits = _mm512_srli_epi32::<23>(products);
    let mut positions = [0; 16];
    // SAFETY: sixteen words; the store has no alignment to respect.
    unsafe { _mm512_storeu_si512(positions.as_mut_ptr().cast(), bits) };
    positions
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn load(words: &[u64; KEYS]) -> __m512i {
    // SAFETY: eight words; the load has no alignment to respect.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Fewer than eight words, and zeros after the last.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn load_some(words: &[u64]) -> __m512i {
    let lanes = (1 << words.len()) - 1;
    // SAFETY: no more than `words.len()` lanes are read; the load has no alignment to respect.
    unsafe { _mm512_maskz_loadu_epi64(lanes, words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn store(words: __m512i) -> [u64; KEYS] {
    let mut stored = [0; KEYS];
    // SAFETY: eight words; the store has no alignment to respect.
    unsafe { _mm512_storeu_si512(stored.as_mut_ptr().cast(), words) };
    stored
}
