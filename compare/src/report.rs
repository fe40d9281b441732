//! Everything that was measured, as it is stored in JSON and read back for tables and pictures.

use std::process::Command;

use benches::clock::Timing;
use blocked_bloom::Kernel;
use serde::{Deserialize, Serialize};

use crate::peers::Kind;
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
    pub(crate) fn percent(&self) -> f64 {
        100.0 * self.false_positives as f64 / self.queries as f64
    }
}

impl Report {
    /// With nothing measured yet.
    pub(crate) fn new(kinds: &[Kind], bits_per_key: f64, quick: bool) -> Self {
        Report {
            machine: machine(),
            bits_per_key,
            quick,
            peers: kinds.iter().map(about).collect(),
            times: Vec::new(),
            rates: Vec::new(),
            removable: Vec::new(),
        }
    }

    /// Adds what another run measured; where both measured the same, the other's counts.
    pub(crate) fn append(&mut self, other: Report) {
        if !self.machine.command.contains(&other.machine.command) {
            self.machine.command += &format!("\n{}", other.machine.command);
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

    pub(crate) fn query(&self, row: &str, keys: u64, mix: &str, batch: usize) -> Option<&Time> {
        self.section(Section::Query).find(|time| {
            time.row == row && time.keys == keys && time.mix == mix && time.batch == batch
        })
    }

    pub(crate) fn about(&self, row: &str) -> Option<&About> {
        self.peers.iter().find(|about| about.rows.iter().any(|name| name == row))
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

fn about(kind: &Kind) -> About {
    About {
        id: kind.id.to_owned(),
        version: kind.package.and_then(version).unwrap_or_default(),
        configuration: kind.configuration.to_owned(),
        rows: kind.rows.iter().map(|(row, _)| (*row).to_owned()).collect(),
    }
}

/// The version in this package's Cargo.lock.
fn version((name, start): (&str, &str)) -> Option<String> {
    let start = format!("name = \"{name}\"\nversion = \"{start}");
    let lock = include_str!("../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.trim().starts_with(&start))?;
    Some(package.split('"').nth(3)?.to_owned())
}

fn machine() -> Machine {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = "cargo run --release --manifest-path compare/Cargo.toml";
    let command = match arguments.is_empty() {
        true => command.to_owned(),
        false => format!("{command} -- {}", arguments.join(" ")),
    };
    Machine {
        cpu: cpu().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        os: std::env::consts::OS.to_owned(),
        kernel: Kernel::default().to_string(),
        date: output("date", &["-u", "+%F"]).unwrap_or_default(),
        command,
        load: load().into_iter().collect(),
    }
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The processor's name, as the system knows it.
fn cpu() -> Option<String> {
    if cfg!(target_os = "macos") {
        return output("sysctl", &["-n", "machdep.cpu.brand_string"]);
    }
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split(':').nth(1)?.trim())
    };
    let model = field("model name")?;
    let (family, number) = (field("cpu family")?, field("model\t")?);
    Some(format!("{model} (family {family}, model {number})"))
}

/// The load average of the last minute.
pub(crate) fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
