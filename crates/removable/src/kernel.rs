//! The kernels: one table of functions per instruction set, selected by the instructions of a
//! [`Kernel`] of the core.
//!
//! A kernel determines speed, never an answer: all return the answers of [`tags`](crate::tags) and
//! leave the same lines. A new instruction set needs one file and one line of [`table`]. Without
//! them, its kernel uses the scalar table.

// Each call through a table has its SAFETY comment here. The kernels comment their own blocks.
#![expect(
    unsafe_code,
    reason = "three safe functions call the SIMD kernels, which are unsafe functions"
)]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
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

use blocked_bloom::{Block, InstructionSet, Kernel};

pub(crate) use portable::{contains_one, insert_one, remove_one};

// Instructions that count and find lanes in a mask. Every CPU with AVX2 has them, but a [`Kernel`]
// does not prove it.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
cpufeatures::new!(bits, "bmi1", "popcnt");

/// The functions of one instruction set.
///
/// `contains[ahead](lines, hashes, hits)` writes bit `i % 64` of `hits[i / 64]` for hash `i`, and
/// zeros after the last hash. `insert[ahead](lines, hashes)` inserts hashes in order until both
/// lines of a hash are full, and returns their number. `remove[ahead](lines, hashes, found)`
/// removes one copy of each hash in order, writes which hashes were present as `contains` does, and
/// returns their number.
///
/// `ahead` is the number of cache lines prefetched for each line of a later key: 0 if the filter
/// fits the cache, 1 for aligned lines, 2 for lines that straddle cache lines. Lines that are
/// written are always aligned.
///
/// # Safety
///
/// The CPU must support the instruction set, and on x86 also the instructions of `bits`.
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

/// Looks up all hashes. Hash `i` is bit `i % 64` of `words[i / 64]`. `words` has exactly the needed
/// length, and bits after the last hash are zero. Without lines every answer is "maybe".
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
    // SAFETY: `table` returns the table of the instructions that `kernel` proves, checks `bits` on
    // x86, and otherwise returns the scalar one.
    unsafe { table(kernel).contains[ahead](lines, hashes, words) };
}

/// Inserts hashes in order until both lines of a hash are full, and returns their number.
#[inline]
pub(crate) fn insert(kernel: Kernel, lines: &mut [Block], hashes: &[u64]) -> usize {
    let ahead = usize::from(prefetches(kernel, lines, hashes));
    // SAFETY: the CPU supports the instructions of the table, since `table` chose it for `kernel`.
    unsafe { table(kernel).insert[ahead](lines, hashes) }
}

/// Removes one copy of each hash in order, writes which were present as [`contains`] does, and
/// returns their number.
#[inline]
pub(crate) fn remove(
    kernel: Kernel,
    lines: &mut [Block],
    hashes: &[u64],
    found: &mut [u64],
) -> usize {
    let ahead = usize::from(prefetches(kernel, lines, hashes));
    // SAFETY: the CPU supports the instructions of the table, since `table` chose it for `kernel`.
    unsafe { table(kernel).remove[ahead](lines, hashes, found) }
}

/// Returns whether to prefetch: the filter exceeds the cache and there are more than eight hashes.
/// The CPU overlaps the cache misses of up to eight hashes by itself.
#[inline]
pub(crate) fn prefetches<L>(kernel: Kernel, lines: &[L], hashes: &[u64]) -> bool {
    hashes.len() > driver::KEYS && size_of_val(lines) > kernel.prefetch_threshold()
}

#[cfg(test)]
#[path = "../tests/unit/places.rs"]
mod place_tests;
#[cfg(test)]
#[path = "../tests/unit/kernel.rs"]
mod tests;
