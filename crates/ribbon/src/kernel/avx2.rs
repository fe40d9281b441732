//! AVX2: four 64-bit columns in a register, or 128-bit columns in two. Parities of half bytes come
//! from a table and are summed over bytes.

use core::arch::x86_64::*;

use blocked_bloom::InstructionSet;

use super::Table;
use super::driver::{
    Equation, KEYS, RING, Ring, Source, batch_by_fours, for_lines, holds_all, test_singly,
};
use crate::scheme::rocksdb::{COEFFICIENTS, LOW_HALF, REHASH, Segment, Segments};
use crate::scheme::{SEED, Shards, Word, shard};
use crate::solve::rocksdb::{self, Row};
use crate::solve::{self, Rows};

// Every CPU with AVX2 has these features, but the core's AVX2 kernel requires only AVX2.
cpufeatures::new!(detect, "avx2", "bmi1", "bmi2", "popcnt");

pub(super) fn is_supported() -> bool {
    detect::get()
}

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Avx2,
    contains_64: for_lines!(batch_64),
    contains_128: for_lines!(batch_128),
    contains_one_64,
    contains_one_128,
    substitute_64,
    substitute_128,
};

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn batch_64<const LINES: usize>(shards: &Shards<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("avx2");
    let bytes = shards.bytes();
    let prepare = |ring: &mut _, keys: &_, slot| prepare_64(shards, ring, keys, slot);
    // SAFETY: `batch` requires these four columns of the equation, which comes from the ring, and
    // `prepare_64` stores only equations whose columns are all within the bytes of these shards.
    let sums = |equation: &Equation<&u64>, column| unsafe { sums_64(bytes, equation, column) };
    // Columns 0, 1 of the first four and of the last four, then columns 2, 3.
    let orders = [_mm256_setr_epi32(7, 6, 7, 6, 5, 4, 5, 4), column_order_64()];
    batch::<_, LINES>(shards, hashes, hits, orders, prepare, sums);
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn batch_128<const LINES: usize>(segments: &Segments<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("avx2");
    let bytes = segments.bytes();
    let prepare = |ring: &mut _, keys: &_, slot| prepare_128(segments, ring, keys, slot);
    // SAFETY: `batch` requires these four columns of the equation, which comes from the ring, and
    // `prepare_128` stores only equations whose columns are all within the bytes of these segments.
    let sums = |equation: &Equation<&u128>, column| unsafe { sums_128(bytes, equation, column) };
    // Columns 0, 2 of the first four and of the last four, then columns 1, 3.
    let orders = [_mm256_setr_epi32(7, 5, 7, 5, 6, 4, 6, 4), column_order_128()];
    batch::<_, LINES>(segments, hashes, hits, orders, prepare, sums);
}

/// Looks up a batch. `sums(equation, column)` returns the equation's bits in four columns, all of
/// which the equation has. `orders` are those of [`test_in_fours`] and of [`are_results`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn batch<S: Source, const LINES: usize>(
    source: &S,
    hashes: &[u64],
    hits: &mut [u64],
    orders: [__m256i; 2],
    prepare: impl Fn(&mut Ring<S::Word>, &[u64; KEYS], usize),
    sums: impl Fn(&Equation<&S::Word>, usize) -> __m256i,
) {
    // A block has at most one column less than the source.
    let has_four = source.columns() > 4;
    let holds = |equation: &Equation<&S::Word>, columns: [usize; 2], results| {
        are_results(columns.map(|column| sums(equation, column)), results, orders[1])
    };
    let first = |ring: &Ring<S::Word>, slot: usize| match has_four {
        true => test_in_fours(ring, slot, orders[0], |equation| {
            fold(sums(equation, 0), sums(equation, equation.columns - 4))
        }),
        false => test_singly(source, ring, slot, holds),
    };
    batch_by_fours::<_, LINES>(source, hashes, hits, prepare, first, holds);
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn contains_one_64(directory: &[Word], hash: u64, words: &[Word], columns: u32) -> bool {
    ran!("avx2");
    let shards = Shards { directory, words, columns };
    let bytes = shards.bytes();
    holds_all(&shards, hash, |equation: &Equation<&u64>, columns: [usize; 2], results| {
        // SAFETY: `holds_all` requires four columns beginning here, and `Source::equation` promises
        // that all columns are within the bytes.
        let sums = columns.map(|column| unsafe { sums_64(bytes, equation, column) });
        are_results(sums, results, column_order_64())
    })
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn contains_one_128(segments: &Segments<'_>, hash: u64) -> bool {
    ran!("avx2");
    let bytes = segments.bytes();
    holds_all(segments, hash, |equation: &Equation<&u128>, [first, second]: [usize; 2], results| {
        // SAFETY: `holds_all` requires four columns beginning here, and `Source::equation` promises
        // that all columns are within the bytes.
        let first = unsafe { sums_128(bytes, equation, first) };
        // SAFETY: the same two promises hold for the second four columns.
        let second = unsafe { sums_128(bytes, equation, second) };
        are_results([first, second], results, column_order_128())
    })
}

/// Returns the equation's bits in four columns, beginning at `column`.
///
/// # Safety
///
/// The equation must have these columns, and they must be within the bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sums_64(bytes: &[u8], equation: &Equation<&u64>, column: usize) -> __m256i {
    let at = bytes.as_ptr().wrapping_add(equation.start + 8 * column);
    // SAFETY: the caller promises that four columns beginning at `column` are within the bytes.
    let first = unsafe { _mm256_loadu_si256(at.cast()) };
    // SAFETY: the same promise covers the next block (the same block again if `next` is 0).
    let next = unsafe { _mm256_loadu_si256(at.wrapping_add(equation.next).cast()) };
    let (left, right) = (splat(*equation.left), splat(*equation.right));
    _mm256_xor_si256(_mm256_and_si256(first, left), _mm256_and_si256(next, right))
}

/// Returns the sums of the low and high halves of four columns, in the order 0, 2, 1, 3.
///
/// # Safety
///
/// The equation must have these columns, and they must be within the bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sums_128(bytes: &[u8], equation: &Equation<&u128>, column: usize) -> __m256i {
    let at = bytes.as_ptr().wrapping_add(equation.start + 16 * column);
    let (left, right) = (broadcast_128(equation.left), broadcast_128(equation.right));
    let two = |at: *const u8| {
        // SAFETY: the caller promises four columns within the bytes; this reads two of them.
        let first = unsafe { _mm256_loadu_si256(at.cast()) };
        // SAFETY: the same promise covers the next block (the same block again if `next` is 0).
        let next = unsafe { _mm256_loadu_si256(at.wrapping_add(equation.next).cast()) };
        _mm256_xor_si256(_mm256_and_si256(first, left), _mm256_and_si256(next, right))
    };
    let (low, high) = (two(at), two(at.wrapping_add(32)));
    _mm256_xor_si256(_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high))
}

