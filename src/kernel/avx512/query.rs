//! Batch queries: what is needed of 64 keys is computed and stored while the 64 before them are tested, and the results of those before
//! these are collected. Two keys are tested in a register up to 8 probes, one above.
//!
//! Everything goes through memory once and is loaded when its store is long done, so that no lane is extracted or broadcast by the vector
//! ports, which are what the loop waits for on Intel. Per pair of keys: one load that broadcasts both high halves, one multiplication
//! (two micro-operations on Intel), two operations to fetch the words, two to make the bits, one test, whose result is stored from the
//! mask register. Slower were one key in 256 bits, offsets in general registers, gathers, and collecting in the same word.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::super::driver::batch_for;
use super::super::prefetch::{Prefetch, ahead_of};
use super::super::table::powers;
use crate::probe::Block;

/// Keys of a word of results.
const WORD: usize = 64;

/// Keys staged at a time: their high halves fill a register.
const KEYS: usize = 16;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn contains(
    blocks: &[Block],
    prefetch: Prefetch,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller's promises are passed on.
    unsafe { batch_for!(batch, [8, 16, 32], blocks, prefetch, probes, hashes, hits) }
}

/// Prefetches `LINES` lines per key ahead, and tests up to `LANES` probes. Not inlined, so that `tools/codegen.sh` finds each instance.
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn batch<const LINES: usize, const LANES: usize>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let Some((last, whole)) = hits.split_last_mut() else { return };
    let mut ahead = ahead_of::<LINES>(blocks, hashes);
    let test = Test::<LANES>::new(blocks, probes);
    let mut staged = Staged::new();
    let mut missing = Missing([0; 2 * WORD]);
    let (first, later) = hashes.split_at(WORD.min(hashes.len()));
    for (group, keys) in first.chunks(KEYS).enumerate() {
        test.stage(keys, &mut staged, group * KEYS);
    }
    let mut later = later.chunks(KEYS);
    for word in 0..whole.len() {
        let (this, other) = slots(word);
        for group in (0..WORD).step_by(KEYS) {
            if LINES > 0 {
                ahead.advance(KEYS);
            }
            watch!(ran("avx512"));
            if let Some(keys) = later.next() {
                test.stage(keys, &mut staged, other + group);
            }
            // SAFETY: they were staged: the first word above, each other one while the word before it was tested.
            unsafe { test.test(&staged, &mut missing, this + group, KEYS) };
            // The stores of its last masks have left the store buffer by now: loading them in wider pieces does not wait.
            if group == KEYS && word > 0 {
                whole[word - 1] = test.collect(&missing, other);
            }
        }
    }
    let (this, other) = slots(whole.len());
    let left = hashes.len() - whole.len() * WORD;
    if LINES > 0 {
        ahead.advance(left);
    }
    watch!(ran("avx512"));
    // SAFETY: as above. An odd last key is paired with a slot that was staged with it.
    unsafe { test.test(&staged, &mut missing, this, left) };
    if let Some(word) = whole.last_mut() {
        *word = test.collect(&missing, other);
    }
    *last = _bzhi_u64(test.collect(&missing, this), left as u32);
}

/// Where the keys of this word are staged, and the keys of the words before and after it.
fn slots(word: usize) -> (usize, usize) {
    (word % 2 * WORD, (word + 1) % 2 * WORD)
}

/// What is known of the keys of two words.
#[repr(align(64))]
struct Staged {
    /// Where each key's block begins, in bytes from the first. Initialising these and the halves would cost a tenth of a batch of 32 keys.
    offsets: [MaybeUninit<u64>; 2 * WORD],
    /// The high half of each hash.
    halves: [MaybeUninit<u32>; 2 * WORD],
}

impl Staged {
    fn new() -> Self {
        let (offsets, halves) = (
            [const { MaybeUninit::uninit() }; 2 * WORD],
            [const { MaybeUninit::uninit() }; 2 * WORD],
        );
        Staged { offsets, halves }
    }
}

/// The probes whose bits are not set: up to 8 probes, 16 bits for each pair of keys, at half the number of the first in its word;
/// else 16 bits for each key.
#[repr(align(64))]
struct Missing([u16; 2 * WORD]);

