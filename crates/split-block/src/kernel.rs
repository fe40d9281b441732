//! The kernels of split blocks: one [`Table`] of functions per instruction set, found by the
//! instruction set of a core's [`Kernel`].
//!
//! A kernel decides speed, never an answer: all give the bits of
//! [`split_block`](super::split_block). A new instruction set is one file and one line of
//! [`table`]; until it has them, its kernel is the scalar one here.

// Each call into a table has its argument beside it; the kernels' own blocks have theirs.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind these two safe ones")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
// Lanes of a register are numbered from the other end on big-endian machines, which `neon` does not
// provide for.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(feature = "portable")]
mod portable;
mod scalar;

use core::cell::Cell;

use blocked_bloom::parts::PrefetchAhead;
use blocked_bloom::{InstructionSet, Kernel};

use crate::split_block::{self, SPLIT_BLOCK_BYTES, SplitBlock, block_index};

/// In filters of more than this many times the prefetch threshold the prefetch distance is 128
/// keys, in others that of [`PrefetchAhead`], 64. The doubled distance took 0.76 to 0.84 of the
/// time in 16 MiB and 0.91 to 0.99 in 128, but 1.04 to 1.10 in 2 MiB (Zen 4, AVX-512, 256 and 1024
/// a call). A distance of 256 gains as much in 16 MiB and no more in 128.
const CACHE_FACTOR: usize = 6;

/// Keys that are prefetched beyond the distance of [`PrefetchAhead`] in filters that are not near.
const EXTRA_DISTANCE: usize = 64;

/// Keys that are prefetched beyond the distance of [`PrefetchAhead`] in a filter of this many
/// bytes.
#[inline(always)]
fn further(bytes: usize) -> usize {
    if bytes / CACHE_FACTOR > Kernel::default().prefetch_threshold() { EXTRA_DISTANCE } else { 0 }
}

/// The functions of one instruction set.
///
/// `contains_one` and `insert_one` look up and add one hash in its block, as those of
/// [`split_block`](crate::split_block) do.
/// `contains[lines](blocks, hashes, hits)` writes bit `i % 64` of `hits[i / 64]` for hash `i`,
/// zeros past the last. `insert[lines](blocks, hashes)` sets the bits of every hash. Both prefetch
/// `lines` cache lines per block: none where the filter fits the cache, two where blocks straddle
/// lines, which blocks of an owned filter never do.
///
/// # Safety
///
/// All: the CPU has the instruction set. `contains` and `insert`: `1 <= blocks.len() < 2^32`.
/// `contains`: `hits.len() == hashes.len().div_ceil(64)`.
struct Table {
    instructions: InstructionSet,
    contains_one: unsafe fn(&SplitBlock, hash: u64) -> bool,
    insert_one: unsafe fn(&mut SplitBlock, hash: u64) -> bool,
    contains: [Contains; 3],
    insert: [Insert; 2],
}

type Contains = unsafe fn(&[SplitBlock], hashes: &[u64], hits: &mut [u64]);
type Insert = unsafe fn(&mut [SplitBlock], hashes: &[u64]);

/// The table of a kernel. This CPU has its instruction set, since there is a `Kernel` of it; the
/// functions are compiled for no more than [`InstructionSet`] lists.
fn table(kernel: Kernel) -> &'static Table {
    let table = match kernel.instructions() {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => &avx512::TABLE,
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        InstructionSet::Avx2 => &avx2::TABLE,
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        InstructionSet::Neon => &neon::TABLE,
        #[cfg(feature = "portable")]
        InstructionSet::Portable => &portable::TABLE,
        _ => &scalar::TABLE,
    };
    debug_assert!(table.instructions == kernel.instructions() || !cfg!(feature = "portable"));
    table
}

/// A kernel and its table, which is found once for a filter: single lookups are then one call by
/// pointer.
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

impl Functions {
    /// Whether every bit of the hash is set in its block.
    #[inline(always)]
    pub(crate) fn contains_one(self, block: &SplitBlock, hash: u64) -> bool {
        // SAFETY: `table` gives functions whose instruction set the CPU has.
        unsafe { (self.table.contains_one)(block, hash) }
    }

    /// Sets every bit of the hash in its block. Returns true if at least one was not set before.
    #[inline(always)]
    pub(crate) fn insert_one(self, block: &mut SplitBlock, hash: u64) -> bool {
        // SAFETY: `table` gives functions whose instruction set the CPU has.
        unsafe { (self.table.insert_one)(block, hash) }
    }
}