/// Returns the `order` of [`are_results`] for the result of [`sums_64`].
#[inline]
#[target_feature(enable = "avx2")]
fn column_order_64() -> __m256i {
    _mm256_setr_epi32(31, 31, 30, 30, 29, 29, 28, 28)
}

/// Returns the `order` of [`are_results`] for the result of [`sums_128`].
#[inline]
#[target_feature(enable = "avx2")]
fn column_order_128() -> __m256i {
    _mm256_setr_epi32(31, 31, 29, 29, 30, 30, 28, 28)
}

/// Folds the words of both registers to 32 bits. Each half of the result has two words of the first
/// and two of the second.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(first: __m256i, second: __m256i) -> __m256i {
    let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
    let low = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
    let high = _mm256_shuffle_ps::<0b11_01_11_01>(first, second);
    _mm256_castps_si256(_mm256_xor_ps(low, high))
}

/// Tests eight keys, four together, and returns a bit for each that passes. `words(equation)`
/// returns 32 bits of each column's sum: the first four columns in lanes 0, 1, 4 and 5, the last
/// four in the others. `order` shifts each lane's bit of the result to the highest of eight bits.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn test_in_fours<W: Copy + Default>(
    ring: &Ring<W>,
    slot: usize,
    order: __m256i,
    words: impl Fn(&Equation<&W>) -> __m256i,
) -> u64 {
    // The slot of the first of the eight keys.
    let slot = slot % RING / KEYS * KEYS;
    let [low, high] = [slot, slot + 4];
    let (results, _) = ring.result.as_chunks::<4>();
    let [low, high] = [
        wrong_of_four(
            [
                words(&ring.get(low)),
                words(&ring.get(low + 1)),
                words(&ring.get(low + 2)),
                words(&ring.get(low + 3)),
            ],
            load_words(&results[low / 4]),
            order,
        ),
        wrong_of_four(
            [
                words(&ring.get(high)),
                words(&ring.get(high + 1)),
                words(&ring.get(high + 2)),
                words(&ring.get(high + 3)),
            ],
            load_words(&results[high / 4]),
            order,
        ),
    ];
    // Bit 4 * lane + key of each half.
    let mut wrong = u64::from(low) | u64::from(high) << 32;
    for shift in [16, 8, 4] {
        wrong |= wrong >> shift;
    }
    !(wrong & 15 | wrong >> 28 & 0xf0) & 0xff
}

