//! AVX2: a line in two registers; computes the places of four keys at a time.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use blocked_bloom::Block;

use super::Table;
use super::driver::{self, KEYS, Places};
use crate::tags::MULTIPLIER;

pub(super) const TABLE: Table = Table {
    contains: [contains::<0>, contains::<1>, contains::<2>],
    insert: [insert::<0>, insert::<1>],
    remove: [remove::<0>, remove::<1>],
};

/// # Safety
///
/// The CPU must support AVX2 and the instructions of `bits`: see [`Table`].
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn contains<const LINES: usize>(lines: &[Block], hashes: &[u64], hits: &mut [u64]) {
    ran!("avx2");
    driver::contains::<LINES>(
        lines,
        hashes,
        hits,
        |keys, count| places(keys, count),
        |first, second, tags| contains_tag(first, second, tags),
    );
}

/// # Safety
///
/// The CPU must support AVX2 and the instructions of `bits`: see [`Table`].
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn insert<const LINES: usize>(lines: &mut [Block], hashes: &[u64]) -> usize {
    ran!("avx2");
    driver::insert::<LINES>(
        lines,
        hashes,
        |keys, count| places(keys, count),
        |line, tags| equal(line, tags),
    )
}

/// # Safety
///
/// The CPU must support AVX2 and the instructions of `bits`: see [`Table`].
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn remove<const LINES: usize>(
    lines: &mut [Block],
    hashes: &[u64],
    found: &mut [u64],
) -> usize {
    ran!("avx2");
    driver::remove::<LINES>(
        lines,
        hashes,
        found,
        |keys, count| places(keys, count),
        |line, tags| equal(line, tags),
    )
}

/// Computes [`Place::new`](crate::tags::Place::new) of eight hashes.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) fn places(hashes: &[u64; KEYS], count: u32) -> Places {
    let (halves, _) = hashes.as_chunks();
    let [low, high] = [places_of_four(&halves[0], count), places_of_four(&halves[1], count)];
    Places {
        first: words(low.0, high.0),
        second: words(low.1, high.1),
        tags: [store(low.2), store(high.2)].as_flattened().try_into().unwrap_or([0; KEYS]),
    }
}

/// Returns first lines, second lines and tags of four hashes, each in 64-bit words.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn places_of_four(hashes: &[u64; 4], count: u32) -> (__m256i, __m256i, __m256i) {
    // SAFETY: the array has the 32 bytes that the load reads; the load allows any alignment.
    let hashes = unsafe { _mm256_loadu_si256(hashes.as_ptr().cast()) };
    let count = _mm256_set1_epi64x(count.into());
    // The highest 16 bits of each hash, in all four lanes of its word.
    let highest = _mm256_set_epi8(
        15, 14, 15, 14, 15, 14, 15, 14, 7, 6, 7, 6, 7, 6, 7, 6, 15, 14, 15, 14, 15, 14, 15, 14, 7,
        6, 7, 6, 7, 6, 7, 6,
    );
    let tags = _mm256_max_epu16(_mm256_shuffle_epi8(hashes, highest), _mm256_set1_epi16(1));
    // `vpmuludq` multiplies the low halves.
    let first = _mm256_srli_epi64::<32>(_mm256_mul_epu32(hashes, count));
    let multiplier = _mm256_set1_epi64x(MULTIPLIER.into());
    let product = _mm256_mul_epu32(_mm256_srli_epi64::<48>(tags), multiplier);
    let sum = _mm256_srli_epi64::<32>(_mm256_mul_epu32(product, count));
    let wraps = _mm256_and_si256(_mm256_cmpgt_epi64(first, sum), count);
    (first, _mm256_add_epi64(_mm256_sub_epi64(sum, first), wraps), tags)
}

/// Returns the low halves of eight 64-bit words.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn words(low: __m256i, high: __m256i) -> [u32; KEYS] {
    let both = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(
        _mm256_castsi256_ps(low),
        _mm256_castsi256_ps(high),
    ));
    let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(both);
    let mut words = [0; KEYS];
    // SAFETY: `words` has the 32 bytes that the store writes; the store allows any alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), ordered) };
    words
}

#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn store(words: __m256i) -> [u64; 4] {
    let mut stored = [0; 4];
    // SAFETY: `stored` has the 32 bytes that the store writes; the store allows any alignment.
    unsafe { _mm256_storeu_si256(stored.as_mut_ptr().cast(), words) };
    stored
}

/// Loads lanes 0 to 15 and 16 to 31 of a line.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn load(line: &Block) -> [__m256i; 2] {
    let start = line.as_ptr().cast::<__m256i>();
    // SAFETY: reads the first 32 of the reference's 64 bytes; the load allows any alignment.
    let low = unsafe { _mm256_loadu_si256(start) };
    // SAFETY: reads the last 32 of the reference's 64 bytes; the load allows any alignment.
    let high = unsafe { _mm256_loadu_si256(start.wrapping_add(1)) };
    [low, high]
}

/// Returns whether a lane of one of the lines equals the tag.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn contains_tag(first: &Block, second: &Block, tags: u64) -> bool {
    let tags = _mm256_set1_epi64x(tags as i64);
    let [a, b] = load(first);
    let [c, d] = load(second);
    let first = _mm256_or_si256(_mm256_cmpeq_epi16(a, tags), _mm256_cmpeq_epi16(b, tags));
    let second = _mm256_or_si256(_mm256_cmpeq_epi16(c, tags), _mm256_cmpeq_epi16(d, tags));
    _mm256_movemask_epi8(_mm256_or_si256(first, second)) != 0
}

/// Returns one bit per lane, set if the lane equals the tag.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn equal(line: &Block, tags: u64) -> u32 {
    let tags = _mm256_set1_epi64x(tags as i64);
    let [low, high] = load(line);
    // Packing keeps register halves apart, so words 0 and 2 contain lanes 0 to 15.
    let bytes = _mm256_packs_epi16(_mm256_cmpeq_epi16(low, tags), _mm256_cmpeq_epi16(high, tags));
    _mm256_movemask_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(bytes)) as u32
}
