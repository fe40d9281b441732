//! What a plan knows of a level, and what its filters have to do with the cost of a lookup.
//!
//! This file owns the model: how many questions a level is asked and what they cost. It refuses numbers out of range, so that
//! no sum of costs overflows.

use crate::error::PlanError;

/// Largest number of lookups and largest cost: products and sums of them stay finite.
const MOST: f64 = 1e15;

/// What a plan knows of a level of a tree, or of one table.
///
/// The defaults are those of a tree that is asked for absent keys: every lookup asks every level, and every read costs the same.
///
/// ```
/// use blocked_bloom::Level;
/// let level = Level::new(100_000_000).runs(4).present(0.25);
/// assert_eq!((level.keys, level.runs, level.lookups), (100_000_000, 4, 1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Level {
    /// Distinct keys of all its tables together. A level of 0 keys gets no filter and costs nothing.
    pub keys: u64,
    /// Sorted runs, each of which a lookup has to ask: 1 with leveled compaction, several with tiered compaction and for level 0.
    pub runs: u32,
    /// Tables with disjoint key ranges that a run is cut into, of which a lookup asks one. Each has a filter of its own.
    pub tables: u32,
    /// Lookups that reach the level, per lookup of the tree (or in any other unit that all levels share).
    pub lookups: f64,
    /// What a wasted read costs, in reads: less than 1 where the data blocks are often cached, more where they are remote.
    pub cost: f64,
    /// What asking the filter of one run costs, in reads: 0.001 is 100 ns of memory beside 100 us of storage.
    pub query_cost: f64,
    /// Fraction of the lookups that reach the level whose key is in it. They ask half of its other runs, on average.
    pub present: f64,
}

impl Level {
    /// A level of one run and one table, which every lookup asks for a key it does not hold; a wasted read costs 1, a question
    /// 0.001.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Level::new(1_000).keys, 1_000);
    /// ```
    pub const fn new(keys: u64) -> Self {
        Level { keys, runs: 1, tables: 1, lookups: 1.0, cost: 1.0, query_cost: 0.001, present: 0.0 }
    }

    /// Sets [`runs`](Self#structfield.runs), at least 1.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Level::new(1_000).runs(4).runs, 4);
    /// ```
    #[must_use]
    pub const fn runs(self, runs: u32) -> Self {
        Level { runs, ..self }
    }

    /// Sets [`tables`](Self#structfield.tables), at least 1.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Level::new(1_000_000).tables(16).tables, 16);
    /// ```
    #[must_use]
    pub const fn tables(self, tables: u32) -> Self {
        Level { tables, ..self }
    }

    /// Sets [`lookups`](Self#structfield.lookups), 0 to 10^15.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Level::new(1_000).lookups(0.5).lookups, 0.5);
    /// ```
    #[must_use]
    pub const fn lookups(self, lookups: f64) -> Self {
        Level { lookups, ..self }
    }

    /// Sets [`cost`](Self#structfield.cost), 0 to 10^15.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Level::new(1_000).cost(0.1).cost, 0.1);
    /// ```
    #[must_use]
    pub const fn cost(self, cost: f64) -> Self {
        Level { cost, ..self }
    }

    /// Sets [`query_cost`](Self#structfield.query_cost), 0 to 10^15.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Level::new(1_000).query_cost(0.01).query_cost, 0.01);
    /// ```
    #[must_use]
    pub const fn query_cost(self, query_cost: f64) -> Self {
        Level { query_cost, ..self }
    }

    /// Sets [`present`](Self#structfield.present), 0 to 1.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Level::new(1_000).present(0.9).present, 0.9);
    /// ```
    #[must_use]
    pub const fn present(self, present: f64) -> Self {
        Level { present, ..self }
    }

    pub(super) fn check(&self, level: usize) -> Result<(), PlanError> {
        if !(0.0..=MOST).contains(&self.lookups) {
            return Err(PlanError::LookupsOutOfRange { level, lookups: self.lookups });
        }
        if let Some(cost) =
            [self.cost, self.query_cost].into_iter().find(|c| !(0.0..=MOST).contains(c))
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

    /// Keys of one table, rounded up.
    pub(super) fn keys_per_filter(&self) -> u64 {
        self.keys.div_ceil(self.filters().max(1))
    }

    /// Runs that do not hold the key and are asked about it, per lookup of the tree.
    pub(super) fn absent_questions(&self) -> f64 {
        if self.keys == 0 {
            return 0.0;
        }
        let runs = f64::from(self.runs);
        self.lookups * ((1.0 - self.present) * runs + self.present * (runs - 1.0) / 2.0)
    }

    pub(super) fn questions(&self) -> f64 {
        self.absent_questions() + if self.keys == 0 { 0.0 } else { self.lookups * self.present }
    }

    /// Weighted reads that are wasted without a filter: what the rate multiplies.
    pub(super) fn weight(&self) -> f64 {
        self.absent_questions() * self.cost
    }

    /// What asking the filters costs if there are any.
    pub(super) fn asking(&self) -> f64 {
        self.questions() * self.query_cost
    }
}
