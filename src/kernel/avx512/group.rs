//! A group of up to 64 keys, and batches of groups, without mask registers: each word is rotated so
//! that the probe's bit becomes its lowest, and `vpshrdd` shifts that bit into a register that
//! collects 32 tests in each lane. Once a group, a key's lanes are ANDed.
//!
//! Up to 8 probes two keys share a register. A pair then takes eight operations: two to broadcast
//! the high halves, one multiplication, two to fetch the words, two to rotate them, one to collect.

use core::arch::x86_64::*;

use super::super::GROUP;
use super::super::driver::{batch_for, for_each_of_few};
use super::super::prefetch::{Prefetch, prefetcher};
use super::super::table::address;
use super::single::{NEXT_ROUND, POWERS, SingleTest, contains_one};
use crate::probe::Block;

/// Fewer keys are tested one by one: in pairs they took 27 instead of 21 ns from memory (Zen 5).
const PAIR_MIN_KEYS: usize = 4;

/// Keys of a batch that are tested without a jump, after as many were prefetched. 16 took 1.2 of
/// the time in filters little larger than the cache (Zen 4).
const STEP: usize = 4;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one arm of a match")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn group(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    // One key needs no call of `group_of`, which saves registers.
    if let [hash] = *hashes {
        // SAFETY: the caller promised the number of blocks.
        let block = unsafe { address(blocks, hash) };
        // SAFETY: it is one of `blocks`.
        let block = unsafe { &*block };
        // SAFETY: the caller's promises are passed on.
        return unsafe { contains_one(block, probes, hash) }.into();
    }
    // SAFETY: the caller's promises are passed on, and the probes fit the lanes.
    unsafe {
        match probes {
            ..=8 => group_of::<8>(blocks, probes, hashes),
            9..=16 => group_of::<16>(blocks, probes, hashes),
            _ => group_of::<32>(blocks, probes, hashes),
        }
    }
}

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn batch(
    blocks: &[Block],
    prefetch: Prefetch,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller's promises are passed on, and the probes fit the lanes.
    unsafe { batch_for!(batch_of, [8, 16, 32], blocks, prefetch, probes, hashes, hits) }
}

/// Up to `LANES` probes. Not inlined, so that each instance saves only the registers that it needs.
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn group_of<const LANES: usize>(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    if hashes.len() < PAIR_MIN_KEYS {
        let single = SingleTest::<LANES>::new(probes);
        return for_each_of_few(hashes, |hash| {
            // SAFETY: the caller promised the number of blocks.
            let block = unsafe { address(blocks, *hash) };
            // SAFETY: it is one of `blocks`.
            single.contains(unsafe { &*block }, *hash)
        });
    }
    let tests = Tests::<LANES>::new(probes);
    let (first, later) = hashes.split_at(hashes.len().min(Tests::<LANES>::MAX_KEYS));
    // SAFETY: the caller's promises are passed on.
    let mut word = unsafe { tests.test_all::<2>(blocks, first, |_| {}) };
    if LANES > 8 && !later.is_empty() {
        // SAFETY: as above.
        word |= unsafe { tests.test_all::<2>(blocks, later, |_| {}) } << 32;
    }
    word
}

/// As [`group_of`], for each group.
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn batch_of<const LINES: usize, const LANES: usize>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let mut ahead = prefetcher::<LINES>(blocks, hashes);
    let mut advance = |keys| ahead.advance(keys);
    let tests = Tests::<LANES>::new(probes);
    let (whole, rest) = hashes.as_chunks::<GROUP>();
    for (hashes, word) in whole.iter().zip(&mut *hits) {
        *word = 0;
        if LANES == 8 {
            // SAFETY: the caller's promises are passed on.
            *word = unsafe { tests.test_all::<STEP>(blocks, hashes, &mut advance) };
            continue;
        }
        // One call, so that it is inlined.
        for (i, hashes) in hashes.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: as above.
            *word |= unsafe { tests.test_all::<STEP>(blocks, hashes, &mut advance) } << (32 * i);
        }
    }
    if !rest.is_empty() {
        advance(rest.len());
        // SAFETY: the caller's promises are passed on, and these are fewer than 64 hashes.
        hits[whole.len()] = unsafe { group_of::<LANES>(blocks, probes, rest) };
    }
}

/// The low half of a hash, by a load of its own. The compiler would else multiply the low halves of
/// neighbours in a register and take the products out one by one: more instructions, for the ports
/// that the loop waits for.
#[inline]
fn low(hash: &u64) -> u64 {
    // SAFETY: the first four of the reference's eight bytes, which are the low ones on x86.
    unsafe { core::ptr::from_ref(hash).cast::<u32>().read_volatile() }.into()
}

/// What all keys of a call share. Lanes that do not probe repeat the first probe, or in the second
/// round what they did in the first.
struct Tests<const LANES: usize> {
    /// `G^0 .. G^15`, or up to 8 probes `G^0 .. G^7`, each twice: odd lanes are the second key's.
    powers: __m512i,
    /// `G^16`: from one round of a key to the next.
    next_round: __m512i,
    /// Which of two blocks a lane's word comes from.
    block: __m512i,
}

impl<const LANES: usize> Tests<LANES> {
    /// Keys tested in a register.
    const KEYS: usize = if LANES == 8 { 2 } else { 1 };

