//! What an engine tells the planner about a table: the size and rate of its filter, and the inputs
//! of a compaction.

use blocked_bloom::{KeyHash, Params};

use crate::options::{MAX_LOOKUPS, clamp_to};

/// How much of a filter is in memory.
///
/// ```
/// use blocked_bloom_resident::ResidentSize;
/// assert!(ResidentSize::None < ResidentSize::Half && ResidentSize::Half < ResidentSize::Whole);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResidentSize {
    /// Nothing.
    #[default]
    None,
    /// The filter folded to half of its blocks. About a tenth of the absent keys pass instead of a
    /// hundredth.
    Half,
    /// The whole filter.
    Whole,
}

/// Upper limit of the read cost.
const MAX_READ_COST: f64 = 1e9;

/// A table, or one partition of a table, as the planner knows it before its filter is loaded.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_resident::ResidentTable;
/// let params = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable().params(1_000_000)?;
/// // One of 40 tables of its run; a read costs as much as for other tables.
/// let table = ResidentTable::new(17, params.stored_bytes())
///     .with_params(&params)
///     .with_run_share(1.0 / 40.0);
/// assert_eq!(table.table(), 17);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidentTable {
    pub(crate) table: u64,
    pub(crate) bytes: u64,
    pub(crate) half_bytes: u64,
    pub(crate) read_cost: f32,
    pub(crate) rate: f32,
    pub(crate) half_rate: f32,
    pub(crate) run_share: f32,
    pub(crate) absent_per_second: Option<f32>,
    pub(crate) key_hash: Option<KeyHash>,
}

impl ResidentTable {
    /// Describes a table by the engine's number for it and the bytes of its filter.
    ///
    /// Until the filter is loaded, or [`with_params`](Self::with_params) is called, the planner
    /// assumes a rate of 1 % and does not fold the filter.
    pub fn new(table: u64, bytes: u64) -> Self {
        ResidentTable {
            table,
            bytes: bytes.max(1),
            half_bytes: 0,
            read_cost: 1.0,
            rate: 0.01,
            half_rate: 1.0,
            run_share: 0.0,
            absent_per_second: None,
            key_hash: None,
        }
    }

    /// Sets the filter's predicted rate and, if its number of blocks is even, the rate after
    /// folding to half. A half that is not smaller than the filter's bytes is ignored.
    #[must_use]
    pub fn with_params(self, params: &Params) -> Self {
        let blocks = params.blocks();
        let can_fold = blocks.is_multiple_of(2) && !params.is_pass_all();
        // Half of the blocks have the same load as all blocks with twice the keys.
        let folded = params.false_positive_rate_at(params.expected_items().saturating_mul(2));
        let half_bytes = if can_fold { u64::from(blocks / 2) * 64 } else { 0 };
        let half_bytes = if half_bytes < self.bytes { half_bytes } else { 0 };
        let rate = params.false_positive_rate() as f32;
        ResidentTable { rate, half_rate: folded as f32, half_bytes, ..self }
    }

    /// Sets the cost of a read of this table. Default: 1. Use less if most of its blocks are
    /// cached, and more for slow storage. Negative numbers and NaN count as 0.
    #[must_use]
    pub fn with_read_cost(self, reads: f64) -> Self {
        ResidentTable { read_cost: clamp_to(reads, MAX_READ_COST) as f32, ..self }
    }

    /// Sets this table's share of the keys of its run, 0 to 1. Until its lookups are counted, the
    /// planner expects the lookups of a run to be spread evenly over its keys.
    ///
    /// A run is a sorted sequence of tables: a level, a tier, or one table of level 0. NaN counts
    /// as 0.
    #[must_use]
    pub fn with_run_share(self, share: f64) -> Self {
        ResidentTable { run_share: clamp_to(share, 1.0) as f32, ..self }
    }

    /// Sets the absent lookups per second that [`statistics`](crate::ResidentPlanner::statistics)
    /// returned before a restart. NaN counts as 0.
    #[must_use]
    pub fn with_absent_per_second(self, lookups: f32) -> Self {
        let lookups = clamp_to(f64::from(lookups), MAX_LOOKUPS) as f32;
        ResidentTable { absent_per_second: Some(lookups), ..self }
    }

    /// Sets the hash of this table's filter, if it differs from that of the
    /// [options](crate::ResidentOptions::with_filters): for engines with a seed per table.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        ResidentTable { key_hash: Some(key_hash), ..self }
    }

    /// Replaces bytes and rates with those of the opened filter, whole and folded to half.
    #[cfg(feature = "std")]
    pub(crate) fn with_shape(self, bytes: u64, rate: f64, half: Option<(u64, f64)>) -> Self {
        let (half_bytes, half_rate) = half.unwrap_or((0, 1.0));
        let (rate, half_rate) = (rate as f32, half_rate as f32);
        ResidentTable { bytes: bytes.max(1), rate, half_bytes, half_rate, ..self }
    }

    /// Returns the engine's number for the table.
    pub fn table(&self) -> u64 {
        self.table
    }

    /// Returns the bytes of the whole filter.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// An input of a compaction, and the share of it that went into one new table.
///
/// ```
/// use blocked_bloom_resident::MergeInput;
/// // A quarter of the entries of this input, of run 3, are in the new table.
/// let input = MergeInput { table: 0_usize, run: 3, share: 0.25 };
/// # let _ = input;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergeInput<T> {
    /// The input: its index in a [`ResidentPlanner`](crate::ResidentPlanner), or its slot in a
    /// `ResidentSet`.
    pub table: T,
    /// The sorted run of the input. A lookup visits one table of each run.
    pub run: u64,
    /// Share of the input's keys, 0 to 1, in the key range of the new table.
    pub share: f64,
}
