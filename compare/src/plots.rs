//! The pictures: which figures of a report each shows, and how.

use crate::chart::{Axis, Chart, Label, Line, Mark, Panel, Point, Series};
use crate::own::{
    BASELINE, BASELINE_AHEAD, OURS, OURS_SINGLE, ROCKSDB, ROCKSDB_BATCH, SPLIT, SPLIT_AHEAD,
};
use crate::queries::BATCH;
use crate::rates::{classical, predicted};
use crate::report::{Report, Section, Time};
use crate::rust_peers::SBBF_RS;

// A colour is a kind of filter, in every picture; marks tell the rows of a kind apart.
/// This crate.
const ORANGE: &str = "#e8590c";
/// The reference.
const GREY: &str = "#8b949e";
/// RocksDB's loop: the same bits as this crate.
const BLUE: &str = "#3b82f6";
/// The split-block loop that was written for the comparison.
const GREEN: &str = "#2f9e44";
/// Packages with split blocks.
const TEAL: &str = "#1098ad";
/// Classical filters.
const PURPLE: &str = "#9c5de6";
/// A package with blocks of 512 bits, several to a key.
const PINK: &str = "#d6336c";
/// Fuse filters.
const BROWN: &str = "#b0803a";

const MEDIAN: &str = "Points: medians over interleaved rounds; thin lines: to the least.";

/// File names and pictures; those whose figures were not measured are missing.
pub(crate) fn all(report: &Report) -> Vec<(&'static str, String)> {
    let pictures = [
        ("time-per-key.svg", size(report)),
        ("false-positives.svg", rates(report)),
        ("throughput.svg", throughput(report)),
        ("batch-size.svg", batches(report)),
    ];
    let is_drawn = |chart: &Chart| chart.panels.iter().any(|panel| !panel.series.is_empty());
    pictures
        .into_iter()
        .filter(|(_, chart)| is_drawn(chart))
        .map(|(name, chart)| (name, chart.svg()))
        .collect()
}

/// Where, when and how it was measured.
fn notes(report: &Report, first: &str) -> Vec<String> {
    let machine = &report.machine;
    let mut notes = vec![
        first.to_owned(),
        format!(
            "{}, {} cores shared with others, kernel {}, {}.",
            machine.cpu, machine.cores, machine.kernel, machine.date
        ),
    ];
    notes.push(commands(&machine.command));
    notes
}

/// The commands without what only says where results go; of further ones the arguments.
fn commands(all: &str) -> String {
    let mut shown = String::new();
    for command in all.lines() {
        let (program, arguments) = command.split_once(" -- ").unwrap_or((command, ""));
        let mut words = arguments.split(' ');
        let mut kept = Vec::new();
        while let Some(word) = words.next() {
            match word {
                "--json" | "--plots" => _ = words.next(),
                _ => kept.push(word),
            }
        }
        let kept = kept.join(" ");
        shown.push_str(&match shown.is_empty() {
            true if kept.is_empty() => program.to_owned(),
            true => format!("{program} -- {kept}"),
            false => format!("; {kept}"),
        });
    }
    shown
}

/// Name in the pictures, colour, line and mark of each row.
fn look(row: &str) -> Option<(&str, &'static str, Line, Mark)> {
    Some(match row {
        OURS => (OURS, ORANGE, Line::Thick, Mark::Dot),
        OURS_SINGLE => ("blocked-bloom, one key", ORANGE, Line::Thin, Mark::Ring),
        BASELINE => ("memory-bound baseline", GREY, Line::Thin, Mark::Dot),
        BASELINE_AHEAD => ("baseline, prefetching", GREY, Line::Thin, Mark::Ring),
        ROCKSDB => ("RocksDB's loop, one key", BLUE, Line::Thin, Mark::Ring),
        ROCKSDB_BATCH => ("RocksDB's loop, 32 keys", BLUE, Line::Thin, Mark::Dot),
        SPLIT => ("split-block loop", GREEN, Line::Thin, Mark::Ring),
        SPLIT_AHEAD => ("split blocks, prefetching", GREEN, Line::Thin, Mark::Dot),
        SBBF_RS => (row, TEAL, Line::Thin, Mark::Ring),
        "parquet Sbbf †" => (row, TEAL, Line::Thin, Mark::Diamond),
        "fastbloom" => (row, PURPLE, Line::Thin, Mark::Dot),
        "bloomfilter †" => (row, PURPLE, Line::Thin, Mark::Ring),
        "fastbloom 0.6, blocks of 512" => ("fastbloom 0.6, blocks", PINK, Line::Thin, Mark::Square),
        "xorf BinaryFuse8" => (row, BROWN, Line::Thin, Mark::Diamond),
        _ => return None,
    })
}