/// Single lookups in one filter, which [`with_lookup`](crate::SplitBlockFilter::with_lookup) lends.
///
/// ```
/// use blocked_bloom_split::{Lookup, SplitBlockFilter};
/// /// The first value that may be there.
/// fn first(lookup: Lookup<'_>, hashes: &[u64]) -> Option<usize> {
///     hashes.iter().position(|&hash| lookup.contains_hash(hash))
/// }
/// let mut filter = SplitBlockFilter::with_blocks(4)?;
/// filter.insert_hash(7);
/// assert_eq!(filter.with_lookup(|lookup| first(lookup, &[1, 7, 9])), Some(1));
/// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'f> {
    blocks: &'f [SplitBlock],
    /// Only if the CPU has it.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    has_avx2: bool,
}

impl Lookup<'_> {
    /// Whether the value of this hash may be there; false means that it certainly is not.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let block = &self.blocks[block_index(hash, self.blocks.len() as u32) as usize];
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        if self.has_avx2 {
            // SAFETY: `with_lookup` sets it for kernels of AVX2 and AVX-512, which contains it.
            return unsafe { avx2::contains_one(block, hash) };
        }
        split_block::contains(block, hash)
    }
}

/// Calls `work` with single lookups, compiled for the kernel's instructions where that is inlined.
#[inline]
pub(crate) fn with_lookup<'f, R>(
    functions: Functions,
    blocks: &'f [SplitBlock],
    work: impl FnOnce(Lookup<'f>) -> R,
) -> R {
    match functions.table.instructions {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        InstructionSet::Avx2 | InstructionSet::Avx512 => {
            // SAFETY: `table` gives tables whose instruction set the CPU has; AVX-512 contains
            // AVX2.
            unsafe { avx2::run(|| work(Lookup { blocks, has_avx2: true })) }
        }
        _ => work(Lookup {
            blocks,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            has_avx2: false,
        }),
    }
}

/// Looks up every hash: hash `i` is bit `i % 64` of `words[i / 64]`, bits past the last hash are
/// zero.
///
/// # Panics
///
/// If there is no block or more than 2^32 - 1, or not one word per 64 hashes: bugs of this package,
/// not inputs.
#[inline]
pub(crate) fn contains(
    functions: Functions,
    blocks: &[SplitBlock],
    hashes: &[u64],
    words: &mut [u64],
) {
    contains_ahead(functions, blocks, hashes, words, lines(functions.kernel, blocks));
}

/// [`contains`] with this many cache lines of each block prefetched: 0 if the caller has prefetched
/// them, else [`lines`].
#[inline(always)]
pub(crate) fn contains_ahead(
    functions: Functions,
    blocks: &[SplitBlock],
    hashes: &[u64],
    words: &mut [u64],
    lines: usize,
) {
    assert_eq!(words.len(), hashes.len().div_ceil(64));
    check_count(blocks);
    // SAFETY: `table` gives functions whose instruction set the CPU has; the numbers of blocks and
    // of words are asserted above.
    unsafe { functions.table.contains[lines](blocks, hashes, words) }
}

/// Sets the bits of every hash. The blocks are of an owned filter: none straddles two cache lines.
///
/// # Panics
///
/// If there is no block or more than 2^32 - 1: a bug of this package, not an input.
pub(crate) fn insert(functions: Functions, blocks: &mut [SplitBlock], hashes: &[u64]) {
    check_count(blocks);
    let lines = usize::from(outgrows_cache(functions.kernel, blocks));
    // SAFETY: `table` gives functions whose instruction set the CPU has; the number of blocks is
    // asserted above.
    unsafe { functions.table.insert[lines](blocks, hashes) }
}

/// Cache lines of a block to prefetch: none if the filter fits the cache.
#[inline]
pub(crate) fn lines(kernel: Kernel, blocks: &[SplitBlock]) -> usize {
    match blocks.as_ptr().addr().is_multiple_of(SPLIT_BLOCK_BYTES) {
        _ if !outgrows_cache(kernel, blocks) => 0,
        true => 1,
        false => 2,
    }
}

/// Whether the blocks of values are prefetched while later ones are hashed. That took 0.83 to 0.95
/// of the time from 8 MiB on, but 1.04 to 1.07 for calls of up to 32 and of 1024 in 2 MiB (Zen 4,
/// AVX-512, keys of 16 bytes).
#[inline]
pub(crate) fn is_prefetched_while_hashing(blocks: &[SplitBlock]) -> bool {
    further(size_of_val(blocks)) > 0
}

#[inline]
fn check_count(blocks: &[SplitBlock]) {
    assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
}

#[inline]
fn outgrows_cache(kernel: Kernel, blocks: &[SplitBlock]) -> bool {
    size_of_val(blocks) > kernel.prefetch_threshold()
}

