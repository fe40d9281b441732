//! A call of up to 64 keys: no stores that later loads would wait for, and no mask registers.
//!
//! The probe's bit is rotated to the end of its word, and from there into a register that has, in each lane, a bit for every test. What all
//! lanes of a key have is found once a call. Two keys are tested in a register up to 8 probes, one above. Per pair of keys: two operations that
//! bring both high halves into the lanes, one multiplication, two operations to fetch the words, two to rotate them, one to keep the bit.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::super::prefetch::Prefetch;
use super::super::table::{address, powers};
use super::one::one;
use crate::probe::Block;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one arm of a match")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn few(blocks: &[Block], prefetch: Prefetch, probes: u32, hashes: &[u64]) -> u64 {
    // No register is saved for one key.
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
        match (prefetch, probes) {
            (Prefetch::No, ..=8) => few_of::<8, 0>(blocks, probes, hashes),
            (Prefetch::No, ..=16) => few_of::<16, 0>(blocks, probes, hashes),
            (Prefetch::No, _) => few_of::<32, 0>(blocks, probes, hashes),
            (Prefetch::OneLine, ..=8) => few_of::<8, 1>(blocks, probes, hashes),
            (Prefetch::OneLine, ..=16) => few_of::<16, 1>(blocks, probes, hashes),
            (Prefetch::OneLine, _) => few_of::<32, 1>(blocks, probes, hashes),
            (Prefetch::TwoLines, ..=8) => few_of::<8, 2>(blocks, probes, hashes),
            (Prefetch::TwoLines, ..=16) => few_of::<16, 2>(blocks, probes, hashes),
            (Prefetch::TwoLines, _) => few_of::<32, 2>(blocks, probes, hashes),
        }
    }
}

/// Prefetches `LINES` lines per key, and tests up to `LANES` probes. Not inlined, so that each instance saves only the registers that it needs.
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn few_of<const LANES: usize, const LINES: usize>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64],
) -> u64 {
    let tests = Tests::<LANES>::new(probes);
    let mut offsets = Offsets([MaybeUninit::uninit(); 64]);
    if LINES > 0 {
        // By addresses of their own: with those that are staged, a call of 32 keys in the third-level cache took twice as long.
        let prefetch = if LINES == 1 { Prefetch::OneLine } else { Prefetch::TwoLines };
        prefetch.prefetch(blocks, hashes);
        for (hashes, offsets) in hashes.chunks(8).zip(offsets.0.as_chunks_mut::<8>().0) {
            stage(blocks, hashes, offsets);
        }
    }
    // The block of a key, which is this among the hashes. With nothing to prefetch, the address is made in general registers.
    let line = |hash: &u64, key: usize| {
        let block = if LINES > 0 {
            // SAFETY: all keys were staged.
            let offset = unsafe { offsets.0[key].assume_init() };
            blocks.as_ptr().wrapping_byte_add(offset as usize)
        } else {
            // SAFETY: the caller promised the number of blocks.
            unsafe { address(blocks, low(hash)) }
        };
        // SAFETY: one of `blocks`; the load has no alignment to respect.
        unsafe { _mm512_loadu_si512(block.cast()) }
    };
    if LANES == 8 {
        // All fit: no loop around the loop.
        return tests.all(hashes, line);
    }
    let (first, later) = hashes.split_at(hashes.len().min(Tests::<LANES>::MOST));
    let word = tests.all(first, line);
    if later.is_empty() {
        return word;
    }
    let line = |hash: &u64, key| line(hash, Tests::<LANES>::MOST + key);
    word | tests.all(later, line) << Tests::<LANES>::MOST
}

/// Where the blocks of the keys begin, in bytes from the first.
#[repr(align(64))]
struct Offsets([MaybeUninit<u64>; 64]);

/// Stores the offsets of the blocks of up to eight keys; in place of those that are not there, that of hash 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
fn stage(blocks: &[Block], hashes: &[u64], offsets: &mut [MaybeUninit<u64>; 8]) {
    let lanes = _bzhi_u32(0xff, hashes.len() as u32) as u8;
    // SAFETY: no more than `hashes.len()` lanes are read; the load has no alignment to respect.
    let keys = unsafe { _mm512_maskz_loadu_epi64(lanes, hashes.as_ptr().cast()) };
    let index = _mm512_mul_epu32(keys, _mm512_set1_epi64(blocks.len() as i64));
    let bytes = _mm512_slli_epi64::<6>(_mm512_srli_epi64::<32>(index));
    // SAFETY: eight words; the store has no alignment to respect.
    unsafe { _mm512_storeu_si512(offsets.as_mut_ptr().cast(), bytes) };
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
    /// `G^0 .. G^15`, or up to 8 probes `G^0 .. G^7`, each twice: even lanes are the first key's, odd ones the second's.
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
    /// Keys tested in a register.
    const KEYS: usize = if LANES == 8 { 2 } else { 1 };

    /// Keys of which a register has the answers.
    const MOST: usize = 32 * Self::KEYS;

    /// One for each lane.
    const POWERS: [u32; 16] = {
        let (powers, mut lanes, mut lane) = (powers::<16>(), [0; 16], 0);
        while lane < 16 {
            lanes[lane] = powers[lane / Self::KEYS];
            lane += 1;
        }
        lanes
    };

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn new(probes: u32) -> Self {
        let lanes = probes as usize * Self::KEYS;
        Tests {
            // SAFETY: sixteen words; the load has no alignment to respect.
            powers: unsafe { _mm512_loadu_si512(Self::POWERS.as_ptr().cast()) },
            next_round: _mm512_set1_epi32(powers::<17>()[16] as i32),
            unused: ones_from(lanes.min(16)),
            unused_in_second_round: ones_from(lanes.saturating_sub(16)),
            block: _mm512_set1_epi64(1 << 32),
        }
    }

    /// One bit for each key, of up to `MOST`; `line` gives the block of a key, by its hash and its number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn all(&self, hashes: &[u64], line: impl Fn(&u64, usize) -> __m512i) -> u64 {
        let mut found = _mm512_setzero_si512();
        let mut key = 0;
        let mut test = |pair: &[u64; 2]| {
            // SAFETY: two hashes; the load has no alignment to respect.
            let hashes = unsafe { _mm_loadu_si128(pair.as_ptr().cast()) };
            found = self.pair(found, hashes, line(&pair[0], key), line(&pair[1], key + 1));
            key += 2;
        };
        let (eights, rest) = hashes.as_chunks::<8>();
        for eight in eights {
            eight.as_chunks().0.iter().for_each(&mut test);
        }
        let (pairs, last) = rest.as_chunks();
        pairs.iter().for_each(test);
        if let [hash] = last {
            let line = line(hash, key);
            found = self.pair(found, _mm_set1_epi64x(*hash as i64), line, line);
        }
        self.collect(found, hashes.len())
    }

    /// Adds to `found`, in each lane above the bits of earlier tests, whether the probes' bits are set: one bit for both keys, or one for each.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn pair(&self, found: __m512i, hashes: __m128i, first: __m512i, second: __m512i) -> __m512i {
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
    // SAFETY: sixteen words of `ONES`, at most the last; the load has no alignment to respect.
    unsafe { _mm512_loadu_si512(ONES[16 - lane..32 - lane].as_ptr().cast()) }
}

/// A bit of `even` and one of `odd`, by turns.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn interleave(even: u32, odd: u32) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    _pdep_u64(even.into(), EVEN) | _pdep_u64(odd.into(), !EVEN)
}
