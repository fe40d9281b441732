//! Figures as they are stored, in `benches/results`: one file per machine and date, written by the
//! comparison and by `cargo bench`. The program `figures` fills the pages from them.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use blocked_bloom::Kernel;
use serde::{Deserialize, Serialize};

use crate::table::counted;
use crate::timing::Timing;
use crate::workload::Mix;

/// The variable that names the file to which `cargo bench` adds its tables.
pub const FILE: &str = "BLOCKED_BLOOM_RESULTS";

/// Everything that was measured on a machine on a date.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Where the comparison ran, when and how.
    pub machine: Machine,
    /// The requested bits per key. A filter's own figure is with its times.
    #[serde(default)]
    pub bits_per_key: f64,
    /// The compared filters.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// Times of the comparison.
    #[serde(default)]
    pub times: Vec<Time>,
    /// Measured false-positive rates.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// Filters that keys can be removed from.
    #[serde(default)]
    pub removable: Vec<Removable>,
    /// The tables of `cargo bench`.
    #[serde(default)]
    pub tables: Vec<Table>,
}

/// A machine, and what ran on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's name, with family and model.
    pub cpu: String,
    /// Its cores, as the system counts them.
    pub cores: usize,
    /// The kernel that blocked-bloom chose.
    pub kernel: String,
    /// The compiler.
    #[serde(default)]
    pub rust: String,
    /// The day, by UTC.
    pub date: String,
    /// The command; a line for each.
    pub command: String,
}

/// A kind of filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name.
    pub id: String,
    /// Of its package.
    pub version: String,
    /// How it was made.
    pub configuration: String,
    /// Its rows in the tables.
    pub rows: Vec<String>,
}

/// The kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
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
    /// Looking up absent 16-byte keys by batches of other sizes.
    KeyBatch,
}

/// Times of a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// The kind of measurement.
    pub section: Section,
    /// The row.
    pub row: String,
    /// Keys of the filter.
    pub keys: u64,
    /// Keys that are looked up.
    pub mix: String,
    /// Keys of a call.
    pub batch: usize,
    /// Threads that ran.
    pub threads: usize,
    /// Of the filter, as it is in memory.
    pub bits_per_key: f64,
    /// Nanoseconds per key.
    pub ns: Timing,
}

impl Time {
    /// Of one thread, of a filter of this many keys and bytes.
    pub fn new(
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

    /// The name of the table that it is in, and that of its column.
    pub fn place(&self) -> (String, String) {
        let keys = counted(self.keys);
        match self.section {
            Section::Query => (format!("hashes, {}, {} a call", self.mix, self.batch), keys),
            Section::Keys => (format!("keys, {}, {} a call", self.mix, self.batch), keys),
            Section::Build => ("building".to_owned(), keys),
            Section::Threads => ("building by threads".to_owned(), self.threads.to_string()),
            Section::Batch => (format!("hashes a call, {keys}"), self.batch.to_string()),
            Section::KeyBatch => (format!("keys a call, {keys}"), self.batch.to_string()),
        }
    }
}

/// A measured false-positive rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The kind of filter.
    pub id: String,
    /// Keys of the filter.
    pub keys: u64,
    /// The requested bits per key.
    pub bits_wanted: f64,
    /// The filter's bits per key.
    pub bits_per_key: f64,
    /// Absent keys that were looked up.
    pub queries: u64,
    /// Those that passed.
    pub false_positives: u64,
}

impl Rate {
    /// False positives of a hundred absent keys.
    pub fn percent(&self) -> f64 {
        100.0 * self.false_positives as f64 / self.queries as f64
    }
}

/// The measurements of a filter that supports removal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removable {
    /// The filter.
    pub name: String,
    /// Its keys.
    pub keys: u64,
    /// Its bits per key.
    pub bits_per_key: f64,
    /// Looking up absent keys, and present ones; adding, and removing.
    pub times: [Option<Timing>; 4],
    /// Absent keys of a million that passed.
    pub passed: u64,
    /// Keys that are not found after a million removals of keys that were never added.
    pub lost: Option<u64>,
}

/// A table of a bench. The other rows are compared with the first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its title, after the bench's name.
    pub title: String,
    /// When it was measured.
    pub date: String,
    /// By which command.
    pub command: String,
    /// Its rows.
    pub rows: Vec<Line>,
}

/// A row of a bench's table.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Name of the row.
    pub name: String,
    /// Time in the unit of the title; without one, in nanoseconds per key.
    pub time: Timing,
    /// The median of the ratios to the first row of the same round.
    #[serde(deserialize_with = "crate::timing::number_or_nan")]
    pub ratio: f64,
}

