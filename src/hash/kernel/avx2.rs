//! AVX2: four keys of 4 to 8 bytes at a time. A product of 64-bit lanes takes three products of
//! 32-bit lanes.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use core::mem::MaybeUninit;

use super::staging::{STAGED, Staged, Staging};
use super::{MULTIPLIER_8, flip_8, hash_each, hash_one};

/// Keys in a register.
const KEYS: usize = 4;

/// Hashes keys from the front, up to the first chunk with unsupported lengths. Returns the number
/// of keys hashed.
///
/// # Safety
///
/// The CPU has AVX2, and `keys.len() == hashes.len()`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn staged<K: AsRef<[u8]>>(
    keys: &[K],
    seed: u64,
    hashes: &mut [MaybeUninit<u64>],
) -> usize {
    let flip = _mm256_set1_epi64x(flip_8(seed) as i64);
    let (mut staging, mut done) = (Staging::new(), 0);
    for (keys, hashes) in keys.chunks(STAGED).zip(hashes.chunks_mut(STAGED)) {
        if staging.stage::<8, K>(keys) != Staged::FourToEight {
            return done;
        }
        watch!(ran("avx2"));
        let words = staging.first.as_chunks::<KEYS>().0;
        let words = words.iter().zip(staging.lengths.as_chunks::<KEYS>().0);
        let (fours, of_rest) = hashes.as_chunks_mut::<KEYS>();
        for (hashes, (four, lengths)) in fours.iter_mut().zip(words) {
            // SAFETY: reads an array of four words, which were written for these four hashes.
            let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
            // SAFETY: reads an array of four words, which were written for these four hashes.
            let lengths = unsafe { _mm256_loadu_si256(lengths.as_ptr().cast()) };
            store(hashes, hash(swap_halves(four), flip, lengths));
        }
        hash_each(keys.as_chunks::<KEYS>().1, of_rest, |key| hash_one(key, seed));
        done += keys.len();
    }
    done
}

/// Hashes keys of `WIDTH` bytes, which is 4 or 8.
///
/// # Safety
///
/// The CPU has AVX2, and `keys.len() == hashes.len()`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn integers<const WIDTH: usize>(
    keys: &[[u8; WIDTH]],
    seed: u64,
    hashes: &mut [MaybeUninit<u64>],
) {
    watch!(ran("avx2"));
    let flip = _mm256_set1_epi64x(flip_8(seed) as i64);
    let length = _mm256_set1_epi64x(WIDTH as i64);
    let (fours, rest) = keys.as_chunks::<KEYS>();
    let (of_fours, of_rest) = hashes.as_chunks_mut::<KEYS>();
    for (keys, hashes) in fours.iter().zip(of_fours) {
        store(hashes, hash(load(keys), flip, length));
    }
    hash_each(rest, of_rest, |key| hash_one(key, seed));
}

/// Loads one key into each lane, in the form that [`hash`] takes.
#[inline]
#[target_feature(enable = "avx2")]
fn load<const WIDTH: usize>(keys: &[[u8; WIDTH]; KEYS]) -> __m256i {
    const { assert!(WIDTH == 4 || WIDTH == 8) };
    if WIDTH == 8 {
        // SAFETY: reads an array of four keys of eight bytes, which has 32 bytes.
        return swap_halves(unsafe { _mm256_loadu_si256(keys.as_ptr().cast()) });
    }
    // SAFETY: reads an array of four keys of four bytes, which has 16 bytes.
    let keys = _mm256_cvtepu32_epi64(unsafe { _mm_loadu_si128(keys.as_ptr().cast()) });
    _mm256_or_si256(keys, _mm256_slli_epi64::<32>(keys))
}

#[inline]
#[target_feature(enable = "avx2")]
fn swap_halves(words: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(words)
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(hashes: &mut [MaybeUninit<u64>; KEYS], found: __m256i) {
    // SAFETY: writes an array of four hashes, which has 32 bytes.
    unsafe { _mm256_storeu_si256(hashes.as_mut_ptr().cast(), found) }
}

/// Hashes four keys of 4 to 8 bytes. The low half of a lane holds the last four bytes of its key,
/// the high half the first four.
#[inline]
#[target_feature(enable = "avx2")]
fn hash(keys: __m256i, flip: __m256i, lengths: __m256i) -> __m256i {
    let mixed = _mm256_xor_si256(keys, flip);
    // A rotation by whole bytes is a shuffle.
    let by_24 = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        5, 6, 7, 0, 1, 2, 3, 4, 13, 14, 15, 8, 9, 10, 11, 12,
    ));
    let by_24 = _mm256_shuffle_epi8(mixed, by_24);
    let by_49 = _mm256_or_si256(_mm256_slli_epi64::<49>(mixed), _mm256_srli_epi64::<15>(mixed));
    let mixed = multiply(_mm256_xor_si256(mixed, _mm256_xor_si256(by_24, by_49)));
    let shifted = _mm256_add_epi64(_mm256_srli_epi64::<35>(mixed), lengths);
    let mixed = multiply(_mm256_xor_si256(mixed, shifted));
    _mm256_xor_si256(mixed, _mm256_srli_epi64::<28>(mixed))
}

/// Returns the low halves of the products with [`MULTIPLIER_8`].
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(words: __m256i) -> __m256i {
    let low = _mm256_set1_epi64x((MULTIPLIER_8 & 0xffff_ffff) as i64);
    let high = _mm256_set1_epi64x((MULTIPLIER_8 >> 32) as i64);
    let crossed = _mm256_add_epi64(
        _mm256_mul_epu32(words, high),
        _mm256_mul_epu32(_mm256_srli_epi64::<32>(words), low),
    );
    _mm256_add_epi64(_mm256_mul_epu32(words, low), _mm256_slli_epi64::<32>(crossed))
}
