//! The options of a resident set.

use core::time::Duration;

use blocked_bloom::{FilterOptions, KeyHash};

/// The budget of a resident set, and how it weighs loads against reads.
///
/// ```
/// use std::time::Duration;
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_resident::ResidentOptions;
/// let filters = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable();
/// // 700 MB; a load is one request, and reads a megabyte in the time of four table reads.
/// let options = ResidentOptions::new(700 << 20)
///     .with_filters(&filters)
///     .with_load_cost(1.0, 250e3)
///     .with_half_life(Duration::from_secs(120));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ResidentOptions {
    pub(crate) budget: u64,
    pub(crate) key_hash: KeyHash,
    /// In seconds.
    pub(crate) half_life: f64,
    /// In seconds.
    pub(crate) payback: f64,
    pub(crate) request_cost: f64,
    pub(crate) bytes_per_read: f64,
    pub(crate) expected_lookups: f64,
    pub(crate) folding: bool,
    /// Lookups that each counted lookup stands for.
    pub(crate) sampling: f32,
}

/// Lower limit of times, which are divisors.
const MIN_SECONDS: f64 = 1e-3;

/// Upper limits of times (30 years) and lookups per second, so that no product overflows.
pub(crate) const MAX_SECONDS: f64 = 1e9;
pub(crate) const MAX_LOOKUPS: f64 = 1e15;

/// Clamps a number to 0 to `most`. NaN becomes 0.
pub(crate) fn clamp_to(value: f64, most: f64) -> f64 {
    if value > 0.0 { value.min(most) } else { 0.0 }
}

impl ResidentOptions {
    /// Creates options with a budget: the maximum number of bytes of filters in memory. The methods
    /// below describe the other defaults.
    pub fn new(budget: u64) -> Self {
        ResidentOptions {
            budget,
            key_hash: KeyHash::default(),
            half_life: 60.0,
            payback: 40.0,
            request_cost: 1.0,
            bytes_per_read: 200e3,
            expected_lookups: 1_000.0,
            folding: true,
            sampling: 1.0,
        }
    }

    /// Takes the hash that loaded filters must have from these options. Default: XXH3-64 with seed
    /// 0.
    #[must_use]
    pub fn with_filters(self, filters: &FilterOptions) -> Self {
        self.with_key_hash(filters.key_hash())
    }

    /// Sets the hash that loaded filters must have: for RocksDB's hash, or one read from a stored
    /// filter. [`ResidentTable::with_key_hash`](crate::ResidentTable::with_key_hash) sets it for
    /// one table.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        ResidentOptions { key_hash, ..self }
    }

    /// Sets the time after which a counted lookup has half of its weight. Default: one minute.
    ///
    /// A shorter half-life follows shifts faster. A longer one tells filters with few lookups
    /// apart: within it, the median filter at the edge of the budget should get about a hundred
    /// absent lookups.
    #[must_use]
    pub fn with_half_life(self, half_life: Duration) -> Self {
        let half_life = half_life.as_secs_f64().clamp(MIN_SECONDS, MAX_SECONDS);
        ResidentOptions { half_life, ..self }
    }

    /// Sets the time within which a load must save as many reads as it costs. Default: 40 seconds,
    /// two thirds of the half-life.
    ///
    /// A longer time loads filters that the next shift makes useless. A shorter time leaves out
    /// filters that would have paid back.
    #[must_use]
    pub fn with_payback(self, payback: Duration) -> Self {
        ResidentOptions { payback: payback.as_secs_f64().max(MIN_SECONDS), ..self }
    }

    /// Sets the cost of a load in reads of a table: `request`, plus one read for every
    /// `bytes_per_read`. Default: 1 and 200,000. Requests below 0 count as 0, bytes below 1 as 1.
    #[must_use]
    pub fn with_load_cost(self, request: f64, bytes_per_read: f64) -> Self {
        let (request_cost, bytes_per_read) = (request.max(0.0), bytes_per_read.max(1.0));
        ResidentOptions { request_cost, bytes_per_read, ..self }
    }

    /// Sets the lookups per second to expect before any are counted. Default: 1,000. It only
    /// influences which loads pay back in the first seconds.
    #[must_use]
    pub fn with_expected_lookups(self, per_second: f64) -> Self {
        ResidentOptions { expected_lookups: clamp_to(per_second, MAX_LOOKUPS), ..self }
    }

    /// Sets whether filters may be folded to half of their size. Default: true.
    ///
    /// Only filters with an even number of blocks can be folded. Options with
    /// [`foldable`](FilterOptions::foldable) produce an even number from 128 blocks upwards.
    #[must_use]
    pub fn with_folding(self, folding: bool) -> Self {
        ResidentOptions { folding, ..self }
    }

    /// Sets how many lookups each counted lookup stands for. Default: 1.
    ///
    /// Set it if the engine samples the lookups that it reports to a
    /// [`ResidentPlanner`](crate::ResidentPlanner), so that the planner can tell chance from
    /// change. A `ResidentSet` sets it itself.
    #[must_use]
    pub fn with_sampling(self, one_in: u32) -> Self {
        ResidentOptions { sampling: one_in.max(1) as f32, ..self }
    }

    /// Returns the seconds over which recent lookups are averaged.
    pub(crate) fn window(&self) -> f32 {
        (self.half_life / core::f64::consts::LN_2) as f32
    }
}
