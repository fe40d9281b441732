//! The planner's record of one filter: its table, the size in memory, and its lookups.

use crate::table::{ResidentSize, ResidentTable};

#[derive(Clone, Copy, Debug)]
pub(super) struct TableState {
    pub(super) table: ResidentTable,
    pub(super) is_alive: bool,
    pub(super) size: ResidentSize,
    /// Absent lookups per second, averaged over `age`.
    pub(super) observed_rate: f32,
    /// Seconds that `observed_rate` covers.
    pub(super) age: f32,
    /// Absent lookups of the last `recent_age` seconds of `Traffic`.
    pub(super) recent_lookups: f32,
    /// Absent lookups since the last tick.
    pub(super) new_lookups: f32,
    /// Seconds until the next attempt to load the filter.
    pub(super) retry_delay: f32,
    pub(super) failures: u32,
}

impl TableState {
    /// Estimates the absent lookups per second: the mean of a gamma distribution whose prior is the
    /// expected rate, updated by the counts. Without a prior, a filter that happened to get two
    /// lookups instead of one would displace others.
    pub(super) fn absent_lookups(&self, prior: Prior) -> f64 {
        let expected = f64::from(self.table.run_share) * prior.per_run;
        if expected == 0.0 {
            return f64::from(self.observed_rate);
        }
        let counted = f64::from(self.observed_rate * self.age);
        (counted + prior.weight) / (f64::from(self.age) + prior.weight / expected)
    }

    pub(super) fn bytes(&self, size: ResidentSize) -> u64 {
        match size {
            ResidentSize::None => 0,
            ResidentSize::Half => self.table.half_bytes,
            ResidentSize::Whole => self.table.bytes,
        }
    }

    /// Fraction of the absent lookups whose read a filter of this size saves.
    pub(super) fn saved_share(&self, size: ResidentSize) -> f64 {
        match size {
            ResidentSize::None => 0.0,
            ResidentSize::Half => 1.0 - f64::from(self.table.half_rate),
            ResidentSize::Whole => 1.0 - f64::from(self.table.rate),
        }
    }

    /// Reads per second that absent lookups cause without a filter, weighted by the cost of a read.
    pub(super) fn reads(&self, prior: Prior) -> f64 {
        self.absent_lookups(prior) * f64::from(self.table.read_cost)
    }
}

/// The expected lookups of a table before any are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    /// Absent lookups per second of a run with all keys.
    pub(super) per_run: f64,
    /// Weight of the expectation, in counted lookups.
    pub(super) weight: f64,
}
