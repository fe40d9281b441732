//! The figures of a resident set.

use core::fmt::{self, Display, Formatter};

use crate::planner::ResidentPlanner;
use crate::table::ResidentSize;

/// The figures of a [`ResidentSet`](crate::ResidentSet) at one moment. Counters start at 0 when the
/// set is created.
///
/// `Display` prints one line per figure, like
/// [`MetricsSnapshot`](blocked_bloom_lsm::MetricsSnapshot) and RocksDB's statistics.
///
/// ```
/// use blocked_bloom_lsm::FilterIdentity;
/// use blocked_bloom_resident::{ResidentOptions, ResidentSet, ResidentTable};
/// let set = ResidentSet::new(ResidentOptions::new(1 << 20));
/// let slot = set.add(ResidentTable::new(1, 1_000), FilterIdentity::HeaderChecksum(0x1234));
/// let snapshot = set.snapshot();
/// assert_eq!((snapshot.tables, snapshot.resident, snapshot.budget), (1, 0, 1 << 20));
/// assert!(snapshot.to_string().contains("bloom.filter.resident.bytes : 0\n"));
/// # drop(slot);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ResidentSnapshot {
    /// Number of slots: tables and partitions.
    pub tables: u64,
    /// Slots with a filter in memory.
    pub resident: u64,
    /// Slots with a filter folded to half.
    pub folded: u64,
    /// Maximum bytes of filters in memory.
    pub budget: u64,
    /// Bytes of filters in memory, never more than the budget.
    pub resident_bytes: u64,
    /// Bytes of evicted or folded filters that readers still use, in addition to the resident
    /// bytes.
    pub pinned_bytes: u64,
    /// Bytes of all filters, in memory or not.
    pub stored_bytes: u64,
    /// Bytes that the last tick wanted to load, including loads in progress.
    pub wanted_bytes: u64,
    /// Filters loaded.
    pub loads: u64,
    /// Loads that failed, or whose bytes were damaged.
    pub failed_loads: u64,
    /// Offered filters that were kept.
    pub offered: u64,
    /// Filters evicted, without those of removed tables.
    pub evictions: u64,
    /// Filters folded in memory.
    pub folds: u64,
    /// Reads per second that the resident filters save, estimated by the last tick. Each read is
    /// weighted by the read cost of its table.
    pub saved_reads: f64,
    /// Reads per second that all filters would save if all were in memory.
    pub savable_reads: f64,
    /// Reads per second that one more MiB of budget would save; 0 if all worthwhile filters fit.
    /// Size the budget by this figure.
    pub saved_reads_per_mib: f64,
}

/// Counters of the set itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) wanted_bytes: u64,
    pub(crate) loads: u64,
    pub(crate) failed_loads: u64,
    pub(crate) offered: u64,
    pub(crate) evictions: u64,
    pub(crate) folds: u64,
}

impl ResidentSnapshot {
    pub(crate) fn new(planner: &ResidentPlanner, counters: Counters, pinned_bytes: u64) -> Self {
        let mut snapshot = ResidentSnapshot {
            budget: planner.budget(),
            resident_bytes: planner.resident_bytes(),
            pinned_bytes,
            wanted_bytes: counters.wanted_bytes,
            loads: counters.loads,
            failed_loads: counters.failed_loads,
            offered: counters.offered,
            evictions: counters.evictions,
            folds: counters.folds,
            saved_reads: planner.saved_reads(),
            savable_reads: planner.savable_reads(),
            saved_reads_per_mib: planner.saved_reads_per_mib(),
            ..ResidentSnapshot::default()
        };
        for (bytes, size) in planner.sizes() {
            snapshot.tables += 1;
            snapshot.stored_bytes = snapshot.stored_bytes.saturating_add(bytes);
            snapshot.resident += u64::from(size > ResidentSize::None);
            snapshot.folded += u64::from(size == ResidentSize::Half);
        }
        snapshot
    }
}

impl Display for ResidentSnapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "bloom.filter.tables : {}", self.tables)?;
        writeln!(f, "bloom.filter.resident : {}", self.resident)?;
        writeln!(f, "bloom.filter.resident.folded : {}", self.folded)?;
        writeln!(f, "bloom.filter.resident.budget.bytes : {}", self.budget)?;
        writeln!(f, "bloom.filter.resident.bytes : {}", self.resident_bytes)?;
        writeln!(f, "bloom.filter.resident.pinned.bytes : {}", self.pinned_bytes)?;
        writeln!(f, "bloom.filter.stored.bytes : {}", self.stored_bytes)?;
        writeln!(f, "bloom.filter.wanted.bytes : {}", self.wanted_bytes)?;
        writeln!(f, "bloom.filter.load COUNT : {}", self.loads)?;
        writeln!(f, "bloom.filter.load.failed COUNT : {}", self.failed_loads)?;
        writeln!(f, "bloom.filter.load.offered COUNT : {}", self.offered)?;
        writeln!(f, "bloom.filter.evict COUNT : {}", self.evictions)?;
        writeln!(f, "bloom.filter.fold COUNT : {}", self.folds)?;
        writeln!(f, "bloom.filter.saved.reads.per.second : {:.1}", self.saved_reads)?;
        writeln!(f, "bloom.filter.savable.reads.per.second : {:.1}", self.savable_reads)?;
        writeln!(f, "bloom.filter.saved.reads.per.second.per.MiB : {:.3}", self.saved_reads_per_mib)
    }
}
