//! The kernels of split blocks: one [`Table`] of functions per instruction set, selected by a
//! [`Kernel`] of the core.
//!
//! A kernel determines speed, never an answer: all agree with
//! [`split_block`](super::split_block). A new instruction set needs one file and one line of
//! [`table`]. Without them, its kernel uses the scalar table.

// Each call through a table has its SAFETY comment here. The kernels comment their own blocks.
#![expect(unsafe_code, reason = "safe functions call the SIMD kernels, which are unsafe functions")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
// Big-endian machines number the lanes of a register from the other end, which `neon` does not
// handle.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(feature = "portable")]
mod portable;
mod scalar;

use core::cell::Cell;

use blocked_bloom::parts::PrefetchAhead;
use blocked_bloom::{InstructionSet, Kernel};

use crate::split_block::{self, SPLIT_BLOCK_BYTES, SplitBlock, block_index};

/// In filters above this many times the prefetch threshold, the prefetch distance is 128 keys.
/// Otherwise it is that of [`PrefetchAhead`], 64 keys. The doubled distance took 0.76x to 0.84x the
/// time in 16 MiB and 0.91x to 0.99x in 128 MiB, but 1.04x to 1.10x in 2 MiB (Zen 4, AVX-512, 256
/// and 1024 a call). A distance of 256 was as fast in 16 MiB and no faster in 128 MiB.
const CACHE_FACTOR: usize = 6;

/// Extra keys prefetched in large filters, in addition to the distance of [`PrefetchAhead`].
const EXTRA_DISTANCE: usize = 64;

/// Returns the extra keys to prefetch in a filter of this many bytes, in addition to the distance
/// of [`PrefetchAhead`].
#[inline(always)]
fn further(bytes: usize) -> usize {
    if bytes / CACHE_FACTOR > Kernel::default().prefetch_threshold() { EXTRA_DISTANCE } else { 0 }
}

/// The functions of one instruction set.
///
/// `contains_one` and `insert_one` look up and insert one hash in its block, like the functions of
/// [`split_block`](crate::split_block).
/// `contains[lines](blocks, hashes, hits)` writes bit `i % 64` of `hits[i / 64]` for hash `i`, and
/// zeros after the last hash. `insert[lines](blocks, hashes)` sets the bits of every hash. Both
/// prefetch `lines` cache lines per block: 0 if the filter fits the cache, 1 for aligned blocks, 2
/// for blocks that straddle cache lines. Blocks of an owned filter are always aligned.
///
/// # Safety
///
/// For all functions, the CPU must support the instruction set. For `contains` and `insert`,
/// `1 <= blocks.len() < 2^32`. For `contains`, `hits.len() == hashes.len().div_ceil(64)`.
struct Table {
    instructions: InstructionSet,
    contains_one: unsafe fn(&SplitBlock, hash: u64) -> bool,
    insert_one: unsafe fn(&mut SplitBlock, hash: u64) -> bool,
    contains: [Contains; 3],
    insert: [Insert; 2],
}

type Contains = unsafe fn(&[SplitBlock], hashes: &[u64], hits: &mut [u64]);
type Insert = unsafe fn(&mut [SplitBlock], hashes: &[u64]);

/// Returns the table of a kernel. The existence of the `Kernel` proves that this CPU supports its
/// instruction set, and the functions use only the features that [`InstructionSet`] lists.
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

/// A kernel and its table. A filter looks the table up once, so that a single lookup is one
/// indirect call.
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
    /// Returns whether every bit of the hash is set in its block.
    #[inline(always)]
    pub(crate) fn contains_one(self, block: &SplitBlock, hash: u64) -> bool {
        // SAFETY: the CPU supports the instruction set of the table that `table` returned.
        unsafe { (self.table.contains_one)(block, hash) }
    }

    /// Sets every bit of the hash in its block. Returns true if at least one was unset.
    #[inline(always)]
    pub(crate) fn insert_one(self, block: &mut SplitBlock, hash: u64) -> bool {
        // SAFETY: the CPU supports the instruction set of the table that `table` returned.
        unsafe { (self.table.insert_one)(block, hash) }
    }
}

/// Single lookups in one filter. [`with_lookup`](crate::SplitBlockFilter::with_lookup) lends it.
///
/// ```
/// use blocked_bloom_split::{Lookup, SplitBlockFilter};
/// /// Returns the first value that may be present.
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
    /// True only if the CPU supports AVX2.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    has_avx2: bool,
}

impl Lookup<'_> {
    /// Returns whether the value with this hash may be present; false means certainly absent.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let block = &self.blocks[block_index(hash, self.blocks.len() as u32) as usize];
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        if self.has_avx2 {
            // SAFETY: `with_lookup` sets `has_avx2` only for AVX2 and AVX-512, which includes AVX2.
            return unsafe { avx2::contains_one(block, hash) };
        }
        split_block::contains(block, hash)
    }
}

/// Calls `work` with single lookups. Inlined code is compiled for the kernel's instructions.
#[inline]
pub(crate) fn with_lookup<'f, R>(
    functions: Functions,
    blocks: &'f [SplitBlock],
    work: impl FnOnce(Lookup<'f>) -> R,
) -> R {
    match functions.table.instructions {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        InstructionSet::Avx2 | InstructionSet::Avx512 => {
            // SAFETY: the CPU supports the instruction set of the table that `table` returned, and
            // AVX-512 includes AVX2.
            unsafe { avx2::run(|| work(Lookup { blocks, has_avx2: true })) }
        }
        _ => work(Lookup {
            blocks,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            has_avx2: false,
        }),
    }
}

