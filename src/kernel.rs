//! The kernels: a table of functions per instruction set, fastest first, and a handle to one.
//!
//! A kernel decides speed, never an answer: all give the bits of [`crate::probe`]. Adding an
//! instruction set takes one file, or folder, with a `const TABLE` that starts from `scalar::TABLE`
//! and replaces what it accelerates, and one line in [`KERNELS`]. The checks that make the `unsafe`
//! functions safe to call are here.

// Each call into a table is argued where it is made; the kernels' own blocks in their files.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind this dispatch table")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod cache;
mod cpuid;
mod driver;
// On big-endian machines lanes are numbered from the other end, which `neon` does not provide for.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(feature = "portable")]
mod portable;
mod prefetch;
mod scalar;
mod table;
mod tuning;

use self::table::Table;
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
use crate::probe;
use crate::probe::{Block, MAX_PROBES};

pub use cache::PREFETCH_VARIABLE;
pub(crate) use prefetch::{FAR, Prefetch, Way, prefetch_block};
pub use prefetch::{PrefetchAhead, prefetch};
pub(crate) use table::Tile;
#[cfg(all(test, feature = "std"))]
pub(crate) use tuning::Tuning;

/// Hashes that are prefetched and tested together: those of a word of answers.
pub(crate) const GROUP: usize = 64;

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

/// Environment variable that names the kernel of a whole process, to rule out a suspect:
/// `BLOCKED_BLOOM_KERNEL=scalar`. The name of a kernel that this CPU cannot run is ignored; answers
/// never depend on it. Lookups of single keys are inlined, and not affected, in programs that are
/// compiled for a CPU with AVX2 or AVX-512.
pub const KERNEL_VARIABLE: &str = "BLOCKED_BLOOM_KERNEL";

/// Which instructions a [`Kernel`] uses. Further ones may be added.
///
/// ```
/// use blocked_bloom::{InstructionSet, Kernel};
/// let has_avx2 = Kernel::supported().any(|kernel| kernel.instructions() == InstructionSet::Avx2);
/// # _ = has_avx2;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// AVX2, BMI2, GFNI, and of AVX-512 F, BW, DQ, VL, VBMI and VBMI2: `avx512`.
    Avx512,
    /// AVX2: `avx2`.
    Avx2,
    /// NEON of little-endian aarch64: `neon`.
    Neon,
    /// Plain Rust that compilers vectorise: `portable`.
    Portable,
    /// Plain Rust: `scalar`.
    Scalar,
}

