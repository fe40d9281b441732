//! From which size on filters are prefetched, and how: for each family of CPUs, as they differ.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::cpuid::cpuid;

/// What is chosen for a CPU. Sizes are multiples of what [fits the cache](super::cache::fits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Calls of [few hashes](super::Table::few) prefetch if the filter is larger.
    pub(super) few: usize,
    /// Calls of more than 64 hashes prefetch if the filter is larger.
    pub(super) many: usize,
    /// Those prefetch groups of 64 if the filter is larger; else between tests.
    pub(super) groups: usize,
    /// Hashes that are prefetched before the first group is tested; of keys always 128.
    pub(super) ahead: usize,
    /// The cache that groups are prefetched into: the first level or the second.
    pub(super) level: u8,
}

/// By AVX-512, 16 to 64 hashes a call take 0.54 to 1.0 of the time without prefetching at 1 M and
/// 2 M keys, but up to 1.9 at 3 M while others fill the third level. Groups take 1.08 to 1.4 of the
/// time of prefetching between tests at 1 M to 3 M; 64 hashes ahead 1.0 to 1.3 of that of 128. The
/// first level has few buffers: loading lines through it takes 10 ns a key of 100 M, and 4 through
/// the second. On aarch64 nobody has measured.
const ZEN_4: Tuning = Tuning {
    few: 4,
    many: 1,
    groups: 6,
    ahead: 128,
    level: if cfg!(target_arch = "aarch64") { 1 } else { 2 },
};

/// The third level is nearer: without prefetching 32 and 64 keys a call take 0.46 to 0.69 of the
/// time at 1 M keys and 0.72 to 0.78 at 3 M; 256 and 1,024 take 0.85 to 0.91 at 1 M, 1.2 at 3 M.
const ZEN_5: Tuning = Tuning { few: 5, many: 2, ..ZEN_4 };

/// By vendor and family; the first row is for all others. `docs/measuring.md` says how to add one.
pub(super) static TUNINGS: [(&[u8; 12], u32, Tuning); 2] =
    [(b"AuthenticAMD", 0x19, ZEN_4), (b"AuthenticAMD", 0x1a, ZEN_5)];

/// One more than the place of this CPU in the table; 0 as long as it is not known.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// What is chosen for this CPU. Found out once per process.
#[inline]
pub(super) fn tuning() -> &'static Tuning {
    if PLACE.load(Relaxed) == 0 {
        PLACE.store(find() + 1, Relaxed);
    }
    &TUNINGS[PLACE.load(Relaxed) - 1].2
}

#[cold]
fn find() -> usize {
    let [_, b, c, d] = cpuid(0, 0).map(u32::to_le_bytes);
    let vendor = [b, d, c];
    let version = cpuid(1, 0)[0];
    // The extended family is 0 unless the family is 15.
    let family = (version >> 8 & 15) + (version >> 20 & 255);
    let mut rows = TUNINGS.iter();
    rows.position(|row| (&row.0[..], row.1) == (vendor.as_flattened(), family)).unwrap_or(0)
}
