//! Tests of up to 64 keys, and of batches of such groups, without mask registers. Each word is
//! rotated so that the probe's bit becomes its lowest; `vpshrdd` then shifts that bit into a
//! register that collects 32 tests in each lane. At the end of a group, the lanes of a key are
//! ANDed.
//!
//! With up to 8 probes, two keys share a register. A pair takes eight operations: two to broadcast
//! the high halves, one multiplication, two to fetch the words, two to rotate them, one to collect.

use core::arch::x86_64::*;

use super::super::GROUP;
use super::super::driver::{batch_for, for_each_of_few};
use super::super::prefetch::{Prefetch, prefetcher};
use super::super::table::address;
use super::single::{NEXT_ROUND, POWERS, SingleTest, contains_one};
use crate::probe::Block;

/// Fewer keys are tested one by one: from memory, pairs took 27 ns instead of 21 (Zen 5).
const PAIR_MIN_KEYS: usize = 4;

/// Keys of a batch that are tested without a jump, after the same number was prefetched. With 16
/// instead of 4, batches took 1.2x the time in filters slightly larger than the cache (Zen 4).
const STEP: usize = 4;

/// Tests 1 to 64 hashes; returns one bit per hash.
///
/// # Safety
///
/// See [`Table`](super::super::table::Table).
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one arm of a match")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn group(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    // For one key, a call of `group_of` would save registers needlessly.
    if let [hash] = *hashes {
        // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
        let block = unsafe { address(blocks, hash) };
        // SAFETY: `address` returns one of `blocks`, which are borrowed.
        let block = unsafe { &*block };
        // SAFETY: the caller promises the CPU's features, which are all that `contains_one`
        // requires.
        return unsafe { contains_one(block, probes, hash) }.into();
    }
    // SAFETY: the caller's promises about CPU, blocks, probes and hashes are passed on unchanged,
    // and each arm has at least as many lanes as probes.
    unsafe {
        match probes {
            ..=8 => group_of::<8>(blocks, probes, hashes),
            9..=16 => group_of::<16>(blocks, probes, hashes),
            _ => group_of::<32>(blocks, probes, hashes),
        }
    }
}

/// Tests any number of hashes.
///
/// # Safety
///
/// See [`Table`](super::super::table::Table).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn batch(
    blocks: &[Block],
    prefetch: Prefetch,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller's promises about CPU, blocks, probes and `hits` are passed on unchanged,
    // and `batch_for` selects at least as many lanes as probes.
    unsafe { batch_for!(batch_of, [8, 16, 32], blocks, prefetch, probes, hashes, hits) }
}

/// [`group`] with up to `LANES` probes. Not inlined, so that each instance saves only the registers
/// that it uses.
///
/// # Safety
///
/// See [`Table`](super::super::table::Table); also, `probes <= LANES`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn group_of<const LANES: usize>(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    if hashes.len() < PAIR_MIN_KEYS {
        let single = SingleTest::<LANES>::new(probes);
        return for_each_of_few(hashes, |hash| {
            // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
            let block = unsafe { address(blocks, *hash) };
            // SAFETY: `address` returns one of `blocks`, which are borrowed.
            single.contains(unsafe { &*block }, *hash)
        });
    }
    let tests = Tests::<LANES>::new(probes);
    let (first, later) = hashes.split_at(hashes.len().min(Tests::<LANES>::MAX_KEYS));
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let mut word = unsafe { tests.test_all::<2>(blocks, first, |_| {}) };
    if LANES > 8 && !later.is_empty() {
        // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
        word |= unsafe { tests.test_all::<2>(blocks, later, |_| {}) } << 32;
    }
    word
}

/// Tests each group of 64 hashes as [`group_of`] does, and prefetches `LINES` lines per key.
///
/// # Safety
///
/// See [`Table`](super::super::table::Table); also, `probes <= LANES`.
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
            // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
            *word = unsafe { tests.test_all::<STEP>(blocks, hashes, &mut advance) };
            continue;
        }
        // A loop with one call instead of two calls, so that it is inlined.
        for (i, hashes) in hashes.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
            *word |= unsafe { tests.test_all::<STEP>(blocks, hashes, &mut advance) } << (32 * i);
        }
    }
    if !rest.is_empty() {
        advance(rest.len());
        // SAFETY: the caller's promises about CPU, blocks and probes are passed on unchanged, and
        // `rest` has 1 to 63 hashes.
        hits[whole.len()] = unsafe { group_of::<LANES>(blocks, probes, rest) };
    }
}

/// Loads only the low half of a hash. Otherwise, the compiler multiplies the low halves of
/// neighbours in a vector register and extracts the products one by one, which takes more
/// instructions on the ports that limit the loop.
#[inline]
fn low(hash: &u64) -> u64 {
    // SAFETY: reads the first four of the reference's eight bytes, which are the low half on x86.
    unsafe { core::ptr::from_ref(hash).cast::<u32>().read_volatile() }.into()
}

/// The constants of a call. Unused lanes repeat the first probe or, in the second round, their
/// probe of the first.
struct Tests<const LANES: usize> {
    /// `G^0 .. G^15`. For up to 8 probes `G^0 .. G^7`, each twice: odd lanes belong to the second
    /// key of a pair.
    powers: __m512i,
    /// `G^16`, the factor from one round of a key to the next.
    next_round: __m512i,
    /// For each lane, the block of the pair from which its word is fetched.
    block: __m512i,
}

