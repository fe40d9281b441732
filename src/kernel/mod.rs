//! The seam between filters and instruction sets: a list of kernels, fastest first, and a handle to one of them.
//!
//! This file owns run-time detection and the checks that make the `unsafe` kernels safe to call. Each instruction set is one
//! file with a `const TABLE` that starts from `scalar::TABLE` and replaces what it accelerates, and one line in [`KERNELS`].
//! A kernel decides speed, never an answer: all give the bits of [`crate::probe`].

// Each call into a table is argued where it is made; the kernels' own blocks in their files.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind this one seam")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
// Lanes of a register are numbered from the other end on big-endian machines, which `neon` does not provide for.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
mod scalar;
mod source;
#[cfg(feature = "interop-parquet")]
mod split;

use crate::probe::{self, Block, MAX_PROBES, MULTIPLIER, block_index};

pub(crate) use source::Source;

/// Filters up to this size stay in the second-level cache, where requesting lines ahead only costs: 5 % at 125 KB and AVX2, while
/// at 250 KB it gains 4 %, and at 500 KB 18 % (Zen 3, 512 KB of second-level cache).
const FITS_BYTES: usize = 256 << 10;

/// Keys between the request of a line and its test. 16 are enough for a filter in the third-level cache and 5 % faster there; from
/// memory 32 take 15 % longer and 16 40 %, 128 are no faster.
pub(crate) const AHEAD: usize = 64;

/// A block of some law, 64 bytes or half of it: what is known of it where lines are requested. Nothing `unsafe` relies on it.
pub(crate) trait Place: Sized {
    /// The block, `0 .. blocks`, that the hash belongs to.
    fn index(hash: u64, blocks: u32) -> u32;
}

impl Place for Block {
    #[inline]
    fn index(hash: u64, blocks: u32) -> u32 {
        block_index(hash, blocks)
    }
}

/// How a batch's lines get into the cache before they are tested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// Not at all: the filter fits the cache, or whoever hashed the keys has requested them.
    No,
    OneLine,
    /// A borrowed filter whose blocks straddle two lines.
    TwoLines,
}

impl Prefetch {
    /// What a filter of these blocks wants, of which `fits` bytes fit the cache.
    #[inline]
    fn of<B>(blocks: &[B], fits: usize) -> Self {
        Prefetch::of_many(size_of_val(blocks), fits, is_aligned(blocks))
    }

    /// What filters want that are asked one after the other, `bytes` in all of which `fits` fit the cache.
    #[inline]
    fn of_many(bytes: usize, fits: usize, aligned: bool) -> Self {
        match aligned {
            _ if bytes <= fits => Prefetch::No,
            true => Prefetch::OneLine,
            false => Prefetch::TwoLines,
        }
    }

    /// Requests the lines of every hash's block.
    #[inline]
    pub(crate) fn request<B: Place>(self, blocks: &[B], hashes: &[u64]) {
        let block = |&hash: &u64| {
            let index = B::index(hash, blocks.len() as u32) as usize;
            blocks.as_ptr().wrapping_add(index)
        };
        match self {
            Prefetch::No => {}
            Prefetch::OneLine => hashes.iter().map(block).for_each(prefetch::<1>),
            Prefetch::TwoLines => hashes.iter().map(block).for_each(prefetch::<2>),
        }
    }
}

/// Whether no block straddles two cache lines.
#[inline]
pub(crate) fn is_aligned<B>(blocks: &[B]) -> bool {
    blocks.as_ptr().addr().is_multiple_of(size_of::<B>())
}

/// What a kernel does about keys that come later: it requests the lines of one for each that it tests.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'a, B = Block> {
    pub(crate) prefetch: Prefetch,
    /// Hashes whose lines are not requested yet.
    pub(crate) later: &'a [u64],
    /// The filter they will be asked of: the same, or the one whose turn is next.
    pub(crate) blocks: &'a [B],
}

impl<'a, B: Place> Ahead<'a, B> {
    /// Requests the lines of a batch's first hashes.
    #[inline]
    pub(crate) fn start(prefetch: Prefetch, blocks: &'a [B], hashes: &'a [u64]) -> Self {
        if prefetch == Prefetch::No {
            return Ahead { prefetch, later: &[], blocks };
        }
        let (first, later) = hashes.split_at(AHEAD.min(hashes.len()));
        prefetch.request(blocks, first);
        Ahead { prefetch, later, blocks }
    }

