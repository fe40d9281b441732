//! All files of results, and the figures in them by key.
//!
//! A key is `TABLE; ROW; COLUMN`, or `TABLE; ROW / OTHER; COLUMN` for the ratio of two rows. Tables
//! are those of the comparison (`hashes, absent, 1024 a call; blocked-bloom; 10 M`), `rates` and
//! `bits`, whose columns are the bits per key that were wanted, and those of benches, by bench and
//! title, with the columns `median`, `least` and `ratio` (of times, to the first row). `machine`
//! and `command` are those of the comparison, with `; BENCH` those of a bench's tables, with
//! `; BENCH: TITLE` those of one table, with `; removable` those of filters that keys can be
//! removed from, and with `; comparison + BENCH + BENCH` those that all of these have in common.

use std::error::Error;
use std::path::{Path, PathBuf};

use benches::results::{Machine, Peer, Rate, Removable, Report, Section, Table};

use crate::cells::{digits, percent};

/// The file of `benches/results` whose figures the pages show. A run on another machine, however
/// new, changes no page until its file is named here; of the other files only tables count that
/// this one does not have.
pub(crate) const SHOWN: &str = "2026-11-28-zen4.json";

/// The reports of all files: first the one that is shown, then the others, the newest first.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) reports: Vec<Report>,
}

