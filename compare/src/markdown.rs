//! The report as Markdown tables.

use benches::results::{Report, Section, Time, distinct};
use benches::table::{counted, markdown};
use benches::timing::Timing;

use crate::measure::{BATCH, SHORT};
use crate::peers::{BASELINE, BASELINE_AHEAD, OURS};

pub(crate) fn tables(report: &Report) -> String {
    let by_size = |time: &Time| (time.keys as usize, counted(time.keys));
    let by_batch = |time: &Time| (time.batch, time.batch.to_string());
    let of = |section| report.section(section);
    let mut out = head(report);
    for (mix, batch) in [("absent", BATCH), ("absent", SHORT), ("half", BATCH), ("present", BATCH)]
    {
        let times = of(Section::Query).filter(|time| time.mix == mix && time.batch == batch);
        out += &table(&format!("Hashes, {mix}, {batch} keys a call"), times, by_size, true);
    }
    for mix in ["absent", "present"] {
        let title = format!("16-byte keys, {mix}, hashing included, {BATCH} keys a call");
        out += &table(&title, of(Section::Keys).filter(|time| time.mix == mix), by_size, true);
    }
    out += &table("Building from hashes, one thread", of(Section::Build), by_size, true);
    let by_threads = |time: &Time| (time.threads, format!("threads: {}", time.threads));
    let title = "Building filters of a known number of keys, CPU time of the busiest thread";
    out += &table(title, of(Section::Threads), by_threads, false);
    for (section, what) in [(Section::Batch, "hashes"), (Section::KeyBatch, "16-byte keys")] {
        for keys in distinct(of(section).map(|time| time.keys)) {
            let title =
                format!("Absent {what}, {} keys, by the number of keys a call", counted(keys));
            out += &table(&title, of(section).filter(|time| time.keys == keys), by_batch, false);
        }
    }
    out + &rates(report) + &removable(report)
}

fn head(report: &Report) -> String {
    let machine = &report.machine;
    let out = format!(
        "{}, {} cores, kernel {}, {}\n\n    {}\n\n\
         ns per key, CPU time of the thread: median (least) over interleaved rounds, and the \
         median as a multiple of blocked-bloom's. **Bold**: a filter \
         that is faster than blocked-bloom. {} bits per key were wanted; † hashes keys itself, \
         always in its times.\n\n\
         | what | version | bits/key | how |\n|---|---|---:|---|\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.date,
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

/// Median, least, and the median as a multiple of `ours`; bold where that is below 1.
fn cell(time: &Time, ours: Option<&&Time>) -> String {
    let Some(ours) = ours.filter(|ours| ours.row != time.row) else { return time.ns.to_string() };
    let ratio = time.ns.median / ours.ns.median;
    let is_filter = ![BASELINE, BASELINE_AHEAD].contains(&&*time.row);
    let mark = if ratio < 0.995 && is_filter { "**" } else { "" };
    format!("{mark}{} {ratio:.2}×{mark}", time.ns)
}

/// A table with a column for each value of what `column` names.
fn table<'t>(
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
    let heads = [String::new()].into_iter().chain(columns.iter().map(|(_, name)| name.clone()));
    let find = |row: &str, at: usize| times.iter().find(|t| t.row == row && column(t).0 == at);
    let rows = distinct(times.iter().map(|time| time.row.clone())).into_iter().map(|row| {
        let cells = columns.iter().map(|&(at, _)| {
            let ours = find(OURS, at).filter(|_| beside_ours);
            find(&row, at).map_or_else(|| "-".to_owned(), |time| cell(time, ours))
        });
        [row.clone()].into_iter().chain(cells).collect::<Vec<_>>()
    });
    format!("\n### {title}\n\n{}", markdown(&heads.collect::<Vec<_>>(), rows))
}

/// The rate of a classical filter with the best whole number of probes, `min over k of (1 -
/// e^(-k/bits))^k`.
pub(crate) fn classical(bits: f64) -> f64 {
    let rate = |probes| (1.0 - (-f64::from(probes) / bits).exp()).powi(probes);
    (1..=30).map(rate).fold(1.0, f64::min)
}

fn rates(report: &Report) -> String {
    let Some(first) = report.rates.first() else { return String::new() };
    let mut columns = distinct(report.rates.iter().map(|rate| rate.bits_wanted));
    columns.sort_by(f64::total_cmp);
    let line = |name: &str, cell: &dyn Fn(f64) -> Option<String>| -> Vec<String> {
        let cells = columns.iter().map(|&bits| cell(bits).unwrap_or_else(|| "-".to_owned()));
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let percent = |rate: f64| format!("{:.4}", 100.0 * rate);
    let mut rows = Vec::new();
    for id in distinct(report.rates.iter().map(|rate| &rate.id)) {
        let of = |bits| report.rates.iter().find(|r| r.id == *id && r.bits_wanted == bits);
        rows.push(line(id, &|bits| {
            of(bits).map(|rate| format!("{:.4} ({:.2})", rate.percent(), rate.bits_per_key))
        }));
    }
    rows.push(line("*classical filter, formula*", &|bits| Some(percent(classical(bits)))));
    format!(
        "\n### False positives, {} keys, {} absent keys looked up: \
         measured % (real bits per key)\n\n{}",
        counted(first.keys),
        counted(first.queries),
        markdown(&line("", &|bits| Some(format!("{bits} bits/key"))), rows)
    )
}

fn removable(report: &Report) -> String {
    let rows = &report.removable;
    if rows.is_empty() {
        return String::new();
    }
    let heads = "keys,,bits/key,absent,present,add,remove,false positives,lost"
        .split(',')
        .map(str::to_owned);
    let lines = rows.iter().map(|row| {
        let bloom = rows.iter().find(|other| other.keys == row.keys);
        let cell = |time: Option<Timing>, beside: usize| {
            let base = bloom.and_then(|row| row.times[beside]);
            time.zip(base).map_or_else(
                || "-".to_owned(),
                |(time, base)| format!("{:.2} ({:.2}x)", time.median, time.median / base.median),
            )
        };
        let [absent, present, add, remove] = row.times;
        vec![
            row.keys.to_string(),
            row.name.clone(),
            format!("{:.2}", row.bits_per_key),
            cell(absent, 0),
            cell(present, 1),
            cell(add, 2),
            cell(remove, 2),
            format!("{:.3} %", row.passed as f64 / 1e4),
            row.lost.map_or_else(|| "-".to_owned(), |lost| lost.to_string()),
        ]
    });
    format!(
        "\n## Filters that keys can be removed from, {BATCH} keys a call\n\n\
         In brackets the median as a multiple of the Bloom filter's, whose additions also stand \
         for removals. \"Lost\" are keys that were added and are not found after a million \
         removals of keys that were never added. † hashes keys itself.\n\n{}",
        markdown(&heads.collect::<Vec<_>>(), lines)
    )
}
