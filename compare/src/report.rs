//! Everything that was measured, as it is stored in JSON and read back for tables and pictures.

use std::process::Command;

use benches::clock::Timing;
use benches::workload::Mix;
use blocked_bloom::Kernel;
use serde::{Deserialize, Serialize};

use crate::peers::Kind;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// What was wanted; a filter's own figure is with its times.
    pub(crate) bits_per_key: f64,
    pub(crate) peers: Vec<About>,
    pub(crate) times: Vec<Time>,
    pub(crate) rates: Vec<Rate>,
    /// Filters that keys can be removed from.
    pub(crate) removable: Vec<Removable>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    /// The kernel that blocked-bloom chose.
    pub(crate) kernel: String,
    pub(crate) date: String,
    pub(crate) command: String,
}

/// A kind of filter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) configuration: String,
    pub(crate) rows: Vec<String>,
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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Time {
    pub(crate) section: Section,
    pub(crate) row: String,
    /// Keys of the filter.
    pub(crate) keys: u64,
    /// Keys that are looked up.
    pub(crate) mix: String,
    /// Keys of a call.
    pub(crate) batch: usize,
    pub(crate) threads: usize,
    /// Of the filter, as it is in memory.
    pub(crate) bits_per_key: f64,
    /// Nanoseconds per key.
    pub(crate) ns: Timing,
}

impl Time {
    /// Of one thread, of a filter of this many keys and bytes.
    pub(crate) fn new(
        (section, mix, batch): (Section, Mix, usize),
        row: &str,
        keys: u64,
        bytes: usize,
        ns: Timing,
    ) -> Self {
        let bits_per_key = bytes as f64 * 8.0 / keys as f64;
        let [row, mix] = [row, mix.name()].map(str::to_owned);
        Time { section, row, keys, mix, batch, threads: 1, bits_per_key, ns }
    }
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
}

impl Rate {
    pub(crate) fn percent(&self) -> f64 {
        100.0 * self.false_positives as f64 / self.queries as f64
    }
}

/// What was measured of a filter that keys can be removed from.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Removable {
    pub(crate) name: String,
    pub(crate) keys: u64,
    pub(crate) bits_per_key: f64,
    /// Looking up absent keys, and present ones; adding, and removing.
    pub(crate) times: [Option<Timing>; 4],
    /// Absent keys of a million that passed.
    pub(crate) passed: u64,
    /// Keys that are not found after a million removals of keys that were never added.
    pub(crate) lost: Option<u64>,
}

impl Report {
    /// With nothing measured yet.
    pub(crate) fn new(kinds: &[Kind], bits_per_key: f64) -> Self {
        let about = |kind: &Kind| About {
            id: kind.id.to_owned(),
            version: kind.package.and_then(version).unwrap_or_default(),
            configuration: kind.configuration.to_owned(),
            rows: kind.rows.iter().map(|(row, _)| (*row).to_owned()).collect(),
        };
        let peers = kinds.iter().map(about).collect();
        let (times, rates, removable) = (Vec::new(), Vec::new(), Vec::new());
        Report { machine: machine(), bits_per_key, peers, times, rates, removable }
    }

    /// Adds what another run measured; where both measured the same, the other's counts.
    pub(crate) fn append(&mut self, other: Report) {
        if !self.machine.command.contains(&other.machine.command) {
            let arguments = other.machine.command.split_once(" -- ").map_or("", |(_, own)| own);
            self.machine.command += &format!("\n{arguments}");
        }
        let place = |time: &Time| (time.section, time.keys);
        self.times.retain(|time| !other.times.iter().any(|other| place(other) == place(time)));
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
}

/// Distinct values in the order of their appearance.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// The version in this package's Cargo.lock.
fn version(name: &str) -> Option<String> {
    let start = format!("name = \"{name}\"\n");
    let lock = include_str!("../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.trim().starts_with(&start))?;
    Some(package.split('"').nth(3)?.to_owned())
}

fn machine() -> Machine {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = "cargo run --release --manifest-path compare/Cargo.toml";
    let arguments = match arguments.is_empty() {
        true => String::new(),
        false => format!(" -- {}", arguments.join(" ")),
    };
    let date = Command::new("date").args(["-u", "+%F"]).output().map(|output| output.stdout);
    Machine {
        cpu: cpu().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: Kernel::default().to_string(),
        date: String::from_utf8_lossy(&date.unwrap_or_default()).trim().to_owned(),
        command: format!("{command}{arguments}"),
    }
}

/// The processor's name, as Linux knows it.
fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name| Some(info.lines().find(|l| l.starts_with(name))?.split(':').nth(1)?.trim());
    let [model, family, number] = ["model name", "cpu family", "model\t"].map(field);
    let (model, family, number) = (model?, family?, number?);
    Some(format!("{model} (family {family}, model {number})"))
}
