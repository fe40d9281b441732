//! The kernels: one table of functions per instruction set, fastest first, and a handle to one of them.
//!
//! A kernel decides speed, never an answer: all give the bits of [`crate::probe`]. Adding an instruction set takes one file, or folder,
//! with a `const TABLE` that starts from `scalar::TABLE` and replaces what it accelerates, and one line in [`KERNELS`]. The checks that
//! make the `unsafe` functions safe to call are here.

// Each call into a table is argued where it is made; the kernels' own blocks in their files.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind this dispatch table")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod cache;
mod driver;
// Lanes of a register are numbered from the other end on big-endian machines, which `neon` does not provide for.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(feature = "portable")]
mod portable;
mod prefetch;
mod scalar;
mod source;
mod table;

use self::table::Table;
use crate::error::ParamsError;
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
use crate::probe;
use crate::probe::{Block, MAX_PROBES};

pub use cache::PREFETCH_VARIABLE;
pub use prefetch::prefetch;
pub(crate) use prefetch::{AHEAD, Ahead, Place, Prefetch, is_aligned, prefetch_block};
pub(crate) use source::Source;
pub(crate) use table::Tile;

/// Fastest first; the last is always supported.
static KERNELS: &[Table] = &[
    #[cfg(target_arch = "x86_64")]
    avx512::TABLE,
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    avx2::TABLE,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    neon::TABLE,
    #[cfg(feature = "portable")]
    portable::TABLE,
    scalar::TABLE,
];

/// Environment variable that names the kernel of a whole process, to rule out a suspect: `BLOCKED_BLOOM_KERNEL=scalar`. A name
/// that this CPU has no kernel of is ignored; answers never depend on it. Lookups of single keys are inlined, and not affected, in programs
/// that are compiled for a CPU with AVX2 or AVX-512.
///
/// ```
/// assert_eq!(blocked_bloom::KERNEL_VARIABLE, "BLOCKED_BLOOM_KERNEL");
/// ```
pub const KERNEL_VARIABLE: &str = "BLOCKED_BLOOM_KERNEL";