/// A set of functions for one instruction set that this CPU has: a `Kernel` exists only if
/// detection found its [`instructions`](Self::instructions), on which `unsafe` code may rely.
///
/// Filters pick the fastest by themselves. Choosing one by hand is for tests, benchmarks and for
/// ruling out a suspect: the answers are the same.
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

    /// The instruction set. That there is a `Kernel` of it proves that this CPU has it.
    #[inline]
    pub fn instructions(self) -> InstructionSet {
        self.0.instructions
    }

    /// The kernel's name, for people: `avx512`, `avx2`, `neon`, `portable` or `scalar`.
    pub fn name(self) -> &'static str {
        match self.instructions() {
            InstructionSet::Avx512 => "avx512",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Neon => "neon",
            InstructionSet::Portable => "portable",
            InstructionSet::Scalar => "scalar",
        }
    }

    /// Filters up to this many bytes fit the cache, and are looked up and filled without
    /// prefetching: three quarters of the CPU's second-level cache (half of one up to 512 KiB), or
    /// what the environment variable [`PREFETCH_VARIABLE`] says. The same for all kernels. For
    /// packages with kernels of their own.
    #[inline]
    pub fn prefetch_threshold(self) -> usize {
        cache::fits()
    }

    /// Prefetches and tests every hash; bit `i % 64` of `hits[i / 64]` answers for hash `i`.
    ///
    /// # Panics
    ///
    /// If there is no block or more than 2^32 - 1, if `probes` is not 1 to 30, or if `hits` is not
    /// one word per 64 hashes: bugs of this crate, not inputs.
    #[inline]
    pub(crate) fn look_up(self, blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
        // This call alone is inlined into the caller: with a test of a single key beside it, calls
        // of 2 to 16 keys took a fifth longer.
        match hits {
            [word] if self.overlaps(size_of_val(blocks), hashes.len()) => {
                *word = self.test_group(blocks, probes, hashes);
            }
            _ => self.look_up_any(blocks, probes, hashes, hits),
        }
    }

    /// Whether up to 64 hashes are known to be tested fastest without prefetching.
    #[inline]
    fn overlaps(self, bytes: usize, hashes: usize) -> bool {
        hashes <= self.0.overlapped || bytes <= cache::known_to_fit(hashes <= self.0.few)
    }

    /// How up to 64 keys are prefetched while they are hashed: from fewer keys on than hashes.
    #[inline]
    pub(crate) fn prefetch_of_keys(self, blocks: &[Block], keys: usize) -> Prefetch {
        if size_of_val(blocks) <= cache::known_to_fit(false) {
            return Prefetch::No;
        }
        _ = cache::fits(); // Known from here on.
        match keys > 2 * self.0.overlapped && keys <= self.0.few {
            true => Prefetch::beyond(cache::known_to_fit(true), blocks),
            false => Prefetch::of(blocks),
        }
    }

    /// How a call of more than 64 hashes prefetches.
    #[inline]
    pub(crate) fn way(self, blocks: &[Block]) -> Way {
        let fits = cache::fits();
        if size_of_val(blocks) <= fits {
            return Way::Between(Prefetch::No);
        }
        Way::of(tuning::tuning(), fits, blocks)
    }

    /// Not inlined, which saves each call of few keys three nanoseconds (Zen 5).
    #[inline(never)]
    fn look_up_any(self, blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
        let [word] = hits else {
            return self.look_up_by(self.way(blocks), blocks, probes, hashes, hits);
        };
        _ = cache::fits();
        Prefetch::beyond(cache::known_to_fit(hashes.len() <= self.0.few), blocks)
            .of_each::<FAR>(blocks, hashes);
        *word = self.test_group(blocks, probes, hashes);
    }

    /// [`look_up`](Self::look_up) for more than 64 hashes, prefetched this way.
    #[inline]
    pub(crate) fn look_up_by(
        self,
        way: Way,
        blocks: &[Block],
        probes: u32,
        hashes: &[u64],
        hits: &mut [u64],
    ) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes));
        assert_eq!(hits.len(), hashes.len().div_ceil(64));
        let ahead = match way {
            // SAFETY: a `Kernel` is only made after detection; the rest is asserted above.
            Way::Between(prefetch) => unsafe {
                return (self.0.batch)(blocks, prefetch, probes, hashes, hits);
            },
            Way::Groups(_, tuning) => tuning.ahead,
        };
        way.prefetch(blocks, &hashes[..hashes.len().min(ahead)]);
        for (i, (word, group)) in hits.iter_mut().zip(hashes.chunks(GROUP)).enumerate() {
            let later = &hashes[hashes.len().min(i * GROUP + ahead)..];
            way.prefetch(blocks, &later[..later.len().min(GROUP)]);
            // SAFETY: as above, and `chunks` gives groups of 1 to 64 hashes.
            *word = unsafe { (self.0.group)(blocks, probes, group) };
        }
    }

    /// Tests 1 to 64 hashes, whose blocks were prefetched or are in the cache: a bit for each.
    ///
    /// # Panics
    ///
    /// As [`look_up`](Self::look_up).
    #[inline]
    pub(crate) fn test_group(self, blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes) && (1..=GROUP).contains(&hashes.len()));
        // SAFETY: a `Kernel` is only made after detection; the rest is asserted above.
        unsafe { (self.0.group)(blocks, probes, hashes) }
    }

    /// Whether the hash's block, `line`, has all its bits.
    ///
    /// A crate that is compiled for a CPU with AVX2 or AVX-512 inlines their test, whatever the
    /// kernel, in half the time of a call. Otherwise x86 calls the kernel's test by pointer, also
    /// the scalar one: inlined beside that call, the scalar test made it a fifth slower, since
    /// registers were saved around it. On other machines no kernel has a faster test than the
    /// scalar one, which is inlined.
    #[inline]
    pub(crate) fn contains_one(self, line: &Block, probes: u32, hash: u64) -> bool {
        #[cfg(target_arch = "x86_64")]
        if cfg!(all(
            target_feature = "avx512dq",
            target_feature = "avx512vl",
            target_feature = "avx512vbmi2",
            target_feature = "bmi2"
        )) {
            // SAFETY: the crate is compiled for these features, which is all that `one` needs.
            return unsafe { avx512::one(line, probes, hash) };
        }
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        return match cfg!(target_feature = "avx2") {
            // SAFETY: the crate is compiled for AVX2, which is all that `one` needs.
            true => unsafe { avx2::one(line, probes, hash) },
            // SAFETY: `one` needs the CPU's features alone. `self.0` is a table of `KERNELS` whose
            // `is_supported` was true, or the scalar one: no other `Kernel` is made.
            false => unsafe { (self.0.one)(line, probes, hash) },
        };
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        probe::contains(line, hash, probes)
    }

    /// Sets the bits of every hash, all of which must belong to the tile. Unless `new` is empty,
    /// bit `i % 64` of `new[i / 64]` then says whether hash `i` set one that was not set; bits past
    /// the last hash are zero.
    ///
    /// # Panics
    ///
    /// If `probes` is not 1 to 30, a hash's block is not in the tile, or `new` is neither empty nor
    /// one word per 64 hashes: bugs of this crate, not inputs.
    pub(crate) fn insert_into(self, tile: Tile<'_>, probes: u32, hashes: &[u64], new: &mut [u64]) {
        assert!((1..=MAX_PROBES).contains(&probes));
        assert!(new.is_empty() || new.len() == hashes.len().div_ceil(64));
        // SAFETY: a `Kernel` is only made by `supported`, after detection, and the number of probes
        // is asserted above; each `insert` checks where it writes.
        unsafe { (self.0.insert)(tile, probes, hashes, new) }
    }
}

impl Default for Kernel {
    /// The fastest kernel this CPU can run, unless the environment variable [`KERNEL_VARIABLE`]
    /// names another that it can run (with the feature `std`). Decided once per process.
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
        self.instructions() == other.instructions()
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
#[path = "../tests/unit/kernel.rs"]
mod tests;

#[cfg(all(test, feature = "std"))]
#[path = "../tests/unit/loops.rs"]
mod loop_tests;