fn series(row: &str, points: Vec<Point>) -> Option<Series> {
    let (name, colour, line, mark) = look(row)?;
    (!points.is_empty()).then(|| Series {
        name: name.to_owned(),
        colour,
        points,
        line,
        mark,
        label: Label::Right,
    })
}

fn point(x: f64, time: &Time) -> Point {
    Point { x, y: time.ns.median, to: time.ns.min }
}

/// Nanoseconds, logarithmic, around all points.
fn nanoseconds(series: &[Series]) -> Axis {
    let points = || series.iter().flat_map(|series| &series.points);
    let min = points().map(|point| point.y).fold(f64::INFINITY, f64::min) * 0.7;
    let max = points().map(|point| point.y).fold(0.0, f64::max) * 1.6;
    let ticks = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    let ticks = ticks.into_iter().filter(|tick| (min..=max).contains(tick));
    Axis {
        label: "ns per key".to_owned(),
        is_log: true,
        min,
        max,
        ticks: ticks.map(|tick| (tick, tick.to_string())).collect(),
    }
}

fn counted(keys: u64) -> String {
    match keys {
        0..1_000_000 => format!("{} k", keys / 1_000),
        _ => format!("{} M", keys / 1_000_000),
    }
}

/// The rows of the first picture beside the baseline: this crate, what beats it somewhere, RocksDB's loop and a classical filter.
const FIRST: [&str; 5] = [OURS, ROCKSDB_BATCH, SPLIT, SPLIT_AHEAD, "fastbloom"];

fn size(report: &Report) -> Chart {
    let sizes = report.distinct(Section::Query, |time| time.keys);
    let rows = report.distinct(Section::Query, |time| time.row.clone());
    let absent = |row: &str, keys| report.query(row, keys, "absent", BATCH);
    let mut drawn: Vec<Series> = rows
        .iter()
        .filter(|row| FIRST.contains(&row.as_str()))
        .filter_map(|row| {
            let times = sizes.iter().filter_map(|&keys| absent(row, keys));
            series(row, times.map(|time| point(time.keys as f64, time)).collect())
        })
        .collect();
    // The faster of the two loops.
    let baseline = sizes.iter().filter_map(|&keys| {
        let (plain, ahead) = (absent(BASELINE, keys)?, absent(BASELINE_AHEAD, keys)?);
        let y = plain.ns.median.min(ahead.ns.median);
        Some(Point { x: keys as f64, y, to: y })
    });
    let baseline: Vec<Point> = baseline.collect();
    let ratios = || {
        let of = |point: &Point| Some(absent(OURS, point.x as u64)?.ns.median / point.y);
        baseline.iter().filter_map(of)
    };
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    drawn.extend(series(BASELINE, baseline));
    let bytes = |keys: u64| {
        let bytes = keys as f64 * report.bits_per_key / 8.0;
        if bytes < 1e6 { format!("{} KB", bytes / 1e3) } else { format!("{} MB", bytes / 1e6) }
    };
    let x = Axis {
        label: "keys in the filter".to_owned(),
        is_log: true,
        min: sizes.iter().copied().min().unwrap_or(1) as f64 * 0.8,
        max: sizes.iter().copied().max().unwrap_or(10) as f64 * 1.1,
        ticks: sizes
            .iter()
            .map(|&keys| (keys as f64, format!("{}\n{}", counted(keys), bytes(keys))))
            .collect(),
    };
    let panel = Panel {
        title: String::new(),
        y: nanoseconds(&drawn),
        x,
        series: drawn,
        height: 420.0,
        right: 222.0,
    };
    let mut notes = notes(
        report,
        &format!(
            "{} bits per key, absent keys, hashes given, {BATCH} keys a call. {MEDIAN}",
            report.bits_per_key
        ),
    );
    notes.insert(
        1,
        "Memory-bound baseline, for reference: the faster of two loops that load one line per key and test nothing."
            .to_owned(),
    );
    Chart {
        title: format!(
            "A batch takes {least:.1} to {most:.1} times as long as loading one line per key"
        ),
        notes,
        panels: vec![panel],
    }
}