/// A set of functions for one instruction set that this CPU has: a `Kernel` exists only if detection found it, on which `unsafe` code of
/// other packages may rely.
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
    pub fn supported() -> impl Iterator<Item = Kernel> {
        KERNELS.iter().filter(|table| (table.is_supported)()).map(Kernel)
    }

    /// The kernel's name: `avx512` (AVX2, BMI2, GFNI and AVX-512 F, BW, DQ, VL, VBMI and VBMI2), `avx2`, `neon`, `portable` or `scalar`. Code of other packages
    /// may take it as proof that the CPU has these instructions.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Filters up to this many bytes fit the cache, and are looked up and filled without prefetching: three quarters of the CPU's
    /// second-level cache (half of one up to 512 KiB), or what the environment variable [`PREFETCH_VARIABLE`] says. The same for all kernels. For packages with kernels
    /// of their own.
    pub fn prefetch_threshold(self) -> usize {
        cache::fits()
    }

    /// Prefetches and tests every hash; bit `i % 64` of `hits[i / 64]` answers for hash `i`.
    ///
    /// # Panics
    ///
    /// As [`contains`](Self::contains).
    #[inline]
    pub(crate) fn look_up(self, blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes));
        assert_eq!(hits.len(), hashes.len().div_ceil(64));
        // Nothing but this call, so that all of it is inlined: with a test of one key beside it, calls of two to sixteen took a fifth longer.
        match hits {
            [word]
                if hashes.len() <= self.0.overlapped
                    || cache::is_known_to_fit(size_of_val(blocks)) =>
            {
                // SAFETY: a `Kernel` is only made by `supported`, after detection; the rest is asserted above.
                *word = unsafe { (self.0.few)(blocks, Prefetch::No, probes, hashes) }
            }
            _ => self.look_up_any(blocks, probes, hashes, hits),
        }
    }

    /// Not inlined, so that calls of few keys are short: three nanoseconds of each (Zen 5).
    ///
    /// # Panics
    ///
    /// As [`contains`](Self::contains).
    #[inline(never)]
    fn look_up_any(self, blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes));
        assert_eq!(hits.len(), hashes.len().div_ceil(64));
        let prefetch = Prefetch::of(blocks);
        if let [word] = hits {
            // SAFETY: as above.
            *word = unsafe { (self.0.few)(blocks, prefetch, probes, hashes) };
        } else {
            let ahead = Ahead::start(prefetch, blocks, hashes);
            self.contains(blocks, ahead, probes, hashes, hits);
        }
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
    /// If the crate is compiled for a CPU with AVX2 or AVX-512, their test is inlined, whatever the kernel: half the time of a call. Else on
    /// x86 it is a call by pointer, and nothing beside it: with the scalar test inlined for kernels without one of their own, what is
    /// saved around the call took a fifth of it. Elsewhere no kernel has a faster test than the scalar one, inlined.
    #[inline]
    pub(crate) fn contains_one(self, line: &Block, probes: u32, hash: u64) -> bool {
        #[cfg(all(
            target_arch = "x86_64",
            target_feature = "avx512dq",
            target_feature = "avx512vl",
            target_feature = "avx512vbmi2",
            target_feature = "bmi2"
        ))]
        // SAFETY: the crate is compiled for these features.
        return unsafe { avx512::one(line, probes, hash) };
        #[cfg(all(
            any(target_arch = "x86", target_arch = "x86_64"),
            target_feature = "avx2",
            not(all(
                target_arch = "x86_64",
                target_feature = "avx512dq",
                target_feature = "avx512vl",
                target_feature = "avx512vbmi2",
                target_feature = "bmi2"
            ))
        ))]
        // SAFETY: the crate is compiled for AVX2.
        return unsafe { avx2::one(line, probes, hash) };
        #[cfg(all(
            any(target_arch = "x86", target_arch = "x86_64"),
            not(target_feature = "avx2")
        ))]
        // SAFETY: a `Kernel` is only made by `supported`, after detection.
        return unsafe { (self.0.one)(line, probes, hash) };
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        probe::contains(line, hash, probes)
    }

    /// Sets the bits of every hash in the blocks of a filter of this probe scheme: for packages that write the containers of other
    /// systems.
    ///
    /// # Errors
    ///
    /// [`ParamsError::BlocksOutOfRange`] unless there are 1 to 2^32 - 1 blocks, [`ParamsError::ProbesOutOfRange`] unless 1 to 30;
    /// nothing is changed then.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilterRef, Kernel, KeyHash};
    /// let mut blocks = [[0; 64]; 3];
    /// Kernel::default().insert(&mut blocks, 6, &[0x9c1c_34f1_0a4e_7ab3])?;
    /// let filter = BloomFilterRef::from_blocks(&blocks, 6, KeyHash::Caller { tag: 1 })?;
    /// assert!(filter.contains_hash(0x9c1c_34f1_0a4e_7ab3));
    /// # Ok::<(), blocked_bloom::ParamsError>(())
    /// ```
    pub fn insert(
        self,
        blocks: &mut [Block],
        probes: u32,
        hashes: &[u64],
    ) -> Result<(), ParamsError> {
        let total = match u32::try_from(blocks.len()) {
            Ok(total @ 1..) => total,
            _ => return Err(ParamsError::BlocksOutOfRange { blocks: blocks.len() as u64 }),
        };
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(ParamsError::ProbesOutOfRange { probes });
        }
        self.insert_into(Tile { blocks, first: 0, total }, probes, hashes);
        Ok(())
    }

    /// Sets the bits of every hash, all of which must belong to the tile.
    ///
    /// # Panics
    ///
    /// If `probes` is not 1 to 30, or a hash's block is not in the tile: bugs of this crate, not inputs.
    pub(crate) fn insert_into(self, tile: Tile<'_>, probes: u32, hashes: &[u64]) {
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

/// The name.
impl core::fmt::Display for Kernel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

impl core::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

#[cfg(test)]
#[path = "../../tests/unit/kernel.rs"]
mod tests;
