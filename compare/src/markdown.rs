//! The report as Markdown tables.

use std::fmt::Write;

use crate::own::{BASELINE, BASELINE_AHEAD, OURS};
use crate::queries::{BATCH, SHORT};
use crate::rates::classical;
use crate::report::{Report, Section, Time};

pub(crate) fn tables(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    for (mix, batch) in [("absent", BATCH), ("absent", SHORT), ("half", BATCH), ("present", BATCH)]
    {
        let title = format!("Hashes, {mix}, {batch} keys a call");
        by_size(&mut out, report, Section::Query, &title, |time| {
            time.mix == mix && time.batch == batch
        });
    }
    for mix in ["absent", "present"] {
        let title = format!("16-byte keys, {mix}, hashing included, {BATCH} keys a call");
        by_size(&mut out, report, Section::Keys, &title, |time| time.mix == mix);
    }
    by_size(&mut out, report, Section::Build, "Building from hashes, one thread", |_| true);
    threads(&mut out, report);
    batches(&mut out, report, Section::Batch, "hashes");
    batches(&mut out, report, Section::KeyBatch, "16-byte keys");
    rates(&mut out, report);
    faster(&mut out, report);
    crate::removable::table(&mut out, &report.removable);
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes all");
}

fn head(out: &mut String, report: &Report) {
    let machine = &report.machine;
    let load: Vec<String> = machine.load.iter().map(|load| format!("{load:.1}")).collect();
    push(
        out,
        format_args!(
            "{}, {} cores, {}, kernel {}, {}, load {}\n\n    {}\n",
            machine.cpu,
            machine.cores,
            machine.os,
            machine.kernel,
            machine.date,
            load.join(" at the start, "),
            machine.command.replace('\n', "\n    ")
        ),
    );
    push(
        out,
        format_args!(
            "ns per key, CPU time of the thread: median (least) over interleaved rounds, and the median as a multiple of blocked-bloom's. **Bold**: a filter that \
         is faster than blocked-bloom. {} bits per key were wanted; † hashes keys itself, always in its times.\n",
            report.bits_per_key
        ),
    );
    push(out, format_args!("| what | version | bits/key | how |\n|---|---|---:|---|"));
    for about in &report.peers {
        let time = report.times.iter().rfind(|time| about.rows.contains(&time.row));
        let bits = time.map_or_else(|| "-".to_owned(), |time| format!("{:.2}", time.bits_per_key));
        push(
            out,
            format_args!("| {} | {} | {bits} | {} |", about.id, about.version, about.configuration),
        );
    }
}

fn counted(keys: u64) -> String {
    if keys < 1_000_000 { format!("{} k", keys / 1_000) } else { format!("{} M", keys / 1_000_000) }
}

fn is_baseline(row: &str) -> bool {
    [BASELINE, BASELINE_AHEAD].contains(&row)
}

/// Median, least, and the median as a multiple of `ours`; bold where that is below 1.
fn cell(time: &Time, ours: Option<&Time>) -> String {
    let ns = time.ns;
    let times = format!("{:.2} ({:.2})", ns.median, ns.min);
    match ours {
        Some(ours) if ours.row != time.row => {
            let ratio = ns.median / ours.ns.median;
            let is_faster = ratio < 0.995 && !is_baseline(&time.row);
            if is_faster {
                format!("**{times} {ratio:.2}×**")
            } else {
                format!("{times} {ratio:.2}×")
            }
        }
        _ => times,
    }
}

/// A table with a column for each number of keys.
fn by_size(
    out: &mut String,
    report: &Report,
    section: Section,
    title: &str,
    is_in: impl Fn(&Time) -> bool,
) {
    let times: Vec<&Time> = report.section(section).filter(|time| is_in(time)).collect();
    let columns = report.distinct(section, |time| time.keys);
    if times.is_empty() {
        return;
    }
    let names: Vec<String> = columns.iter().map(|&keys| counted(keys)).collect();
    push(out, format_args!("\n### {title}\n\n| | {} |", names.join(" | ")));
    push(out, format_args!("|---|{}", "---:|".repeat(columns.len())));
    for row in report.distinct(section, |time| time.row.clone()) {
        let find = |row: &str, keys| times.iter().find(|time| time.row == row && time.keys == keys);
        let cells: Vec<String> = columns
            .iter()
            .map(|&keys| {
                let ours = find(OURS, keys).copied();
                find(&row, keys).map_or_else(|| "-".to_owned(), |time| cell(time, ours))
            })
            .collect();
        if cells.iter().any(|cell| cell != "-") {
            push(out, format_args!("| {row} | {} |", cells.join(" | ")));
        }
    }
}

