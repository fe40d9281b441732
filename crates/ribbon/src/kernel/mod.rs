//! The kernels: one [`Table`] of functions per instruction set, found by the name of a [`Kernel`] of the core.
//!
//! A kernel decides speed, never an answer: all give those of [`Shards::contains`] and [`Segments::contains`], and the bytes of the scalar
//! back substitutions. A new instruction set is one file and one line of [`table`].

// Each call into a table is argued where it is made; the kernels' own blocks in their files.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind these safe ones")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod driver;
// Lanes of a register are numbered from the other end on big-endian machines, which `neon` does not provide for.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
mod scalar;

use blocked_bloom::Kernel;

use crate::rocksdb::scheme::{Segment, Segments, Shape};
use crate::rocksdb::solve::Row;
use crate::scheme::{Shards, Word};
use crate::solve::Rows;

/// One instruction set's functions.
///
/// `contains_64` and `contains_128` write bit `i % 64` of `hits[i / 64]` for hash `i`, zeros past the last. They are given how many cache
/// lines to prefetch for each key, from the first that its equation may be in; 0 for none, else the one of its last byte too.
/// `substitute_64` and `substitute_128` write the solution of rows to all of the words.
///
/// # Safety
///
/// All: the CPU has the features of the kernel of that name. `contains_*`: `hits.len() == hashes.len().div_ceil(64)`. `contains_64`: there is a
/// shard, and, but for the scalar kernel, there are as many words as columns.
struct Table {
    contains_64: unsafe fn(&Shards<'_>, lines: usize, hashes: &[u64], hits: &mut [u64]),
    contains_128: unsafe fn(&Segments<'_>, lines: usize, hashes: &[u64], hits: &mut [u64]),
    substitute_64: unsafe fn(&Rows, &mut [Word], columns: u32, short: u32),
    substitute_128: unsafe fn(&[Row], &mut [Segment], columns: u32, short: u32),
}

fn table(kernel: Kernel) -> &'static Table {
    match kernel.name() {
        #[cfg(target_arch = "x86_64")]
        "avx512" if avx512::is_supported() => &avx512::TABLE,
        #[cfg(target_arch = "x86_64")]
        // The core's AVX-512 comes with AVX2.
        "avx512" | "avx2" if avx2::is_supported() => &avx2::TABLE,
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        "neon" => &neon::TABLE,
        "scalar" => &scalar::TABLE,
        _ => &portable::TABLE,
    }
}

/// Lines to prefetch for each key: those of `span` bytes, if the filter outgrows the cache.
fn lines(kernel: Kernel, bytes: usize, span: usize) -> usize {
    if bytes > kernel.prefetch_threshold() { span.div_ceil(64).max(1) } else { 0 }
}

/// Looks up every hash: hash `i` is bit `i % 64` of `hits[i / 64]`, bits past the last hash are zero.
///
/// # Panics
///
/// Unless there is one word per 64 hashes: a bug of this package, not an input.
#[inline]
pub(crate) fn contains_64(kernel: Kernel, shards: &Shards<'_>, hashes: &[u64], hits: &mut [u64]) {
    assert_eq!(hits.len(), hashes.len().div_ceil(64));
    if shards.directory.is_empty() {
        return hits.fill(0);
    }
    let lines = lines(kernel, size_of_val(shards.words), shards.columns as usize * 16);
    // Equations beyond the words, of a directory that nobody verified, are read at the first word.
    let is_short = shards.words.len() < shards.columns as usize;
    let table = if is_short { &scalar::TABLE } else { table(kernel) };
    // SAFETY: a `Kernel` exists only if detection found the instruction set that it is named after, and `table` looks for what the names
    // do not promise; the numbers of words are checked above.
    unsafe { (table.contains_64)(shards, lines, hashes, hits) }
}

/// As [`contains_64`].
#[inline]
pub(crate) fn contains_128(
    kernel: Kernel,
    segments: &Segments<'_>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    assert_eq!(hits.len(), hashes.len().div_ceil(64));
    let span = segments.shape().columns() as usize * 32;
    let lines = lines(kernel, size_of_val(segments.segments()), span);
    // SAFETY: as in `contains_64`.
    unsafe { (table(kernel).contains_128)(segments, lines, hashes, hits) }
}

/// Writes the solution of these rows: `columns` words for each 64 of them, one less for the first `short`.
///
/// # Panics
///
/// If there are not so many words: a bug of this package, not an input.
pub(crate) fn substitute_64(
    kernel: Kernel,
    rows: &Rows,
    out: &mut [Word],
    columns: u32,
    short: u32,
) {
    // SAFETY: as in `contains_64`.
    unsafe { (table(kernel).substitute_64)(rows, out, columns, short) }
}

/// Writes the solution of these rows, which are those of the shape, to its segments.
///
/// # Panics
///
/// If there are not so many segments: a bug of this package, not an input.
pub(crate) fn substitute_128(kernel: Kernel, rows: &[Row], out: &mut [Segment], shape: Shape) {
    // SAFETY: as in `contains_64`.
    unsafe { (table(kernel).substitute_128)(rows, out, shape.columns(), shape.short()) }
}

#[cfg(test)]
#[path = "../../tests/unit/kernel.rs"]
mod tests;