/// Looks up all hashes. Hash `i` is bit `i % 64` of `words[i / 64]`; bits after the last hash are
/// zero.
///
/// # Panics
///
/// If there is no block, more than 2^32 - 1 blocks, or not exactly one word per 64 hashes. Each
/// would be a bug of this package.
#[inline]
pub(crate) fn contains(
    functions: Functions,
    blocks: &[SplitBlock],
    hashes: &[u64],
    words: &mut [u64],
) {
    contains_ahead(functions, blocks, hashes, words, lines(functions.kernel, blocks));
}

/// Looks up all hashes like [`contains`], and prefetches this many cache lines per block: 0 if the
/// caller has prefetched them, otherwise [`lines`].
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
    // SAFETY: the CPU supports the instruction set of the table that `table` returned. The numbers
    // of blocks and words are asserted above.
    unsafe { functions.table.contains[lines](blocks, hashes, words) }
}

/// Sets the bits of every hash in the blocks of an owned filter, which never straddle cache lines.
///
/// # Panics
///
/// If there is no block, or more than 2^32 - 1 blocks, which would be a bug of this package.
pub(crate) fn insert(functions: Functions, blocks: &mut [SplitBlock], hashes: &[u64]) {
    check_count(blocks);
    let lines = usize::from(outgrows_cache(functions.kernel, blocks));
    // SAFETY: the CPU supports the instruction set of the table that `table` returned. The number
    // of blocks is asserted above.
    unsafe { functions.table.insert[lines](blocks, hashes) }
}

/// Returns the number of cache lines per block to prefetch: 0 if the filter fits the cache.
#[inline]
pub(crate) fn lines(kernel: Kernel, blocks: &[SplitBlock]) -> usize {
    match blocks.as_ptr().addr().is_multiple_of(SPLIT_BLOCK_BYTES) {
        _ if !outgrows_cache(kernel, blocks) => 0,
        true => 1,
        false => 2,
    }
}

/// Returns whether to prefetch blocks while later values are hashed. That took 0.83x to 0.95x the
/// time from 8 MiB upwards, but 1.04x to 1.07x in 2 MiB for calls of up to 32 and of 1024 keys (Zen
/// 4, AVX-512, keys of 16 bytes).
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

/// Looks up a batch. Calls `test` with `KEYS` hashes at a time, in order, and `test_rest` with the
/// remaining hashes. Both return one bit per key, set if it may be present; bits of `test_rest`
/// after the last key are ignored. Prefetches the blocks of later keys, `LINES` cache lines per
/// block.
///
/// Always inlined, so that `test` is compiled for the caller's instruction set.
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

/// Like [`for_each_word`], for kernels that test the last hashes padded to `KEYS` hashes.
#[inline(always)]
fn for_each_group<const KEYS: usize, const LINES: usize>(
    blocks: &[SplitBlock],
    hashes: &[u64],
    hits: &mut [u64],
    test: impl Fn(&[u64; KEYS]) -> u64,
) {
    for_each_word::<KEYS, LINES>(blocks, hashes, hits, &test, |rest| {
        let mut keys = [rest[0]; KEYS];
        keys[..rest.len()].copy_from_slice(rest);
        test(&keys)
    });
}

/// Calls `set` with the block of every hash and the hash. Prefetches the blocks of later hashes,
/// `LINES` cache lines per block. The blocks are cells, because they are written while the prefetch
/// closure borrows them.
///
/// Always inlined, so that `set` is compiled for the caller's instruction set.
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

/// Calls `visit` with the index of every hash and the hash, in order. With `is_ahead`, prefetches
/// for later hashes, at the best distance for a filter of this many bytes.
#[inline(always)]
pub(crate) fn for_each_ahead(
    hashes: &[u64],
    bytes: usize,
    is_ahead: bool,
    prefetch: impl FnMut(&u64),
    mut visit: impl FnMut(usize, u64),
) {
    // Prefetches are issued eight at a time: one at a time, insertion with AVX2 took 1.5 times as
    // much time in 2 MB (Zen 4).
    let (later, at_once) = if is_ahead { (hashes, 8) } else { (&[][..], hashes.len().max(1)) };
    let mut ahead = PrefetchAhead::start(later, prefetch);
    ahead.advance(further(bytes));
    for (i, hashes) in hashes.chunks(at_once).enumerate() {
        ahead.advance(at_once);
        hashes.iter().enumerate().for_each(|(j, &hash)| visit(at_once * i + j, hash));
    }
}

/// Prefetches the hash's block (a `SplitBlock` or a cell of one): its first cache line, and with
/// `LINES = 2` also the line of its last byte.
#[inline(always)]
pub(crate) fn prefetch<const LINES: usize, B>(blocks: &[B], hash: u64) {
    let start = block_index(hash, blocks.len() as u32) as usize * SPLIT_BLOCK_BYTES;
    prefetch_at::<LINES, _>(blocks, start);
}

/// Prefetches the block that begins this many bytes after the first.
#[inline(always)]
fn prefetch_at<const LINES: usize, B>(blocks: &[B], start: usize) {
    for offset in [start, start + SPLIT_BLOCK_BYTES - 1].into_iter().take(LINES) {
        crate::prefetch(blocks, offset);
    }
}

/// Returns the address of the hash's block.
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

#[cfg(test)]
#[path = "../tests/unit/kernel.rs"]
mod tests;
