//! AVX-512: the split blocks of two keys in a register; eight keys per iteration, whose results are
//! collected together.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use blocked_bloom::InstructionSet;
use blocked_bloom::parts::PrefetchAhead;

use super::{EXTRA_DISTANCE, Table, avx2, for_each_word, further, prefetch_at};
use crate::split_block::{SALTS, SplitBlock};

/// Inserting and single keys are those of AVX2, which AVX-512 contains: a key's mask fills half a
/// register, and the other half cannot be the next key's, which may belong to the same block.
pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Avx512,
    contains: [contains_near, contains_far::<1>, contains_far::<2>],
    ..avx2::TABLE
};

/// Keys per iteration: their hashes fill a register.
const KEYS: usize = 8;

/// Looks up in a filter that fits the cache.
///
/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn contains_near(blocks: &[SplitBlock], hashes: &[u64], hits: &mut [u64]) {
    ran!("avx512");
    // SAFETY: the caller promised the number of blocks.
    let test = unsafe { Test::new(blocks) };
    // Offsets go through memory, and are stored an iteration before they are needed: taking eight
    // numbers out of a register costs twice as much.
    let mut offsets = Offsets([[0; KEYS]; 2]);
    let mut following = hashes.as_chunks().0.iter();
    if let Some(keys) = following.next() {
        offsets.0[0] = test.offsets(load(keys));
    }
    let mut current = 0;
    for_each_word::<KEYS, 0>(
        blocks,
        hashes,
        hits,
        |keys| {
            if let Some(next) = following.next() {
                offsets.0[1 - current] = test.offsets(load(next));
            }
            let hashes = load(keys);
            // SAFETY: the iteration before stored what `test.offsets` gave for these keys; at worst
            // these are offsets of other keys of the batch, or 0, the first block.
            let bits = unsafe { test.eight(hashes, &offsets.0[current]) };
            current = 1 - current;
            bits
        },
        |rest| {
            let hashes = load_some(rest);
            let offsets = test.offsets(hashes);
            // SAFETY: the offsets of these hashes.
            unsafe { test.eight(hashes, &offsets) }
        },
    );
}

/// Where the blocks of this iteration's keys begin, and those of the next one's. Aligned to cache
/// lines, since a load waits for a store that crosses a boundary: in cache, lookups took twice as
/// long where the stack happened to be misaligned (AMD EPYC, Zen 5).
#[repr(align(64))]
struct Offsets([[u64; KEYS]; 2]);

/// Looks up in a filter that outgrows the cache. Where a block begins is computed once, and kept
/// from when it is prefetched until it is tested: computed twice, as AVX2 does, lookups in 2 MiB
/// took 1.14 to 1.19 of the time, and from 8 MiB on 1.02 to 1.05 (Zen 4, 256 to 4,096 a call). For
/// AVX2, of four keys a register, it gained nothing.
///
/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn contains_far<const LINES: usize>(
    blocks: &[SplitBlock],
    hashes: &[u64],
    hits: &mut [u64],
) {
    ran!("avx512");
    // SAFETY: the caller promised the number of blocks.
    let test = unsafe { Test::new(blocks) };
    let distance = (NEAREST + further(size_of_val(blocks))) / KEYS;
    let mut staged = Staged([const { MaybeUninit::uninit() }; SLOTS]);
    let mut later = hashes.chunks(KEYS).enumerate();
    let mut stage = |staged: &mut Staged| {
        if let Some((group, keys)) = later.next() {
            let offsets = match keys.first_chunk() {
                Some(keys) => test.offsets(load(keys)),
                None => test.offsets(load_some(keys)),
            };
            let offsets = staged.0[group % SLOTS].write(offsets);
            for &mut offset in offsets.iter_mut().take(keys.len()) {
                prefetch_at::<LINES, _>(blocks, offset as usize);
            }
        }
    };
    (0..distance).for_each(|_| stage(&mut staged));
    let mut group = 0;
    for (keys, word) in hashes.chunks(64).zip(hits) {
        let mut bits = 0;
        let (groups, rest) = keys.as_chunks::<KEYS>();
        for (i, keys) in groups.iter().enumerate() {
            stage(&mut staged);
            // SAFETY: `stage` was called once for each group up to this one and `distance` times
            // more, so that this one is staged; and its slot is the next group's after `SLOTS`
            // calls, which is more than `distance`, as is asserted beside `SLOTS`.
            let offsets = unsafe { staged.0[group % SLOTS].assume_init_ref() };
            let hashes = load(keys);
            // SAFETY: the offsets of these keys.
            bits |= unsafe { test.eight(hashes, offsets) } << (i * KEYS);
            group += 1;
        }
        if !rest.is_empty() {
            let used = (1 << rest.len()) - 1;
            // SAFETY: as above, without the call for this one: `distance` is at least 1.
            let offsets = unsafe { staged.0[group % SLOTS].assume_init_ref() };
            let hashes = load_some(rest);
            // SAFETY: the offsets of these keys, and of zeros.
            let found = unsafe { test.eight(hashes, offsets) };
            bits |= (found & used) << (groups.len() * KEYS);
        }
        *word = bits;
    }
}

