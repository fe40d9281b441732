//! From which size on filters are prefetched, and how: for each family of CPUs, as they differ.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::cpuid::cpuid;

/// What is chosen for a CPU. Sizes are multiples of what [fits the cache](super::cache::fits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Calls of [few hashes](super::Table::short_calls) prefetch if the filter is larger.
    pub(super) short_calls: usize,
    /// Calls of more than 64 hashes prefetch if the filter is larger.
    pub(super) long_calls: usize,
    /// Those prefetch groups of 64 if the filter is larger; else between tests.
    pub(super) groups: usize,
    /// Hashes that are prefetched before the first group is tested; of keys always 128.
    pub(super) distance: usize,
    /// The cache that groups are prefetched into: the first level or the second.
    pub(super) level: u8,
}

/// By AVX-512, 16 to 64 hashes a call take 0.54 to 1.0 of the time without prefetching at 1 M and
/// 2 M keys, but up to 1.9 at 3 M while others fill the third level. Groups take 1.08 to 1.26 of
/// the time of prefetching between tests at 1 M to 3 M; 64 hashes ahead 1.0 to 1.3 of that of 128.
/// The first level has few buffers: loading lines through it takes 10 ns a key of 100 M, and 4
/// through the second. On aarch64 nobody has measured.
const ZEN_4: Tuning = Tuning {
    short_calls: 4,
    long_calls: 1,
    groups: 6,
    distance: 128,
    level: if cfg!(target_arch = "aarch64") { 1 } else { 2 },
};

/// By AVX2, calls of 128 to 4,096 hashes and keys prefetched between tests take 0.6 to 0.85 of the
/// time of groups at 3 M to 100 M keys. Groups into the first level are no faster, and short calls
/// take the same time with either level.
const ZEN_3: Tuning = Tuning { groups: usize::MAX, ..ZEN_4 };

/// The third level is nearer: without prefetching 32 and 64 keys a call take 0.46 to 0.69 of the
/// time at 1 M keys and 0.72 to 0.78 at 3 M; 256 and 1,024 take 0.85 to 0.91 at 1 M, 1.2 at 3 M.
/// Loading lines through the first level takes 0.76 of the second at 10 MiB, 0.92 at 100 MiB.
const ZEN_5: Tuning = Tuning { short_calls: 5, long_calls: 2, level: 1, ..ZEN_4 };

type TuningRow = (&'static [u8; 12], u32, RangeInclusive<u32>, Tuning);

/// By vendor, family and models: the last row that fits counts. The first is also for all others,
/// for whom it loses least: groups take up to 1.6 of the time on Zen 3, but 0.4 to 0.7 on Zen 4 and
/// Zen 5. `docs/measuring.md` says how to add a row.
pub(super) static TUNINGS: [TuningRow; 4] = [
    (b"AuthenticAMD", 0x19, 0..=0xff, ZEN_4),
    (b"AuthenticAMD", 0x19, 0..=0x0f, ZEN_3),
    (b"AuthenticAMD", 0x19, 0x20..=0x5f, ZEN_3),
    (b"AuthenticAMD", 0x1a, 0..=0xff, ZEN_5),
];

/// One more than the place of this CPU in the table; 0 as long as it is not known.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// What is chosen for this CPU. Found out once per process.
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

/// The row for a CPU of this vendor, whose family and model are in `version` as `cpuid` has them.
pub(super) fn place(vendor: &[u8], version: u32) -> usize {
    // The extended family is 0 unless the family is 15.
    let family = (version >> 8 & 15) + (version >> 20 & 255);
    let model = (version >> 4 & 15) + (version >> 12 & 0xf0);
    let fits = |row: &TuningRow| row.0 == vendor && row.1 == family && row.2.contains(&model);
    TUNINGS.iter().rposition(fits).unwrap_or(0)
}
