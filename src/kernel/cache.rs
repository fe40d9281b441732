//! Up to which size a filter fits the cache, and is looked up and filled faster without
//! prefetching.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Environment variable that sets [`Kernel::prefetch_threshold`](super::Kernel::prefetch_threshold)
/// for a whole process (with the feature `std`): bytes up to which filters are not prefetched. A
/// value that is not a number is ignored; answers never depend on it.
pub const PREFETCH_VARIABLE: &str = "BLOCKED_BLOOM_PREFETCH_THRESHOLD";

/// Second-level cache where its size cannot be found out.
const DEFAULT_BYTES: usize = 512 << 10;

/// 0 as long as it is not known.
static FITS: AtomicUsize = AtomicUsize::new(0);

/// Whether a filter of this many bytes fits the cache; false before [`fits`] was called for the
/// first time. One load and one comparison.
#[inline]
pub(super) fn is_known_to_fit(bytes: usize) -> bool {
    bytes <= FITS.load(Relaxed)
}

/// Bytes up to which a filter fits the cache. Found out once per process.
#[inline]
pub(super) fn fits() -> usize {
    match FITS.load(Relaxed) {
        0 => {
            let fits = find().max(1);
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

/// Bytes of the second-level cache: on x86 from `cpuid`, elsewhere what Linux says of the first
/// core.
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

#[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_env = "sgx")))]
fn of_cpuid() -> Option<usize> {
    #[cfg(target_arch = "x86")]
    use core::arch::x86::{__cpuid_count, CpuidResult};
    #[cfg(target_arch = "x86_64")]
    use core::arch::x86_64::{__cpuid_count, CpuidResult};

    let cpuid = |leaf, index| {
        // SAFETY: every CPU that runs these targets has the instruction, and answers for leaves
        // that it does not know.
        #[allow(unused_unsafe, reason = "safe since Rust 1.94")]
        unsafe {
            __cpuid_count(leaf, index)
        }
    };
    // AMD describes its caches as Intel does, in a leaf of its own.
    let has_amd =
        cpuid(0x8000_0000, 0).eax >= 0x8000_001d && cpuid(0x8000_0001, 0).ecx >> 22 & 1 == 1;
    let leaf = match has_amd {
        true => 0x8000_001d,
        false if cpuid(0, 0).eax >= 4 => 4,
        false => return None,
    };
    let size = |CpuidResult { ebx, ecx, .. }| {
        let [ways, partitions, line] = [ebx >> 22, ebx >> 12 & 0x3ff, ebx & 0xfff];
        [ways, partitions, line, ecx].into_iter().try_fold(1, |size: usize, less_one| {
            size.checked_mul((less_one as usize).checked_add(1)?)
        })
    };
    let caches = (0..8).map(|index| cpuid(leaf, index)).take_while(|cache| cache.eax & 31 != 0);
    caches.filter(|cache| cache.eax >> 5 & 7 == 2).find_map(size)
}
