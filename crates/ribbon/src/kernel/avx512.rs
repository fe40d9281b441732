//! AVX-512: prepares eight keys together in registers, then tests them one by one, eight words at a
//! time: eight columns of a shard, or four of RocksDB's columns, which are twice as wide.
//!
//! Words outside the key's equation are masked, also in loads, so nothing is read outside of the
//! filter. In addition to the features of the core's AVX-512 kernel it needs VPOPCNTDQ, which Ice
//! Lake, Zen 4 and later CPUs have.

mod substitute;

use core::arch::x86_64::*;

use blocked_bloom::InstructionSet;

use super::Table;
use super::driver::{Equation, KEYS, RING, Source, batch, for_lines, prefetch_spans, test_each};
use crate::scheme::rocksdb::{COEFFICIENTS, LOW_HALF, REHASH, Segments};
use crate::scheme::{SEED, Shards, Word, shard};

cpufeatures::new!(
    detect,
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vpopcntdq",
    "bmi1",
    "bmi2",
    "popcnt"
);

pub(super) fn is_supported() -> bool {
    detect::get()
}

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Avx512,
    contains_64: for_lines!(batch_64),
    contains_128: for_lines!(batch_128),
    contains_one_64,
    contains_one_128,
    substitute_64: substitute::substitute_64,
    substitute_128: substitute::substitute_128,
};

/// Prepared equations with `WORDS` words per column. Aligned, since words that straddle two cache
/// lines of the stack are stored and loaded twice.
#[repr(C, align(64))]
struct Ring<const WORDS: usize> {
    /// The bits in the first block and in the next.
    left: [[u64; WORDS]; RING],
    right: [[u64; WORDS]; RING],
    /// Offset of column 0 in the first block.
    start: [u64; RING],
    columns: [u64; RING],
    /// Zero after the last column.
    result: [u64; RING],
    /// Masks of the equation's words in its first block: for the first eight words, and for the
    /// next eight.
    masks: [[u8; RING]; WORDS],
    /// The same masks for the next block.
    next_masks: [[u8; RING]; WORDS],
}

impl<const WORDS: usize> Ring<WORDS> {
    fn new() -> Self {
        Ring {
            left: [[0; WORDS]; RING],
            right: [[0; WORDS]; RING],
            start: [0; RING],
            columns: [0; RING],
            result: [0; RING],
            masks: [[0; RING]; WORDS],
            next_masks: [[0; RING]; WORDS],
        }
    }
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX-512.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
unsafe fn batch_64<const LINES: usize>(shards: &Shards<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("avx512");
    let bytes = shards.bytes();
    let span = span(shards.columns as usize * 8);
    let prepare = |ring: &mut Ring<1>, keys: &[u64; KEYS], slot: usize| {
        let hash = load(keys);
        let shard_count = splat(shards.directory.len() as u64);
        let low = _mm512_mul_epu32(hash, shard_count);
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), shard_count);
        let rest = _mm512_add_epi64(low, _mm512_slli_epi64::<32>(high));
        let entry = entries(shards.directory, keys);
        let offset = _mm512_and_si512(entry, splat(u64::from(u32::MAX)));
        let starts = _mm512_and_si512(_mm512_srli_epi64::<32>(entry), splat(0xffff));
        let short = _mm512_and_si512(_mm512_srli_epi64::<48>(entry), splat(0xff));
        let seed = _mm512_mullo_epi64(_mm512_srli_epi64::<56>(entry), splat(SEED));
        let seeded = _mm512_mullo_epi64(_mm512_xor_si512(rest, seed), splat(REHASH));
        let start = _mm512_mul_epu32(_mm512_srli_epi64::<32>(seeded), starts);
        let start = _mm512_srli_epi64::<32>(start);
        let a = _mm512_mullo_epi64(seeded, splat(COEFFICIENTS));
        let coefficients = _mm512_or_si512(a, splat(1));

