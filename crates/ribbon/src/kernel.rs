//! The kernels: one [`Table`] of functions per instruction set, found by that of a [`Kernel`] of
//! the core.
//!
//! A kernel decides speed, never an answer: all give those of [`Shards::contains`] and
//! [`Segments::contains`], and the bytes of the scalar back substitutions. A new instruction set is
//! one file and one line of [`table`].

// Each call into a table has its SAFETY text here, the kernels' own blocks have theirs.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind these safe ones")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod driver;
// Lanes of a register are numbered from the other end on big-endian machines, which `neon` does not
// provide for.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
mod scalar;

use blocked_bloom::{InstructionSet, Kernel};

use crate::scheme::rocksdb::{Segment, Segments, Shape};
use crate::scheme::{Shards, Word};
use crate::solve::Rows;
use crate::solve::rocksdb::Row;

/// The functions of one instruction set.
///
/// `contains_64` and `contains_128` write bit `i % 64` of `hits[i / 64]` for hash `i`, zeros past
/// the last. They are given how many cache lines to prefetch for each key, from the first that its
/// equation may be in; 0 for none, otherwise the line of its last byte too. `contains_one_64` and
/// `contains_one_128` look up one hash, by the scalar definitions where nothing is faster; what
/// `contains_one_64` needs of [`Shards`] is passed in registers. `substitute_64` and
/// `substitute_128` write the solution of rows to all of the words, and panic if there are fewer.
///
/// # Safety
///
/// All: the CPU has the instruction set, and what `is_supported` of the table's file looks for.
/// `contains_*`: `hits.len() == hashes.len().div_ceil(64)`. `contains_64`: there is a shard, and,
/// but for the scalar kernel, there are as many words as columns.
struct Table {
    instructions: InstructionSet,
    contains_64: unsafe fn(&Shards<'_>, lines: usize, hashes: &[u64], hits: &mut [u64]),
    contains_128: unsafe fn(&Segments<'_>, lines: usize, hashes: &[u64], hits: &mut [u64]),
    contains_one_64: unsafe fn(directory: &[Word], hash: u64, words: &[Word], columns: u32) -> bool,
    contains_one_128: unsafe fn(&Segments<'_>, hash: u64) -> bool,
    substitute_64: unsafe fn(&Rows, &mut [Word], columns: u32, short: u32),
    substitute_128: unsafe fn(&[Row], &mut [Segment], columns: u32, short: u32),
}

/// A kernel and its table, which is found once for a filter: finding it for each key took a seventh
/// of the instructions of a lookup, and from memory these decide how many lookups the CPU overlaps.
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

/// The table of a kernel, whose instructions this CPU has: a `Kernel` is the proof that its
/// instruction set is there, and what a table needs besides is detected here.
fn table(kernel: Kernel) -> &'static Table {
    use InstructionSet::{Avx2, Avx512, Portable};
    let table = match kernel.instructions() {
        #[cfg(target_arch = "x86_64")]
        Avx512 if avx512::is_supported() => &avx512::TABLE,
        #[cfg(target_arch = "x86_64")]
        // The core's AVX-512 comes with AVX2.
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

/// Lines to prefetch for each key: those of `span` bytes, if the filter outgrows the cache.
fn lines(kernel: Kernel, bytes: usize, span: usize) -> usize {
    if bytes > kernel.prefetch_threshold() { span.div_ceil(64).max(1) } else { 0 }
}

/// Looks up every hash: hash `i` is bit `i % 64` of `hits[i / 64]`, bits past the last hash are
/// zero.
///
/// # Panics
///
/// Unless there is one word per 64 hashes: a bug of this package, not an input.
#[inline]
pub(crate) fn contains_64(
    functions: Functions,
    shards: &Shards<'_>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    assert_eq!(hits.len(), hashes.len().div_ceil(64));
    let lines = lines(functions.kernel, size_of_val(shards.words), shards.columns as usize * 16);
    if look_up_few(hashes, hits, lines, |hash| contains_one_64(functions, shards, hash)) {
        return;
    }
    if shards.directory.is_empty() {
        return hits.fill(0);
    }
    // Kernels read an equation beyond the words, as an unverified directory may have, at the first
    // word.
    let is_short = shards.words.len() < shards.columns as usize;
    let table = if is_short { &scalar::TABLE } else { functions.table };
    // SAFETY: `Functions` has functions whose instructions the CPU has, and the scalar ones need
    // none; the number of words for the answers is asserted above, that there is a shard and,
    // unless the table is the scalar one, a word for each column is checked above.
    unsafe { (table.contains_64)(shards, lines, hashes, hits) }
}

/// As [`contains_64`].
#[inline]
pub(crate) fn contains_128(
    functions: Functions,
    segments: &Segments<'_>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    assert_eq!(hits.len(), hashes.len().div_ceil(64));
    let span = segments.shape().columns() as usize * 32;
    let lines = lines(functions.kernel, size_of_val(segments.segments()), span);
    if look_up_few(hashes, hits, lines, |hash| contains_one_128(functions, segments, hash)) {
        return;
    }
    // What the functions read is where `Shape::place` leads, which is among the segments of the
    // shape for every hash, and `Segments::of`, the only way to a `Segments`, makes none of fewer
    // segments than its shape has.
    //
    // SAFETY: `Functions` has functions whose instructions the CPU has; the number of words for the
    // answers is asserted above.
    unsafe { (functions.table.contains_128)(segments, lines, hashes, hits) }
}

/// Looks up few hashes one by one, and says whether these are few: up to 6, or 2 if their `lines`
/// are prefetched. A batch prepares space for 32 keys. One by one took this part of its time: of
/// 10,000 keys 0.14 to 0.16 for calls of 1, 0.4 for 4, 0.55 to 0.65 for 6 and 0.8 to 1.05 for 8;
/// from memory 0.4 for 1, 0.5 to 0.7 for 2, 0.5 to 1.2 for 3 and 1.5 to 2.5 for 8 (Zen 4, AVX-512).
#[inline]
fn look_up_few(
    hashes: &[u64],
    hits: &mut [u64],
    lines: usize,
    contains: impl Fn(u64) -> bool,
) -> bool {
    let few = hashes.len() <= if lines > 0 { 2 } else { 6 };
    if let ([word], true) = (hits, few) {
        *word = hashes.iter().rev().fold(0, |word, &hash| word << 1 | u64::from(contains(hash)));
    }
    few
}

/// Looks up one hash.
#[inline]
pub(crate) fn contains_one_64(functions: Functions, shards: &Shards<'_>, hash: u64) -> bool {
    // SAFETY: `Functions` has functions whose instructions the CPU has, which is all that this one
    // needs: `Shards::place` leads to no word beyond the last.
    unsafe {
        (functions.table.contains_one_64)(shards.directory, hash, shards.words, shards.columns)
    }
}

/// As [`contains_one_64`].
#[inline]
pub(crate) fn contains_one_128(functions: Functions, segments: &Segments<'_>, hash: u64) -> bool {
    // SAFETY: as in `contains_128`.
    unsafe { (functions.table.contains_one_128)(segments, hash) }
}

/// Prefetches the words of the hash's equation. Whatever the filter contains, only the directory is
/// read.
#[inline]
pub(crate) fn prefetch_64(shards: &Shards<'_>, hash: u64) {
    if !shards.directory.is_empty() {
        driver::prefetch_equation(shards, hash);
    }
}

/// As [`prefetch_64`].
#[inline]
pub(crate) fn prefetch_128(segments: &Segments<'_>, hash: u64) {
    driver::prefetch_equation(segments, hash);
}

/// Writes the solution of these rows: `columns` words for each 64 of them, one less for the first
/// `short`.
///
/// # Panics
///
/// If there are not this many words: a bug of this package, not an input.
pub(crate) fn substitute_64(
    kernel: Kernel,
    rows: &Rows,
    out: &mut [Word],
    columns: u32,
    short: u32,
) {
    // SAFETY: `table` gives functions whose instructions the CPU has, which is all that this one
    // needs: it writes by checked indices.
    unsafe { (table(kernel).substitute_64)(rows, out, columns, short) }
}

/// Writes the solution of these rows, which are those of the shape, to its segments.
///
/// # Panics
///
/// If there are not this many segments: a bug of this package, not an input.
pub(crate) fn substitute_128(kernel: Kernel, rows: &[Row], out: &mut [Segment], shape: Shape) {
    // SAFETY: `table` gives functions whose instructions the CPU has, which is all that this one
    // needs: it writes by checked indices.
    unsafe { (table(kernel).substitute_128)(rows, out, shape.columns(), shape.short()) }
}

#[cfg(test)]
mod tests;
