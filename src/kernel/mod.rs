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
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod scalar;

use crate::probe::{BLOCK_BYTES, Block, MAX_PROBES, MULTIPLIER, block_index};

/// Filters up to this size stay in the second-level cache, where prefetching only costs.
const FITS_BYTES: usize = 512 << 10;

/// Keys between the request of a line and its test.
const AHEAD: usize = 64;

/// Whether a batch requests lines ahead of testing them.
enum Prefetch {
    /// The filter fits the cache.
    No,
    OneLine,
    /// A borrowed filter whose blocks straddle two lines.
    TwoLines,
}

impl Prefetch {
    #[inline]
    fn of(blocks: &[Block]) -> Self {
        if size_of_val(blocks) <= FITS_BYTES {
            Prefetch::No
        } else if blocks.as_ptr().addr().is_multiple_of(BLOCK_BYTES) {
            Prefetch::OneLine
        } else {
            Prefetch::TwoLines
        }
    }
}

/// Where the hash's block begins.
///
/// # Safety
///
/// `1 <= blocks.len() < 2^32`.
#[cfg_attr(
    not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")),
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
fn prefetch<const LINES: usize>(block: *const Block) {
    let first = block.cast::<u8>();
    for line in [first, first.wrapping_add(BLOCK_BYTES - 1)].into_iter().take(LINES) {
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

/// `G^0 .. G^(N-1)`: one multiplication of a vector makes N probes.
#[cfg_attr(
    not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")),
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
}

/// One instruction set's functions.
///
/// `contains(blocks, probes, hashes, hits)` writes bit `i % 64` of `hits[i / 64]` for hash `i`, zero past the last.
/// `insert(tile, probes, hashes)` sets the bits of every hash, and panics at one whose block is not in the tile.
///
/// # Safety
///
/// Both: the CPU has the features of `is_supported`, and `1 <= probes <= 30`. `contains`: `1 <= blocks.len() < 2^32` and
/// `hits.len() == hashes.len().div_ceil(64)`.
struct Table {
    name: &'static str,
    is_supported: fn() -> bool,
    contains: unsafe fn(blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]),
    insert: unsafe fn(tile: Tile<'_>, probes: u32, hashes: &[u64]),
}

/// Fastest first; the last is always supported.
static KERNELS: &[Table] = &[
    #[cfg(target_arch = "x86_64")]
    avx512::TABLE,
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    avx2::TABLE,
    #[cfg(target_arch = "aarch64")]
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

    /// Tests every hash; bit `i % 64` of `hits[i / 64]` answers for hash `i`.
    ///
    /// # Panics
    ///
    /// If there is no block or more than 2^32 - 1, if `probes` is not 1 to 30, or if `hits` is not one word per 64 hashes:
    /// bugs of this crate, not inputs.
    #[inline]
    pub(crate) fn contains(self, blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes));
        assert_eq!(hits.len(), hashes.len().div_ceil(64));
        // SAFETY: a `Kernel` is only made by `supported`, after detection; the rest is asserted above.
        unsafe { (self.0.contains)(blocks, probes, hashes, hits) }
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
    use super::{Kernel, choose};

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
}
