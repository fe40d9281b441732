//! The report as Markdown tables.

use benches::table::{counted, markdown};

use crate::measure::{BATCH, SHORT};
use crate::peers::{BASELINE, BASELINE_AHEAD, OURS};
use crate::report::{Report, Section, Time, distinct};

pub(crate) fn tables(report: &Report) -> String {
    let mut out = head(report);
    for (mix, batch) in [("absent", BATCH), ("absent", SHORT), ("half", BATCH), ("present", BATCH)]
    {
        let times = report.section(Section::Query).filter(|t| t.mix == mix && t.batch == batch);
        out += &by_size(&format!("Hashes, {mix}, {batch} keys a call"), times);
    }
    for mix in ["absent", "present"] {
        let title = format!("16-byte keys, {mix}, hashing included, {BATCH} keys a call");
        out += &by_size(&title, report.section(Section::Keys).filter(|time| time.mix == mix));
    }
    out += &by_size("Building from hashes, one thread", report.section(Section::Build));
    let of_threads = |time: &Time| (time.threads, format!("threads: {}", time.threads));
    if let Some(first) = report.section(Section::Threads).next() {
        let title = format!(
            "Building {} keys of a known number by several threads, CPU time of the busiest",
            counted(first.keys)
        );
        out += &by(&title, report.section(Section::Threads), of_threads, false);
    }
    for (section, what) in [(Section::Batch, "hashes"), (Section::KeyBatch, "16-byte keys")] {
        for keys in distinct(report.section(section).map(|time| time.keys)) {
            let title =
                format!("Absent {what}, {} keys, by the number of keys a call", counted(keys));
            let times = report.section(section).filter(|time| time.keys == keys);
            out += &by(&title, times, |time| (time.batch, time.batch.to_string()), false);
        }
    }
    out + &rates(report) + &faster(report) + &crate::removable::table(&report.removable)
}

fn head(report: &Report) -> String {
    let machine = &report.machine;
    let load: Vec<String> = machine.load.iter().map(|load| format!("{load:.1}")).collect();
    let out = format!(
        "{}, {} cores, {}, kernel {}, {}, load {}\n\n    {}\n\n\
         ns per key, CPU time of the thread: median (least) over interleaved rounds, and the median as a multiple of blocked-bloom's. **Bold**: a filter \
         that is faster than blocked-bloom. {} bits per key were wanted; † hashes keys itself, always in its times.\n\n\
         | what | version | bits/key | how |\n|---|---|---:|---|\n",
        machine.cpu,
        machine.cores,
        machine.os,
        machine.kernel,
        machine.date,
        load.join(" at the start, "),
        machine.command.replace('\n', "\n    "),
        report.bits_per_key
    );
    let rows = report.peers.iter().map(|about| {
        let time = report.times.iter().rfind(|time| about.rows.contains(&time.row));
        let bits = time.map_or_else(|| "-".to_owned(), |time| format!("{:.2}", time.bits_per_key));
        format!("| {} | {} | {bits} | {} |\n", about.id, about.version, about.configuration)
    });
    out + &rows.collect::<String>()
}

fn is_baseline(row: &str) -> bool {
    [BASELINE, BASELINE_AHEAD].contains(&row)
}

/// Median, least, and the median as a multiple of `ours`; bold where that is below 1.
fn cell(time: &Time, ours: Option<&&Time>) -> String {
    let Some(ours) = ours.filter(|ours| ours.row != time.row) else { return time.ns.to_string() };
    let ratio = time.ns.median / ours.ns.median;
    let mark = if ratio < 0.995 && !is_baseline(&time.row) { "**" } else { "" };
    format!("{mark}{} {ratio:.2}×{mark}", time.ns)
}

fn by_size<'t>(title: &str, times: impl Iterator<Item = &'t Time>) -> String {
    by(title, times, |time| (time.keys as usize, counted(time.keys)), true)
}

