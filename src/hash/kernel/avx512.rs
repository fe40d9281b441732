//! AVX-512: eight keys of 4 to 16 bytes at a time. The low half of a product of 64-bit lanes takes
//! one instruction. The high half, which keys of 9 to 16 bytes require, is computed from four
//! products of 32-bit lanes.

use core::arch::x86_64::*;

use core::mem::MaybeUninit;

use super::staging::{STAGED, Staged, Staging};
use super::{MULTIPLIER_8, MULTIPLIER_16, flip_8, flips_16, hash_each, hash_one};

/// Keys in a register.
const KEYS: usize = 8;

/// Hashes keys from the front, up to the first chunk with unsupported lengths. Returns the number
/// of keys hashed.
///
/// # Safety
///
/// The CPU has AVX-512 F, BW, DQ and VL, and `keys.len() == hashes.len()`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn staged<K: AsRef<[u8]>>(
    keys: &[K],
    seed: u64,
    hashes: &mut [MaybeUninit<u64>],
) -> usize {
    let (mut staging, mut done) = (Staging::new(), 0);
    for (keys, hashes) in keys.chunks(STAGED).zip(hashes.chunks_mut(STAGED)) {
        match staging.stage::<16, K>(keys) {
            // SAFETY: the CPU's features are promised; `first` and `lengths` were written for one
            // key per hash.
            Staged::FourToEight => unsafe { ends::<true, false>(&staging, seed, hashes) },
            // SAFETY: the CPU's features are promised; all fields were written for one key per
            // hash.
            Staged::NineToSixteen => unsafe { ends::<false, true>(&staging, seed, hashes) },
            Staged::Mixed { unfit } => {
                // SAFETY: the CPU's features are promised; all fields were written for one key per
                // hash.
                unsafe { ends::<true, true>(&staging, seed, hashes) };
                for i in staging.unfit(unfit) {
                    hashes[i].write(hash_one(&keys[i], seed));
                }
            }
            Staged::None => return done,
        }
        done += keys.len();
    }
    done
}

/// Hashes keys of 4 to 8 bytes (`HAS_SHORT`), of 9 to 16 (`HAS_LONG`), or both. With both, each
/// lane is hashed both ways, and the key's length selects the result.
///
/// # Safety
///
/// The CPU has the features of [`staged`]. For each hash, the fields of `staging` that [`Staged`]
/// lists for keys of this kind have been written.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn ends<const HAS_SHORT: bool, const HAS_LONG: bool>(
    staging: &Staging,
    seed: u64,
    hashes: &mut [MaybeUninit<u64>],
) {
    watch!(ran("avx512"));
    let flip = _mm512_set1_epi64(flip_8(seed) as i64);
    let flips = broadcast(flips_16(seed));
    let firsts = staging.first.as_chunks::<KEYS>().0;
    let lasts = staging.last.as_chunks::<KEYS>().0;
    let lengths = staging.lengths.as_chunks::<KEYS>().0;
    let words = firsts.iter().zip(lasts).zip(lengths);
    for (hashes, ((first, last), lengths)) in hashes.chunks_mut(KEYS).zip(words) {
        let lanes = lanes(hashes.len());
        // SAFETY: the mask limits the load to one word per hash, and those were written.
        let first = unsafe { _mm512_maskz_loadu_epi64(lanes, first.as_ptr().cast()) };
        // SAFETY: the mask limits the load to one word per hash, and those were written.
        let lengths = unsafe { _mm512_maskz_loadu_epi64(lanes, lengths.as_ptr().cast()) };
        if !HAS_LONG {
            store(hashes, hash_8(_mm512_rol_epi64::<32>(first), flip, lengths));
            continue;
        }
        // SAFETY: the mask limits the load to one word per hash, and those were written, since
        // `HAS_LONG` is set.
        let last = unsafe { _mm512_maskz_loadu_epi64(lanes, last.as_ptr().cast()) };
        let mut found = hash_16(first, last, flips, lengths);
        if HAS_SHORT {
            let short = _mm512_cmple_epu64_mask(lengths, _mm512_set1_epi64(8));
            let of_short = hash_8(_mm512_rol_epi64::<32>(first), flip, lengths);
            found = _mm512_mask_mov_epi64(found, short, of_short);
        }
        store(hashes, found);
    }
}