fn threads(out: &mut String, report: &Report) {
    let columns = report.distinct(Section::Threads, |time| time.threads);
    let Some(first) = report.section(Section::Threads).next() else { return };
    let names: Vec<String> = columns.iter().map(|threads| format!("threads: {threads}")).collect();
    push(
        out,
        format_args!(
            "\n### Building {} keys of a known number by several threads, CPU time of the busiest\n\n| | {} |\n|---|{}",
            counted(first.keys),
            names.join(" | "),
            "---:|".repeat(columns.len())
        ),
    );
    for row in report.distinct(Section::Threads, |time| time.row.clone()) {
        let mut times = report.section(Section::Threads).filter(|time| time.row == row);
        let cells: Vec<String> = times.by_ref().map(|time| cell(time, None)).collect();
        push(out, format_args!("| {row} | {} |", cells.join(" | ")));
    }
}

fn batches(out: &mut String, report: &Report, section: Section, what: &str) {
    let columns = report.distinct(section, |time| time.batch);
    for keys in report.distinct(section, |time| time.keys) {
        let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
        push(
            out,
            format_args!(
                "\n### Absent {what}, {} keys, by the number of keys a call\n\n| | {} |\n|---|{}",
                counted(keys),
                names.join(" | "),
                "---:|".repeat(columns.len())
            ),
        );
        for row in report.distinct(section, |time| time.row.clone()) {
            let times = report.section(section);
            let times = times.filter(|time| time.row == row && time.keys == keys);
            let cells: Vec<String> = times.map(|time| cell(time, None)).collect();
            push(out, format_args!("| {row} | {} |", cells.join(" | ")));
        }
    }
}

fn rates(out: &mut String, report: &Report) {
    let Some(first) = report.rates.first() else { return };
    let mut columns: Vec<f64> = Vec::new();
    for rate in &report.rates {
        if !columns.contains(&rate.bits_wanted) {
            columns.push(rate.bits_wanted);
        }
    }
    columns.sort_by(f64::total_cmp);
    let names: Vec<String> = columns.iter().map(|bits| format!("{bits} bits/key")).collect();
    push(
        out,
        format_args!(
            "\n### False positives, {} keys, {} absent keys looked up: measured % (real bits per key)\n\n| | {} |\n|---|{}",
            counted(first.keys),
            counted(first.queries),
            names.join(" | "),
            "---:|".repeat(columns.len())
        ),
    );
    for about in &report.peers {
        let of = |bits: &f64| {
            report.rates.iter().find(|rate| rate.id == about.id && rate.bits_wanted == *bits)
        };
        if !columns.iter().any(|bits| of(bits).is_some()) {
            continue;
        }
        let measured: Vec<String> = columns
            .iter()
            .map(|bits| {
                of(bits).map_or_else(
                    || "-".to_owned(),
                    |rate| format!("{:.4} ({:.2})", 100.0 * rate.rate(), rate.bits_per_key),
                )
            })
            .collect();
        push(out, format_args!("| {} | {} |", about.id, measured.join(" | ")));
        if about.id == OURS {
            let predicted: Vec<String> = columns
                .iter()
                .map(|bits| of(bits).and_then(|rate| rate.predicted).unwrap_or(f64::NAN))
                .map(|rate| format!("{:.4}", 100.0 * rate))
                .collect();
            push(out, format_args!("| blocked-bloom, predicted | {} |", predicted.join(" | ")));
        }
    }
    let formula: Vec<String> =
        columns.iter().map(|&bits| format!("{:.4}", 100.0 * classical(bits))).collect();
    push(out, format_args!("| *classical filter, formula* | {} |", formula.join(" | ")));
}

/// Everything that is faster than this library, or lets fewer absent keys pass in no more memory, in one list.
fn faster(out: &mut String, report: &Report) {
    push(out, format_args!("\n### Where another is faster\n"));
    let mut is_any = false;
    for section in [Section::Query, Section::Keys, Section::Build] {
        for row in report.distinct(section, |time| time.row.clone()) {
            let mut places: Vec<String> = Vec::new();
            for time in report.section(section).filter(|time| time.row == row) {
                let ours = report.section(section).find(|ours| {
                    ours.row == OURS
                        && (ours.keys, &ours.mix, ours.batch) == (time.keys, &time.mix, time.batch)
                });
                let Some(ours) = ours else { continue };
                let ratio = time.ns.median / ours.ns.median;
                if ratio < 0.995 && !is_baseline(&row) && !row.starts_with(OURS) {
                    let mix =
                        if time.mix == "-" { String::new() } else { format!("{} ", time.mix) };
                    let batch = if time.batch == SHORT { ", 32 a call" } else { "" };
                    places.push(format!("{mix}{}{batch} {ratio:.2}×", counted(time.keys)));
                }
            }
            if !places.is_empty() {
                is_any = true;
                let what = match section {
                    Section::Keys => "16-byte keys",
                    Section::Build => "building",
                    _ => "hashes",
                };
                push(out, format_args!("- {row}, {what}: {}", places.join("; ")));
            }
        }
    }
    if !is_any {
        push(out, format_args!("Nowhere in this run."));
    }
}
