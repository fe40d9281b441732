//! Per CPU family: the sizes above which filters are prefetched, and how they are prefetched.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::cpuid::cpuid;

/// Prefetch settings of a CPU. Sizes are multiples of the size that [fits the
/// cache](super::cache::fits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Size above which calls with [few hashes](super::Table::short_calls) prefetch.
    pub(super) short_calls: usize,
    /// Size above which calls with more than 64 hashes prefetch.
    pub(super) long_calls: usize,
    /// Size above which those calls prefetch in groups of 64 instead of between tests.
    pub(super) groups: usize,
    /// Number of hashes to prefetch before testing the first group. For keys it is always 128.
    pub(super) distance: usize,
    /// Cache level into which groups are prefetched: 1 or 2.
    pub(super) level: u8,
}

/// With AVX-512, calls of 16 to 64 hashes without prefetching take 0.54x to 1.0x the time of calls
/// with it at 1 M and 2 M keys, but up to 1.9x at 3 M while other programs fill the third level.
/// Prefetching in groups takes 1.08x to 1.26x the time of prefetching between tests at 1 M to 3 M
/// keys; 64 hashes ahead take 1.0x to 1.3x the time of 128. The first level has few buffers:
/// loading lines into it takes 10 ns a key at 100 M keys, into the second level 4 ns. The value for
/// aarch64 is not measured.
const ZEN_4: Tuning = Tuning {
    short_calls: 4,
    long_calls: 1,
    groups: 6,
    distance: 128,
    level: if cfg!(target_arch = "aarch64") { 1 } else { 2 },
};

/// With AVX2, calls of 128 to 4,096 hashes or keys that prefetch between tests take 0.6x to 0.85x
/// the time of groups at 3 M to 100 M keys. Groups in the first level are not faster, and short
/// calls take the same time with either level. On Cascade Lake, such calls of 256 and 1,024 hashes,
/// keys or integers take 0.56x to 0.91x the time of groups at 10 M to 100 M keys, and 0.93x to
/// 0.97x at 3 M.
const ZEN_3: Tuning = Tuning { groups: usize::MAX, ..ZEN_4 };

/// The third level is faster here. Calls without prefetching, relative to calls with it: 32 and 64
/// keys take 0.46x to 0.69x the time at 1 M keys and 0.72x to 0.78x at 3 M; 256 and 1,024 keys take
/// 0.85x to 0.91x at 1 M and 1.2x at 3 M. Prefetching into the first level takes 0.76x the time of
/// the second level at 10 MiB and 0.92x at 100 MiB.
const ZEN_5: Tuning = Tuning { short_calls: 5, long_calls: 2, level: 1, ..ZEN_4 };

type TuningRow = (&'static [u8; 12], u32, RangeInclusive<u32>, Tuning);

/// Settings by vendor, family and models; the last matching row is used. CPUs without a row use the
/// first, which costs them least: groups take up to 1.8 of the time on Zen 3 and Cascade Lake, but
/// 0.4 to 0.7 on Zen 4 and Zen 5. `docs/measuring.md` explains how to add a row.
pub(super) static TUNINGS: [TuningRow; 5] = [
    (b"AuthenticAMD", 0x19, 0..=0xff, ZEN_4),
    (b"AuthenticAMD", 0x19, 0..=0x0f, ZEN_3),
    (b"AuthenticAMD", 0x19, 0x20..=0x5f, ZEN_3),
    (b"AuthenticAMD", 0x1a, 0..=0xff, ZEN_5),
    (b"GenuineIntel", 6, 0x55..=0x55, ZEN_3),
];

/// Index of this CPU's row plus one; 0 until detected.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// Returns the settings of this CPU, detected once per process.
#[inline]
pub(super) fn tuning() -> &'static Tuning {
    if PLACE.load(Relaxed) == 0 {
        PLACE.store(find() + 1, Relaxed);
    }
    #[allow(unused_mut, reason = "tests choose another row")]
    let mut tuning = &TUNINGS[PLACE.load(Relaxed) - 1].3;
    watch!(tuned(&mut tuning));
    tuning
}

#[cold]
fn find() -> usize {
    let [_, b, c, d] = cpuid(0, 0).map(u32::to_le_bytes);
    let vendor = [b, d, c];
    place(vendor.as_flattened(), cpuid(1, 0)[0])
}

/// Returns the row of a CPU; `version` holds its family and model as `cpuid` returns them.
pub(super) fn place(vendor: &[u8], version: u32) -> usize {
    // The extended family is 0 unless the family is 15.
    let family = (version >> 8 & 15) + (version >> 20 & 255);
    let model = (version >> 4 & 15) + (version >> 12 & 0xf0);
    let fits = |row: &TuningRow| row.0 == vendor && row.1 == family && row.2.contains(&model);
    TUNINGS.iter().rposition(fits).unwrap_or(0)
}