    /// Requests `LINES` lines for each of the next `keys` hashes.
    #[inline]
    fn request<const LINES: usize>(&mut self, keys: usize) {
        let (next, later) = self.later.split_at(keys.min(self.later.len()));
        self.later = later;
        for &hash in next {
            let index = B::index(hash, self.blocks.len() as u32) as usize;
            prefetch::<LINES>(self.blocks.as_ptr().wrapping_add(index));
        }
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
unsafe fn address(blocks: &[Block], hash: u64) -> *const Block {
    let index = block_index(hash, blocks.len() as u32) as usize;
    // SAFETY: `index = lo * len / 2^32 < len`, since `lo < 2^32` and `0 < len < 2^32`.
    unsafe { blocks.as_ptr().add(index) }
}

/// Requests the line at `block`, and with `LINES = 2` the one its last byte is in; nothing where no instruction is known.
#[inline]
fn prefetch<const LINES: usize>(block: *const impl Sized) {
    let last_byte = block.wrapping_add(1).cast::<u8>().wrapping_sub(1);
    for line in [block.cast(), last_byte].into_iter().take(LINES) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE is part of x86-64, and a prefetch reads nothing: any address will do.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(line.cast());
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch reads nothing: any address will do.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = line;
    }
}

/// Requests the line of the byte at `offset`: for filters whose probes are not in one block.
#[cfg(feature = "interop-cassandra")]
#[inline]
pub(crate) fn request(bytes: &[u8], offset: usize) {
    prefetch::<1>(bytes.as_ptr().wrapping_add(offset).cast::<u8>());
}

/// `G^0 .. G^(N-1)`: one multiplication of a vector makes N probes.
#[cfg_attr(
    not(any(
        target_arch = "x86",
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )),
    expect(dead_code, reason = "for the SIMD kernels")
)]
const fn powers<const N: usize>() -> [u32; N] {
    let mut powers = [1_u32; N];
    let mut i = 1;
    while i < N {
        powers[i] = powers[i - 1].wrapping_mul(MULTIPLIER);
        i += 1;
    }
    powers
}

/// A run of consecutive blocks of a filter, `first ..` of `total`: what one builder task may write.
pub(crate) struct Tile<'a> {
    pub(crate) blocks: &'a mut [Block],
    pub(crate) first: u32,
    pub(crate) total: u32,
}

impl Tile<'_> {
    /// The index of the hash's block in the tile; out of range if it belongs to another.
    #[inline]
    fn index(&self, hash: u64) -> usize {
        block_index(hash, self.total).wrapping_sub(self.first) as usize
    }

    /// Requests the line of the hash's block.
    #[inline]
    fn request(&self, hash: u64) {
        prefetch::<1>(self.blocks.as_ptr().wrapping_add(self.index(hash)));
    }
}

