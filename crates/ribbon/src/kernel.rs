//! The kernels: one [`Table`] of functions per instruction set, selected by a [`Kernel`] of the
//! core.
//!
//! A kernel determines speed, never an answer: all return the answers of [`Shards::contains`] and
//! [`Segments::contains`], and the bytes of the scalar back substitutions. A new instruction set
//! needs one file and one line of [`table`].

// Each call through a table has its SAFETY comment here. The kernels comment their own blocks.
#![expect(unsafe_code, reason = "safe functions call the SIMD kernels, which are unsafe functions")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod driver;
// Big-endian machines number the lanes of a register from the other end, which `neon` does not
// handle.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
mod scalar;

use blocked_bloom::{InstructionSet, Kernel};

pub(crate) use self::driver::prefetch_equation;

use crate::scheme::rocksdb::{Segment, Segments, Shape};
use crate::scheme::{Shards, Source, Word};
use crate::solve::Rows;
use crate::solve::rocksdb::Row;

/// Looks up hashes and writes the answers to `hits`.
type Contains64 = unsafe fn(&Shards<'_>, hashes: &[u64], hits: &mut [u64]);
type Contains128 = unsafe fn(&Segments<'_>, hashes: &[u64], hits: &mut [u64]);

/// The functions of one instruction set.
///
/// `contains_64` and `contains_128` write bit `i % 64` of `hits[i / 64]` for hash `i`, and zeros
/// after the last hash. The first function prefetches nothing. The others prefetch up to 2, 4, 8
/// and 16 cache lines per key, beginning with the first that its equation may use, and the line of
/// its last byte. `contains_one_64` and `contains_one_128` look up one hash, with the scalar
/// definitions where nothing is faster. `contains_one_64` takes the fields of [`Shards`], so that
/// they are passed in registers. `substitute_64` and `substitute_128` write the solution of rows to
/// all of the words, and panic if there are too few words.
///
/// # Safety
///
/// For all functions, the CPU must support the instruction set and the features that `is_supported`
/// of the table's file checks. For `contains_*`, `hits.len() == hashes.len().div_ceil(64)`. For
/// `contains_64`, there must be a shard and, except for the scalar kernel, at least as many words
/// as columns.
struct Table {
    instructions: InstructionSet,
    contains_64: [Contains64; 5],
    contains_128: [Contains128; 5],
    contains_one_64: unsafe fn(directory: &[Word], hash: u64, words: &[Word], columns: u32) -> bool,
    contains_one_128: unsafe fn(&Segments<'_>, hash: u64) -> bool,
    substitute_64: unsafe fn(&Rows, &mut [Word], columns: u32, short: u32),
    substitute_128: unsafe fn(&[Row], &mut [Segment], columns: u32, short: u32),
}

/// A kernel and its table. A filter looks the table up once: doing so for each key took 1/7 of the
/// instructions of a lookup, which determine how many lookups from memory the CPU overlaps.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) kernel: Kernel,
    table: &'static Table,
}

impl From<Kernel> for Functions {
    fn from(kernel: Kernel) -> Self {
        Functions { kernel, table: table(kernel) }
    }
}

/// Returns the table for a kernel. A `Kernel` proves that this CPU supports its instruction set;
/// the other features of a table are detected here.
fn table(kernel: Kernel) -> &'static Table {
    use InstructionSet::{Avx2, Avx512, Portable};
    let table = match kernel.instructions() {
        #[cfg(target_arch = "x86_64")]
        Avx512 if avx512::is_supported() => &avx512::TABLE,
        #[cfg(target_arch = "x86_64")]
        // The core's AVX-512 kernel implies AVX2.
        Avx512 | Avx2 if avx2::is_supported() => &avx2::TABLE,
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        InstructionSet::Neon => &neon::TABLE,
        InstructionSet::Scalar => &scalar::TABLE,
        _ => &portable::TABLE,
    };
    debug_assert!(match (kernel.instructions(), table.instructions) {
        (Avx512, Avx2 | Portable) | (Avx2, Portable) => true,
        (proven, needed) => proven == needed,
    });
    table
}

/// Returns the index of the function that prefetches `span` bytes per key if the filter exceeds the
/// cache, or else of the function that prefetches nothing.
fn variant(kernel: Kernel, bytes: usize, span: usize) -> usize {
    match span.div_ceil(64) {
        _ if bytes <= kernel.prefetch_threshold() => 0,
        ..=2 => 1,
        3..=4 => 2,
        5..=8 => 3,
        _ => 4,
    }
}

/// Looks up all hashes. Hash `i` is bit `i % 64` of `hits[i / 64]`; bits after the last hash are
/// zero.
///
/// # Panics
///
/// If there is not exactly one word per 64 hashes, which would be a bug of this package.
#[inline]
pub(crate) fn contains_64(
    functions: Functions,
    shards: &Shards<'_>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let contains = |hash| contains_one_64(functions, shards, hash);
    let Some(variant) = look_up_few(functions.kernel, shards, hashes, hits, contains) else {
        return;
    };
    if shards.directory.is_empty() {
        return hits.fill(0);
    }
    // Kernels replace an equation after the last word, which an unverified directory may contain,
    // by one at the first word.
    let is_short = shards.words.len() < shards.columns as usize;
    let table = if is_short { &scalar::TABLE } else { functions.table };
    // SAFETY: the CPU supports the instructions of the table in `Functions`, and the scalar table
    // needs none. The length of `hits` is asserted above. The checks above ensure a shard and,
    // unless the table is the scalar one, at least as many words as columns.
    unsafe { table.contains_64[variant](shards, hashes, hits) }
}

/// Looks up all hashes in a RocksDB block: see [`contains_64`].
#[inline]
pub(crate) fn contains_128(
    functions: Functions,
    segments: &Segments<'_>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let contains = |hash| contains_one_128(functions, segments, hash);
    let Some(variant) = look_up_few(functions.kernel, segments, hashes, hits, contains) else {
        return;
    };
    // The functions read the places of equations, which are within the shape's
    // segments for every hash. `Segments::new`, the only constructor, requires at least as many
    // segments as the shape has.
    //
    // SAFETY: the CPU supports the instructions of the table in `Functions`, and the length of
    // `hits` is asserted above.
    unsafe { functions.table.contains_128[variant](segments, hashes, hits) }
}

/// Looks up a few hashes one by one: up to 6 hashes, or 2 if lines are prefetched. For more hashes,
/// returns the index of the function that looks up the batch. A batch prepares space for 32 keys.
/// Relative to a batch, single lookups in a filter of 10,000 keys took 0.14x to 0.16x the time for
/// 1 hash, 0.4x for 4, 0.55x to 0.65x for 6 and 0.8x to 1.05x for 8. From memory they took 0.4x for
/// 1 hash, 0.5x to 0.7x for 2, 0.5x to 1.2x for 3 and 1.5x to 2.5x for 8 (Zen 4, AVX-512).
#[inline]
fn look_up_few<S: Source>(
    kernel: Kernel,
    source: &S,
    hashes: &[u64],
    hits: &mut [u64],
    contains: impl Fn(u64) -> bool,
) -> Option<usize> {
    assert_eq!(hits.len(), hashes.len().div_ceil(64));
    let span = 2 * S::WORD_BYTES * source.columns();
    let variant = variant(kernel, source.bytes().len(), span);
    let few = hashes.len() <= if variant > 0 { 2 } else { 6 };
    if let ([word], true) = (hits, few) {
        *word = hashes.iter().rev().fold(0, |word, &hash| word << 1 | u64::from(contains(hash)));
    }
    (!few).then_some(variant)
}

/// Looks up one hash.
#[inline]
pub(crate) fn contains_one_64(functions: Functions, shards: &Shards<'_>, hash: u64) -> bool {
    let Shards { directory, words, columns } = *shards;
    // The functions answer "maybe" for an equation without columns, which would be wrong here.
    if directory.is_empty() {
        return false;
    }
    // SAFETY: the CPU supports the instructions of the table in `Functions`. The function needs no
    // more, because no equation of the shards ends after the last word.
    unsafe { (functions.table.contains_one_64)(directory, hash, words, columns) }
}

/// Looks up one hash in a RocksDB block.
#[inline]
pub(crate) fn contains_one_128(functions: Functions, segments: &Segments<'_>, hash: u64) -> bool {
    // SAFETY: the CPU supports the instructions of the table in `Functions`. The function needs no
    // more, because every equation is within the shape's segments, and `Segments::new` requires
    // all of these.
    unsafe { (functions.table.contains_one_128)(segments, hash) }
}

/// Writes the solution of the rows: `columns` words for each 64 rows, and one word less for each of
/// the first `short` blocks.
///
/// # Panics
///
/// If there are too few words, which would be a bug of this package.
pub(crate) fn substitute_64(
    kernel: Kernel,
    rows: &Rows,
    out: &mut [Word],
    columns: u32,
    short: u32,
) {
    // SAFETY: `table` returns functions whose instructions the CPU supports. The function needs no
    // more, because it writes with checked indices.
    unsafe { (table(kernel).substitute_64)(rows, out, columns, short) }
}

/// Writes the solution of the rows of this shape to its segments.
///
/// # Panics
///
/// If there are too few segments, which would be a bug of this package.
pub(crate) fn substitute_128(kernel: Kernel, rows: &[Row], out: &mut [Segment], shape: Shape) {
    // SAFETY: `table` returns functions whose instructions the CPU supports. The function needs no
    // more, because it writes with checked indices.
    unsafe { (table(kernel).substitute_128)(rows, out, shape.columns(), shape.short()) }
}

#[cfg(test)]
#[path = "../tests/unit/kernel.rs"]
mod tests;
