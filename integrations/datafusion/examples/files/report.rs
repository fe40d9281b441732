//! Collects measurements: tables, bounds, and a file of results in the format of `benches/results`,
//! from which `docs/file-index.md` is filled.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use blocked_bloom::Kernel;

use crate::Failure;

/// Measurements of one kind: for each row, its name and one number per round.
struct Table {
    title: String,
    rows: Vec<(String, Vec<f64>)>,
}

#[derive(Default)]
pub(crate) struct Report {
    tables: Vec<Table>,
    broken: usize,
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn ratios(values: &[f64], first: &[f64]) -> Vec<f64> {
    values.iter().zip(first).map(|(one, first)| one / first).collect()
}

/// Formats medians with three digits, and whole numbers as such.
fn digits(number: f64) -> String {
    match number {
        _ if number.fract() == 0.0 => format!("{number}"),
        ..0.0995 => format!("{number:.4}"),
        ..9.995 => format!("{number:.2}"),
        ..99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

impl Report {
    /// Prints and stores a table. `measured` has the measurements of each row by measure and round.
    pub(crate) fn add(
        &mut self,
        title: &str,
        measures: &[&str],
        measured: &[(&str, Vec<Vec<f64>>)],
    ) {
        println!("\n| {title} | {} |", measures.join(" | "));
        println!("|---|{}", "---:|".repeat(measures.len()));
        for (name, values) in measured {
            let cells = values.iter().map(|rounds| digits(median(rounds.clone())));
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        for (number, measure) in measures.iter().enumerate() {
            let rows =
                measured.iter().map(|(name, values)| (name.to_string(), values[number].clone()));
            self.tables
                .push(Table { title: format!("files: {title}; {measure}"), rows: rows.collect() });
        }
    }

    /// Returns the median of a row.
    pub(crate) fn median(&self, title: &str, measure: &str, row: &str) -> f64 {
        let found = self.rows(title, measure).iter().find(|(name, _)| name == row);
        found.map_or(f64::NAN, |(_, found)| median(found.clone()))
    }

    /// Returns the median of a row's ratios to the first row, round by round.
    pub(crate) fn ratio(&self, title: &str, measure: &str, row: &str) -> f64 {
        let rows = self.rows(title, measure);
        let found = rows.iter().find(|(name, _)| name == row);
        found.map_or(f64::NAN, |(_, found)| median(ratios(found, &rows[0].1)))
    }

    fn rows(&self, title: &str, measure: &str) -> &[(String, Vec<f64>)] {
        let title = format!("files: {title}; {measure}");
        let table = self.tables.iter().find(|table| table.title == title);
        table.map_or(&[], |table| &table.rows)
    }

    /// Checks and prints whether a figure is at most `most`.
    pub(crate) fn must(&mut self, workload: &str, found: f64, most: f64) {
        let holds = found <= most;
        self.broken += usize::from(!holds);
        let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
        println!("{verdict}: {workload}: {} (at most {})", digits(found), digits(most));
    }

    /// Writes the file of results, if one was requested.
    ///
    /// # Errors
    ///
    /// If writing fails or a bound does not hold.
    pub(crate) fn end(&self, command: &str, file: Option<&Path>) -> Result<(), Failure> {
        if let Some(file) = file {
            std::fs::write(file, self.json(command))?;
        }
        match self.broken {
            0 => Ok(()),
            broken => Err(format!("{broken} bounds do not hold").into()),
        }
    }

    /// Names and titles contain no characters that JSON escapes.
    fn json(&self, command: &str) -> String {
        let date = output("date", &["-u", "+%F"]);
        let mut json = format!(
            "{{\n  \"machine\": {{\n    \"cpu\": {:?},\n    \"cores\": {},\n    \
             \"kernel\": {:?},\n    \"rust\": {:?},\n    \"date\": {date:?},\n    \
             \"command\": {command:?}\n  }},\n  \
             \"tables\": [",
            cpu(),
            std::thread::available_parallelism().map_or(1, usize::from),
            Kernel::default().to_string(),
            output("rustc", &["--version"]).split(' ').nth(1).unwrap_or_default(),
        );
        for (number, Table { title, rows }) in self.tables.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            _ = write!(
                json,
                "{comma}\n    {{\n      \"title\": {title:?},\n      \"date\": {date:?},\n      \
                 \"command\": {command:?},\n      \"rows\": ["
            );
            let first = &rows[0].1;
            for (number, (name, rounds)) in rows.iter().enumerate() {
                let comma = if number == 0 { "" } else { "," };
                let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
                _ = write!(
                    json,
                    "{comma}\n        {{ \"name\": {name:?}, \"time\": {{ \"median\": {}, \
                     \"min\": {}, \"samples\": {} }}, \"ratio\": {} }}",
                    number_or_null(median(rounds.clone())),
                    number_or_null(least),
                    rounds.len(),
                    number_or_null(median(ratios(rounds, first))),
                );
            }
            json += "\n      ]\n    }";
        }
        json + "\n  ]\n}\n"
    }
}

/// Ratios to 0 requests are not numbers, and become null in JSON.
fn number_or_null(number: f64) -> String {
    if number.is_finite() { format!("{:.4}", number) } else { "null".to_owned() }
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().map(|output| output.stdout);
    String::from_utf8_lossy(&output.unwrap_or_default()).trim().to_owned()
}

/// Returns the processor's name, from Linux.
fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| info.lines().find(|line| line.starts_with(name))?.split(':').nth(1);
    let [model, family, number] =
        ["model name", "cpu family", "model\t"].map(|name| field(name).unwrap_or_default().trim());
    format!("{model} (family {family}, model {number})")
}

/// Returns the maximum resident bytes of the process since [`forget_peak`], on Linux.
pub(crate) fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib * 1024.0)
}

pub(crate) fn forget_peak() {
    // Elsewhere, and in containers that forbid this, the peak is that of the whole run.
    _ = std::fs::write("/proc/self/clear_refs", "5");
}