/// What all keys of a batch share.
pub(super) struct Test<'a, const LANES: usize> {
    /// 1 to 2^32 - 1; none in [`One`](super::one::One), which calls [`single`](Self::single) alone.
    blocks: &'a [Block],
    count: __m512i,
    /// `G^0 .. G^15`, or up to 8 probes `G^0 .. G^7`, each twice: even lanes are the first key's, odd ones the second's.
    powers: __m512i,
    /// `G^16`: from one round of a key to the next.
    next_round: __m512i,
    /// The lanes that probe: of both keys, or of one and of its second round.
    used: u16,
    used_in_second_round: u16,
    /// Which of two blocks a lane's word comes from.
    block: __m512i,
    one: __m512i,
}

impl<'a, const LANES: usize> Test<'a, LANES> {
    /// One for each lane.
    pub(super) const POWERS: [u32; 16] = {
        let (powers, mut lanes, mut lane) = (powers::<16>(), [0; 16], 0);
        while lane < 16 {
            lanes[lane] = powers[lane / Self::KEYS];
            lane += 1;
        }
        lanes
    };

    /// Keys tested in a register.
    pub(super) const KEYS: usize = if LANES == 8 { 2 } else { 1 };

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    pub(super) fn new(blocks: &'a [Block], probes: u32) -> Self {
        let lanes = (1_u64 << if LANES == 8 { 2 * probes } else { probes }) - 1;
        Test {
            blocks,
            count: _mm512_set1_epi64(blocks.len() as i64),
            // SAFETY: sixteen words; the load has no alignment to respect.
            powers: unsafe { _mm512_loadu_si512(Self::POWERS.as_ptr().cast()) },
            next_round: _mm512_set1_epi32(powers::<17>()[16] as i32),
            used: lanes as u16,
            used_in_second_round: (lanes >> 16) as u16,
            block: _mm512_set1_epi64(1 << 32),
            one: _mm512_set1_epi32(1),
        }
    }

