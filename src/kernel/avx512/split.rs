//! AVX-512: the split blocks of two keys in a register; eight keys a turn, whose results are collected together.

use core::arch::x86_64::*;

use super::super::avx2;
use super::super::split::Table;
use super::super::{Ahead, Prefetch};
use super::{KEYS, load, load_some, store};
use crate::probe::split_block::{SALTS, SplitBlock};

/// AVX-512 contains AVX2, whose way of inserting is as good: a key's mask fills half a register, and the next key may belong to the
/// same block.
pub(in super::super) const TABLE: Table = Table { contains, insert: avx2::split::insert };

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn contains(
    blocks: &[SplitBlock],
    ahead: Ahead<'_, SplitBlock>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let batch = match ahead.prefetch {
        Prefetch::No => batch::<0>,
        Prefetch::OneLine => batch::<1>,
        Prefetch::TwoLines => batch::<2>,
    };
    // SAFETY: the caller's promises are passed on.
    unsafe { batch(blocks, ahead, hashes, hits) }
}

/// Requests `LINES` lines per key ahead.
///
/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn batch<const LINES: usize>(
    blocks: &[SplitBlock],
    mut ahead: Ahead<'_, SplitBlock>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller promised the number of blocks.
    let test = unsafe { Test::new(blocks) };
    let (turns, rest) = hashes.as_chunks::<KEYS>();
    // Through memory, and stored a turn before they are needed: taking eight numbers out of a register costs twice as much.
    let mut offsets = [[0; KEYS]; 2];
    let mut following = turns.iter().enumerate();
    if let Some((i, turn)) = following.next() {
        offsets[i % 2] = test.offsets(load(turn));
    }
    for (turns, word) in turns.chunks(64 / KEYS).zip(hits.iter_mut()) {
        *word = 0;
        for (i, turn) in turns.iter().enumerate() {
            if LINES > 0 {
                ahead.request::<LINES>(KEYS);
            }
            // A word has an even number of turns, so that counting from the first of all or of a word is the same modulo 2.
            if let Some((i, turn)) = following.next() {
                offsets[i % 2] = test.offsets(load(turn));
            }
            let hashes = load(turn);
            // SAFETY: the offsets of this turn, stored the turn before.
            *word |= unsafe { test.eight(hashes, &offsets[i % 2]) } << (i * KEYS);
        }
    }
    if !rest.is_empty() {
        let hashes = load_some(rest);
        let used = (1 << rest.len()) - 1;
        let offsets = test.offsets(hashes);
        // SAFETY: the offsets of these hashes.
        let bits = unsafe { test.eight(hashes, &offsets) } & used;
        let before = turns.len() % (64 / KEYS) * KEYS;
        let word = &mut hits[turns.len() / (64 / KEYS)];
        *word = if before == 0 { bits } else { *word | bits << before };
    }
}

/// What all keys of a batch share.
struct Test<'a> {
    /// 1 to 2^32 - 1.
    blocks: &'a [SplitBlock],
    count: __m512i,
    /// The eight salts, twice.
    salts: __m512i,
    one: __m512i,
}

impl<'a> Test<'a> {
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn new(blocks: &'a [SplitBlock]) -> Self {
        // SAFETY: eight words; the load has no alignment to respect.
        let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
        Test {
            blocks,
            count: _mm512_set1_epi64(blocks.len() as i64),
            salts: _mm512_broadcast_i64x4(salts),
            one: _mm512_set1_epi32(1),
        }
    }

    /// Where the blocks of eight keys begin, in bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn offsets(&self, hashes: __m512i) -> [u64; KEYS] {
        // `vpmuludq` multiplies the low halves of its lanes: the upper half of the hash, moved down, and the count.
        let products = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hashes), self.count);
        store(_mm512_slli_epi64::<5>(_mm512_srli_epi64::<32>(products)))
    }

    /// One bit per key, set if it may be present.
    ///
    /// # Safety
    ///
    /// `offsets` came from [`offsets`](Self::offsets) of this test.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn eight(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        // SAFETY: the caller's promise is passed on.
        let a = unsafe { self.two::<0>(hashes, offsets) };
        // SAFETY: as above.
        let b = unsafe { self.two::<1>(hashes, offsets) };
        // SAFETY: as above.
        let c = unsafe { self.two::<2>(hashes, offsets) };
        // SAFETY: as above.
        let d = unsafe { self.two::<3>(hashes, offsets) };
        // Byte `i` is key `i`'s; the upper eight bytes are zero and their bits are cut off.
        let missing = _mm_cvtsi64_si128((a | b << 16 | c << 32 | d << 48) as i64);
        u64::from(_mm_testn_epi8_mask(missing, missing) as u8)
    }

    /// Eight bits for each key of pair `PAIR`, set where the bit of a word is not; the second key's above the first's.
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
        let words = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second);
        // Of the register's sixteen words, key `i`'s low half is word `2 i`: for the keys `2 PAIR` and `2 PAIR + 1`.
        let (a, b) = (4 * PAIR as i32, 4 * PAIR as i32 + 2);
        let lanes = _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
        let products = _mm512_mullo_epi32(_mm512_permutexvar_epi32(lanes, hashes), self.salts);
        let bits = _mm512_sllv_epi32(self.one, _mm512_srli_epi32::<27>(products));
        u64::from(_mm512_testn_epi32_mask(words, bits))
    }

    /// # Safety
    ///
    /// `offset` is 32 times the index of a block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn block(&self, offset: u64) -> __m256i {
        let block = self.blocks.as_ptr().wrapping_byte_add(offset as usize);
        // SAFETY: the caller promised that it is a block of `blocks`; the load has no alignment to respect.
        unsafe { _mm256_loadu_si256(block.cast()) }
    }
}
