//! The options of a resident set: a plain value.

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
    /// Seconds.
    pub(crate) half_life: f64,
    /// Seconds.
    pub(crate) payback: f64,
    pub(crate) request_cost: f64,
    pub(crate) bytes_per_read: f64,
    pub(crate) expected_lookups: f64,
    pub(crate) folding: bool,
    /// Lookups that a counted one stands for.
    pub(crate) sampling: f32,
}

/// The least time that is divided by.
const MIN_SECONDS: f64 = 1e-3;

/// The most of times and numbers, 30 years and a million times what any engine has, so that no
/// product of them is beyond what a number can be.
pub(crate) const MAX_SECONDS: f64 = 1e9;
pub(crate) const MAX_LOOKUPS: f64 = 1e15;

/// The nearest number from 0 to `most`; 0 for what is no number.
pub(crate) fn clamp_to(value: f64, most: f64) -> f64 {
    if value > 0.0 { value.min(most) } else { 0.0 }
}

impl ResidentOptions {
    /// At most this many bytes of filters in memory. The methods below name the other defaults.
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

    /// Takes the hash of these options, which filters that are loaded must have. XXH3-64 with seed
    /// 0 by default.
    #[must_use]
    pub fn with_filters(self, filters: &FilterOptions) -> Self {
        self.with_key_hash(filters.key_hash())
    }

    /// The hash that filters must have, where it comes from elsewhere: from a stored filter, or
    /// RocksDB's.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        ResidentOptions { key_hash, ..self }
    }

    /// The time after which what was counted weighs half, a minute by default. Shorter follows
    /// shifts faster; longer tells filters of few lookups apart: within it the median filter at the
    /// edge of the budget should see some hundred absent lookups.
    #[must_use]
    pub fn with_half_life(self, half_life: Duration) -> Self {
        let half_life = half_life.as_secs_f64().clamp(MIN_SECONDS, MAX_SECONDS);
        ResidentOptions { half_life, ..self }
    }

    /// The time within which a load must save as many reads as it costs, 40 seconds by default: two
    /// thirds of the half-life. A longer one loads filters that the next shift makes useless, a
    /// shorter one leaves out filters that would have paid.
    #[must_use]
    pub fn with_payback(self, payback: Duration) -> Self {
        ResidentOptions { payback: payback.as_secs_f64().max(MIN_SECONDS), ..self }
    }

    /// What a load costs, in reads of a table: `request`, and one for every `bytes_per_read`, by
    /// default 1 and 200,000. Less than 0 requests count as 0, less than 1 byte as 1.
    #[must_use]
    pub fn with_load_cost(self, request: f64, bytes_per_read: f64) -> Self {
        let (request_cost, bytes_per_read) = (request.max(0.0), bytes_per_read.max(1.0));
        ResidentOptions { request_cost, bytes_per_read, ..self }
    }

    /// Lookups a second that are expected before the first are counted, 1,000 by default: from then
    /// on the counts say. It decides only which loads pay back in the first seconds.
    #[must_use]
    pub fn with_expected_lookups(self, per_second: f64) -> Self {
        ResidentOptions { expected_lookups: clamp_to(per_second, MAX_LOOKUPS), ..self }
    }

    /// Whether filters may be folded to half of their size, as they are by default. Only filters
    /// with an even number of blocks can be: [`foldable`](FilterOptions::foldable) options give one
    /// from 128 blocks on.
    #[must_use]
    pub fn with_folding(self, folding: bool) -> Self {
        ResidentOptions { folding, ..self }
    }

    /// How many lookups one that is counted stands for, 1 by default: for an engine that samples
    /// what it gives a [`ResidentPlanner`](crate::ResidentPlanner). With it, chance is told from
    /// change. A `ResidentSet` sets it itself.
    #[must_use]
    pub fn with_sampling(self, one_in: u32) -> Self {
        ResidentOptions { sampling: one_in.max(1) as f32, ..self }
    }

    /// Seconds over which recent lookups are averaged.
    pub(crate) fn window(&self) -> f32 {
        (self.half_life / core::f64::consts::LN_2) as f32
    }
}