/// Returns bit `4 * lane + key` for each column whose parity differs from the key's result.
#[inline]
#[target_feature(enable = "avx2")]
fn wrong_of_four([a, b, c, d]: [__m256i; 4], results: __m256i, order: __m256i) -> u32 {
    // 16 bits of keys 0 and 2 in each lane, and of keys 1 and 3; then 8 bits of each key.
    let swap = _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    let even = fold_two(_mm256_blend_epi16::<0xaa>(a, c), _mm256_blend_epi16::<0xaa>(c, a), swap);
    let odd = fold_two(_mm256_blend_epi16::<0xaa>(b, d), _mm256_blend_epi16::<0xaa>(d, b), swap);
    let swap = _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    let is_odd = _mm256_set1_epi16(0xff00_u16.cast_signed());
    let bytes = fold_two(
        _mm256_blendv_epi8(even, odd, is_odd),
        _mm256_blendv_epi8(odd, even, is_odd),
        swap,
    );
    let halves = _mm256_xor_si256(bytes, _mm256_srli_epi64::<4>(bytes));
    let halves = _mm256_and_si256(halves, _mm256_set1_epi8(15));
    // The parity of each half byte, as the highest of eight bits.
    let parity = _mm256_shuffle_epi8(_mm256_slli_epi64::<7>(parities()), halves);
    // The byte of each key's result that belongs to the first four columns, and the one that
    // belongs to the last four, in the lanes of these columns.
    let order_of_bytes = _mm256_setr_epi8(
        0, 8, -1, -1, 0, 8, -1, -1, 4, 12, -1, -1, 4, 12, -1, -1, //
        -1, -1, 0, 8, -1, -1, 0, 8, -1, -1, 4, 12, -1, -1, 4, 12,
    );
    let expected = _mm256_shuffle_epi8(results, order_of_bytes);
    let expected = _mm256_or_si256(expected, _mm256_permute2x128_si256::<1>(expected, expected));
    let expected = _mm256_sllv_epi32(expected, order);
    _mm256_movemask_epi8(_mm256_xor_si256(parity, expected)).cast_unsigned()
}

/// Adds both halves of the lanes of two keys. `halves` has one half of each key's lanes and
/// `others` the other half, which `swap` moves to the same position.
#[inline]
#[target_feature(enable = "avx2")]
fn fold_two(halves: __m256i, others: __m256i, swap: __m128i) -> __m256i {
    let swap = _mm256_broadcastsi128_si256(swap);
    _mm256_xor_si256(halves, _mm256_shuffle_epi8(others, swap))
}

/// Returns the parities of 0 to 15.
#[inline]
#[target_feature(enable = "avx2")]
fn parities() -> __m256i {
    _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0))
}

/// Returns whether the parities of the words equal the bits of the results, four in each half.
/// `order` shifts the bit of each word's column to the highest of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn are_results(sums: [__m256i; 2], results: u64, order: __m256i) -> bool {
    let [low, high] = sums.map(|words| {
        let halves = _mm256_xor_si256(words, _mm256_srli_epi64::<4>(words));
        let halves = _mm256_and_si256(halves, _mm256_set1_epi8(15));
        _mm256_sad_epu8(_mm256_shuffle_epi8(parities(), halves), _mm256_setzero_si256())
    });
    // The counts of the first four words are in the low 32 bits and those of the others in the high
    // 32 bits. The lowest bit of a count is the parity.
    let counts = _mm256_or_si256(low, _mm256_slli_epi64::<32>(high));
    let expected = _mm256_sllv_epi32(splat(results), order);
    let wrong = _mm256_xor_si256(_mm256_slli_epi32::<31>(counts), expected);
    let wrong = _mm256_castsi256_ps(wrong);
    _mm256_testz_ps(wrong, wrong) == 1
}