impl Report {
    /// With nothing measured yet, by this command.
    pub fn new(command: String) -> Self {
        Report {
            machine: Machine::current(command),
            bits_per_key: 0.0,
            peers: Vec::new(),
            times: Vec::new(),
            rates: Vec::new(),
            removable: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Reads a report from a file.
    ///
    /// # Errors
    ///
    /// Returns errors of the system, and an error if the bytes are not a report.
    pub fn read(file: &Path) -> Result<Self, Box<dyn Error>> {
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let report = serde_json::from_slice(&bytes);
        Ok(report.map_err(|error| format!("{}: {error}", file.display()))?)
    }

    /// Writes the report to a file.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn write(&self, file: &Path) -> Result<(), Box<dyn Error>> {
        Ok(std::fs::write(file, serde_json::to_string_pretty(self)? + "\n")?)
    }

    /// Adds what another run measured; where both measured the same, the other's counts.
    pub fn append(&mut self, other: Report) {
        if !other.times.is_empty() || !other.rates.is_empty() || !other.removable.is_empty() {
            self.append_comparison(&other.machine);
            self.bits_per_key = other.bits_per_key;
            self.peers = other.peers;
        }
        let place = |time: &Time| (time.section, time.keys);
        self.times.retain(|time| !other.times.iter().any(|other| place(other) == place(time)));
        self.times.extend(other.times);
        self.removable.retain(|row| !other.removable.iter().any(|other| other.keys == row.keys));
        self.removable.extend(other.removable);
        if !other.rates.is_empty() {
            self.rates = other.rates;
        }
        self.tables.retain(|table| !other.tables.iter().any(|other| other.title == table.title));
        self.tables.extend(other.tables);
    }

    /// Takes over the machine and command of another comparison.
    fn append_comparison(&mut self, other: &Machine) {
        if self.peers.is_empty() {
            self.machine = other.clone();
        } else if !self.machine.command.contains(&other.command) {
            let arguments = other.command.split_once(" -- ").map_or("", |(_, own)| own);
            self.machine.command += &format!("\n{arguments}");
        }
    }

    /// The times of a section, in the order of measurement.
    pub fn section(&self, section: Section) -> impl Iterator<Item = &Time> {
        self.times.iter().filter(move |time| time.section == section)
    }
}

/// Distinct values in the order of their appearance.
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Adds a table of a bench to the file that the variable [`FILE`] names, if it is set.
///
/// # Panics
///
/// Panics if the file cannot be read or written, since the measurements would be lost.
pub fn add_table(title: &str, rows: Vec<Line>) {
    let Some(file) = std::env::var_os(FILE) else { return };
    // Cargo names the program after the bench, and adds a number.
    let program = std::env::args().next().unwrap_or_default();
    let stem = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bench = stem.rsplit_once('-').map_or(&*stem, |(bench, _)| bench);
    let own = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let own = own.fold(String::new(), |all, one| format!("{all} {one}"));
    let separator = if own.is_empty() { "" } else { " --" };
    let command = format!("cargo bench -p blocked-bloom-benches --bench {bench}{separator}{own}");
    let mut report = Report::new(command.clone());
    let date = report.machine.date.clone();
    report.tables = vec![Table { title: format!("{bench}: {title}"), date, command, rows }];
    // Cargo starts benches in the folder of their package.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let file = root.join(file);
    let all = match file.exists() {
        false => Ok(report),
        true => Report::read(&file).map(|mut all| {
            all.append(report);
            all
        }),
    };
    all.and_then(|all| all.write(&file)).expect("the file of results can be read and written");
}

impl Machine {
    /// This one, today, with this command.
    pub fn current(command: String) -> Self {
        let output = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().map(|output| output.stdout);
            String::from_utf8_lossy(&output.unwrap_or_default()).trim().to_owned()
        };
        let rust = output("rustc", &["--version"]);
        Machine {
            cpu: cpu().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: Kernel::default().to_string(),
            rust: rust.split(' ').nth(1).unwrap_or_default().to_owned(),
            date: output("date", &["-u", "+%F"]),
            command,
        }
    }

    /// The generation of AMD's processors of the families 25 and 26; of others nothing.
    pub fn generation(&self) -> Option<&'static str> {
        let numbers = self.cpu.strip_prefix("AMD")?.split_once("(family ")?.1.strip_suffix(')')?;
        let (family, model) = numbers.split_once(", model ").unwrap_or((numbers, "0"));
        match (family.parse().ok()?, model.parse().ok()?) {
            (25_u32, 16..=31 | 96..=127 | 160..=175_u32) => Some("Zen 4"),
            (25, 0..=15 | 32..=95) => Some("Zen 3"),
            (26, _) => Some("Zen 5"),
            _ => None,
        }
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