        let (block, bit) = (_mm512_srli_epi64::<6>(start), _mm512_and_si512(start, splat(63)));
        let all = splat(u64::from(shards.columns));
        let before = _mm512_sub_epi64(_mm512_mul_epu32(block, all), _mm512_min_epu64(block, short));
        let word = _mm512_add_epi64(offset, before);
        let is_short = _mm512_cmplt_epu64_mask(block, short);
        let columns = _mm512_mask_sub_epi64(all, is_short, all, splat(1));
        let has_next = _mm512_test_epi64_mask(bit, bit);
        let end = _mm512_add_epi64(word, columns);
        let end = _mm512_mask_add_epi64(end, has_next, end, columns);
        // No columns if the directory points after the last word: nothing is loaded then.
        let fits = _mm512_cmple_epu64_mask(end, splat(shards.words.len() as u64));
        let columns = _mm512_maskz_mov_epi64(fits, columns);
        let at = _mm512_maskz_slli_epi64::<3>(fits, word);

        let mask = first_words(columns);
        store(&mut ring.start, slot, at);
        store(&mut ring.columns, slot, columns);
        store(&mut ring.result, slot, results(a, columns));
        store_bytes(&mut ring.masks[0], slot, mask);
        store_bytes(&mut ring.next_masks[0], slot, _mm512_maskz_mov_epi64(has_next, mask));
        store(ring.left.as_flattened_mut(), slot, _mm512_sllv_epi64(coefficients, bit));
        // A shift by 64 returns 0.
        let right = _mm512_srlv_epi64(coefficients, _mm512_sub_epi64(splat(64), bit));
        store(ring.right.as_flattened_mut(), slot, right);
        prefetch_spans::<LINES>(bytes, &ring.start, slot, span);
    };
    let test = |ring: &Ring<1>, slot: usize, column: u32, mask: u8, next_mask: u8| {
        let at = bytes.as_ptr().wrapping_add(ring.start[slot] as usize + 8 * column as usize);
        let next = at.wrapping_add(8 * ring.columns[slot] as usize);
        let [left, right] = [splat(ring.left[slot][0]), splat(ring.right[slot][0])];
        // SAFETY: `prepare` checked that the words of all columns are within the filter, in the
        // first block and, if its mask is not zero, in the next.
        let parities = unsafe { parities_64([at, next], [mask, next_mask], [left, right]) };
        _mm512_test_epi64_mask(differ_64(parities, ring.result[slot] >> column), splat(1)) == 0
    };
    let first = |ring: &Ring<1>, slot: usize| {
        let slot = slot % RING;
        test(ring, slot, 0, ring.masks[0][slot], ring.next_masks[0][slot])
    };
    let rest = |ring: &Ring<1>, slot: usize| {
        let slot = slot % RING;
        let columns = ring.columns[slot] as u32;
        (8..columns).step_by(8).all(|column| {
            let mask = _bzhi_u32(0xff, columns - column) as u8;
            test(ring, slot, column, mask, if ring.next_masks[0][slot] == 0 { 0 } else { mask })
        })
    };
    let more = shards.columns > 8;
    let first = |ring: &_, slot| test_each(slot, |slot| first(ring, slot));
    batch(&mut Ring::new(), hashes, hits, more, prepare, first, rest);
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX-512.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
unsafe fn batch_128<const LINES: usize>(segments: &Segments<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("avx512");
    let bytes = segments.bytes();
    let shape = segments.shape();
    let span = span(shape.columns() as usize * 16);
    let prepare = |ring: &mut Ring<2>, keys: &[u64; KEYS], slot: usize| {
        let hash = _mm512_xor_si512(load(keys), splat(u64::from(segments.raw_seed())));
        let seeded = _mm512_mullo_epi64(hash, splat(REHASH));
        let starts = splat(u64::from(shape.starts()));
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(seeded), starts);
        let low = _mm512_srli_epi64::<32>(_mm512_mul_epu32(seeded, starts));
        let start = _mm512_srli_epi64::<32>(_mm512_add_epi64(high, low));
        let (block, bit) = (_mm512_srli_epi64::<7>(start), _mm512_and_si512(start, splat(127)));
        let (all, short) = (splat(u64::from(shape.columns())), splat(u64::from(shape.short())));
        let before = _mm512_mul_epu32(block, all);
        let segment = _mm512_sub_epi64(before, _mm512_min_epu64(block, short));
        let is_short = _mm512_cmplt_epu64_mask(block, short);
        let columns = _mm512_mask_sub_epi64(all, is_short, all, splat(1));
        store(&mut ring.start, slot, _mm512_slli_epi64::<4>(segment));
        store(&mut ring.columns, slot, columns);
        prefetch_spans::<LINES>(bytes, &ring.start, slot, span);

        let a = _mm512_mullo_epi64(seeded, splat(COEFFICIENTS));
        let low = _mm512_or_si512(_mm512_xor_si512(a, splat(LOW_HALF)), splat(1));
        store(&mut ring.result, slot, results(a, columns));
        // Each segment has two words.
        let words = _mm512_slli_epi64::<1>(columns);
        let masks = [first_words(words), first_words(_mm512_subs_epu16(words, splat(8)))];
        let has_next = _mm512_test_epi64_mask(bit, bit);
        for (i, mask) in masks.into_iter().enumerate() {
            store_bytes(&mut ring.masks[i], slot, mask);
            store_bytes(&mut ring.next_masks[i], slot, _mm512_maskz_mov_epi64(has_next, mask));
        }
        // Shifts the 128 bits `a, low` up by `bit` and down by `128 - bit`. Shifts by 64 or more,
        // or by a negative number, return 0.
        let [over, under, rest] = [
            _mm512_sub_epi64(bit, splat(64)),
            _mm512_sub_epi64(splat(64), bit),
            _mm512_sub_epi64(splat(128), bit),
        ];
        let left_low = _mm512_sllv_epi64(low, bit);
        let left_high = _mm512_ternarylogic_epi64::<TERNARY_OR>(
            _mm512_sllv_epi64(a, bit),
            _mm512_srlv_epi64(low, under),
            _mm512_sllv_epi64(low, over),
        );
        let right_low = _mm512_ternarylogic_epi64::<TERNARY_OR>(
            _mm512_srlv_epi64(low, rest),
            _mm512_sllv_epi64(a, over),
            _mm512_srlv_epi64(a, under),
        );
        let right_high = _mm512_srlv_epi64(a, rest);
        interleave(&mut ring.left, slot, left_low, left_high);
        interleave(&mut ring.right, slot, right_low, right_high);
    };
    let test = |ring: &Ring<2>, slot: usize, column: u32, masks: [u8; 2], next_masks: [u8; 2]| {
        let at = bytes.as_ptr().wrapping_add(ring.start[slot] as usize + 16 * column as usize);
        let next = at.wrapping_add(16 * ring.columns[slot] as usize);
        let bits = [broadcast(&ring.left[slot]), broadcast(&ring.right[slot])];
        // SAFETY: `prepare` computes the places of `Segments::equation`, which promises that the
        // segments of all columns are within the filter, in the first block and, if its mask is not
        // zero, in the next.
        let parities = unsafe { parities_128([at, next], [masks, next_masks], bits) };
        _mm512_test_epi64_mask(differ_128(parities, ring.result[slot] >> column), splat(1)) == 0
    };
    let first = |ring: &Ring<2>, slot: usize| {
        let slot = slot % RING;
        let masks = [ring.masks[0][slot], ring.masks[1][slot]];
        test(ring, slot, 0, masks, [ring.next_masks[0][slot], ring.next_masks[1][slot]])
    };
    let rest = |ring: &Ring<2>, slot: usize| {
        let slot = slot % RING;
        let columns = ring.columns[slot] as u32;
        (8..columns).step_by(8).all(|column| {
            let words = 2 * (columns - column);
            let masks = [words, words.saturating_sub(8)].map(|words| _bzhi_u32(0xff, words) as u8);
            let has_next = ring.next_masks[0][slot] != 0;
            test(ring, slot, column, masks, if has_next { masks } else { [0; 2] })
        })
    };
    let more = shape.columns() > 8;
    let first = |ring: &_, slot| test_each(slot, |slot| first(ring, slot));
    batch(&mut Ring::new(), hashes, hits, more, prepare, first, rest);
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX-512.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
unsafe fn contains_one_64(directory: &[Word], hash: u64, words: &[Word], columns: u32) -> bool {
    ran!("avx512");
    let shards = Shards { directory, words, columns };
    let Equation { start, next, columns, result, left, right } = shards.equation(hash);
    let at = shards.bytes().as_ptr().wrapping_add(start);
    let bits = [splat(left), splat(right)];
    holds_all(columns as u32, shards.columns > 8, |column| {
        let mask = _bzhi_u32(0xff, columns as u32 - column) as u8;
        let first = at.wrapping_add(8 * column as usize);
        // SAFETY: `Source::equation` promises that the words of all columns are within the filter,
        // beginning at `start` and at `start + next`.
        let parities = unsafe { parities_64([first, first.wrapping_add(next)], [mask; 2], bits) };
        let odd = _mm512_test_epi64_mask(parities, splat(1));
        (odd ^ (result >> column) as u8) & mask == 0
    })
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX-512.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
unsafe fn contains_one_128(segments: &Segments<'_>, hash: u64) -> bool {
    ran!("avx512");
    let Equation { start, next, columns, result, left, right } = segments.equation(hash);
    let at = segments.bytes().as_ptr().wrapping_add(start);
    let bits = [left, right].map(|bits| [bits as u64, (bits >> 64) as u64]);
    let bits = [broadcast(&bits[0]), broadcast(&bits[1])];
    holds_all(columns as u32, segments.shape().columns() > 8, |column| {
        let columns = columns as u32 - column;
        let masks = [2 * columns, (2 * columns).saturating_sub(8)];
        let masks = [_bzhi_u32(0xff, masks[0]) as u8, _bzhi_u32(0xff, masks[1]) as u8];
        let first = at.wrapping_add(16 * column as usize);
        // SAFETY: `Source::equation` promises that the segments of all columns are within the
        // filter, beginning at `start` and at `start + next`.
        let parities = unsafe { parities_128([first, first.wrapping_add(next)], [masks; 2], bits) };
        // The bits of the result are in the order of the columns, so bits without a column must be
        // cleared.
        let result = u64::from(result >> column) & u64::from(_bzhi_u32(0xff, columns));
        _mm512_test_epi64_mask(differ_128(parities, result), splat(1)) == 0
    })
}

/// Tests one key, eight columns at a time. Without `more` than eight columns, the answer is
/// returned without a branch on it.
#[inline(always)]
fn holds_all(columns: u32, more: bool, test: impl Fn(u32) -> bool) -> bool {
    let mut column = 0;
    loop {
        let holds = test(column);
        column += 8;
        if !more || !holds || column >= columns {
            return holds;
        }
    }
}

/// Adds the equation's bits in the masked words of its first block and of the next, and counts the
/// set bits of each word.
///
/// # Safety
///
/// The masked words must be readable.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
unsafe fn parities_64(at: [*const u8; 2], masks: [u8; 2], bits: [__m512i; 2]) -> __m512i {
    // SAFETY: the caller promises that the masked words of the first block are readable.
    let first = unsafe { _mm512_maskz_loadu_epi64(masks[0], at[0].cast()) };
    // SAFETY: the caller promises that the masked words of the next block are readable.
    let next = unsafe { _mm512_maskz_loadu_epi64(masks[1], at[1].cast()) };
    let first = _mm512_and_si512(first, bits[0]);
    _mm512_popcnt_epi64(_mm512_ternarylogic_epi64::<XOR_AND>(first, next, bits[1]))
}

/// Returns words whose lowest bit is set if the parity of column `i` differs from bit `i` of the
/// result.
#[inline]
#[target_feature(enable = "avx512f")]
fn differ_64(parities: __m512i, result: u64) -> __m512i {
    let lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    _mm512_xor_si512(parities, _mm512_srlv_epi64(splat(result), lanes))
}

/// Like [`parities_64`], for eight columns of two words.
///
/// # Safety
///
/// The masked words must be readable. The second mask of each block begins at the ninth word.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
unsafe fn parities_128(at: [*const u8; 2], masks: [[u8; 2]; 2], bits: [__m512i; 2]) -> __m512i {
    let [first, next] = masks;
    let four = |i: usize| {
        let at = at.map(|at| at.wrapping_add(64 * i));
        // SAFETY: the caller promises that the masked words of the first block are readable.
        let first = unsafe { _mm512_maskz_loadu_epi64(first[i], at[0].cast()) };
        // SAFETY: the caller promises that the masked words of the next block are readable.
        let next = unsafe { _mm512_maskz_loadu_epi64(next[i], at[1].cast()) };
        _mm512_ternarylogic_epi64::<XOR_AND>(_mm512_and_si512(first, bits[0]), next, bits[1])
    };
    let (low, high) = (four(0), four(1));
    // The sums of the low and high halves of the segments.
    let sum = _mm512_xor_si512(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    _mm512_popcnt_epi64(sum)
}

/// Like [`differ_64`], in the order of [`parities_128`].
#[inline]
#[target_feature(enable = "avx512f")]
fn differ_128(parities: __m512i, result: u64) -> __m512i {
    // The columns of the first four segments alternate with those of the last four.
    let lanes = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    _mm512_xor_si512(parities, _mm512_srlv_epi64(splat(result), lanes))
}

/// `a ^ (b & c)`, and `a | b | c`.
const XOR_AND: i32 = 0x78;
const TERNARY_OR: i32 = 0xfe;

/// Returns the span to prefetch for an equation with this many bytes in each of two blocks. The
/// kernel loads whole registers, and waits for masked words too. Without the last of them, a batch
/// from memory took 1.25 to 1.4 times as much time (Zen 5, 100 M keys).
fn span(bytes: usize) -> usize {
    bytes + bytes.next_multiple_of(64)
}

/// Loads the keys' entries one by one, because some CPUs gather eight words more slowly.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn entries(directory: &[Word], keys: &[u64; KEYS]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = keys.map(|hash| {
        let (shard, _) = shard(hash, directory.len() as u32);
        i64::from_le_bytes(directory[shard as usize])
    });
    _mm512_setr_epi64(a, b, c, d, e, f, g, h)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(word: u64) -> __m512i {
    _mm512_set1_epi64(word.cast_signed())
}