impl Store {
    /// The files of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        let mut files = entries.collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        let is_shown = |file: &Path| file.file_name().is_some_and(|name| name == SHOWN);
        if !files.iter().any(|file| is_shown(file)) {
            return Err(format!("{} has no {SHOWN}, which pages show", folder.display()).into());
        }
        // Names begin with the date.
        files
            .sort_by(|one, other| is_shown(other).cmp(&is_shown(one)).then_with(|| other.cmp(one)));
        let reports = files.iter().map(|file| Report::read(file)).collect::<Result<_, _>>()?;
        Ok(Store { reports })
    }

    /// The report that is shown: all figures of the comparison are of one machine and date.
    pub(crate) fn comparison(&self) -> Result<&Report, String> {
        let has = |report: &&Report| report.section(Section::Query).next().is_some();
        let missing = || format!("{SHOWN} has no comparison");
        self.reports.first().filter(has).ok_or_else(missing)
    }

    /// The table with this title, and where it was measured.
    pub(crate) fn table(&self, title: &str) -> Result<(&Table, &Machine), String> {
        let missing = |error| format!("{error}: {title}");
        self.first(|other| other == title).map_err(missing)
    }

    /// The first table whose title is such: that of the report that is shown, or of the newest.
    fn first(&self, is_it: impl Fn(&str) -> bool) -> Result<(&Table, &Machine), String> {
        let mut tables = self
            .reports
            .iter()
            .flat_map(|report| report.tables.iter().map(move |table| (table, &report.machine)));
        let first = tables.find(|(table, _)| is_it(&table.title));
        first.ok_or_else(|| "no file has this table".to_owned())
    }

    /// The place of a machine among the reports.
    pub(crate) fn rank(&self, machine: &Machine) -> usize {
        let is_it = |report: &Report| std::ptr::eq(&report.machine, machine);
        self.reports.iter().position(is_it).unwrap_or(usize::MAX)
    }

    /// The first report of a million keys in filters that keys can be removed from.
    pub(crate) fn removable(&self) -> Result<&Report, String> {
        let has = |report: &&Report| report.removable.iter().any(|row| row.keys == 1_000_000);
        self.reports.iter().find(has).ok_or_else(|| "no file has removable filters".to_owned())
    }

    /// Its rows of a million keys.
    pub(crate) fn removables(&self) -> Result<Vec<&Removable>, String> {
        let rows = self.removable()?.removable.iter();
        Ok(rows.filter(|row| row.keys == 1_000_000).collect())
    }

    /// A median of the comparison.
    pub(crate) fn time(&self, table: &str, row: &str, column: &str) -> Result<f64, String> {
        let is_it = |place: (String, String)| place.0 == table && place.1 == column;
        let mut times = self.comparison()?.times.iter();
        let time = times.find(|time| time.row == row && is_it(time.place()));
        let missing = || format!("the comparison has no {table}; {row}; {column}");
        Ok(time.ok_or_else(missing)?.ns.median)
    }

    /// A false-positive rate of the comparison.
    pub(crate) fn rate(&self, row: &str, bits: f64) -> Result<&Rate, String> {
        // A filter with a single size is listed with the first bits only.
        let mut rates = self.comparison()?.rates.iter();
        let rate = rates.find(|rate| rate.id == row && rate.bits_wanted == bits);
        rate.ok_or_else(|| format!("the comparison has no rate of {row} at {bits} bits"))
    }

    /// A kind of filter of the comparison.
    pub(crate) fn peer(&self, id: &str) -> Result<&Peer, String> {
        let peer = self.comparison()?.peers.iter().find(|peer| peer.id == id);
        peer.ok_or_else(|| format!("the comparison has no {id}"))
    }

    /// What stands for a key.
    pub(crate) fn text(&self, key: &str) -> Result<String, String> {
        if let Some((what @ ("machine" | "command"), places)) = key.split_once("; ") {
            let mut all = places.split(" + ").map(|place| self.origin(what, place));
            let first = all.next().ok_or_else(|| format!("no key: {key}"))??;
            for other in all {
                if other? != first {
                    return Err(format!("not all of one {what}: {places}"));
                }
            }
            return Ok(first);
        }
        // Titles of tables have semicolons too.
        let mut parts: Vec<&str> = key.rsplitn(3, "; ").collect();
        parts.reverse();
        match parts[..] {
            [what @ ("machine" | "command")] => self.origin(what, "comparison"),
            ["rates", row, bits] => Ok(percent(self.rate(row, number(bits)?)?.percent())),
            ["bits", row, bits] => {
                Ok(format!("{:.1}", self.rate(row, number(bits)?)?.bits_per_key))
            }
            [table, row, column] => match row.split_once(" / ") {
                None => Ok(digits(self.figure(table, row, column)?)),
                Some((row, other)) => {
                    let other = self.figure(table, other, column)?;
                    Ok(format!("{:.2}", self.figure(table, row, column)? / other))
                }
            },
            _ => Err(format!("no key: {key}")),
        }
    }

    /// The machine or command of a place.
    fn origin(&self, what: &str, place: &str) -> Result<String, String> {
        let (at, date, by) = match place {
            "comparison" => {
                let at = &self.comparison()?.machine;
                (at, &at.date, &at.command)
            }
            "removable" => {
                let at = &self.removable()?.machine;
                (at, &at.date, &at.command)
            }
            bench => {
                let is_of_bench = |title: &str| {
                    title.strip_prefix(bench).is_some_and(|rest| rest.starts_with(':'))
                };
                let (table, at) = self.first(|title| title == bench || is_of_bench(title))?;
                (at, &table.date, &table.command)
            }
        };
        Ok(if what == "machine" { machine(at, date) } else { command(by) })
    }

    fn figure(&self, table: &str, row: &str, column: &str) -> Result<f64, String> {
        let Ok((of_bench, _)) = self.table(table) else { return self.time(table, row, column) };
        let line = of_bench.rows.iter().find(|line| line.name == row);
        let line = line.ok_or_else(|| format!("{table} has no row {row}"))?;
        match column {
            "median" => Ok(line.time.median),
            "least" => Ok(line.time.min),
            "ratio" => Ok(line.ratio),
            _ => Err(format!("{table} has no column {column}")),
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

/// A machine in a sentence, with the date of a measurement.
fn machine(machine: &Machine, date: &str) -> String {
    let name = machine.cpu.split(" (family").next().unwrap_or_default();
    let kernel = match &*machine.kernel {
        "avx512" => "AVX-512",
        "avx2" => "AVX2",
        "neon" => "NEON",
        other => other,
    };
    let detail = machine.generation().map_or_else(String::new, |name| format!("{name}, "));
    let rust = machine.rust.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let cores = if machine.cores == 1 { "1 core" } else { &format!("{} cores", machine.cores) };
    format!("{name} ({detail}{kernel}), {cores}, Rust {rust}, {date}")
}

/// As code; of several runs the arguments of all.
fn command(command: &str) -> String {
    format!("`{}`", command.replace('\n', "` and `"))
}
