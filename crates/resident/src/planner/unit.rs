//! One filter: its table, how much of it is in memory, and how often it is looked up.

use crate::table::{ResidentSize, ResidentTable};

#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) table: ResidentTable,
    pub(super) is_alive: bool,
    pub(super) size: ResidentSize,
    /// Absent lookups a second: the mean over `age`.
    pub(super) seen: f32,
    /// Seconds that `seen` covers.
    pub(super) age: f32,
    /// Absent lookups of the last `fresh_age` seconds of the planner's `Traffic`.
    pub(super) fresh: f32,
    /// Absent lookups since the last tick.
    pub(super) counted: f32,
    /// Seconds until it may be loaded again.
    pub(super) wait: f32,
    pub(super) failures: u32,
}

impl Unit {
    /// Absent lookups a second: the mean of a gamma distribution, whose prior is what is expected
    /// and which the counts update. Without a prior, filters of which chance made two lookups out
    /// of one would displace others.
    pub(super) fn absent(&self, expected: Expected) -> f64 {
        let prior = f64::from(self.table.run_share) * expected.per_run;
        if prior == 0.0 {
            return f64::from(self.seen);
        }
        let counted = f64::from(self.seen * self.age);
        (counted + expected.weight) / (f64::from(self.age) + expected.weight / prior)
    }

    pub(super) fn bytes(&self, size: ResidentSize) -> u64 {
        match size {
            ResidentSize::None => 0,
            ResidentSize::Half => self.table.half_bytes,
            ResidentSize::Whole => self.table.bytes,
        }
    }

    /// The share of the reads of absent lookups that a size saves.
    pub(super) fn saves(&self, size: ResidentSize) -> f64 {
        match size {
            ResidentSize::None => 0.0,
            ResidentSize::Half => 1.0 - f64::from(self.table.half_rate),
            ResidentSize::Whole => 1.0 - f64::from(self.table.rate),
        }
    }

    /// Reads a second that absent lookups make without a filter, weighted by what a read costs.
    pub(super) fn reads(&self, expected: Expected) -> f64 {
        self.absent(expected) * f64::from(self.table.read_cost)
    }
}

/// What is expected of a table before its lookups are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// Absent lookups a second of a run that has all keys.
    pub(super) per_run: f64,
    /// Its weight, in counted lookups.
    pub(super) weight: f64,
}