    /// Stores the offsets and high halves of up to sixteen keys from `slot` on. For keys that are not there, what hash 0 has is
    /// stored.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn stage(&self, hashes: &[u64], staged: &mut Staged, slot: usize) {
        let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        let lanes = _bzhi_u32(!0, hashes.len() as u32);
        let start = hashes.as_ptr();
        // SAFETY: no more than `hashes.len()` lanes are read; the load has no alignment to respect.
        let low = unsafe { _mm512_maskz_loadu_epi64(lanes as u8, start.cast()) };
        let start = start.wrapping_add(8);
        // SAFETY: as above, from the ninth key on.
        let high = unsafe { _mm512_maskz_loadu_epi64((lanes >> 8) as u8, start.cast()) };
        let offsets = staged.offsets[slot..slot + KEYS].as_mut_ptr();
        let (low_offsets, high_offsets) = (self.offsets(low), self.offsets(high));
        // SAFETY: the first eight of sixteen words; the store has no alignment to respect.
        unsafe { _mm512_storeu_si512(offsets.cast(), low_offsets) };
        // SAFETY: the other eight.
        unsafe { _mm512_storeu_si512(offsets.wrapping_add(8).cast(), high_offsets) };
        let halves = staged.halves[slot..slot + KEYS].as_mut_ptr();
        let compacted = _mm512_permutex2var_epi32(low, odd, high);
        // SAFETY: sixteen half words; the store has no alignment to respect.
        unsafe { _mm512_storeu_si512(halves.cast(), compacted) };
    }

    /// Where the blocks of eight keys begin, in bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn offsets(&self, hashes: __m512i) -> __m512i {
        _mm512_slli_epi64::<6>(_mm512_srli_epi64::<32>(_mm512_mul_epu32(hashes, self.count)))
    }

    /// Tests `keys` keys from `slot` on, and writes which of their probes' bits are missing.
    ///
    /// # Safety
    ///
    /// They were staged by this test; where two are tested in a register, as many as make an even number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn test(&self, staged: &Staged, missing: &mut Missing, slot: usize, keys: usize) {
        for slot in (slot..slot + keys).step_by(Self::KEYS) {
            let place = slot / WORD * WORD + slot % WORD / Self::KEYS;
            let place = &raw mut missing.0[place];
            // SAFETY: the caller staged the keys.
            let missing = unsafe { self.missing(staged, slot) };
            // SAFETY: a place in the array. Volatile, since the compiler would else collect the masks in general registers.
            unsafe { place.write_volatile(missing) };
        }
    }

    /// What [`two`](Self::two) or [`single`](Self::single) gives for the keys from `slot` on.
    ///
    /// # Safety
    ///
    /// They were staged by this test.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn missing(&self, staged: &Staged, slot: usize) -> u16 {
        if LANES == 8 {
            // SAFETY: the caller staged the pair.
            return unsafe { self.two(staged, slot) };
        }
        // SAFETY: the caller staged the key.
        let half = unsafe { staged.halves[slot].assume_init() };
        // SAFETY: as above.
        self.single(half, unsafe { self.block(staged, slot) })
    }

    /// A bit per probe of the keys at `slot` and after it, alternating, set where the probe's bit is not.
    ///
    /// # Safety
    ///
    /// Both were staged by this test.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn two(&self, staged: &Staged, slot: usize) -> u16 {
        let halves = staged.halves[slot..slot + 2].as_ptr().cast::<i64>();
        // SAFETY: two halves, which the caller staged.
        let halves = unsafe { halves.read_unaligned() };
        let products = _mm512_mullo_epi32(_mm512_set1_epi64(halves), self.powers);
        // SAFETY: the caller staged the key.
        let first = unsafe { self.block(staged, slot) };
        // SAFETY: as above.
        let second = unsafe { self.block(staged, slot + 1) };
        // The top four bits of the product, and above them which of the two blocks.
        let word = _mm512_shldi_epi32::<4>(self.block, products);
        let words = _mm512_permutex2var_epi32(first, word, second);
        _mm512_mask_testn_epi32_mask(self.used, words, self.bit(products))
    }

    /// A bit per probe of the key with this high half of its hash, or per probe of either round, set where the probe's bit is not.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    pub(super) fn single(&self, half: u32, block: __m512i) -> u16 {
        let products = _mm512_mullo_epi32(_mm512_set1_epi32(half as i32), self.powers);
        let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), block);
        let missing = _mm512_mask_testn_epi32_mask(self.used, words, self.bit(products));
        if LANES <= 16 {
            return missing;
        }
        let products = _mm512_mullo_epi32(products, self.next_round);
        let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), block);
        missing | _mm512_mask_testn_epi32_mask(self.used_in_second_round, words, self.bit(products))
    }

    /// The block of the key at `slot`.
    ///
    /// # Safety
    ///
    /// It was staged by this test, which has blocks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    unsafe fn block(&self, staged: &Staged, slot: usize) -> __m512i {
        // SAFETY: the caller staged the key.
        let offset = unsafe { staged.offsets[slot].assume_init() };
        let block = self.blocks.as_ptr().wrapping_byte_add(offset as usize);
        // SAFETY: `offset` is 64 times `lo * count / 2^32`, which is less than the number of blocks; the load has no alignment to
        // respect.
        unsafe { _mm512_loadu_si512(block.cast()) }
    }

    /// The probe's bit in its word: a rotation takes its count modulo 32.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn bit(&self, products: __m512i) -> __m512i {
        _mm512_rolv_epi32(self.one, _mm512_srli_epi32::<23>(products))
    }

    /// One bit for each key of the word whose first is at `slot`, set if it may be present.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn collect(&self, missing: &Missing, slot: usize) -> u64 {
        let missing = missing.0[slot..slot + WORD].as_ptr();
        // SAFETY: the first 32 of 64 half words; the load has no alignment to respect.
        let low = unsafe { _mm512_loadu_si512(missing.cast()) };
        if LANES == 8 {
            return interleave(
                _mm512_testn_epi16_mask(low, _mm512_set1_epi16(0x5555)),
                _mm512_testn_epi16_mask(low, _mm512_set1_epi16(0x5555 << 1)),
            );
        }
        // SAFETY: the other 32.
        let high = unsafe { _mm512_loadu_si512(missing.wrapping_add(32).cast()) };
        u64::from(_mm512_testn_epi16_mask(low, low))
            | u64::from(_mm512_testn_epi16_mask(high, high)) << 32
    }
}

/// The bits of `even` and `odd`, alternating.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn interleave(even: u32, odd: u32) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    _pdep_u64(even.into(), EVEN) | _pdep_u64(odd.into(), !EVEN)
}
