//! A call of up to 64 keys. Four and more are tested without mask registers: each word is rotated so that the probe's bit becomes its lowest, and
//! `vpshrdd` shifts that bit into a register that collects 32 tests in each lane. Once a call, the lanes of a key are ANDed. Nothing is
//! stored and loaded again. Two keys share a register up to 8 probes. A pair then takes eight
//! operations: two to broadcast the high halves, one multiplication, two to fetch the words, two to rotate them, one to collect.

use core::arch::x86_64::*;

use super::super::driver::for_each_of_few;
use super::super::table::{address, powers};
use super::one::{One, one};
use super::query::{Test, interleave};
use crate::probe::Block;

/// Fewer keys are tested one by one: two at a time took 27 instead of 21 ns each from memory (Zen 5, 100 M keys).
const FEWER: usize = 4;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one arm of a match")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn few(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    // One key needs no call of `few_of`, which saves registers.
    if let [hash] = *hashes {
        // SAFETY: the caller promised the number of blocks.
        let block = unsafe { address(blocks, hash) };
        // SAFETY: it is one of `blocks`.
        let block = unsafe { &*block };
        // SAFETY: the caller's promises are passed on.
        return unsafe { one(block, probes, hash) }.into();
    }
    // SAFETY: the caller's promises are passed on.
    unsafe {
        match probes {
            ..=8 => few_of::<8>(blocks, probes, hashes),
            9..=16 => few_of::<16>(blocks, probes, hashes),
            _ => few_of::<32>(blocks, probes, hashes),
        }
    }
}

/// Up to `LANES` probes. Not inlined, so that each instance saves only the registers that it needs.
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn few_of<const LANES: usize>(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    if hashes.len() < FEWER {
        let one = One::<LANES>::new(probes);
        return for_each_of_few(hashes, |hash| {
            // SAFETY: the caller promised the number of blocks.
            let block = unsafe { address(blocks, *hash) };
            // SAFETY: it is one of `blocks`.
            one.contains(unsafe { &*block }, *hash)
        });
    }
    watch!(ran("avx512"));
    let tests = Tests::<LANES>::new(probes);
    if LANES == 8 {
        // All 64 keys fit one register.
        // SAFETY: the caller's promises are passed on.
        return unsafe { tests.all(blocks, hashes) };
    }
    let mut word = 0;
    for (i, hashes) in hashes.chunks(Tests::<LANES>::MOST).enumerate() {
        // SAFETY: the caller's promises are passed on.
        word |= unsafe { tests.all(blocks, hashes) } << (i * Tests::<LANES>::MOST);
    }
    word
}

/// The low half of a hash, by a load of its own. The compiler would else multiply the low halves of neighbours in a register and take the
/// products out one by one: more instructions, for the ports that the loop waits for.
#[inline]
fn low(hash: &u64) -> u64 {
    // SAFETY: the first four of the reference's eight bytes, which are the low ones on x86.
    unsafe { core::ptr::from_ref(hash).cast::<u32>().read_volatile() }.into()
}

/// What all keys of a call share.
struct Tests<const LANES: usize> {
    /// [`Test::POWERS`].
    powers: __m512i,
    /// `G^16`: from one round of a key to the next.
    next_round: __m512i,
    /// Ones in the lanes that do not probe, and in those that do not in the second round.
    unused: __m512i,
    unused_in_second_round: __m512i,
    /// Which of two blocks a lane's word comes from.
    block: __m512i,
}

impl<const LANES: usize> Tests<LANES> {
    /// Keys of which a register has the answers.
    const MOST: usize = 32 * Test::<LANES>::KEYS;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn new(probes: u32) -> Self {
        let lanes = probes as usize * Test::<LANES>::KEYS;
        Tests {
            // SAFETY: sixteen words; the load has no alignment to respect.
            powers: unsafe { _mm512_loadu_si512(Test::<LANES>::POWERS.as_ptr().cast()) },
            next_round: _mm512_set1_epi32(powers::<17>()[16] as i32),
            unused: ones_from(lanes.min(16)),
            unused_in_second_round: ones_from(lanes.saturating_sub(16)),
            block: _mm512_set1_epi64(1 << 32),
        }
    }

    /// One bit for each key, of up to `MOST`.
    ///
    /// # Safety
    ///
    /// There are 1 to 2^32 - 1 blocks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn all(&self, blocks: &[Block], hashes: &[u64]) -> u64 {
        let block = |hash: &u64| {
            // SAFETY: the caller promised the number of blocks.
            unsafe { address(blocks, low(hash)) }
        };
        let mut found = _mm512_setzero_si512();
        let (pairs, last) = hashes.as_chunks::<2>();
        for pair in pairs {
            // SAFETY: two of `blocks`, by `address`.
            found = unsafe { self.pair(found, pair, block(&pair[0]), block(&pair[1])) };
        }
        if let [hash] = last {
            let block = block(hash);
            // SAFETY: one of `blocks`, by `address`.
            found = unsafe { self.pair(found, &[*hash; 2], block, block) };
        }
        self.collect(found, hashes.len())
    }

    /// Adds to `found`, in each lane above the bits of earlier tests, whether the probes' bits are set: one bit for both keys, or one for each.
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
            let second = _mm512_or_si512(last_bit(words, products), self.unused_in_second_round);
            bits = _mm512_and_si512(bits, second);
        }
        _mm512_shrdi_epi32::<1>(found, bits)
    }

    /// One bit for each of `keys` keys, the tests that `found` has last: set if all its probes' bits are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn collect(&self, found: __m512i, keys: usize) -> u64 {
        let found = _mm512_or_si512(found, self.unused);
        let other = _mm512_extracti64x4_epi64::<1>(found);
        let found = _mm256_and_si256(_mm512_castsi512_si256(found), other);
        let other = _mm256_extracti128_si256::<1>(found);
        let found = _mm_and_si128(_mm256_castsi256_si128(found), other);
        let found = _mm_and_si128(found, _mm_unpackhi_epi64(found, found));
        let found = _mm_cvtsi128_si64(found) as u64;
        let (even, odd) = (found as u32, (found >> 32) as u32);
        // The first test's bit is `tests` below the top.
        let tests = if LANES == 8 { keys.div_ceil(2) } else { keys.next_multiple_of(2) };
        let before = 32 - tests as u32;
        let word = match LANES {
            8 => interleave(even >> before, odd >> before),
            _ => ((even & odd) >> before).into(),
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

/// Ones in all lanes from this on.
#[inline]
#[target_feature(enable = "avx512f")]
fn ones_from(lane: usize) -> __m512i {
    const ONES: [u32; 32] = {
        let (mut ones, mut lane) = ([0; 32], 16);
        while lane < 32 {
            ones[lane] = !0;
            lane += 1;
        }
        ones
    };
    // SAFETY: sixteen words: the slice is checked; the load has no alignment to respect.
    unsafe { _mm512_loadu_si512(ONES[16 - lane..32 - lane].as_ptr().cast()) }
}
