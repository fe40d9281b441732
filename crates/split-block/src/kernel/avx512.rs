//! AVX-512: the split blocks of two keys in a register; tests eight keys per iteration and collects
//! their results together.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use blocked_bloom::InstructionSet;
use blocked_bloom::parts::PrefetchAhead;

use super::{EXTRA_DISTANCE, Table, avx2, for_each_word, further, prefetch_at};
use crate::split_block::{SALTS, SplitBlock};

/// Insertion and single keys use AVX2, which AVX-512 includes: a key's mask fills half a register,
/// and the other half cannot be the next key's, which may belong to the same block.
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
/// The caller must keep the promises of [`Table`] for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn contains_near(blocks: &[SplitBlock], hashes: &[u64], hits: &mut [u64]) {
    ran!("avx512");
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let test = unsafe { Test::new(blocks) };
    // Offsets go through memory and are stored one iteration in advance: extracting eight numbers
    // from a register costs twice as much.
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
            // SAFETY: the previous iteration stored the offsets of these keys, computed by
            // `test.offsets`. At worst they are offsets of other keys of the batch, or 0, the first
            // block.
            let bits = unsafe { test.eight(hashes, &offsets.0[current]) };
            current = 1 - current;
            bits
        },
        |rest| {
            let hashes = load_some(rest);
            let offsets = test.offsets(hashes);
            // SAFETY: `test.offsets` computed the offsets of these hashes.
            unsafe { test.eight(hashes, &offsets) }
        },
    );
}

/// Byte offsets of the blocks of this iteration's keys, and of the next iteration's. Aligned to
/// cache lines, since a load stalls on a store that crosses a cache line: in cache, lookups took
/// twice as much time if the stack happened to be misaligned (AMD EPYC, Zen 5).
#[repr(align(64))]
struct Offsets([[u64; KEYS]; 2]);

/// Looks up in a filter that exceeds the cache. The offset of a block is computed once, and kept
/// from its prefetch until its test. Computed twice, as with AVX2, lookups took 1.14x to 1.19x the
/// time in 2 MiB and 1.02x to 1.05x from 8 MiB upwards (Zen 4, 256 to 4,096 a call). With AVX2,
/// which has four keys per register, it made no difference.
///
/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
unsafe fn contains_far<const LINES: usize>(
    blocks: &[SplitBlock],
    hashes: &[u64],
    hits: &mut [u64],
) {
    ran!("avx512");
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
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
            // SAFETY: `stage` was called once for each group up to this one, and `distance` more
            // times, so this group is staged. Its slot is reused after `SLOTS` calls, which is more
            // than `distance`, as asserted next to `SLOTS`.
            let offsets = unsafe { staged.0[group % SLOTS].assume_init_ref() };
            let hashes = load(keys);
            // SAFETY: `test.offsets` computed the staged offsets of these keys.
            bits |= unsafe { test.eight(hashes, offsets) } << (i * KEYS);
            group += 1;
        }
        if !rest.is_empty() {
            let used = (1 << rest.len()) - 1;
            // SAFETY: `stage` was called once for each earlier group and `distance` times before
            // them. `distance` is at least 1 and below `SLOTS`, so this group is staged and its
            // slot is not reused.
            let offsets = unsafe { staged.0[group % SLOTS].assume_init_ref() };
            let hashes = load_some(rest);
            // SAFETY: `test.offsets` computed the staged offsets, of these keys and of zeros.
            let found = unsafe { test.eight(hashes, offsets) };
            bits |= (found & used) << (groups.len() * KEYS);
        }
        *word = bits;
    }
}

/// Groups whose offsets are kept: more than the largest prefetch distance, 16 groups.
const SLOTS: usize = 32;

/// The shortest prefetch distance in keys, at least one group.
const NEAREST: usize = PrefetchAhead::<u64, fn(&u64)>::DISTANCE;

// A group's slot is not rewritten before the group is tested, and a group is staged before it is
// tested: `contains_far` relies on both.
const _: () = assert!((NEAREST + EXTRA_DISTANCE) / KEYS < SLOTS && NEAREST / KEYS >= 1);

/// Byte offsets of the blocks of each group. Not initialised, because that would take 20 % of the
/// time of a call with eight keys.
#[repr(align(64))]
struct Staged([MaybeUninit<[u64; KEYS]>; SLOTS]);