fn rates(report: &Report) -> Chart {
    let curve = |rate: fn(f64) -> f64| -> Vec<Point> {
        let bits = (12..=40).map(|half| f64::from(half) / 2.0);
        bits.map(|bits| (bits, 100.0 * rate(bits))).map(|(x, y)| Point { x, y, to: y }).collect()
    };
    let measured = |id: &str| -> Vec<Point> {
        let mut rates: Vec<_> =
            report.rates.iter().filter(|rate| rate.id == id && rate.false_positives > 0).collect();
        rates.sort_by(|a, b| a.bits_per_key.total_cmp(&b.bits_per_key));
        rates
            .into_iter()
            .map(|rate| (rate.bits_per_key, 100.0 * rate.rate()))
            .map(|(x, y)| Point { x, y, to: y })
            .collect()
    };
    let keys = report.rates.first().map_or(0, |rate| rate.keys);
    let queries = report.rates.first().map_or(0, |rate| rate.queries);
    let list = [
        ("sbbf-rs-safe (split blocks)", TEAL, Line::None, Mark::Ring, measured(SBBF_RS)),
        ("parquet Sbbf (split blocks)", TEAL, Line::None, Mark::Diamond, measured("parquet Sbbf")),
        ("blocked-bloom, predicted", ORANGE, Line::Thick, Mark::None, curve(predicted)),
        ("blocked-bloom, measured", ORANGE, Line::None, Mark::Dot, measured(OURS)),
        (
            "fastbloom 0.6, blocks",
            PINK,
            Line::None,
            Mark::Square,
            measured("fastbloom 0.6, blocks of 512"),
        ),
        ("classical filter, formula", PURPLE, Line::Thin, Mark::None, curve(classical)),
        ("fastbloom (classical)", PURPLE, Line::None, Mark::Dot, measured("fastbloom")),
        ("bloomfilter (classical)", PURPLE, Line::None, Mark::Ring, measured("bloomfilter")),
        ("xorf BinaryFuse8", BROWN, Line::None, Mark::Diamond, measured("xorf BinaryFuse8")),
    ];
    let drawn = list.into_iter().filter(|(.., points)| !points.is_empty()).map(
        |(name, colour, line, mark, points)| Series {
            name: name.to_owned(),
            colour,
            points,
            line,
            mark,
            label: Label::Listed,
        },
    );
    let panel = Panel {
        title: String::new(),
        x: Axis {
            label: "bits per key".to_owned(),
            is_log: false,
            min: 5.5,
            max: 20.5,
            ticks: [6, 8, 10, 12, 14, 16, 18, 20]
                .map(|bits| (f64::from(bits), bits.to_string()))
                .into(),
        },
        y: Axis {
            label: "false positives".to_owned(),
            is_log: true,
            min: 0.003,
            max: 16.0,
            ticks: [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
                .map(|rate| (rate, format!("{rate} %")))
                .into(),
        },
        series: drawn.collect(),
        height: 400.0,
        right: 16.0,
    };
    let measured = format!(
        "Measured with {} keys and {} absent ones for each filter.",
        counted(keys),
        counted(queries)
    );
    Chart {
        title: "False positives against memory".to_owned(),
        notes: notes(report, &measured),
        panels: vec![panel],
    }
}

fn throughput(report: &Report) -> Chart {
    let sizes = report.distinct(Section::Query, |time| time.keys);
    let shown = [1_000_000, 100_000_000].into_iter().filter(|keys| sizes.contains(keys));
    let panel = |keys: u64| {
        let rows = report.distinct(Section::Query, |time| time.row.clone());
        let mut drawn = Vec::new();
        for row in &rows {
            let rate = report.about(row).and_then(|about| {
                let mut rates = report.rates.iter();
                rates
                    .find(|rate| rate.id == about.id && rate.bits_wanted == report.bits_per_key)
                    .or_else(|| report.rates.iter().find(|rate| rate.id == about.id))
            });
            let (Some(rate), Some(time)) = (rate, report.query(row, keys, "absent", BATCH)) else {
                continue;
            };
            let point =
                Point { x: 100.0 * rate.rate(), y: 1e3 / time.ns.median, to: 1e3 / time.ns.min };
            drawn.extend(series(row, vec![point]).map(|series| Series {
                label: Label::Listed,
                line: Line::None,
                ..series
            }));
        }
        drawn.sort_by(|a, b| b.points[0].y.total_cmp(&a.points[0].y));
        let most = drawn.iter().map(|series| series.points[0].y).fold(0.0, f64::max);
        let least = drawn.iter().map(|series| series.points[0].y).fold(f64::INFINITY, f64::min);
        let (min, max) = (least * 0.55, most * 1.6);
        let ticks =
            [2, 5, 10, 20, 50, 100, 200, 500, 1000].map(|tick| (f64::from(tick), tick.to_string()));
        Panel {
            title: format!("{} keys", counted(keys)),
            x: Axis {
                label: "false positives".to_owned(),
                is_log: false,
                min: 0.2,
                max: 1.7,
                ticks: [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
                    .map(|rate| (rate, format!("{rate} %")))
                    .into(),
            },
            y: Axis {
                label: "million keys per second".to_owned(),
                is_log: true,
                min,
                max,
                ticks: ticks.into_iter().filter(|(tick, _)| (min..=max).contains(tick)).collect(),
            },
            series: drawn,
            height: 290.0,
            right: 222.0,
        }
    };
    let first = format!(
        "{} bits per key (BinaryFuse8: about 9), absent keys, hashes given, {BATCH} keys a call, one core. Better: up and left.",
        report.bits_per_key
    );
    let mut notes = notes(report, &first);
    notes.insert(
        1,
        "Points: medians over interleaved rounds; thin lines: to the fastest.".to_owned(),
    );
    Chart {
        title: "Throughput against false positives at equal memory".to_owned(),
        notes,
        panels: shown.map(panel).collect(),
    }
}

fn batches(report: &Report) -> Chart {
    let sizes = report.distinct(Section::Batch, |time| time.keys);
    let rows = report.distinct(Section::Batch, |time| time.row.clone());
    let numbers = report.distinct(Section::Batch, |time| time.batch);
    let panel = |keys: u64| {
        let drawn: Vec<Series> = rows
            .iter()
            .filter_map(|row| {
                let times = report.section(Section::Batch);
                let times = times.filter(|time| time.keys == keys && time.row == *row);
                series(row, times.map(|time| point(time.batch as f64, time)).collect())
            })
            .collect();
        Panel {
            title: format!("{} keys", counted(keys)),
            x: Axis {
                label: "keys a call".to_owned(),
                is_log: true,
                min: 0.9,
                max: numbers.iter().copied().max().unwrap_or(2) as f64 * 1.1,
                ticks: numbers.iter().map(|&batch| (batch as f64, batch.to_string())).collect(),
            },
            y: nanoseconds(&drawn),
            series: drawn,
            height: 290.0,
            right: 222.0,
        }
    };
    let first =
        format!("{} bits per key, absent keys, hashes given. {MEDIAN}", report.bits_per_key);
    Chart {
        title: "Time per key against the size of the batch".to_owned(),
        notes: notes(report, &first),
        panels: sizes.into_iter().map(panel).collect(),
    }
}
