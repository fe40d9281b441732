//! Tables of measured runs.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::Result;

/// One run of a query.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// CPU seconds of the processes that run the query.
    pub(crate) cpu: f64,
    pub(crate) bytes: u64,
    /// Input and output rows of the probes.
    pub(crate) probed: Option<(u64, u64)>,
}

/// Returns the input and output rows of all probes in the output of `EXPLAIN ANALYZE`.
pub(crate) fn probed(plan: &str) -> Option<(u64, u64)> {
    let probes = plan.lines().filter(|line| line.contains("BloomProbeExec"));
    let rows = probes.filter_map(|line| {
        let number = |name: &str| -> Option<u64> {
            let after = line.split(name).nth(1)?;
            let value = after.split([',', ']']).next()?.trim();
            let (digits, unit) = match value.split_once(' ') {
                Some((digits, unit)) => (digits, unit.trim()),
                None => (value, ""),
            };
            let scale = match unit.chars().next() {
                Some('K') => 1e3,
                Some('M') => 1e6,
                _ => 1.0,
            };
            Some((digits.parse::<f64>().ok()? * scale).round() as u64)
        };
        Some((number("input_rows=")?, number("output_rows=")?))
    });
    rows.reduce(|sum, next| (sum.0 + next.0, sum.1 + next.1))
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    (low + high) / 2.0
}

/// Prints the medians of each mode. For every second mode, also prints the ratios to the previous
/// one.
pub(crate) fn print_medians(modes: &[&str], all: &[Vec<Run>]) {
    println!(
        "{:<24} {:>9} {:>9} {:>12} {:>22}",
        "", "seconds", "CPU s", "MB shuffled", "rows probed -> kept"
    );
    for (mode, runs) in modes.iter().zip(all) {
        let of = |value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        let probed = runs.iter().find_map(|run| run.probed);
        let probed = probed.map_or(String::new(), |(from, to)| format!("{from} -> {to}"));
        println!(
            "{mode:<24} {:>9.2} {:>9.2} {:>12.2} {probed:>22}",
            of(|run| run.seconds),
            of(|run| run.cpu),
            of(|run| run.bytes as f64) / 1e6,
        );
    }
    for (names, pair) in modes.chunks_exact(2).zip(all.chunks_exact(2)) {
        let (plain, filtered) = (&pair[0], &pair[1]);
        // Modes run in turn, so that noise affects both alike.
        let ratio = |value| ratio(plain, filtered, value);
        println!(
            "{} / {}: seconds {}, CPU {}, bytes {}",
            names[1],
            names[0],
            ratio(|run| run.seconds),
            ratio(|run| run.cpu),
            ratio(|run| run.bytes as f64),
        );
    }
}

/// Returns the rows in order, one per line. Formatting a table of forty thousand rows would take
/// half a minute.
pub(crate) fn lines(batches: &[RecordBatch]) -> Result<String> {
    let mut lines = String::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            for column in batch.columns() {
                lines += &array_value_to_string(column, row)?;
                lines.push('|');
            }
            lines.push('\n');
        }
    }
    Ok(lines)
}

/// Prints the head of a table of [`Query`] rows: with `counted` bytes, or, with 0 `runs`, for
/// checked rows.
pub(crate) fn print_head(runs: usize, counted: &str) {
    if runs == 0 {
        println!("| query | filters | rows |\n|---|---|---|");
        return;
    }
    print!("| query | filters | seconds without / with | CPU seconds | {counted} ");
    println!("| seconds | CPU | bytes |\n|---|---|---|---|---|---|---|---|");
}

/// Returns the median ratio of paired runs, if the value without a filter is not 0.
fn ratio(plain: &[Run], filtered: &[Run], value: fn(&Run) -> f64) -> String {
    let pairs = plain.iter().zip(filtered).filter(|(p, _)| value(p) > 0.0);
    let ratios: Vec<f64> = pairs.map(|(p, f)| value(f) / value(p)).collect();
    if ratios.is_empty() { "-".into() } else { format!("{:.3}", median(ratios)) }
}

/// The runs of a query without and with filters.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) name: String,
    pub(crate) filters: usize,
    /// Whether both runs have the same plan, so that their ratio would be noise.
    pub(crate) same_plan: bool,
    pub(crate) plain: Vec<Run>,
    pub(crate) filtered: Vec<Run>,
}

impl Query {
    /// Prints a row of medians and of median ratios (with filters over without).
    pub(crate) fn print(&self) {
        let (plain, filtered) = (&self.plain, &self.filtered);
        let both = |value: fn(&Run) -> f64| {
            let of = |runs: &[Run]| median(runs.iter().map(value).collect());
            format!("{:.2} / {:.2}", of(plain), of(filtered))
        };
        let ratio = |value: fn(&Run) -> f64| {
            if self.same_plan {
                return "same plan".to_string();
            }
            ratio(plain, filtered, value)
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.name,
            self.filters,
            both(|run| run.seconds),
            both(|run| run.cpu),
            both(|run| run.bytes as f64 / 1e6),
            ratio(|run| run.seconds),
            ratio(|run| run.cpu),
            ratio(|run| run.bytes as f64)
        );
    }

    /// Adds up queries, run by run.
    pub(crate) fn sum(name: &str, queries: &[Query]) -> Query {
        let sum = |runs: fn(&Query) -> &Vec<Run>| -> Vec<Run> {
            let of = |run: usize| {
                let of = || queries.iter().map(|query| &runs(query)[run]);
                Run {
                    seconds: of().map(|run| run.seconds).sum(),
                    cpu: of().map(|run| run.cpu).sum(),
                    bytes: of().map(|run| run.bytes).sum(),
                    probed: None,
                }
            };
            (0..queries.first().map_or(0, |query| runs(query).len())).map(of).collect()
        };
        Query {
            name: name.into(),
            filters: queries.iter().map(|query| query.filters).sum(),
            same_plan: queries.iter().all(|query| query.same_plan),
            plain: sum(|query| &query.plain),
            filtered: sum(|query| &query.filtered),
        }
    }
}