/// Values that all keys of a batch share.
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
        // SAFETY: `SALTS` has the 32 bytes that the load reads; the load allows any alignment.
        let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
        Test {
            blocks,
            count: _mm512_set1_epi64(blocks.len() as i64),
            salts: _mm512_broadcast_i64x4(salts),
            ones: _mm512_set1_epi32(1),
        }
    }

    /// Returns the byte offsets of the blocks of eight keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    fn offsets(&self, hashes: __m512i) -> [u64; KEYS] {
        // The high half of the hash, shifted down, times the count. In the loop the compiler
        // chooses `vpmullq`, which on Intel needs two more operations per eight keys than
        // `vpmuludq`.
        let products = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hashes), self.count);
        store(_mm512_slli_epi64::<5>(_mm512_srli_epi64::<32>(products)))
    }

    /// Returns one bit per key, set if the key may be present.
    ///
    /// # Safety
    ///
    /// Each offset must come from [`offsets`](Self::offsets) of this test, or be 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn eight(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        // SAFETY: the caller promises that each offset is that of a block.
        let a = unsafe { self.test_pair::<0>(hashes, offsets) };
        // SAFETY: the caller promises that each offset is that of a block.
        let b = unsafe { self.test_pair::<1>(hashes, offsets) };
        // SAFETY: the caller promises that each offset is that of a block.
        let c = unsafe { self.test_pair::<2>(hashes, offsets) };
        // SAFETY: the caller promises that each offset is that of a block.
        let d = unsafe { self.test_pair::<3>(hashes, offsets) };
        // Byte `i` belongs to key `i`. The upper eight bytes are zero, and their bits are cut off.
        let missing = _mm_cvtsi64_si128((a | b << 16 | c << 32 | d << 48) as i64);
        u64::from(_mm_testn_epi8_mask(missing, missing) as u8)
    }

    /// Returns eight bits for each key of pair `PAIR`, one per word, set if the key's bit is
    /// missing. The bits of the second key follow those of the first.
    ///
    /// # Safety
    ///
    /// Each offset must be that of a block: see [`eight`](Self::eight).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn test_pair<const PAIR: usize>(&self, hashes: __m512i, offsets: &[u64; KEYS]) -> u64 {
        // SAFETY: the caller promises that the offset is that of a block.
        let first = unsafe { self.block(offsets[2 * PAIR]) };
        // SAFETY: the caller promises that the offset is that of a block.
        let second = unsafe { self.block(offsets[2 * PAIR + 1]) };
        let words = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second);
        // The low half of key `i`'s hash is word `2 i` of the register. These lanes select keys
        // `2 PAIR` and `2 PAIR + 1`.
        let (a, b) = (4 * PAIR as i32, 4 * PAIR as i32 + 2);
        let lanes = _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
        let products = _mm512_mullo_epi32(_mm512_permutexvar_epi32(lanes, hashes), self.salts);
        let bits = _mm512_sllv_epi32(self.ones, _mm512_srli_epi32::<27>(products));
        u64::from(_mm512_testn_epi32_mask(words, bits))
    }

    /// # Safety
    ///
    /// `offset` must be 32 times the index of a block of this test.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn block(&self, offset: u64) -> __m256i {
        let block = self.blocks.as_ptr().wrapping_byte_add(offset as usize);
        // SAFETY: the caller promises that the offset is that of a block in `blocks`. The load
        // allows any alignment.
        unsafe { _mm256_loadu_si256(block.cast()) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn load(words: &[u64; KEYS]) -> __m512i {
    // SAFETY: the array has the 64 bytes that the load reads; the load allows any alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Loads fewer than eight words, and zeros after the last.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn load_some(words: &[u64]) -> __m512i {
    let lanes = (1 << words.len()) - 1;
    // SAFETY: the mask limits the load to `words.len()` lanes; the load allows any alignment.
    unsafe { _mm512_maskz_loadu_epi64(lanes, words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn store(words: __m512i) -> [u64; KEYS] {
    let mut stored = [0; KEYS];
    // SAFETY: the array has the 64 bytes that the store writes; the store allows any alignment.
    unsafe { _mm512_storeu_si512(stored.as_mut_ptr().cast(), words) };
    stored
}
