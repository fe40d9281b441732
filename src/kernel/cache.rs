//! The largest filter that fits the cache and is therefore faster without prefetching.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::tuning::tuning;

/// Name of the environment variable that sets
/// [`Kernel::prefetch_threshold`](super::Kernel::prefetch_threshold) for a process (feature `std`).
///
/// The value is the size in bytes up to which filters are not prefetched; some calls start
/// prefetching at a multiple of it. Values that are not numbers are ignored. Answers never depend
/// on the variable.
pub const PREFETCH_VARIABLE: &str = "BLOCKED_BLOOM_PREFETCH_THRESHOLD";

/// Assumed size of the second-level cache if it cannot be detected.
const DEFAULT_BYTES: usize = 512 << 10;

/// The result of [`fits`], 0 until the first call.
static FITS: AtomicUsize = AtomicUsize::new(0);

/// The result of [`fits`] times [`Tuning::short_calls`](super::tuning::Tuning::short_calls).
static FITS_FEW_HASHES: AtomicUsize = AtomicUsize::new(0);

/// Size in bytes up to which a call with at most 64 hashes, or with
/// [few](super::Table::short_calls), does not prefetch; 0 before the first call of [`fits`].
#[inline]
pub(super) fn known_to_fit(is_few: bool) -> usize {
    if is_few { &FITS_FEW_HASHES } else { &FITS }.load(Relaxed)
}

/// Size in bytes up to which a filter fits the cache, detected once per process.
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
    // Largest filter that was faster without prefetching: 1 MiB with a cache of 1 MiB (Zen 5),
    // 1.2 MiB with 2 MiB (Sapphire Rapids), 128 KiB with 512 KiB (Zen 3). Filters of 1.9 MiB with a
    // cache of 2 MiB and of 256 KiB with 512 KiB were slower without.
    if cache > 512 << 10 { cache - cache / 4 } else { cache / 2 }
}

/// Size of the second-level cache in bytes: from `cpuid` on x86, elsewhere from Linux's description
/// of the first core.
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
