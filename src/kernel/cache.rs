//! Up to which size a filter fits the cache, and is faster without prefetching.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::tuning::tuning;

/// Environment variable that sets [`Kernel::prefetch_threshold`](super::Kernel::prefetch_threshold)
/// for a process (with the feature `std`): bytes up to which no filter is prefetched, and of whose
/// multiples some calls begin. What is no number is ignored; answers never depend on it.
pub const PREFETCH_VARIABLE: &str = "BLOCKED_BLOOM_PREFETCH_THRESHOLD";

/// Second-level cache where its size cannot be found out.
const DEFAULT_BYTES: usize = 512 << 10;

/// 0 until it is known.
static FITS: AtomicUsize = AtomicUsize::new(0);

/// What fits, times [`Tuning::short_calls`](super::tuning::Tuning::short_calls).
static FITS_FEW_HASHES: AtomicUsize = AtomicUsize::new(0);

/// Bytes up to which calls of up to 64 hashes, or [few](super::Table::short_calls), do not
/// prefetch; 0
/// before [`fits`] was called.
#[inline]
pub(super) fn known_to_fit(is_few: bool) -> usize {
    if is_few { &FITS_FEW_HASHES } else { &FITS }.load(Relaxed)
}

/// Bytes up to which a filter fits the cache. Found out once per process.
#[inline]
pub(super) fn fits() -> usize {
    match FITS.load(Relaxed) {
        0 => {
            let fits = find().max(1);
            FITS_FEW_HASHES.store(fits.saturating_mul(tuning().short_calls), Relaxed);
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
    return super::cpuid::second_level();
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