/// Prepares the equations of eight keys, four at a time, as [`Source::equation`] defines them. If
/// the directory points after the last word, the equation is replaced by zeros at the first word,
/// which every key satisfies.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn prepare_64(shards: &Shards<'_>, ring: &mut Ring<u64>, keys: &[u64; KEYS], slot: usize) {
    let (fours, _) = keys.as_chunks::<4>();
    for (slot, keys) in (slot..).step_by(4).zip(fours) {
        let count = shards.directory.len() as u32;
        // Loaded one by one, because some CPUs gather four words more slowly.
        let [a, b, c, d] = keys.map(|hash| {
            let (shard, _) = shard(hash, count);
            i64::from_le_bytes(shards.directory[shard as usize])
        });
        let entry = _mm256_setr_epi64x(a, b, c, d);
        let hash = load_words(keys);
        let low = _mm256_mul_epu32(hash, splat(count.into()));
        let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(hash), splat(count.into()));
        let rest = _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high));
        let offset = _mm256_and_si256(entry, splat(u64::from(u32::MAX)));
        let starts = _mm256_and_si256(_mm256_srli_epi64::<32>(entry), splat(0xffff));
        let short = _mm256_and_si256(_mm256_srli_epi64::<48>(entry), splat(0xff));
        let seed = multiply(_mm256_srli_epi64::<56>(entry), SEED);
        let seeded = multiply(_mm256_xor_si256(rest, seed), REHASH);
        let start = _mm256_mul_epu32(_mm256_srli_epi64::<32>(seeded), starts);
        let start = _mm256_srli_epi64::<32>(start);
        let a = multiply(seeded, COEFFICIENTS);
        let coefficients = _mm256_or_si256(a, splat(1));

        let (block, bit) = (_mm256_srli_epi64::<6>(start), _mm256_and_si256(start, splat(63)));
        let all = splat(u64::from(shards.columns));
        // Block numbers have fewer than 32 bits.
        let before = _mm256_sub_epi64(_mm256_mul_epu32(block, all), _mm256_min_epu32(block, short));
        let word = _mm256_add_epi64(offset, before);
        let columns = _mm256_add_epi64(all, _mm256_cmpgt_epi64(short, block));
        let next = _mm256_andnot_si256(_mm256_cmpeq_epi64(bit, splat(0)), columns);
        let end = _mm256_add_epi64(word, _mm256_add_epi64(columns, next));
        let beyond = _mm256_cmpgt_epi64(end, splat(shards.words.len() as u64));
        let coefficients = _mm256_andnot_si256(beyond, coefficients);
        store(&mut ring.start, slot, _mm256_slli_epi64::<3>(_mm256_andnot_si256(beyond, word)));
        store(&mut ring.next, slot, _mm256_slli_epi64::<3>(_mm256_andnot_si256(beyond, next)));
        store(&mut ring.columns, slot, columns);
        store(&mut ring.result, slot, results(_mm256_andnot_si256(beyond, a), columns));
        store(&mut ring.left, slot, _mm256_sllv_epi64(coefficients, bit));
        // A shift by 64 returns 0.
        let right = _mm256_srlv_epi64(coefficients, _mm256_sub_epi64(splat(64), bit));
        store(&mut ring.right, slot, right);
    }
}

/// Prepares the equations of eight keys of a RocksDB block, four at a time.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn prepare_128(segments: &Segments<'_>, ring: &mut Ring<u128>, keys: &[u64; KEYS], slot: usize) {
    let shape = segments.shape();
    let (fours, _) = keys.as_chunks::<4>();
    for (slot, keys) in (slot..).step_by(4).zip(fours) {
        let hash = _mm256_xor_si256(load_words(keys), splat(u64::from(segments.raw_seed())));
        let seeded = multiply(hash, REHASH);
        let starts = splat(u64::from(shape.starts()));
        let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(seeded), starts);
        let low = _mm256_srli_epi64::<32>(_mm256_mul_epu32(seeded, starts));
        let start = _mm256_srli_epi64::<32>(_mm256_add_epi64(high, low));
        let (block, bit) = (_mm256_srli_epi64::<7>(start), _mm256_and_si256(start, splat(127)));
        let (all, short) = (splat(u64::from(shape.columns())), splat(u64::from(shape.short())));
        // Block numbers have fewer than 32 bits.
        let before = _mm256_mul_epu32(block, all);
        let segment = _mm256_sub_epi64(before, _mm256_min_epu32(block, short));
        let columns = _mm256_add_epi64(all, _mm256_cmpgt_epi64(short, block));
        let next = _mm256_andnot_si256(_mm256_cmpeq_epi64(bit, splat(0)), columns);
        store(&mut ring.start, slot, _mm256_slli_epi64::<4>(segment));
        store(&mut ring.next, slot, _mm256_slli_epi64::<4>(next));
        store(&mut ring.columns, slot, columns);

        let a = multiply(seeded, COEFFICIENTS);
        let low = _mm256_or_si256(_mm256_xor_si256(a, splat(LOW_HALF)), splat(1));
        store(&mut ring.result, slot, results(a, columns));
        // Shifts the 128 bits `a, low` up by `bit` and down by `128 - bit`. Shifts by 64 or more,
        // or by a negative number, return 0.
        let [over, under, rest] = [
            _mm256_sub_epi64(bit, splat(64)),
            _mm256_sub_epi64(splat(64), bit),
            _mm256_sub_epi64(splat(128), bit),
        ];
        let or = |a, b, c| _mm256_or_si256(_mm256_or_si256(a, b), c);
        let left_low = _mm256_sllv_epi64(low, bit);
        let left_high = or(
            _mm256_sllv_epi64(a, bit),
            _mm256_srlv_epi64(low, under),
            _mm256_sllv_epi64(low, over),
        );
        let right_low = or(
            _mm256_srlv_epi64(low, rest),
            _mm256_sllv_epi64(a, over),
            _mm256_srlv_epi64(a, under),
        );
        let right_high = _mm256_srlv_epi64(a, rest);
        store_pairs(&mut ring.left, slot, left_low, left_high);
        store_pairs(&mut ring.right, slot, right_low, right_high);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat(word: u64) -> __m256i {
    _mm256_set1_epi64x(word.cast_signed())
}