/// Returns one set bit per word, at most eight.
#[inline]
#[target_feature(enable = "avx512f")]
fn first_words(words: __m512i) -> __m512i {
    let absent = _mm512_sub_epi64(splat(8), _mm512_min_epu64(words, splat(8)));
    _mm512_srlv_epi64(splat(0xff), absent)
}

/// Returns the results of equations with this many columns, at most 32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn results(a: __m512i, columns: __m512i) -> __m512i {
    let order = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
    let swapped = _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(order));
    _mm512_andnot_si512(_mm512_sllv_epi64(splat(u64::MAX), columns), swapped)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(keys: &[u64; KEYS]) -> __m512i {
    // SAFETY: the array has the 64 bytes that the load reads; the load allows any alignment.
    unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) }
}

/// Returns the 16 bytes four times.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(words: &[u64; 2]) -> __m512i {
    // SAFETY: the array has the 16 bytes that the load reads; the load allows any alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(words.as_ptr().cast()) })
}

/// Stores eight words, beginning at `slot`.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(words: &mut [u64], slot: usize, values: __m512i) {
    let words = &mut words[slot..slot + KEYS];
    // SAFETY: the slice has the 64 bytes that the store writes; the store allows any alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), values) }
}

/// Stores the low byte of each word, beginning at `slot`.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_bytes(bytes: &mut [u8; RING], slot: usize, values: __m512i) {
    let bytes = &mut bytes[slot..slot + KEYS];
    let values = _mm512_cvtepi64_epi8(values);
    // SAFETY: the slice has the eight bytes that the store writes; the store allows any alignment.
    unsafe { _mm_storel_epi64(bytes.as_mut_ptr().cast(), values) }
}

/// Stores eight pairs of words, beginning at `slot`.
#[inline]
#[target_feature(enable = "avx512f")]
fn interleave(pairs: &mut [[u64; 2]; RING], slot: usize, low: __m512i, high: __m512i) {
    let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    let second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    let pairs = pairs.as_flattened_mut();
    store(pairs, 2 * slot, _mm512_permutex2var_epi64(low, first, high));
    store(pairs, 2 * slot + KEYS, _mm512_permutex2var_epi64(low, second, high));
}
