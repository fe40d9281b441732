//! The cost model of a level: the number of lookups that its filters answer, and the cost of a
//! lookup with and without them.
//!
//! Numbers are checked before they are used, so that no sum of costs overflows.

use crate::error::PlanError;

/// Maximum number of lookups and maximum cost. Products and sums of them stay finite.
pub(super) const MAX_NUMBER: f64 = 1e15;

/// Maximum levels of a plan. Each takes about ten thousand bytes and a tenth of a millisecond.
const MAX_LEVELS: usize = 4_096;

/// A level of a tree, or a single table, as a plan sees it.
///
/// By default every lookup reaches the level and looks for an absent key, and every read costs the
/// same.
///
/// ```
/// use blocked_bloom_lsm::Level;
/// let level = Level::new(100_000_000).runs(4).present(0.25);
/// assert_eq!((level.keys, level.runs, level.lookups), (100_000_000, 4, 1.0));
/// ```
///
/// With the feature `serde`, a configuration file may leave out all fields but `keys`; they get
/// these defaults. An unknown field is an error.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[non_exhaustive]
pub struct Level {
    /// Distinct keys of all tables of the level. A level of 0 keys gets no filter and costs
    /// nothing.
    pub keys: u64,
    /// Sorted runs, each of which a lookup must try: 1 with leveled compaction, several with tiered
    /// compaction and for level 0.
    #[cfg_attr(feature = "serde", serde(default = "default_one"))]
    pub runs: u32,
    /// Tables of each run, with disjoint key ranges. A lookup tries one of them. Each has its own
    /// filter.
    #[cfg_attr(feature = "serde", serde(default = "default_one"))]
    pub tables: u32,
    /// Lookups that reach the level per lookup of the tree, or in any other unit that all levels
    /// share.
    #[cfg_attr(feature = "serde", serde(default = "default_one"))]
    pub lookups: f64,
    /// Cost of a wasted read, in reads: less than 1 if the data blocks are often cached, more if
    /// they are remote.
    #[cfg_attr(feature = "serde", serde(default = "default_one"))]
    pub cost: f64,
    /// Cost of a query of one run's filter, in reads. 0.001 is 100 ns of memory access compared
    /// with 100 us of storage access.
    #[cfg_attr(feature = "serde", serde(default = "query_cost"))]
    pub query_cost: f64,
    /// Fraction of the lookups reaching the level whose key is in it. On average they try half of
    /// the level's other runs.
    #[cfg_attr(feature = "serde", serde(default))]
    pub present: f64,
}

#[cfg(feature = "serde")]
fn default_one<T: From<u8>>() -> T {
    T::from(1)
}

#[cfg(feature = "serde")]
fn query_cost() -> f64 {
    Level::new(0).query_cost
}

impl Level {
    /// Creates a level of one run and one table, which every lookup reaches in search of an absent
    /// key. A wasted read costs 1, a query of the filter 0.001.
    pub const fn new(keys: u64) -> Self {
        Level { keys, runs: 1, tables: 1, lookups: 1.0, cost: 1.0, query_cost: 0.001, present: 0.0 }
    }

    /// Sets [`runs`](Self#structfield.runs), at least 1.
    #[must_use]
    pub const fn runs(self, runs: u32) -> Self {
        Level { runs, ..self }
    }

    /// Sets [`tables`](Self#structfield.tables), at least 1.
    #[must_use]
    pub const fn tables(self, tables: u32) -> Self {
        Level { tables, ..self }
    }

    /// Sets [`lookups`](Self#structfield.lookups), 0 to 10^15.
    #[must_use]
    pub const fn lookups(self, lookups: f64) -> Self {
        Level { lookups, ..self }
    }

    /// Sets [`cost`](Self#structfield.cost), 0 to 10^15.
    #[must_use]
    pub const fn cost(self, cost: f64) -> Self {
        Level { cost, ..self }
    }

    /// Sets [`query_cost`](Self#structfield.query_cost), 0 to 10^15.
    #[must_use]
    pub const fn query_cost(self, query_cost: f64) -> Self {
        Level { query_cost, ..self }
    }

    /// Sets [`present`](Self#structfield.present), 0 to 1.
    #[must_use]
    pub const fn present(self, present: f64) -> Self {
        Level { present, ..self }
    }

    fn check(&self, level: usize) -> Result<(), PlanError> {
        if !(0.0..=MAX_NUMBER).contains(&self.lookups) {
            return Err(PlanError::LookupsOutOfRange { level, lookups: self.lookups });
        }
        if let Some(cost) =
            [self.cost, self.query_cost].into_iter().find(|c| !(0.0..=MAX_NUMBER).contains(c))
        {
            return Err(PlanError::CostOutOfRange { level, cost });
        }
        if !(0.0..=1.0).contains(&self.present) {
            return Err(PlanError::PresentOutOfRange { level, present: self.present });
        }
        if self.keys > 0 && (self.runs == 0 || self.tables == 0) {
            return Err(PlanError::NoTables { level });
        }
        Ok(())
    }

    pub(super) fn filters(&self) -> u64 {
        u64::from(self.runs) * u64::from(self.tables)
    }

    /// Returns the keys of one table, rounded up.
    pub(super) fn keys_per_filter(&self) -> u64 {
        self.keys.div_ceil(self.filters().max(1))
    }

    /// Returns the queries of runs without the key, per lookup of the tree.
    pub(super) fn absent_queries(&self) -> f64 {
        if self.keys == 0 {
            return 0.0;
        }
        let runs = f64::from(self.runs);
        self.lookups * ((1.0 - self.present) * runs + self.present * (runs - 1.0) / 2.0)
    }

    /// Returns the queries of runs, per lookup of the tree.
    pub(super) fn queries(&self) -> f64 {
        self.absent_queries() + if self.keys == 0 { 0.0 } else { self.lookups * self.present }
    }

    /// Returns the weighted reads that are wasted without a filter. The rate multiplies this.
    pub(super) fn weight(&self) -> f64 {
        self.absent_queries() * self.cost
    }

    /// Returns the cost of querying the filters, if there are any.
    pub(super) fn cost_of_queries(&self) -> f64 {
        self.queries() * self.query_cost
    }
}

/// Checks the number of levels, and the numbers of each.
pub(super) fn check(levels: &[Level]) -> Result<(), PlanError> {
    if levels.len() > MAX_LEVELS {
        return Err(PlanError::TooManyLevels { levels: levels.len(), limit: MAX_LEVELS });
    }
    levels.iter().enumerate().try_for_each(|(index, level)| level.check(index))
}
