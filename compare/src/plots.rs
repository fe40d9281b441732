//! The pictures: which figures of a report each shows, and how.

use benches::chart::{Axis, Chart, Line, Mark, Panel, Point, Series};
use benches::table::counted;
use blocked_bloom::Sizing;

use crate::markdown::classical;
use crate::measure::BATCH;
use crate::peers::{
    BASELINE, BASELINE_AHEAD, OURS, OURS_SINGLE, ROCKSDB, ROCKSDB_BATCH, SBBF_RS, SPLIT,
    SPLIT_AHEAD,
};
use crate::report::{Report, Section, Time, distinct};

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

/// The rows of the first picture beside the baseline: this crate, what beats it somewhere, RocksDB's loop and a classical filter.
const FIRST: [&str; 5] = [OURS, ROCKSDB_BATCH, SPLIT, SPLIT_AHEAD, "fastbloom"];

/// File names and pictures; those whose figures were not measured are missing.
pub(crate) fn all(report: &Report) -> Vec<(&'static str, String)> {
    let pictures = [
        ("time-per-key.svg", size(report)),
        ("false-positives.svg", rates(report)),
        ("throughput.svg", throughput(report)),
        ("batch-size.svg", batches(report)),
    ];
    let is_drawn = |chart: &Chart| chart.panels.iter().any(|panel| !panel.series.is_empty());
    let drawn = pictures.into_iter().filter(|(_, chart)| is_drawn(chart));
    drawn.map(|(name, chart)| (name, chart.svg())).collect()
}

/// A picture, with notes on what it shows, and where, when and how that was measured.
fn chart(report: &Report, title: &str, notes: &[&str], panels: Vec<Panel>) -> Chart {
    let machine = &report.machine;
    let mut notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
    notes.push(format!(
        "{}, {} cores shared with others, kernel {}, {}.",
        machine.cpu, machine.cores, machine.kernel, machine.date
    ));
    notes.push(commands(&machine.command));
    Chart { title: title.to_owned(), notes, panels }
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
    let name = name.to_owned();
    let series = Series { name, colour, points, line, mark, is_listed: false };
    (!series.points.is_empty()).then_some(series)
}

fn point(x: f64, time: &Time) -> Point {
    Point { x, y: time.ns.median, to: time.ns.min }
}

/// Logarithmic, around all points.
fn around(label: &str, series: &[Series], ticks: &[f64]) -> Axis {
    let points = || series.iter().flat_map(|series| &series.points);
    let min = points().map(|point| point.y).fold(f64::INFINITY, f64::min) * 0.65;
    let max = points().map(|point| point.y).fold(0.0, f64::max) * 1.6;
    Axis::log(label, (min, max), ticks, "")
}

fn nanoseconds(series: &[Series]) -> Axis {
    let ticks = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    around("ns per key", series, &ticks)
}

fn percents(ticks: &[f64]) -> Vec<(f64, String)> {
    ticks.iter().map(|&rate| (rate, format!("{rate} %"))).collect()
}

fn size(report: &Report) -> Chart {
    let sizes = distinct(report.section(Section::Query).map(|time| time.keys));
    let absent = |row: &str, keys| report.query(row, keys, "absent", BATCH);
    let of = |row: &str| -> Vec<Point> {
        let times = sizes.iter().filter_map(|&keys| absent(row, keys));
        times.map(|time| point(time.keys as f64, time)).collect()
    };
    let mut drawn: Vec<Series> = FIRST.iter().filter_map(|row| series(row, of(row))).collect();
    // The faster of the two loops.
    let faster = of(BASELINE).into_iter().zip(of(BASELINE_AHEAD));
    let faster = faster.map(|(plain, ahead)| plain.y.min(ahead.y));
    let faster = of(BASELINE).into_iter().zip(faster).map(|(at, y)| Point { y, to: y, ..at });
    let faster: Vec<Point> = faster.collect();
    let ratios = of(OURS).into_iter().zip(&faster).map(|(ours, other)| ours.y / other.y);
    let (least, most) =
        ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), r| (least.min(r), most.max(r)));
    let title =
        format!("A batch takes {least:.1} to {most:.1} times as long as loading one line per key");
    drawn.extend(series(BASELINE, faster));
    let bytes = |keys: u64| {
        let bytes = keys as f64 * report.bits_per_key / 8.0;
        if bytes < 1e6 { format!("{} KB", bytes / 1e3) } else { format!("{} MB", bytes / 1e6) }
    };
    let tick = |&keys: &u64| (keys as f64, format!("{}\n{}", counted(keys), bytes(keys)));
    let x = Axis {
        label: "keys in the filter".to_owned(),
        is_log: true,
        min: sizes.iter().copied().min().unwrap_or(1) as f64 * 0.8,
        max: sizes.iter().copied().max().unwrap_or(10) as f64 * 1.1,
        ticks: sizes.iter().map(tick).collect(),
    };
    let y = nanoseconds(&drawn);
    let panel = Panel { title: String::new(), x, y, series: drawn, height: 420.0, right: 222.0 };
    let shown = format!(
        "{} bits per key, absent keys, hashes given, {BATCH} keys a call. {MEDIAN}",
        report.bits_per_key
    );
    let reference = "Memory-bound baseline, a reference and not a bound: the faster of two loops that load one line per key and test nothing.";
    chart(report, &title, &[&shown, reference], vec![panel])
}

