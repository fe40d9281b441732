//! One key, and a call of few: no stores that later loads would wait for. One key takes, for up to 8 probes, registers of half the width, of
//! which Intel's cores run more at a time.

use core::arch::x86_64::*;

use super::super::avx2::ones_of;
use super::super::driver::for_each_of_few;
use super::super::prefetch::Prefetch;
use super::super::table::{address, powers};
use super::query::Test;
use crate::probe::Block;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(in super::super) unsafe fn one(line: &Block, probes: u32, hash: u64) -> bool {
    match probes {
        ..=8 => One::<8>::new(probes).contains(line, hash),
        9..=16 => One::<16>::new(probes).contains(line, hash),
        _ => One::<32>::new(probes).contains(line, hash),
    }
}

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
            (Prefetch::No, ..=8) => few_of::<8, false>(blocks, prefetch, probes, hashes),
            (Prefetch::No, ..=16) => few_of::<16, false>(blocks, prefetch, probes, hashes),
            (_, ..=8) => few_of::<8, true>(blocks, prefetch, probes, hashes),
            (_, ..=16) => few_of::<16, true>(blocks, prefetch, probes, hashes),
            _ => few_of::<32, true>(blocks, prefetch, probes, hashes),
        }
    }
}

/// Up to 16 probes, eight keys at a time; those that are left, and all with more probes, one by one. Not inlined, so that each instance saves
/// only the registers that it needs; and one that does not prefetch, since with the branch in it two keys in cache took 3.2 instead of 2.6 ns
/// each (Zen 5).
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn few_of<const LANES: usize, const PREFETCH: bool>(
    blocks: &[Block],
    prefetch: Prefetch,
    probes: u32,
    hashes: &[u64],
) -> u64 {
    let (eights, rest) = if LANES <= 16 { hashes.as_chunks() } else { (&[][..], hashes) };
    let mut word = 0;
    if PREFETCH {
        prefetch.prefetch(blocks, hashes);
    }
    for (i, keys) in eights.iter().enumerate() {
        // SAFETY: the caller's promises are passed on.
        word |= unsafe { eight::<LANES, PREFETCH>(blocks, probes, keys) } << (8 * i);
    }
    if rest.is_empty() {
        return word;
    }
    let one = One::<LANES>::new(probes);
    let bits = for_each_of_few(rest, |hash| {
        // SAFETY: the caller promised the number of blocks.
        let block = unsafe { address(blocks, *hash) };
        // SAFETY: it is one of `blocks`.
        one.contains(unsafe { &*block }, *hash)
    });
    word | bits << (8 * eights.len())
}

/// A bit for each of eight keys, of up to 16 probes; up to 8, two keys are tested in a register. Where their blocks begin is computed in
/// general registers, from each hash's own load, or if `TOGETHER` in a vector, and taken from memory. That is known later, and takes 1.03
/// to 1.15 of the time in cache; it is fewer instructions, of which those of the next call are waiting behind lines that are not there yet,
/// and takes 0.87 from memory (Zen 5, 100 M keys, 32 a call).
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn eight<const LANES: usize, const TOGETHER: bool>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64; 8],
) -> u64 {
    let used = _bzhi_u32(!0, probes);
    let used = if LANES == 8 { used | used << 8 } else { used };
    // SAFETY: eight hashes; the load has no alignment to respect.
    let keys = unsafe { _mm512_loadu_si512(hashes.as_ptr().cast()) };
    let powers = load(&Lanes::<LANES>::POWERS);
    let mut offsets = [0; 8];
    if TOGETHER {
        let index = _mm512_mul_epu32(keys, _mm512_set1_epi64(blocks.len() as i64));
        let bytes = _mm512_slli_epi64::<6>(_mm512_srli_epi64::<32>(index));
        // SAFETY: eight words; the store has no alignment to respect.
        unsafe { _mm512_storeu_si512(offsets.as_mut_ptr().cast(), bytes) };
    }
    let block = |i: usize| {
        let block = if TOGETHER {
            // Volatile, since the compiler would else take the words out of the register.
            // SAFETY: one of eight words.
            let offset = unsafe { (&raw const offsets[i]).read_volatile() };
            blocks.as_ptr().wrapping_byte_add(offset)
        } else {
            // SAFETY: the caller promised the number of blocks.
            unsafe { address(blocks, low(&hashes[i])) }
        };
        // SAFETY: one of `blocks`; the load has no alignment to respect.
        unsafe { _mm512_loadu_si512(block.cast()) }
    };
    let mut missing = [0; 2];
    for i in 0..8 / Lanes::<LANES>::KEYS {
        let halves = _mm512_permutexvar_epi32(load(&Lanes::<LANES>::HALVES[i]), keys);
        let products = _mm512_mullo_epi32(halves, powers);
        let words = if LANES == 8 {
            let word = _mm512_shldi_epi32::<4>(load(&Lanes::<LANES>::BLOCK), products);
            _mm512_permutex2var_epi32(block(2 * i), word, block(2 * i + 1))
        } else {
            _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), block(i))
        };
        let bits = _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<23>(products));
        let some = _mm512_mask_testn_epi32_mask(used as u16, words, bits);
        missing[i / 4] |= u64::from(some) << (i % 4 * 16);
    }
    if LANES == 8 {
        return which_are_zero::<0x8080_8080_8080_8080>(missing[0]);
    }
    const TOP: u64 = 0x8000_8000_8000_8000;
    which_are_zero::<TOP>(missing[0]) | which_are_zero::<TOP>(missing[1]) << 4
}

