//! The kernels: one table of functions per instruction set, found by the instructions of a
//! [`Kernel`] of the core.
//!
//! A kernel decides speed, never an answer: all give the answers of [`tags`](crate::tags), and
//! leave the same lines. A new instruction set is one file and one line of [`table`]; until it has
//! them, its kernel is the scalar one here.

// Each call into a table has its SAFETY text here, the kernels' own blocks have theirs.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind these three safe ones")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
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

use blocked_bloom::{Block, InstructionSet, Kernel};

pub(crate) use portable::{contains_one, insert_one, remove_one};

// Counting and finding lanes in a mask. Every CPU with AVX2 has them, but a [`Kernel`] does not
// prove it.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
cpufeatures::new!(bits, "bmi1", "popcnt");

/// One instruction set's functions.
///
/// `contains[ahead](lines, hashes, hits)` writes bit `i % 64` of `hits[i / 64]` for hash `i`, zeros
/// past the last. `insert[ahead](lines, hashes)` adds the hashes in order up to the first whose two
/// lines are full, and returns how many. `remove[ahead](lines, hashes, found)` removes a copy of
/// each in order, writes whether there was one as `contains` writes, and returns how many there
/// were. All prefetch `ahead` cache lines for each line of a later key: none where the filter fits
/// the cache, two where lines straddle cache lines, which lines that are written never do.
///
/// # Safety
///
/// The CPU has the instruction set, and on x86 those of `bits`.
struct Table {
    contains: [Contains; 3],
    insert: [Insert; 2],
    remove: [Remove; 2],
}

type Contains = unsafe fn(&[Block], hashes: &[u64], hits: &mut [u64]);
type Insert = unsafe fn(&mut [Block], hashes: &[u64]) -> usize;
type Remove = unsafe fn(&mut [Block], hashes: &[u64], found: &mut [u64]) -> usize;

fn table(kernel: Kernel) -> &'static Table {
    match kernel.instructions() {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 if bits::get() => &avx512::TABLE,
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        InstructionSet::Avx2 if bits::get() => &avx2::TABLE,
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        InstructionSet::Neon => &neon::TABLE,
        InstructionSet::Portable => &portable::TABLE,
        _ => &scalar::TABLE,
    }
}

/// Looks up every hash: hash `i` is bit `i % 64` of `words[i / 64]`, of which there are as many as
/// needed; bits past the last hash are zero. Without lines every answer is "maybe".
#[inline]
pub(crate) fn contains(kernel: Kernel, lines: &[Block], hashes: &[u64], words: &mut [u64]) {
    if lines.is_empty() {
        for (hashes, word) in hashes.chunks(64).zip(words) {
            *word = u64::MAX >> (64 - hashes.len());
        }
        return;
    }
    let ahead = match lines.as_ptr().addr().is_multiple_of(size_of::<Block>()) {
        _ if !prefetches(kernel, lines, hashes) => 0,
        true => 1,
        false => 2,
    };
    // SAFETY: the table is that of the instructions that a `Kernel` proves, or the scalar one if
    // `bits` are not there.
    unsafe { table(kernel).contains[ahead](lines, hashes, words) };
}

/// Adds the hashes in order up to the first whose two lines are full, and returns how many.
#[inline]
pub(crate) fn insert(kernel: Kernel, lines: &mut [Block], hashes: &[u64]) -> usize {
    let ahead = usize::from(prefetches(kernel, lines, hashes));
    // SAFETY: as in `contains`.
    unsafe { table(kernel).insert[ahead](lines, hashes) }
}

/// Removes a copy of each hash in order, writes which were there as [`contains`] does, and returns
/// how many.
#[inline]
pub(crate) fn remove(
    kernel: Kernel,
    lines: &mut [Block],
    hashes: &[u64],
    found: &mut [u64],
) -> usize {
    let ahead = usize::from(prefetches(kernel, lines, hashes));
    // SAFETY: as in `contains`.
    unsafe { table(kernel).remove[ahead](lines, hashes, found) }
}

/// Whether to prefetch: if the filter outgrows the cache and there are more than eight hashes,
/// whose cache misses the CPU overlaps by itself.
#[inline]
pub(crate) fn prefetches<L>(kernel: Kernel, lines: &[L], hashes: &[u64]) -> bool {
    hashes.len() > driver::KEYS && size_of_val(lines) > kernel.prefetch_threshold()
}

#[cfg(test)]
#[path = "../tests/unit/places.rs"]
mod place_tests;
#[cfg(test)]
mod tests;
