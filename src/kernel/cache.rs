//! Up to which size a filter fits the cache, and is faster without prefetching.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::tuning::tuning;

/// Environment variable that sets [`Kernel::prefetch_threshold`](super::Kernel::prefetch_threshold)
/// for a process (with the feature `std`): bytes up to which no filter is prefetched, and of whose
/// multiples some calls begin. What is no number is ignored; answers never depend on it.
pub const PREFETCH_VARIABLE: &str = "BLOCKED_BLOOM_PREFETCH_THRESHOLD";

/// Second-level cache where its size cannot be found out.
const DEFAULT_BYTES: usize = 512 << 10;

/// 0 as long as it is not known.
static FITS: AtomicUsize = AtomicUsize::new(0);

/// What fits, times [`Tuning::few`](super::tuning::Tuning::few).
static FEW_FIT: AtomicUsize = AtomicUsize::new(0);

/// Bytes up to which a filter is not prefetched by a call of up to 64 hashes, which may be
/// [few](super::Table::few) for the kernel; 0 before [`fits`] was called for the first time.
#[inline]
pub(super) fn known_to_fit(is_few: bool) -> usize {
    if is_few { &FEW_FIT } else { &FITS }.load(Relaxed)
}

/// Bytes up to which a filter fits the cache. Found out once per process.
#[inline]
pub(super) fn fits() -> usize {
    match FITS.load(Relaxed) {
        0 => {
            let fits = find().max(1);
            FEW_FIT.store(fits.saturating_mul(tuning().few), Relaxed);
            FITS.store(fits, Relaxed);
            fits
        }
        fits => fits,
    }
}

#[cold]
fn find() -> usize {
    #[cfg(feature = "std")]
    if let Some(bytes) = std::env::var(PREFETCH_VARIABLE).ok().and_then(|bytes| bytes.parse().ok())
    {
        return bytes;
    }
    let cache = second_level().filter(|bytes| *bytes > 0).unwrap_or(DEFAULT_BYTES);
    // Without prefetching, filters of up to 1 MiB were faster with a cache of 1 MiB (Zen 5), of 1.2
    // MiB with one of 2 MiB (Sapphire Rapids), and of 128 KiB with one of 512 KiB (Zen 3); those of
    // 1.9 MiB with 2 MiB and of 256 KiB with 512 KiB were slower.
    if cache > 512 << 10 { cache - cache / 4 } else { cache / 2 }
}

/// Bytes of the second-level cache: by `cpuid` on x86, else what Linux says of the first core.
fn second_level() -> Option<usize> {
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_env = "sgx")))]
    return of_cpuid();
    #[cfg(all(
        feature = "std",
        target_os = "linux",
        not(any(target_arch = "x86", target_arch = "x86_64"))
    ))]
    if let Ok(size) = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size") {
        return size.trim().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1 << 10);
    }
    #[allow(unreachable_code, reason = "not on x86")]
    None
}

/// Registers `eax` to `edx` of the CPU's answer; zeros where it is not asked.
pub(super) fn cpuid(leaf: u32, index: u32) -> [u32; 4] {
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_env = "sgx")))]
    {
        #[cfg(target_arch = "x86")]
        use core::arch::x86::__cpuid_count;
        #[cfg(target_arch = "x86_64")]
        use core::arch::x86_64::__cpuid_count;
        // SAFETY: every CPU of these targets has the instruction, and answers for unknown leaves.
        #[allow(unused_unsafe, reason = "safe since Rust 1.94")]
        let found = unsafe { __cpuid_count(leaf, index) };
        return [found.eax, found.ebx, found.ecx, found.edx];
    }
    #[allow(unreachable_code, reason = "not on x86")]
    [(leaf, index); 4].map(|_| 0)
}

#[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_env = "sgx")))]
fn of_cpuid() -> Option<usize> {
    // AMD describes its caches as Intel does, in a leaf of its own.
    let has_amd =
        cpuid(0x8000_0000, 0)[0] >= 0x8000_001d && cpuid(0x8000_0001, 0)[2] >> 22 & 1 == 1;
    let leaf = match has_amd {
        true => 0x8000_001d,
        false if cpuid(0, 0)[0] >= 4 => 4,
        false => return None,
    };
    let size = |[_, ebx, ecx, _]: [u32; 4]| {
        let [ways, partitions, line] = [ebx >> 22, ebx >> 12 & 0x3ff, ebx & 0xfff];
        [ways, partitions, line, ecx].into_iter().try_fold(1, |size: usize, less_one| {
            size.checked_mul((less_one as usize).checked_add(1)?)
        })
    };
    let caches = (0..8).map(|index| cpuid(leaf, index)).take_while(|cache| cache[0] & 31 != 0);
    caches.filter(|cache| cache[0] >> 5 & 7 == 2).find_map(size)
}