/// A table with a column for each value of what `column` names.
fn by<'t>(
    title: &str,
    times: impl Iterator<Item = &'t Time>,
    column: impl Fn(&Time) -> (usize, String),
    beside_ours: bool,
) -> String {
    let times: Vec<&Time> = times.collect();
    if times.is_empty() {
        return String::new();
    }
    let columns = distinct(times.iter().map(|time| column(time)));
    let heads: Vec<String> =
        [String::new()].into_iter().chain(columns.iter().map(|(_, name)| name.clone())).collect();
    let find = |row: &str, at: usize| times.iter().find(|t| t.row == row && column(t).0 == at);
    let rows = distinct(times.iter().map(|time| time.row.clone())).into_iter().map(|row| {
        let cells = columns.iter().map(|&(at, _)| {
            let ours = find(OURS, at).filter(|_| beside_ours);
            find(&row, at).map_or_else(|| "-".to_owned(), |time| cell(time, ours))
        });
        let cells: Vec<String> = cells.collect();
        [&[row][..], &cells].concat()
    });
    format!("\n### {title}\n\n{}", markdown(&heads, rows))
}

/// The rate of a classical filter with the best whole number of probes, `min over k of (1 - e^(-k/bits))^k`.
pub(crate) fn classical(bits: f64) -> f64 {
    (1..=30)
        .map(|probes| (1.0 - (-f64::from(probes) / bits).exp()).powi(probes))
        .fold(1.0, f64::min)
}

fn rates(report: &Report) -> String {
    let Some(first) = report.rates.first() else { return String::new() };
    let mut columns = distinct(report.rates.iter().map(|rate| rate.bits_wanted));
    columns.sort_by(f64::total_cmp);
    let line = |name: &str, cell: &dyn Fn(f64) -> String| -> Vec<String> {
        [name.to_owned()].into_iter().chain(columns.iter().map(|&bits| cell(bits))).collect()
    };
    let mut rows = Vec::new();
    for id in distinct(report.rates.iter().map(|rate| &rate.id)) {
        let of = |bits| report.rates.iter().find(|r| r.id == *id && r.bits_wanted == bits);
        rows.push(line(id, &|bits| {
            let cell =
                of(bits).map(|rate| format!("{:.4} ({:.2})", rate.percent(), rate.bits_per_key));
            cell.unwrap_or_else(|| "-".to_owned())
        }));
        if id == OURS {
            let predicted = |bits| of(bits)?.predicted;
            rows.push(line("blocked-bloom, predicted", &|bits| {
                predicted(bits)
                    .map_or_else(|| "-".to_owned(), |rate| format!("{:.4}", 100.0 * rate))
            }));
        }
    }
    let formula = |bits| format!("{:.4}", 100.0 * classical(bits));
    rows.push(line("*classical filter, formula*", &formula));
    format!(
        "\n### False positives, {} keys, {} absent keys looked up: measured % (real bits per key)\n\n{}",
        counted(first.keys),
        counted(first.queries),
        markdown(&line("", &|bits| format!("{bits} bits/key")), rows)
    )
}

/// Everything that is faster than this library, in one list.
fn faster(report: &Report) -> String {
    let mut out = String::new();
    let sections =
        [(Section::Query, "hashes"), (Section::Keys, "16-byte keys"), (Section::Build, "building")];
    for (section, what) in sections {
        for row in distinct(report.section(section).map(|time| &time.row)) {
            if is_baseline(row) || row.starts_with(OURS) {
                continue;
            }
            let places =
                report.section(section).filter(|time| time.row == *row).filter_map(|time| {
                    let ours = report.section(section).find(|ours| {
                        ours.row == OURS
                            && (ours.keys, &ours.mix) == (time.keys, &time.mix)
                            && (ours.batch == time.batch || section == Section::Build)
                    });
                    let ratio = time.ns.median / ours?.ns.median;
                    let mix =
                        if time.mix == "-" { String::new() } else { format!("{} ", time.mix) };
                    let batch = if time.batch == SHORT { ", 32 a call" } else { "" };
                    (ratio < 0.995)
                        .then(|| format!("{mix}{}{batch} {ratio:.2}×", counted(time.keys)))
                });
            let places: Vec<String> = places.collect();
            if !places.is_empty() {
                out += &format!("- {row}, {what}: {}\n", places.join("; "));
            }
        }
    }
    if out.is_empty() {
        out += "Nowhere in this run.\n";
    }
    format!("\n### Where another is faster\n\n{out}")
}