/// One instruction set's functions.
///
/// `contains(blocks, ahead, probes, hashes, hits)` writes bit `i % 64` of `hits[i / 64]` for hash `i`, zero past the last.
/// `insert(tile, probes, hashes)` sets the bits of every hash, and panics at one whose block is not in the tile.
/// `one(line, probes, hash)` tests one key in its block; without it, the law inlined does.
/// `mask(hash, probes)` gives the hash's bits as a block. `covers(sources, prefetch, hash, masks, hits)` writes bit `i % 64` of
/// `hits[i / 64]` for source `i`, set if the hash's line in it has every bit of the source's mask; a single mask is that of all.
///
/// # Safety
///
/// All: the CPU has the features of `is_supported`. All but `covers`: `1 <= probes <= 30`. `contains`:
/// `1 <= blocks.len() < 2^32` and `hits.len() == hashes.len().div_ceil(64)`.
struct Table {
    name: &'static str,
    is_supported: fn() -> bool,
    /// Filters up to this many bytes are better asked and filled without requesting lines ahead.
    fits: usize,
    contains: unsafe fn(&[Block], Ahead<'_>, probes: u32, hashes: &[u64], hits: &mut [u64]),
    insert: unsafe fn(tile: Tile<'_>, probes: u32, hashes: &[u64]),
    one: Option<unsafe fn(line: &Block, probes: u32, hash: u64) -> bool>,
    #[cfg(feature = "interop-parquet")]
    split: split::Table,
    mask: unsafe fn(hash: u64, probes: u32) -> Block,
    covers: unsafe fn(&[Source<'_>], Prefetch, hash: u64, masks: &[Block], hits: &mut [u64]),
}

/// Fastest first; the last is always supported.
static KERNELS: &[Table] = &[
    #[cfg(target_arch = "x86_64")]
    avx512::TABLE,
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    avx2::TABLE,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    neon::TABLE,
    portable::TABLE,
    scalar::TABLE,
];

/// Environment variable that names the kernel of a whole process, to rule out a suspect: `BLOCKED_BLOOM_KERNEL=scalar`. A name
/// that this CPU has no kernel of is ignored; answers never depend on it.
///
/// ```
/// assert_eq!(blocked_bloom::KERNEL_VARIABLE, "BLOCKED_BLOOM_KERNEL");
/// ```
pub const KERNEL_VARIABLE: &str = "BLOCKED_BLOOM_KERNEL";

/// One way of computing the law: a set of functions for one instruction set that this CPU has.
///
/// Filters pick the fastest by themselves. Choosing one by hand is for tests, benchmarks and for ruling out a suspect: the
/// answers are the same.
///
/// ```
/// use blocked_bloom::Kernel;
/// for kernel in Kernel::supported() {
///     println!("{}", kernel.name());
/// }
/// assert_eq!(Kernel::supported().last().unwrap().name(), "scalar");
/// ```
#[derive(Clone, Copy)]
pub struct Kernel(&'static Table);

impl Kernel {
    /// The kernels this CPU can run, fastest first. The last is always `scalar`.
    ///
    /// ```
    /// use blocked_bloom::Kernel;
    /// assert!(Kernel::supported().any(|kernel| kernel == Kernel::default()));
    /// ```
    pub fn supported() -> impl Iterator<Item = Kernel> {
        KERNELS.iter().filter(|table| (table.is_supported)()).map(Kernel)
    }

    /// The kernel's name: `avx512`, `avx2`, `neon`, `portable` or `scalar`.
    ///
    /// ```
    /// println!("filters on this machine use {}", blocked_bloom::Kernel::default().name());
    /// ```
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// How this kernel gets the lines of a filter of these blocks.
    #[inline]
    pub(crate) fn prefetch<B>(self, blocks: &[B]) -> Prefetch {
        Prefetch::of(blocks, self.0.fits)
    }

    /// How this kernel gets the lines of filters of `bytes` in all; `aligned` if every block is one cache line.
    #[inline]
    pub(crate) fn prefetch_many(self, bytes: usize, aligned: bool) -> Prefetch {
        Prefetch::of_many(bytes, self.0.fits, aligned)
    }

    /// Tests every hash; bit `i % 64` of `hits[i / 64]` answers for hash `i`.
    ///
    /// # Panics
    ///
    /// If there is no block or more than 2^32 - 1, if `probes` is not 1 to 30, or if `hits` is not one word per 64 hashes:
    /// bugs of this crate, not inputs.
    #[inline]
    pub(crate) fn contains(
        self,
        blocks: &[Block],
        ahead: Ahead<'_>,
        probes: u32,
        hashes: &[u64],
        hits: &mut [u64],
    ) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes));
        assert_eq!(hits.len(), hashes.len().div_ceil(64));
        // SAFETY: a `Kernel` is only made by `supported`, after detection; the rest is asserted above.
        unsafe { (self.0.contains)(blocks, ahead, probes, hashes, hits) }
    }

    /// Whether the hash's block, `line`, has all its bits.
    ///
    /// A call through a pointer cannot be inlined, and AVX2's is still the faster one: 10 cycles where the law inlined takes 22 (six
    /// probes, Zen 3, independent keys in cache; a key that waits for the answer about the one before, 36 in place of 31).
    ///
    /// # Panics
    ///
    /// If `probes` is not 1 to 30: a bug of this crate, not an input.
    #[inline]
    pub(crate) fn contains_one(self, line: &Block, probes: u32, hash: u64) -> bool {
        // Elsewhere no kernel has the function, and looking for it would cost a tenth of the law.
        if cfg!(any(target_arch = "x86", target_arch = "x86_64"))
            && let Some(one) = self.0.one
        {
            assert!((1..=MAX_PROBES).contains(&probes));
            // SAFETY: a `Kernel` is only made by `supported`, after detection; the probes are asserted above.
            return unsafe { one(line, probes, hash) };
        }
        probe::contains(line, hash, probes)
    }

    /// Sets the bits of every hash, all of which must belong to the tile.
    ///
    /// # Panics
    ///
    /// If `probes` is not 1 to 30, or a hash's block is not in the tile: bugs of this crate, not inputs.
    pub(crate) fn insert(self, tile: Tile<'_>, probes: u32, hashes: &[u64]) {
        assert!((1..=MAX_PROBES).contains(&probes));
        // SAFETY: a `Kernel` is only made by `supported`, after detection. Each `insert` checks where it writes.
        unsafe { (self.0.insert)(tile, probes, hashes) }
    }

    /// The bits of the hash as a block of their own: [`probe::mask`](crate::probe::mask).
    ///
    /// # Panics
    ///
    /// If `probes` is not 1 to 30: a bug of this crate, not an input.
    #[inline]
    pub(crate) fn mask(self, hash: u64, probes: u32) -> Block {
        assert!((1..=MAX_PROBES).contains(&probes));
        // SAFETY: a `Kernel` is only made by `supported`, after detection; the probes are asserted above.
        unsafe { (self.0.mask)(hash, probes) }
    }

    /// Compares the hash's line in every source with the source's mask, or with the only one; bit `i % 64` of `hits[i / 64]` is set
    /// if source `i` has all its bits.
    ///
    /// # Panics
    ///
    /// If `hits` is not one word per 64 sources, or a source's mask is missing among several: bugs of this crate, not inputs.
    #[inline]
    pub(crate) fn covers(
        self,
        sources: &[Source<'_>],
        prefetch: Prefetch,
        hash: u64,
        masks: &[Block],
        hits: &mut [u64],
    ) {
        assert_eq!(hits.len(), sources.len().div_ceil(64));
        // SAFETY: a `Kernel` is only made by `supported`, after detection.
        unsafe { (self.0.covers)(sources, prefetch, hash, masks, hits) }
    }
}

impl Default for Kernel {
    /// The fastest kernel this CPU can run, unless the environment variable [`KERNEL_VARIABLE`] names another that it can run
    /// (with the feature `std`). Decided once per process.
    fn default() -> Self {
        #[cfg(feature = "std")]
        {
            static CHOSEN: std::sync::OnceLock<Kernel> = std::sync::OnceLock::new();
            *CHOSEN.get_or_init(|| choose(std::env::var(KERNEL_VARIABLE).ok().as_deref()))
        }
        #[cfg(not(feature = "std"))]
        choose(None)
    }
}

fn choose(name: Option<&str>) -> Kernel {
    let named = Kernel::supported().find(|kernel| Some(kernel.name()) == name);
    named.or_else(|| Kernel::supported().next()).unwrap_or(Kernel(&scalar::TABLE))
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kernel {}

impl core::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{Kernel, Tile, choose};
    use crate::probe;

    #[test]
    fn a_name_chooses_if_there_is_such_a_kernel() {
        let fastest = Kernel::supported().next().unwrap();
        assert_eq!(choose(None), fastest);
        for kernel in Kernel::supported() {
            assert_eq!(choose(Some(kernel.name())), kernel);
        }
        for unknown in ["", "AVX2", "avx1024", "scalar "] {
            assert_eq!(choose(Some(unknown)), fastest);
        }
    }

    /// The low halves of hashes whose blocks are the last `blocks` of `total`.
    fn last(blocks: u32, total: u32) -> impl Iterator<Item = u64> {
        let lowest = (u64::from(total - blocks) << 32).div_ceil(u64::from(total));
        let step = ((1 << 32) - lowest) / 500 + 1;
        (lowest..1 << 32).rev().step_by(step as usize)
    }

    #[test]
    fn tiles_at_the_end_of_the_largest_filters() {
        for (blocks, total) in [(8, u32::MAX), (7, 1 << 31), (9, (1 << 31) + 1), (3, 3)] {
            let hashes: Vec<u64> = last(blocks, total)
                .enumerate()
                .map(|(i, lo)| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) << 32 | lo)
                .collect();
            let first = total - blocks;
            for probes in 1..=30 {
                let mut expected = vec![[0; 64]; blocks as usize];
                for &hash in &hashes {
                    let index = probe::block_index(hash, total) - first;
                    probe::insert(&mut expected[index as usize], hash, probes);
                }
                assert!(expected.iter().all(|block| *block != [0; 64]));
                for kernel in Kernel::supported() {
                    let mut inserted = vec![[0; 64]; blocks as usize];
                    kernel.insert(Tile { blocks: &mut inserted, first, total }, probes, &hashes);
                    assert!(inserted == expected, "{kernel:?}, {probes} probes, {total} blocks");
                }
            }
        }
    }

    /// What keeps a kernel's writes inside the slice it was given.
    #[cfg(all(feature = "std", panic = "unwind"))]
    #[test]
    fn a_hash_of_another_tile_panics() {
        for kernel in Kernel::supported() {
            for probes in [1, 6, 8, 9, 16, 17, 30] {
                for position in [0, 7, 8, 15, 16, 19] {
                    // Blocks 10 to 12 of 100; the stray hash belongs to block 9, 13 or 99.
                    for stray in [9, 13, 99] {
                        let lo = |block: u64| (block << 32).div_ceil(100);
                        let mut hashes = [lo(11); 20];
                        hashes[position] = lo(stray);
                        let outcome = std::panic::catch_unwind(|| {
                            let mut blocks = [[0; 64]; 3];
                            let tile = Tile { blocks: &mut blocks, first: 10, total: 100 };
                            kernel.insert(tile, probes, &hashes);
                        });
                        assert!(outcome.is_err(), "{kernel:?}, {probes} probes, at {position}");
                    }
                }
            }
        }
    }
}