/// Groups whose offsets are kept: more than the farthest prefetch distance, 16 groups.
const SLOTS: usize = 32;

/// Keys of the nearest prefetch distance, which is at least a group.
const NEAREST: usize = PrefetchAhead::<u64, fn(&u64)>::DISTANCE;

// A group's slot is not written again before the group is tested, and a group is staged before it
// is tested: `contains_far` rests on both.
const _: () = assert!((NEAREST + EXTRA_DISTANCE) / KEYS < SLOTS && NEAREST / KEYS >= 1);

/// Where the blocks of each group begin. Not initialised, which would take a call of eight keys a
/// fifth of its time.
#[repr(align(64))]
struct Staged([MaybeUninit<[u64; KEYS]>; SLOTS]);

/// What all keys of a batch share.
struct Test<'a> {
    /// 1 to 2^32 - 1.
    blocks: &'a [SplitBlock],
    count: __m512i,
    /// The eight salts, twice.
    salts: __m512i,
    ones: __m512i,
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
            ones: _mm512_set1_epi32(1),
        }
    }

    /// Where the blocks of eight keys begin, in bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn offsets(&self, hashes: __m512i) -> [u64; KEYS] {
        // The upper half of the hash, moved down, times the count. In the loop the compiler takes
        // `vpmullq` for it, two operations more per eight keys on Intel than `vpmuludq`.
        let products = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hashes), self.count);
        store(_mm512_slli_epi64::<5>(_mm512_srli_epi64::<32>(products)))
    }

    /// One bit per key, set if it may be present.
    ///
    /// # Safety
    ///
    /// Each offset came from [`offsets`](Self::offsets) of this test, or is 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn eight(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        // SAFETY: the caller's promise is passed on.
        let a = unsafe { self.test_pair::<0>(hashes, offsets) };
        // SAFETY: as above.
        let b = unsafe { self.test_pair::<1>(hashes, offsets) };
        // SAFETY: as above.
        let c = unsafe { self.test_pair::<2>(hashes, offsets) };
        // SAFETY: as above.
        let d = unsafe { self.test_pair::<3>(hashes, offsets) };
        // Byte `i` is key `i`'s; the upper eight bytes are zero and their bits are cut off.
        let missing = _mm_cvtsi64_si128((a | b << 16 | c << 32 | d << 48) as i64);
        u64::from(_mm_testn_epi8_mask(missing, missing) as u8)
    }

    /// Eight bits for each key of pair `PAIR`, one per word, set where the key's bit is missing;
    /// the second key's are above the first's.
    ///
    /// # Safety
    ///
    /// As [`eight`](Self::eight).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn test_pair<const PAIR: usize>(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        // SAFETY: the caller promised that the offset is of a block.
        let first = unsafe { self.block(offsets[2 * PAIR]) };
        // SAFETY: the caller promised that the offset is of a block.
        let second = unsafe { self.block(offsets[2 * PAIR + 1]) };
        let words = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second);
        // The low half of key `i`'s hash is word `2 i` of the register: these are for the keys `2
        // PAIR` and `2 PAIR + 1`.
        let (a, b) = (4 * PAIR as i32, 4 * PAIR as i32 + 2);
        let lanes = _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
        let products = _mm512_mullo_epi32(_mm512_permutexvar_epi32(lanes, hashes), self.salts);
        let bits = _mm512_sllv_epi32(self.ones, _mm512_srli_epi32::<27>(products));
        u64::from(_mm512_testn_epi32_mask(words, bits))
    }

    /// # Safety
    ///
    /// `offset` is 32 times the index of a block of this test.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn block(&self, offset: u64) -> __m256i {
        let block = self.blocks.as_ptr().wrapping_byte_add(offset as usize);
        // SAFETY: the caller promised that it is a block of `blocks`; the load has no alignment to
        // respect.
        unsafe { _mm256_loadu_si256(block.cast()) }
    }
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
