//! Prints a plan as text. Sizes are in bytes.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use super::Plan;

const HEADINGS: [&str; 7] =
    ["level", "keys", "bits/key", "probes", "stored bytes", "false positives", "wasted reads"];

/// Prints a line for each level and one for the total. Wasted reads are per lookup.
impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<[String; 7]> = Vec::from([HEADINGS.map(String::from)]);
        for (index, planned) in self.levels.iter().enumerate() {
            let (bits, probes, rate) = match planned.skipped {
                Some(reason) => ("no filter".into(), "-".into(), reason.to_string()),
                None => (
                    format!("{:.2}", planned.bits_per_key()),
                    planned.params.probes().to_string(),
                    percent(planned.false_positive_rate()),
                ),
            };
            let [bytes, reads] =
                [planned.bytes().to_string(), number(planned.expected_wasted_reads())];
            let keys = planned.level.keys.to_string();
            rows.push([index.to_string(), keys, bits, probes, bytes, rate, reads]);
        }
        let [bytes, reads] = [self.bytes().to_string(), number(self.expected_wasted_reads())];
        let empty = String::new;
        rows.push(["all".into(), empty(), empty(), empty(), bytes, empty(), reads]);
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: [usize; 7] = core::array::from_fn(width);
        for (line, row) in rows.iter().enumerate() {
            let end = if line == 0 { "" } else { "\n" };
            f.write_str(end)?;
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                write!(f, "{gap}{cell:>width$}")?;
            }
        }
        Ok(())
    }
}

fn percent(rate: f64) -> String {
    match rate * 100.0 {
        percent @ 0.001.. => format!("{percent:.3} %"),
        percent => format!("{percent:.2e} %"),
    }
}

fn number(reads: f64) -> String {
    match reads {
        0.0 => "0".into(),
        0.0001..1e6 => format!("{reads:.4}"),
        reads => format!("{reads:.2e}"),
    }
}
