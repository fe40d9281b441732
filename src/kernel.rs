//! The kernels: a table of functions per instruction set, fastest first, and a handle to one.
//!
//! A kernel changes the speed, never an answer: every kernel sets and tests the bits that
//! [`crate::probe`] defines. To add an instruction set, write one file or folder with a `const
//! TABLE` that starts from `scalar::TABLE` and replaces the functions it accelerates, and add one
//! line to [`KERNELS`]. This module makes the checks that the `unsafe` functions rely on.

// Each call into a table has its SAFETY comment here; the kernels' own `unsafe` blocks have theirs.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions, called through a table")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocks;
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

use core::mem::MaybeUninit;

use self::blocks::{BlockTest, test_blocks};
use self::prefetch::prefetch_lines;
use self::table::Table;
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
use crate::probe;
use crate::probe::{Block, MAX_PROBES};

pub use cache::PREFETCH_VARIABLE;
pub(crate) use prefetch::{FAR, Prefetch, PrefetchPlan, prefetch_block};
pub use prefetch::{PrefetchAhead, prefetch};
pub(crate) use table::Tile;
#[cfg(all(test, feature = "std"))]
pub(crate) use tuning::Tuning;

/// Number of hashes that are prefetched and tested together: one per bit of a word of answers.
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

/// Name of the environment variable that selects the kernel of the whole process, for debugging:
/// `BLOCKED_BLOOM_KERNEL=scalar`.
///
/// Unknown names and kernels that this CPU cannot run are ignored. Answers never depend on the
/// kernel. In programs compiled for a CPU with AVX2 or AVX-512, lookups of one to three keys, and
/// of one key in many filters, may be inlined and not use the variable.
pub const KERNEL_VARIABLE: &str = "BLOCKED_BLOOM_KERNEL";

/// The instruction set that a [`Kernel`] uses. Later releases may add variants.
///
/// ```
/// use blocked_bloom::{InstructionSet, Kernel};
/// let has_avx2 = Kernel::supported().any(|kernel| kernel.instructions() == InstructionSet::Avx2);
/// # _ = has_avx2;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// AVX-512 (F, BW, DQ, VL, VBMI and VBMI2) with AVX2, BMI2 and GFNI: `avx512`.
    Avx512,
    /// AVX2: `avx2`.
    Avx2,
    /// NEON on little-endian aarch64: `neon`.
    Neon,
    /// Plain Rust that compilers vectorise: `portable`.
    Portable,
    /// Plain Rust: `scalar`.
    Scalar,
}