impl<const LANES: usize> Tests<LANES> {
    /// Keys tested in one register.
    const KEYS: usize = if LANES == 8 { 2 } else { 1 };

    /// Keys whose answers fit one register.
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
            // SAFETY: reads the sixteen words of `table`; the load needs no alignment.
            powers: unsafe { _mm512_mask_loadu_epi32(one, lanes as u16, table.as_ptr().cast()) },
            next_round: _mm512_mask_set1_epi32(one, (lanes >> 16) as u16, NEXT_ROUND),
            block: _mm512_set1_epi64(1 << 32),
        }
    }

    /// Tests up to `MAX_KEYS` keys and returns one bit per key. `STEP` keys are tested without a
    /// jump, after a call of `advance` for the same number.
    ///
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn test_all<const STEP: usize>(
        &self,
        blocks: &[Block],
        hashes: &[u64],
        mut advance: impl FnMut(usize),
    ) -> u64 {
        let block = |hash: &u64| {
            // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
            unsafe { address(blocks, low(hash)) }
        };
        let mut found = _mm512_setzero_si512();
        let (steps, rest) = hashes.as_chunks::<STEP>();
        for step in steps {
            advance(STEP);
            watch!(ran("avx512"));
            for pair in step.as_chunks::<2>().0 {
                // SAFETY: `address` returns two of `blocks`, which are borrowed.
                found = unsafe { self.pair::<STEP>(found, pair, block(&pair[0]), block(&pair[1])) };
            }
        }
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            // SAFETY: `address` returns two of `blocks`, which are borrowed.
            found = unsafe { self.pair::<STEP>(found, pair, block(&pair[0]), block(&pair[1])) };
        }
        if let [hash] = last {
            let block = block(hash);
            // SAFETY: `address` returns one of `blocks`, which are borrowed.
            found = unsafe { self.pair::<STEP>(found, &[*hash; 2], block, block) };
        }
        Self::collect(found, hashes.len())
    }

    /// Tests two keys and shifts the result into the top of each lane of `found`, above the bits of
    /// earlier tests: one bit for both keys if they share a register, otherwise one bit each.
    ///
    /// # Safety
    ///
    /// Both blocks may be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn pair<const STEP: usize>(
        &self,
        found: __m512i,
        hashes: &[u64; 2],
        first: *const Block,
        second: *const Block,
    ) -> __m512i {
        let hashes = if STEP == 2 {
            // In calls of at most 64 hashes, each was often just stored as eight bytes, which the
            // CPU cannot forward to a load of sixteen. Longer calls took 1.01x to 1.04x the time
            // with two loads (Zen 4).
            // SAFETY: reads the first hash of the reference.
            let first = unsafe { hashes.as_ptr().read_volatile() };
            // SAFETY: reads the second hash of the reference.
            let second = unsafe { hashes.as_ptr().wrapping_add(1).read_volatile() };
            _mm_set_epi64x(second as i64, first as i64)
        } else {
            // SAFETY: reads the two hashes of the reference; the load needs no alignment.
            unsafe { _mm_loadu_si128(hashes.as_ptr().cast()) }
        };
        // SAFETY: the caller promises that the block may be read; the load needs no alignment.
        let first = unsafe { _mm512_loadu_si512(first.cast()) };
        // SAFETY: the caller promises that the block may be read; the load needs no alignment.
        let second = unsafe { _mm512_loadu_si512(second.cast()) };
        if LANES == 8 {
            let halves = _mm_shuffle_epi32::<0b11_01_11_01>(hashes);
            let products = _mm512_mullo_epi32(_mm512_broadcastq_epi64(halves), self.powers);
            // The top four bits of the product and, above them, the number of the block.
            let word = _mm512_shldi_epi32::<4>(self.block, products);
            let words = _mm512_permutex2var_epi32(first, word, second);
            return _mm512_shrdi_epi32::<1>(found, last_bit(words, products));
        }
        let found = self.single(found, _mm_shuffle_epi32::<0b01>(hashes), first);
        self.single(found, _mm_shuffle_epi32::<0b11>(hashes), second)
    }

    /// Tests one key, whose hash has its high half in the first lane of `half`; see
    /// [`pair`](Self::pair).
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

    /// Returns one bit for each of the last `keys` tests in `found`, set if all probes' bits are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn collect(found: __m512i, keys: usize) -> u64 {
        const EVEN_BITS: u64 = 0x5555_5555_5555_5555;
        let other = _mm512_extracti64x4_epi64::<1>(found);
        let found = _mm256_and_si256(_mm512_castsi512_si256(found), other);
        let other = _mm256_extracti128_si256::<1>(found);
        let found = _mm_and_si128(_mm256_castsi256_si128(found), other);
        let found = _mm_and_si128(found, _mm_unpackhi_epi64(found, found));
        // The bits of the even lanes and, above them, those of the odd lanes.
        let found = _mm_cvtsi128_si64(found) as u64;
        // The last test's bit is the topmost. An odd number of keys was rounded up by one.
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

/// Moves the probe's bit to the lowest bit of its word. A rotation takes its count modulo 32.
#[inline]
#[target_feature(enable = "avx512f")]
fn last_bit(words: __m512i, products: __m512i) -> __m512i {
    _mm512_rorv_epi32(words, _mm512_srli_epi32::<23>(products))
}
