//! Records of slices without a difference, one line per kernel, code and machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, source};

/// Returns the file in the repository.
pub(crate) fn default_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("records.txt")
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Check, kernel, probes, hash of the code, compiler and machine.
    key: [String; 6],
    /// Ranges of slices, first and last, in order.
    slices: Vec<[u64; 2]>,
    of: u64,
    date: String,
}

impl Record {
    /// A record of no slice yet, for the code of this program.
    pub(crate) fn new(
        check: &str,
        kernel: &str,
        probes: u32,
        of: u64,
        machine: Option<&str>,
    ) -> Result<Self, Failure> {
        let probes = if probes == 0 { "-".into() } else { probes.to_string() };
        let machine = machine.map_or_else(machine_name, str::to_owned);
        let compiler = output("rustc", &["--version"])?;
        let code = source::hash(check, kernel)?;
        let key = [check.to_owned(), kernel.to_owned(), probes, code, compiler, machine];
        let key = key.map(|word| word.split_whitespace().collect::<Vec<_>>().join("_"));
        Ok(Record { key, slices: Vec::new(), of, date: output("date", &["-u", "+%F"])? })
    }

    /// Reads a line: date, key, and slices like `1-4,7/30`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut next = || words.next();
        let (date, slices) = (next()?, next()?);
        let key = [next()?, next()?, next()?, next()?, next()?, next()?];
        let (ranges, of) = slices.split_once('/')?;
        let mut slices = Vec::new();
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            slices.push([first.parse().ok()?, last.parse().ok()?]);
        }
        Some(Record { key, slices, of: of.parse().ok()?, date })
    }

    fn contains(&self, slice: u64) -> bool {
        self.slices.iter().any(|&[first, last]| (first..=last).contains(&slice))
    }

    fn add(&mut self, slice: u64) {
        self.slices.push([slice; 2]);
        self.slices.sort_unstable();
        self.slices.dedup_by(|next, range| {
            let meets = next[0] <= range[1] + 1;
            if meets {
                range[1] = range[1].max(next[1]);
            }
            meets
        });
    }

    /// Whether the record describes the code of this program.
    fn is_current(&self) -> bool {
        source::hash(&self.key[0], &self.key[1]).is_ok_and(|hash| hash == self.key[3])
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |[first, last]: &[u64; 2]| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        let slices = self.slices.iter().map(range).collect::<Vec<_>>().join(",");
        write!(f, "{} {slices}/{} {}", self.date, self.of, self.key.join(" "))
    }
}

/// The records of a file. Lines that begin with `#` are comments.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    comments: String,
    records: Vec<Record>,
}

impl Records {
    /// Reads a file, which need not exist.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let (mut comments, mut records) = (String::new(), Vec::new());
        for line in text.lines() {
            if line.starts_with('#') {
                comments += &format!("{line}\n");
            } else {
                let record = Record::parse(line);
                records.push(record.ok_or_else(|| format!("not a record: {line}"))?);
            }
        }
        Ok(Records { path: path.to_owned(), comments, records })
    }

    /// Whether a slice was recorded for the same code, compiler and machine.
    pub(crate) fn contain(&self, record: &Record, slice: u64) -> bool {
        self.records
            .iter()
            .any(|old| old.key == record.key && old.of == record.of && old.contains(slice))
    }

    /// Adds a slice and writes the file. Reads it first: another run may have added slices.
    pub(crate) fn add(&mut self, record: &Record, slice: u64) -> Result<(), Failure> {
        *self = Self::read(&self.path)?;
        let same = |old: &&mut Record| old.key == record.key && old.of == record.of;
        if let Some(old) = self.records.iter_mut().find(same) {
            old.add(slice);
            old.date.clone_from(&record.date);
        } else {
            let mut record = record.clone();
            record.add(slice);
            self.records.push(record);
        }
        let lines = self.records.iter().map(|record| format!("{record}\n")).collect::<String>();
        let partial = self.path.with_extension(format!("{}.partial", std::process::id()));
        std::fs::write(&partial, format!("{}{lines}", self.comments))?;
        Ok(std::fs::rename(partial, &self.path)?)
    }
}

/// Prints the records of the repository, each with `current` or `other code`.
pub(crate) fn list() -> Result<(), Failure> {
    for record in Records::read(&default_path())?.records {
        println!("{} {record}", if record.is_current() { "current   " } else { "other code" });
    }
    Ok(())
}

fn machine_name() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or(std::env::consts::ARCH, |(_, name)| name).trim().to_owned()
}

fn output(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    Ok(String::from_utf8(Command::new(program).args(arguments).output()?.stdout)?.trim().into())
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