/// The functions for one instruction set. A `Kernel` exists only if this CPU supports its
/// [`instructions`](Self::instructions); `unsafe` code may rely on that.
///
/// Filters use the fastest kernel automatically. Choose one explicitly only in tests, in benchmarks
/// or to debug: all kernels return the same answers.
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
    /// Returns the kernels that this CPU can run, fastest first. The last is always `scalar`.
    pub fn supported() -> impl Iterator<Item = Kernel> {
        KERNELS.iter().filter(|table| (table.is_supported)()).map(Kernel)
    }

    /// Returns the instruction set, which this CPU is known to support.
    #[inline]
    pub fn instructions(self) -> InstructionSet {
        self.0.instructions
    }

    /// Returns the kernel's name for messages: `avx512`, `avx2`, `neon`, `portable` or `scalar`.
    pub fn name(self) -> &'static str {
        match self.instructions() {
            InstructionSet::Avx512 => "avx512",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Neon => "neon",
            InstructionSet::Portable => "portable",
            InstructionSet::Scalar => "scalar",
        }
    }

    /// Returns the largest size, in bytes, of a filter that is assumed to fit the cache and is
    /// therefore read and filled without prefetching.
    ///
    /// It is three quarters of the CPU's second-level cache (half if that cache has at most
    /// 512 KiB), or the value of the environment variable [`PREFETCH_VARIABLE`]. It is the same for
    /// all kernels. Packages with their own kernels use it too.
    #[inline]
    pub fn prefetch_threshold(self) -> usize {
        cache::fits()
    }

    /// Prefetches and tests every hash; bit `i % 64` of `hits[i / 64]` is the answer for hash `i`.
    ///
    /// # Panics
    ///
    /// Panics unless there are 1 to 2^32 - 1 blocks, 1 to 30 probes and one word of `hits` per 64
    /// hashes. No input can violate that, only a bug in this crate.
    #[inline]
    pub(crate) fn look_up(self, blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
        // Only this call is inlined into the caller. An additional inlined test of a single key
        // made calls of 2 to 16 keys take 1.2x the time.
        match hits {
            [word] if self.overlaps(size_of_val(blocks), hashes.len()) => {
                *word = self.test_group(blocks, probes, hashes);
            }
            _ => self.look_up_any(blocks, probes, hashes, hits),
        }
    }

    /// Whether this many hashes, at most 64, are tested fastest without prefetching.
    #[inline]
    fn overlaps(self, bytes: usize, hashes: usize) -> bool {
        hashes <= self.0.overlapped || bytes <= cache::known_to_fit(hashes <= self.0.short_calls)
    }

    /// How to prefetch up to 64 keys while they are hashed. Keys are prefetched in smaller calls
    /// than hashes, since hashing leaves time for it.
    #[inline]
    pub(crate) fn prefetch_of_keys(self, blocks: &[Block], keys: usize) -> Prefetch {
        if size_of_val(blocks) <= cache::known_to_fit(false) {
            return Prefetch::Off;
        }
        _ = cache::fits(); // Later calls read the cached value.
        let is_short = keys > 2 * self.0.overlapped && keys <= self.0.short_calls;
        Prefetch::for_cache(cache::known_to_fit(is_short), blocks)
    }

    /// How a call with more than 64 hashes prefetches.
    #[inline]
    pub(crate) fn prefetch_plan(self, blocks: &[Block]) -> PrefetchPlan {
        PrefetchPlan::new(tuning::tuning(), cache::fits(), blocks)
    }

    /// Not inlined: that saves calls with few keys 3 ns each (Zen 5).
    #[inline(never)]
    fn look_up_any(self, blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
        let [word] = hits else {
            return self.look_up_by(self.prefetch_plan(blocks), blocks, probes, hashes, hits);
        };
        _ = cache::fits();
        Prefetch::for_cache(cache::known_to_fit(hashes.len() <= self.0.short_calls), blocks)
            .prefetch_each::<FAR>(blocks, hashes);
        *word = self.test_group(blocks, probes, hashes);
    }

    /// [`look_up`](Self::look_up) for more than 64 hashes, with the given plan for prefetching.
    #[inline]
    pub(crate) fn look_up_by(
        self,
        plan: PrefetchPlan,
        blocks: &[Block],
        probes: u32,
        hashes: &[u64],
        hits: &mut [u64],
    ) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes));
        assert_eq!(hits.len(), hashes.len().div_ceil(64));
        let ahead = match plan {
            // SAFETY: a `Kernel` is only made after detection. The numbers of blocks, probes and
            // words are asserted above.
            PrefetchPlan::PerKey(prefetch) => unsafe {
                return (self.0.batch)(blocks, prefetch, probes, hashes, hits);
            },
            PrefetchPlan::Groups(_, tuning) => tuning.distance,
        };
        plan.prefetch(blocks, &hashes[..hashes.len().min(ahead)]);
        for (i, (word, group)) in hits.iter_mut().zip(hashes.chunks(GROUP)).enumerate() {
            let later = &hashes[hashes.len().min(i * GROUP + ahead)..];
            plan.prefetch(blocks, &later[..later.len().min(GROUP)]);
            // SAFETY: a `Kernel` is only made after detection. The numbers of blocks and probes are
            // asserted above, and `chunks` returns groups of 1 to 64 hashes.
            *word = unsafe { (self.0.group)(blocks, probes, group) };
        }
    }

    /// Tests 1 to 64 hashes whose blocks were prefetched or are in the cache, and returns one bit
    /// per hash.
    ///
    /// # Panics
    ///
    /// Under the same conditions as [`look_up`](Self::look_up), or if there are not 1 to 64 hashes.
    #[inline]
    pub(crate) fn test_group(self, blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert!((1..=MAX_PROBES).contains(&probes) && (1..=GROUP).contains(&hashes.len()));
        // SAFETY: a `Kernel` is only made after detection. The numbers of blocks, probes and hashes
        // are asserted above.
        unsafe { (self.0.group)(blocks, probes, hashes) }
    }

    /// Whether `line`, the hash's block, has all bits of the hash set.
    ///
    /// If the crate is compiled for a CPU with AVX2 or AVX-512, their test is inlined for every
    /// kernel, which takes half the time of a call. Otherwise, x86 calls the kernel's test through
    /// its pointer, even the scalar test: inlining that next to the call made the call 20 % slower,
    /// since registers were saved around it. Other machines inline the scalar test, since no kernel
    /// has a faster one.
    #[inline]
    pub(crate) fn contains_one(self, line: &Block, probes: u32, hash: u64) -> bool {
        #[cfg(target_arch = "x86_64")]
        if cfg!(all(
            target_feature = "avx512dq",
            target_feature = "avx512vl",
            target_feature = "avx512vbmi2",
            target_feature = "bmi2"
        )) {
            // SAFETY: the crate is compiled for these features; `contains_one` requires nothing
            // else.
            return unsafe { avx512::contains_one(line, probes, hash) };
        }
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        return match cfg!(target_feature = "avx2") {
            // SAFETY: the crate is compiled for AVX2; `contains_one` requires nothing else.
            true => unsafe { avx2::contains_one(line, probes, hash) },
            // SAFETY: `contains_one` requires only the CPU's features. `self.0` is a table of
            // `KERNELS` whose `is_supported` returned true, or the scalar one: no other `Kernel` is
            // made.
            false => unsafe { (self.0.contains_one)(line, probes, hash) },
        };
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        probe::contains(line, hash, probes)
    }

    /// Tests hashes in blocks of several filters, each with the filter's number of probes. Bit `i`
    /// of the result is 1 if block `i` has all bits of its hash, otherwise 0. Blocks after the
    /// first 64 are not tested.
    ///
    /// For lookups of one key in many filters; see
    /// [`Filter::block_and_probes`](crate::Filter::block_and_probes). Of more than 30 probes, the
    /// first 30 are tested.
    ///
    /// Cost: one cache line per block. All blocks are prefetched before the first test. With AVX2
    /// and AVX-512, the bits to test are computed once if all hashes have the same upper half and
    /// all filters the same number of probes.
    ///
    /// ```
    /// use blocked_bloom::{Filter, FilterOptions, Kernel};
    /// let options = FilterOptions::default();
    /// let mut filters = [options.empty_filter(100)?, options.empty_filter(100)?];
    /// filters[1].insert("fig")?;
    /// let hash = options.hasher()?.hash("fig");
    /// let tests = filters.iter().map(|filter| {
    ///     let (block, probes) = filter.block_and_probes(hash).expect("a Bloom filter of keys");
    ///     (block, hash, probes)
    /// });
    /// assert_eq!(Kernel::default().test_blocks(tests), 0b10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // The blocks are collected first. Finding and testing them in one loop would require that the
    // caller's closures are inlined into a function that is compiled for AVX2.
    #[inline]
    pub fn test_blocks<'a>(self, tests: impl Iterator<Item = (&'a Block, u64, u32)>) -> u64 {
        let mut memory = [const { MaybeUninit::<BlockTest<'_>>::uninit() }; GROUP];
        let (mut count, mut any, mut every) = (0, 0, !0);
        for (place, (block, hash, probes)) in memory.iter_mut().zip(tests) {
            prefetch_lines::<2, 1>(block);
            let test = hash >> 32 << 32 | u64::from(probes);
            (any, every) = (any | test, every & test);
            place.write((block, test));
            count += 1;
        }
        // SAFETY: the loop has written the first `count` places.
        let tests = unsafe { core::slice::from_raw_parts(memory.as_ptr().cast(), count) };
        // If the OR and the AND of all tests are equal, so are the tests.
        test_blocks(self, tests, (any == every).then_some(any))
    }

    /// Sets the bits of every hash; the blocks of all hashes must lie in the tile. Unless `new` is
    /// empty, bit `i % 64` of `new[i / 64]` reports whether hash `i` set a bit that was clear. Bits
    /// past the last hash are zero.
    ///
    /// # Panics
    ///
    /// Panics unless `probes` is 1 to 30, every hash's block lies in the tile, and `new` is empty
    /// or has one word per 64 hashes. No input can violate that, only a bug in this crate.
    pub(crate) fn insert_into(self, tile: Tile<'_>, probes: u32, hashes: &[u64], new: &mut [u64]) {
        assert!((1..=MAX_PROBES).contains(&probes));
        assert!(new.is_empty() || new.len() == hashes.len().div_ceil(64));
        // SAFETY: a `Kernel` is only made after detection. The number of probes is asserted above,
        // and each `insert` checks that it writes inside the tile.
        unsafe { (self.0.insert)(tile, probes, hashes, new) }
    }
}

impl Default for Kernel {
    /// Returns the fastest kernel that this CPU can run. With the feature `std`, the environment
    /// variable [`KERNEL_VARIABLE`] can select another. The choice is made once per process.
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

/// Prints the name.
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
