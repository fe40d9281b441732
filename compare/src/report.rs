//! Everything that was measured, as it is stored in JSON and read back for tables and plots.

use serde::{Deserialize, Serialize};

use crate::measure::Timing;
use crate::removable::Row;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// What was wanted; a filter's own figure is with its times.
    pub(crate) bits_per_key: f64,
    pub(crate) quick: bool,
    pub(crate) peers: Vec<About>,
    pub(crate) times: Vec<Time>,
    pub(crate) rates: Vec<Rate>,
    /// Earlier reports have none.
    #[serde(default)]
    pub(crate) removable: Vec<Row>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) os: String,
    /// The kernel that blocked-bloom chose.
    pub(crate) kernel: String,
    pub(crate) date: String,
    pub(crate) command: String,
    /// Processes that wanted a core, at the start and at the end (Linux).
    pub(crate) load: Vec<f64>,
}

/// A kind of filter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) configuration: String,
    pub(crate) rows: Vec<String>,
    pub(crate) is_package: bool,
}

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Section {
    /// Looking up hashes.
    Query,
    /// Looking up 16-byte keys, hashing included.
    Keys,
    /// Filling an empty filter with hashes.
    Build,
    /// Filling by several threads.
    Threads,
    /// Looking up absent hashes by batches of other sizes.
    Batch,
    /// Looking up absent 16-byte keys by short batches.
    KeyBatch,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Time {
    pub(crate) section: Section,
    pub(crate) row: String,
    /// Keys of the filter.
    pub(crate) keys: u64,
    pub(crate) mix: String,
    /// Keys of a call.
    pub(crate) batch: usize,
    pub(crate) threads: usize,
    /// Of the filter, as it is in memory.
    pub(crate) bits_per_key: f64,
    /// Nanoseconds per key.
    pub(crate) ns: Timing,
}

/// A measured false-positive rate.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Rate {
    /// The kind of filter.
    pub(crate) id: String,
    pub(crate) keys: u64,
    pub(crate) bits_wanted: f64,
    pub(crate) bits_per_key: f64,
    /// Absent keys that were looked up.
    pub(crate) queries: u64,
    pub(crate) false_positives: u64,
    /// What blocked-bloom's `Params` predicts, for its own filter.
    pub(crate) predicted: Option<f64>,
}

impl Rate {
    pub(crate) fn rate(&self) -> f64 {
        self.false_positives as f64 / self.queries as f64
    }
}

impl Report {
    /// Adds what another run measured; where both measured the same, the other's counts.
    pub(crate) fn append(&mut self, other: Report) {
        if !self.machine.command.contains(&other.machine.command) {
            self.machine.command = format!(
                "{}
{}",
                self.machine.command, other.machine.command
            );
        }
        let is_again = |time: &Time| {
            let place = |time: &Time| (time.section, time.keys);
            other.times.iter().any(|other| place(other) == place(time))
        };
        self.times.retain(|time| !is_again(time));
        self.times.extend(other.times);
        self.removable.retain(|row| !other.removable.iter().any(|other| other.keys == row.keys));
        self.removable.extend(other.removable);
        if !other.rates.is_empty() {
            self.rates = other.rates;
        }
    }

    /// The times of a section, in the order of measurement.
    pub(crate) fn section(&self, section: Section) -> impl Iterator<Item = &Time> {
        self.times.iter().filter(move |time| time.section == section)
    }

    /// Distinct values of a field in a section, in the order of their appearance.
    pub(crate) fn distinct<T: PartialEq>(
        &self,
        section: Section,
        field: impl Fn(&Time) -> T,
    ) -> Vec<T> {
        let mut all = Vec::new();
        for time in self.section(section) {
            let value = field(time);
            if !all.contains(&value) {
                all.push(value);
            }
        }
        all
    }

    pub(crate) fn query(&self, row: &str, keys: u64, mix: &str, batch: usize) -> Option<&Time> {
        self.section(Section::Query).find(|time| {
            time.row == row && time.keys == keys && time.mix == mix && time.batch == batch
        })
    }

    pub(crate) fn about(&self, row: &str) -> Option<&About> {
        self.peers.iter().find(|about| about.rows.iter().any(|name| name == row))
    }
}