    /// Keys of which a register has the answers.
    const MAX_KEYS: usize = 32 * Self::KEYS;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn new(probes: u32) -> Self {
        const TWICE: [u32; 16] = {
            let (mut lanes, mut lane) = ([0; 16], 0);
            while lane < 16 {
                lanes[lane] = POWERS[lane / 2];
                lane += 1;
            }
            lanes
        };
        let table = if LANES == 8 { &TWICE } else { &POWERS };
        let lanes = (1_u64 << (probes as usize * Self::KEYS)) - 1;
        let one = _mm512_set1_epi32(1);
        Tests {
            // SAFETY: sixteen words; the load has no alignment to respect.
            powers: unsafe { _mm512_mask_loadu_epi32(one, lanes as u16, table.as_ptr().cast()) },
            next_round: _mm512_mask_set1_epi32(one, (lanes >> 16) as u16, NEXT_ROUND),
            block: _mm512_set1_epi64(1 << 32),
        }
    }

    /// One bit for each key, of up to `MAX_KEYS`. `STEP` of them are tested without a jump, after
    /// `advance` was called for as many.
    ///
    /// # Safety
    ///
    /// There are 1 to 2^32 - 1 blocks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn test_all<const STEP: usize>(
        &self,
        blocks: &[Block],
        hashes: &[u64],
        mut advance: impl FnMut(usize),
    ) -> u64 {
        let block = |hash: &u64| {
            // SAFETY: the caller promised the number of blocks.
            unsafe { address(blocks, low(hash)) }
        };
        let mut found = _mm512_setzero_si512();
        let (steps, rest) = hashes.as_chunks::<STEP>();
        for step in steps {
            advance(STEP);
            watch!(ran("avx512"));
            for pair in step.as_chunks::<2>().0 {
                // SAFETY: two of `blocks`, by `address`.
                found = unsafe { self.pair(found, pair, block(&pair[0]), block(&pair[1])) };
            }
        }
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            // SAFETY: as above.
            found = unsafe { self.pair(found, pair, block(&pair[0]), block(&pair[1])) };
        }
        if let [hash] = last {
            let block = block(hash);
            // SAFETY: as above.
            found = unsafe { self.pair(found, &[*hash; 2], block, block) };
        }
        Self::collect(found, hashes.len())
    }

    /// Adds to `found`, in each lane above the bits of earlier tests, whether the probes' bits are
    /// set: one bit for both keys, or one for each.
    ///
    /// # Safety
    ///
    /// The blocks may be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn pair(
        &self,
        found: __m512i,
        hashes: &[u64; 2],
        first: *const Block,
        second: *const Block,
    ) -> __m512i {
        // SAFETY: two hashes; the load has no alignment to respect.
        let hashes = unsafe { _mm_loadu_si128(hashes.as_ptr().cast()) };
        // SAFETY: the caller's promise; the load has no alignment to respect.
        let first = unsafe { _mm512_loadu_si512(first.cast()) };
        // SAFETY: as above.
        let second = unsafe { _mm512_loadu_si512(second.cast()) };
        if LANES == 8 {
            let halves = _mm_shuffle_epi32::<0b11_01_11_01>(hashes);
            let products = _mm512_mullo_epi32(_mm512_broadcastq_epi64(halves), self.powers);
            // The top four bits of the product, and above them which of the two blocks.
            let word = _mm512_shldi_epi32::<4>(self.block, products);
            let words = _mm512_permutex2var_epi32(first, word, second);
            return _mm512_shrdi_epi32::<1>(found, last_bit(words, products));
        }
        let found = self.single(found, _mm_shuffle_epi32::<0b01>(hashes), first);
        self.single(found, _mm_shuffle_epi32::<0b11>(hashes), second)
    }

    /// As [`pair`](Self::pair), for the key whose hash's high half comes first in `half`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn single(&self, found: __m512i, half: __m128i, block: __m512i) -> __m512i {
        let products = _mm512_mullo_epi32(_mm512_broadcastd_epi32(half), self.powers);
        let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), block);
        let mut bits = last_bit(words, products);
        if LANES > 16 {
            let products = _mm512_mullo_epi32(products, self.next_round);
            let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), block);
            bits = _mm512_and_si512(bits, last_bit(words, products));
        }
        _mm512_shrdi_epi32::<1>(found, bits)
    }

    /// A bit for each of `keys` keys, whose tests `found` has last: set if all its probes' are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn collect(found: __m512i, keys: usize) -> u64 {
        const EVEN_BITS: u64 = 0x5555_5555_5555_5555;
        let other = _mm512_extracti64x4_epi64::<1>(found);
        let found = _mm256_and_si256(_mm512_castsi512_si256(found), other);
        let other = _mm256_extracti128_si256::<1>(found);
        let found = _mm_and_si128(_mm256_castsi256_si128(found), other);
        let found = _mm_and_si128(found, _mm_unpackhi_epi64(found, found));
        // Of the even lanes, and above them of the odd ones.
        let found = _mm_cvtsi128_si64(found) as u64;
        // The last test's bit is the uppermost. An odd number of keys was tested as one more.
        let tested = keys.next_multiple_of(2) as u32;
        let word = match LANES {
            8 => {
                (_pdep_u64(found, EVEN_BITS) | _pdep_u64(found >> 32, !EVEN_BITS)) >> (64 - tested)
            }
            _ => u64::from(found as u32 & (found >> 32) as u32) >> (32 - tested),
        };
        _bzhi_u64(word, keys as u32)
    }
}

/// The probe's bit of its word, moved to the word's end: a rotation takes its count modulo 32.
#[inline]
#[target_feature(enable = "avx512f")]
fn last_bit(words: __m512i, products: __m512i) -> __m512i {
    _mm512_rorv_epi32(words, _mm512_srli_epi32::<23>(products))
}
