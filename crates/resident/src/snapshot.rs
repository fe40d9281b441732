//! What a resident set holds and what that saves.

use core::fmt::{self, Display, Formatter};

use crate::planner::ResidentPlanner;
use crate::table::ResidentSize;

/// A [`ResidentSet`](crate::ResidentSet) at one moment. Counters count from the start of the set.
///
/// `Display` prints one line per figure, as [`MetricsSnapshot`](blocked_bloom_lsm::MetricsSnapshot)
/// and RocksDB's statistics do.
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
    /// Slots: tables and partitions.
    pub tables: u64,
    /// Those whose filter is in memory.
    pub resident: u64,
    /// Of these, folded to half.
    pub folded: u64,
    /// Most bytes of filters in memory.
    pub budget: u64,
    /// Bytes of filters in memory, never more than the budget.
    pub resident_bytes: u64,
    /// Bytes of filters that were evicted or folded and that readers still have pinned, beside the
    /// resident ones.
    pub pinned_bytes: u64,
    /// Bytes of all filters, whether in memory or not.
    pub stored_bytes: u64,
    /// Bytes that the last tick wanted to load, including loads under way.
    pub wanted_bytes: u64,
    /// Filters that were loaded.
    pub loads: u64,
    /// Loads that failed, or whose bytes were damaged.
    pub failed_loads: u64,
    /// Filters that were kept when they were offered.
    pub offered: u64,
    /// Filters that were dropped from memory, but for those of removed tables.
    pub evictions: u64,
    /// Filters that were folded in memory.
    pub folds: u64,
    /// Reads a second that the resident filters save, each weighted by its table's read cost,
    /// estimated by the last tick.
    pub saved_reads: f64,
    /// Reads a second that all filters would save if all were in memory.
    pub savable_reads: f64,
    /// Reads a second that a further MiB of budget would save: the figure to size the budget by. 0
    /// if all filters fit that pay back.
    pub saved_reads_per_mib: f64,
}

/// What the set has counted itself.
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