/// What the lanes of a register are for.
struct Lanes<const LANES: usize>;

impl<const LANES: usize> Lanes<LANES> {
    /// Keys tested in a register.
    const KEYS: usize = if LANES == 8 { 2 } else { 1 };

    /// The powers of `G`, for each key.
    const POWERS: [u32; 16] = {
        let (powers, mut lanes, mut lane) = (powers::<16>(), [0; 16], 0);
        while lane < 16 {
            lanes[lane] = powers[lane % LANES];
            lane += 1;
        }
        lanes
    };

    /// For each register that eight keys take, where in the keys the high half of the lane's is.
    const HALVES: [[u32; 16]; 8] = {
        let (mut halves, mut lane) = ([[0; 16]; 8], 0);
        while lane < 16 * 8 / Self::KEYS {
            halves[lane / 16][lane % 16] = (lane * Self::KEYS / 16 * 2 + 1) as u32;
            lane += 1;
        }
        halves
    };

    /// Which of two blocks.
    const BLOCK: [u32; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(lanes: &[u32; 16]) -> __m512i {
    // SAFETY: the 64 bytes of a reference; the load has no alignment to respect.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

/// A bit for each part of 64 bits, set if it is zero; `TOP` has the top bit of each part. In general registers: a test of bytes in a vector
/// would wait for a move there, and its mask for a move back.
#[inline]
#[target_feature(enable = "bmi2")]
fn which_are_zero<const TOP: u64>(parts: u64) -> u64 {
    // What is not zero below the top bit carries to it.
    let some = ((parts & !TOP) + !TOP) | parts;
    _pext_u64(!some, TOP)
}

/// The low half of a hash, by a load of its own. The compiler would else multiply the low halves of neighbours in a register and take the
/// products out one by one: more instructions, for the ports that the loop waits for.
#[inline]
fn low(hash: &u64) -> u64 {
    // SAFETY: the first four of the reference's eight bytes, which are the low ones on x86.
    unsafe { core::ptr::from_ref(hash).cast::<u32>().read_volatile() }.into()
}

/// Up to `LANES` probes.
struct One<const LANES: usize> {
    /// For more than 8.
    test: Test<'static, LANES>,
    /// `G^0 .. G^7`.
    powers: __m256i,
    /// A one in every lane that probes.
    ones: __m256i,
}

impl<const LANES: usize> One<LANES> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn new(probes: u32) -> Self {
        const POWERS: [u32; 8] = powers();
        One {
            test: Test::new(&[], probes),
            // SAFETY: eight words; the load has no alignment to respect.
            powers: unsafe { _mm256_loadu_si256(POWERS.as_ptr().cast()) },
            ones: ones_of(probes as usize),
        }
    }

    /// Whether the block has all bits of the hash.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    fn contains(&self, block: &Block, hash: u64) -> bool {
        let half = (hash >> 32) as u32;
        // SAFETY: the 64 bytes of a reference; the load has no alignment to respect.
        let block = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        if LANES > 8 {
            return self.test.single(half, block) == 0;
        }
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(half as i32), self.powers);
        let word = _mm512_castsi256_si512(_mm256_srli_epi32::<28>(products));
        let words = _mm512_castsi512_si256(_mm512_permutexvar_epi32(word, block));
        // `vptest` makes a flag of eight probes, where a mask register would have to be moved first.
        let bits = _mm256_rolv_epi32(self.ones, _mm256_srli_epi32::<23>(products));
        _mm256_testc_si256(words, bits) != 0
    }
}