/// Looks up a batch: calls `test` with `KEYS` hashes at a time, in their order, and `test_rest`
/// with the fewer that remain at the end; of its answer, bits past the last key are ignored. Both
/// return one bit per key, set if it may be present. The blocks of later keys are prefetched,
/// `LINES` cache lines of each.
///
/// Always inlined, so that `test` is compiled for the instruction set of the caller.
#[inline(always)]
fn for_each_word<const KEYS: usize, const LINES: usize>(
    blocks: &[SplitBlock],
    hashes: &[u64],
    hits: &mut [u64],
    mut test: impl FnMut(&[u64; KEYS]) -> u64,
    test_rest: impl Fn(&[u64]) -> u64,
) {
    let later = if LINES == 0 { &[] } else { hashes };
    let mut ahead = PrefetchAhead::start(later, |&hash| prefetch::<LINES, _>(blocks, hash));
    ahead.advance(further(size_of_val(blocks)));
    for (keys, word) in hashes.chunks(64).zip(hits) {
        let mut bits = 0;
        let (iterations, rest) = keys.as_chunks::<KEYS>();
        for (i, keys) in iterations.iter().enumerate() {
            ahead.advance(KEYS);
            bits |= test(keys) << (i * KEYS);
        }
        if !rest.is_empty() {
            let used = (1 << rest.len()) - 1;
            bits |= (test_rest(rest) & used) << (iterations.len() * KEYS);
        }
        *word = bits;
    }
}

/// Calls `set` with the block of every hash and the hash. The blocks of later ones are prefetched,
/// `LINES` cache lines of each: the blocks are cells, since they are written while the closure that
/// prefetches borrows them.
///
/// Always inlined, so that `set` is compiled for the instruction set of the caller.
#[inline(always)]
fn for_each_block<const LINES: usize>(
    blocks: &mut [SplitBlock],
    hashes: &[u64],
    set: impl Fn(&Cell<SplitBlock>, u64),
) {
    let blocks = Cell::from_mut(blocks).as_slice_of_cells();
    let count = blocks.len() as u32;
    let prefetch = |&hash: &u64| prefetch::<LINES, _>(blocks, hash);
    let set = |_, hash| set(&blocks[block_index(hash, count) as usize], hash);
    for_each_ahead(hashes, size_of_val(blocks), LINES > 0, prefetch, set);
}

/// Calls `visit` with the index of every hash and the hash, in order. If `is_ahead`, prefetches for
/// later ones, at the distance that is best for a filter of so many bytes.
#[inline(always)]
pub(crate) fn for_each_ahead(
    hashes: &[u64],
    bytes: usize,
    is_ahead: bool,
    prefetch: impl FnMut(&u64),
    mut visit: impl FnMut(usize, u64),
) {
    // Prefetches are made eight at a time: one at a time, inserting by AVX2 took half as long again
    // in 2 MB (Zen 4).
    let (later, at_once) = if is_ahead { (hashes, 8) } else { (&[][..], hashes.len().max(1)) };
    let mut ahead = PrefetchAhead::start(later, prefetch);
    ahead.advance(further(bytes));
    for (i, hashes) in hashes.chunks(at_once).enumerate() {
        ahead.advance(at_once);
        hashes.iter().enumerate().for_each(|(j, &hash)| visit(at_once * i + j, hash));
    }
}

/// Prefetches the hash's block, a `SplitBlock` or the cell of one: its first cache line, and with
/// `LINES = 2` the one that its last byte is in.
#[inline(always)]
pub(crate) fn prefetch<const LINES: usize, B>(blocks: &[B], hash: u64) {
    let start = block_index(hash, blocks.len() as u32) as usize * SPLIT_BLOCK_BYTES;
    prefetch_at::<LINES, _>(blocks, start);
}

/// [`prefetch`] of the block that begins this many bytes after the first.
#[inline(always)]
fn prefetch_at<const LINES: usize, B>(blocks: &[B], start: usize) {
    for offset in [start, start + SPLIT_BLOCK_BYTES - 1].into_iter().take(LINES) {
        crate::prefetch(blocks, offset);
    }
}

/// Where the hash's block begins.
///
/// # Safety
///
/// `1 <= blocks.len() < 2^32`.
#[cfg_attr(
    not(any(
        target_arch = "x86",
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )),
    expect(dead_code, reason = "for the SIMD kernels")
)]
#[inline]
unsafe fn address(blocks: &[SplitBlock], hash: u64) -> *const SplitBlock {
    let index = block_index(hash, blocks.len() as u32) as usize;
    // SAFETY: `index = hi * len / 2^32 < len`, since `hi < 2^32` and `0 < len < 2^32`.
    unsafe { blocks.as_ptr().add(index) }
}

/// The hashes, at least one, and the first again until there are `KEYS`.
#[cfg_attr(
    not(any(
        target_arch = "x86",
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )),
    expect(dead_code, reason = "for the SIMD kernels")
)]
#[inline]
fn padded<const KEYS: usize>(rest: &[u64]) -> [u64; KEYS] {
    let mut keys = [rest[0]; KEYS];
    keys[..rest.len()].copy_from_slice(rest);
    keys
}

#[cfg(test)]
#[path = "../tests/unit/kernel.rs"]
mod tests;