/// Hashes keys of `WIDTH` bytes, which is 4 or 8.
///
/// # Safety
///
/// The CPU has AVX-512 F, BW, DQ and VL, and `keys.len() == hashes.len()`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn integers<const WIDTH: usize>(
    keys: &[[u8; WIDTH]],
    seed: u64,
    hashes: &mut [MaybeUninit<u64>],
) {
    watch!(ran("avx512"));
    const { assert!(WIDTH == 4 || WIDTH == 8) };
    let flip = _mm512_set1_epi64(flip_8(seed) as i64);
    let length = _mm512_set1_epi64(WIDTH as i64);
    let (eights, rest) = keys.as_chunks::<KEYS>();
    let (of_eights, of_rest) = hashes.as_chunks_mut::<KEYS>();
    // One by one: the CPU cannot forward a store under a mask to the next load of a hash.
    hash_each(rest, of_rest, |key| hash_one(key, seed));
    for (keys, hashes) in eights.iter().zip(of_eights) {
        let keys = if WIDTH == 4 {
            // SAFETY: reads an array of eight keys of four bytes; the load needs no alignment.
            let keys = unsafe { _mm256_loadu_si256(keys.as_ptr().cast()) };
            let keys = _mm512_cvtepu32_epi64(keys);
            _mm512_or_si512(keys, _mm512_slli_epi64::<32>(keys))
        } else {
            // SAFETY: reads an array of eight keys of eight bytes; the load needs no alignment.
            let keys = unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) };
            _mm512_rol_epi64::<32>(keys)
        };
        let found = hash_8(keys, flip, length);
        // SAFETY: writes an array of eight hashes; the store needs no alignment.
        unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().cast(), found) };
    }
}

/// Hashes keys of 4 to 8 bytes. The low half of a lane holds the last four bytes of its key, the
/// high half the first four.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn hash_8(keys: __m512i, flip: __m512i, lengths: __m512i) -> __m512i {
    let multiplier = _mm512_set1_epi64(MULTIPLIER_8 as i64);
    let mixed = _mm512_xor_si512(keys, flip);
    let (by_49, by_24) = (_mm512_rol_epi64::<49>(mixed), _mm512_rol_epi64::<24>(mixed));
    let mixed = _mm512_ternarylogic_epi64::<XOR>(mixed, by_49, by_24);
    let mixed = _mm512_mullo_epi64(mixed, multiplier);
    let shifted = _mm512_add_epi64(_mm512_srli_epi64::<35>(mixed), lengths);
    let mixed = _mm512_mullo_epi64(_mm512_xor_si512(mixed, shifted), multiplier);
    _mm512_xor_si512(mixed, _mm512_srli_epi64::<28>(mixed))
}

/// Hashes keys of 9 to 16 bytes. `first` holds the first eight bytes of each key, `last` the last.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn hash_16(first: __m512i, last: __m512i, flips: [__m512i; 2], lengths: __m512i) -> __m512i {
    let reversed =
        _mm512_broadcast_i32x4(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
    let low = _mm512_xor_si512(first, flips[0]);
    let high = _mm512_xor_si512(last, flips[1]);
    let sum = _mm512_add_epi64(_mm512_shuffle_epi8(low, reversed), lengths);
    let sum = _mm512_add_epi64(sum, high);
    let mixed = _mm512_add_epi64(sum, folded_product(low, high));
    let mixed = _mm512_xor_si512(mixed, _mm512_srli_epi64::<37>(mixed));
    let mixed = _mm512_mullo_epi64(mixed, _mm512_set1_epi64(MULTIPLIER_16 as i64));
    _mm512_xor_si512(mixed, _mm512_srli_epi64::<32>(mixed))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn broadcast([first, last]: [u64; 2]) -> [__m512i; 2] {
    [_mm512_set1_epi64(first as i64), _mm512_set1_epi64(last as i64)]
}

/// Returns the low half of each 128-bit product XORed with the high half.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn folded_product(a: __m512i, b: __m512i) -> __m512i {
    let low_half = _mm512_set1_epi64(0xffff_ffff);
    let (a_high, b_high) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
    let low = _mm512_mul_epu32(a, b);
    let high = _mm512_mul_epu32(a_high, b_high);
    // Neither sum overflows: (2^32 - 1)^2 + 2^32 - 1 < 2^64.
    let middle = _mm512_add_epi64(_mm512_mul_epu32(a_high, b), _mm512_srli_epi64::<32>(low));
    let other = _mm512_add_epi64(_mm512_mul_epu32(a, b_high), _mm512_and_si512(middle, low_half));
    let high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(middle));
    let high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(other));
    let low = _mm512_ternarylogic_epi64::<SELECT>(_mm512_slli_epi64::<32>(other), low, low_half);
    _mm512_xor_si512(low, high)
}

/// `a ^ b ^ c` for `vpternlogq`.
const XOR: i32 = 0x96;

/// `b` where `c` is set, `a` elsewhere.
const SELECT: i32 = 0xd8;

/// A mask of the first `count` of eight lanes.
#[inline]
fn lanes(count: usize) -> u8 {
    ((1_u32 << count) - 1) as u8
}

/// Writes as many hashes as the slice has, at most eight.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn store(hashes: &mut [MaybeUninit<u64>], found: __m512i) {
    // SAFETY: the mask limits the store to one lane per word of the slice.
    unsafe { _mm512_mask_storeu_epi64(hashes.as_mut_ptr().cast(), lanes(hashes.len()), found) }
}