/// Returns the low 64 bits of each product, for which AVX2 has no instruction.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(words: __m256i, by: u64) -> __m256i {
    let (low, high) = (splat(by), splat(by >> 32));
    let across = _mm256_mul_epu32(_mm256_srli_epi64::<32>(words), low);
    let across = _mm256_add_epi64(across, _mm256_mul_epu32(words, high));
    _mm256_add_epi64(_mm256_mul_epu32(words, low), _mm256_slli_epi64::<32>(across))
}

/// Returns the result, and in the high half its bits beginning at the last four columns (arbitrary
/// with fewer columns).
#[inline]
#[target_feature(enable = "avx2")]
fn results(a: __m256i, columns: __m256i) -> __m256i {
    let order = _mm_setr_epi8(7, 6, 5, 4, 7, 6, 5, 4, 15, 14, 13, 12, 15, 14, 13, 12);
    let twice = _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(order));
    let beyond = _mm256_sub_epi32(columns, splat(4));
    _mm256_srlv_epi32(twice, _mm256_slli_epi64::<32>(beyond))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_words(words: &[u64; 4]) -> __m256i {
    // SAFETY: the array has the 32 bytes that the load reads; the load allows any alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Stores four words, beginning at `slot`.
#[inline]
#[target_feature(enable = "avx2")]
fn store(words: &mut [u64; RING], slot: usize, values: __m256i) {
    let words = &mut words[slot..slot + 4];
    // SAFETY: the slice has the 32 bytes that the store writes; the store allows any alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), values) }
}

/// Stores four numbers of two words each, beginning at `slot`.
#[inline]
#[target_feature(enable = "avx2")]
fn store_pairs(numbers: &mut [u128; RING], slot: usize, low: __m256i, high: __m256i) {
    let (even, odd) = (_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high));
    let halves = [
        _mm256_castsi256_si128(even),
        _mm256_castsi256_si128(odd),
        _mm256_extracti128_si256::<1>(even),
        _mm256_extracti128_si256::<1>(odd),
    ];
    for (number, half) in numbers[slot..slot + 4].iter_mut().zip(halves) {
        // SAFETY: writes the 16 bytes of the reference; the store allows any alignment.
        unsafe { _mm_storeu_si128(core::ptr::from_mut(number).cast(), half) }
    }
}

/// Returns the word twice.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_128(word: &u128) -> __m256i {
    // SAFETY: reads the 16 bytes of the reference, in memory order, which is the register's order.
    // The load allows any alignment.
    let word = unsafe { _mm_loadu_si128(core::ptr::from_ref(word).cast()) };
    _mm256_broadcastsi128_si256(word)
}

/// # Safety
///
/// The CPU must support these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn substitute_64(rows: &Rows, out: &mut [Word], columns: u32, short: u32) {
    ran!("avx2");
    solve::substitute(rows, out, columns, short);
}

/// # Safety
///
/// The CPU must support these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn substitute_128(rows: &[Row], out: &mut [Segment], columns: u32, short: u32) {
    ran!("avx2");
    rocksdb::substitute(rows, out, columns, short);
}