/// The rate of blocked-bloom, as it predicts it, of enough keys that rounding up to a whole block makes no difference.
fn predicted(bits: f64) -> f64 {
    Sizing::BitsPerKey(bits).params(100_000_000).map_or(1.0, |params| params.false_positive_rate())
}

fn rates(report: &Report) -> Chart {
    let flat = |(x, y)| Point { x, y, to: y };
    let curve = |rate: fn(f64) -> f64| -> Vec<Point> {
        let bits = (12..=40).map(|half| f64::from(half) / 2.0);
        bits.map(|bits| flat((bits, 100.0 * rate(bits)))).collect()
    };
    let measured = |id: &str| -> Vec<Point> {
        let rates = report.rates.iter().filter(|rate| rate.id == id && rate.false_positives > 0);
        let mut points: Vec<Point> =
            rates.map(|rate| flat((rate.bits_per_key, rate.percent()))).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    };
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
    let drawn = list.into_iter().filter(|(.., points)| !points.is_empty());
    let drawn = drawn.map(|(name, colour, line, mark, points)| Series {
        name: name.to_owned(),
        colour,
        points,
        line,
        mark,
        is_listed: true,
    });
    let ticks = [6, 8, 10, 12, 14, 16, 18, 20].map(|bits| (f64::from(bits), bits.to_string()));
    let panel = Panel {
        title: String::new(),
        x: Axis {
            label: "bits per key".to_owned(),
            is_log: false,
            min: 5.5,
            max: 20.5,
            ticks: ticks.into(),
        },
        y: Axis {
            label: "false positives".to_owned(),
            is_log: true,
            min: 0.003,
            max: 16.0,
            ticks: percents(&[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]),
        },
        series: drawn.collect(),
        height: 400.0,
        right: 16.0,
    };
    let [keys, queries] =
        report.rates.first().map_or([0; 2], |rate| [rate.keys, rate.queries]).map(counted);
    let shown = format!("Measured with {keys} keys and {queries} absent ones for each filter.");
    chart(report, "False positives against memory", &[&shown], vec![panel])
}

fn throughput(report: &Report) -> Chart {
    let panel = |keys: u64| {
        let mut drawn = Vec::new();
        for row in distinct(report.section(Section::Query).map(|time| &time.row)) {
            let rate = report.about(row).and_then(|about| {
                let mut rates = report.rates.iter().filter(|rate| rate.id == about.id);
                let first = rates.clone().next();
                rates.find(|rate| rate.bits_wanted == report.bits_per_key).or(first)
            });
            let (Some(rate), Some(time)) = (rate, report.query(row, keys, "absent", BATCH)) else {
                continue;
            };
            let (y, to) = (1e3 / time.ns.median, 1e3 / time.ns.min);
            let found = series(row, vec![Point { x: rate.percent(), y, to }]);
            drawn.extend(found.map(|found| Series { is_listed: true, line: Line::None, ..found }));
        }
        drawn.sort_by(|a, b| b.points[0].y.total_cmp(&a.points[0].y));
        let ticks = [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
        Panel {
            title: format!("{} keys", counted(keys)),
            x: Axis {
                label: "false positives".to_owned(),
                is_log: false,
                min: 0.2,
                max: 1.7,
                ticks: percents(&[0.25, 0.5, 0.75, 1.0, 1.25, 1.5]),
            },
            y: around("million keys per second", &drawn, &ticks),
            series: drawn,
            height: 290.0,
            right: 222.0,
        }
    };
    let sizes = distinct(report.section(Section::Query).map(|time| time.keys));
    let shown = sizes.into_iter().filter(|keys| [1_000_000, 100_000_000].contains(keys));
    let first = format!(
        "{} bits per key (BinaryFuse8: about 9), absent keys, hashes given, {BATCH} keys a call, one core. Better: up and left.",
        report.bits_per_key
    );
    let points = "Points: medians over interleaved rounds; thin lines: to the fastest.";
    let title = "Throughput against false positives at equal memory";
    chart(report, title, &[&first, points], shown.map(panel).collect())
}

fn batches(report: &Report) -> Chart {
    let times = || report.section(Section::Batch);
    let numbers = distinct(times().map(|time| time.batch));
    let panel = |keys: u64| {
        let of = |row: &str| -> Vec<Point> {
            let mine = times().filter(|time| time.keys == keys && time.row == row);
            mine.map(|time| point(time.batch as f64, time)).collect()
        };
        let rows = distinct(times().map(|time| time.row.clone()));
        let drawn: Vec<Series> = rows.iter().filter_map(|row| series(row, of(row))).collect();
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
    let shown =
        format!("{} bits per key, absent keys, hashes given. {MEDIAN}", report.bits_per_key);
    let panels = distinct(times().map(|time| time.keys)).into_iter().map(panel).collect();
    chart(report, "Time per key against the size of the batch", &[&shown], panels)
}
