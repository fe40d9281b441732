//! Draws the pictures of a report. A title states the result, with its figures.

use benches::chart::{Axis, Chart, Line, Mark, Panel, Point, Series};
use benches::results::{Report, Section, Time, distinct};
use benches::table::counted;
use blocked_bloom::Sizing;

use crate::markdown::classical;
use crate::measure::BATCH;
use crate::peers::{
    BASELINE, BASELINE_AHEAD, OURS, OURS_SINGLE, ROCKSDB, ROCKSDB_BATCH, SBBF_RS, SPLIT,
    SPLIT_AHEAD,
};

// A colour is a kind of filter, in every picture; marks tell the rows of a kind apart.
/// This crate.
const ORANGE: &str = "#e8590c";
/// The reference.
const GREY: &str = "#8b949e";
/// RocksDB's loop: the same bits as this crate.
const BLUE: &str = "#3b82f6";
/// Split blocks.
const GREEN: &str = "#2f9e44";
/// Classical filters.
const PURPLE: &str = "#9c5de6";
/// Fuse filters.
const BROWN: &str = "#b0803a";

const MEDIAN: &str = "Points: medians over interleaved rounds; thin lines: to the least.";

/// A row, and its name in the pictures, colour, line and mark.
type Look = (&'static str, &'static str, &'static str, Line, Mark);

const LOOKS: [Look; 8] = [
    (OURS, OURS, ORANGE, Line::Thick, Mark::Dot),
    (OURS_SINGLE, "blocked-bloom, one key", ORANGE, Line::Thin, Mark::Ring),
    (BASELINE, "memory-bound baseline", GREY, Line::Thin, Mark::Dot),
    (ROCKSDB, "RocksDB's loop, one key", BLUE, Line::Thin, Mark::Ring),
    (ROCKSDB_BATCH, "RocksDB's loop, 32 keys", BLUE, Line::Thin, Mark::Dot),
    (SPLIT, "split-block loop", GREEN, Line::Thin, Mark::Ring),
    (SPLIT_AHEAD, "split blocks, prefetching", GREEN, Line::Thin, Mark::Dot),
    ("fastbloom", "fastbloom", PURPLE, Line::Thin, Mark::Dot),
];

/// The rows of the first picture besides the baseline: this crate, the filters that beat it
/// somewhere, RocksDB's loop and a classical filter.
const SIZE_CHART: [&str; 5] = [OURS, ROCKSDB_BATCH, SPLIT, SPLIT_AHEAD, "fastbloom"];
const BATCH_CHART: [&str; 6] = [OURS, OURS_SINGLE, ROCKSDB, ROCKSDB_BATCH, SPLIT, SPLIT_AHEAD];

/// File names and pictures; those whose figures were not measured are missing.
pub(crate) fn all(report: &Report) -> Vec<(&'static str, String)> {
    let pictures = [
        ("time-per-key.svg", sizes(report)),
        ("false-positives.svg", rates(report)),
        ("batch-size.svg", batches(report)),
    ];
    let is_drawn = |chart: &Chart| chart.panels.iter().any(|panel| !panel.series.is_empty());
    let drawn = pictures.into_iter().filter(|(_, chart)| is_drawn(chart));
    drawn.map(|(name, chart)| (name, chart.svg())).collect()
}

/// Builds a picture with notes, the machine, the date and the command.
fn chart(report: &Report, title: String, notes: &[&str], panels: Vec<Panel>) -> Chart {
    let machine = &report.machine;
    let mut notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
    notes.push(format!(
        "{}, {} cores shared with others, kernel {}, {}.",
        machine.cpu, machine.cores, machine.kernel, machine.date
    ));
    notes.push(machine.command.replace('\n', "; "));
    Chart { title, notes, panels }
}

/// The lines of these rows, with a point for each of these times.
fn lines<'t>(rows: &[&str], times: &[&'t Time], x: impl Fn(&'t Time) -> f64) -> Vec<Series> {
    let line = |row: &&str| {
        let &(_, name, colour, line, mark) = LOOKS.iter().find(|look| look.0 == *row)?;
        let times = times.iter().filter(|time| time.row == *row);
        let points: Vec<Point> =
            times.map(|time| Point { x: x(time), y: time.ns.median, to: time.ns.min }).collect();
        let name = name.to_owned();
        (!points.is_empty()).then_some(Series {
            name,
            colour,
            points,
            line,
            mark,
            is_listed: false,
        })
    };
    rows.iter().filter_map(line).collect()
}

/// Lines over a logarithmic axis of these values and their names.
fn panel(
    title: String,
    label: &str,
    ticks: Vec<(f64, String)>,
    series: Vec<Series>,
    height: f64,
) -> Panel {
    let range = |values: &[f64]| {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        (min, values.iter().copied().fold(0.0, f64::max))
    };
    let (min, max) = range(&ticks.iter().map(|tick| tick.0).collect::<Vec<_>>());
    let x = Axis { label: label.to_owned(), is_log: true, min: min * 0.8, max: max * 1.1, ticks };
    let points = series.iter().flat_map(|series| &series.points);
    let (min, max) = range(&points.map(|point| point.y).collect::<Vec<_>>());
    let ticks = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    let y = Axis::log("ns per key", (min * 0.65, max * 1.6), &ticks, "");
    Panel { title, x, y, series, height, right: 222.0 }
}

fn sizes(report: &Report) -> Chart {
    let is_shown = |time: &&Time| time.mix == "absent" && time.batch == BATCH;
    let times: Vec<&Time> = report.section(Section::Query).filter(is_shown).collect();
    let by_keys = |time: &Time| time.keys as f64;
    let mut drawn = lines(&SIZE_CHART, &times, by_keys);
    // The faster of the two loops.
    for mut faster in lines(&[BASELINE], &times, by_keys) {
        for point in &mut faster.points {
            let same = times.iter().filter(|t| t.keys as f64 == point.x && t.row == BASELINE_AHEAD);
            point.y = same.map(|time| time.ns.median).fold(point.y, f64::min);
            point.to = point.y;
        }
        drawn.push(faster);
    }
    let of = |name: &str| drawn.iter().filter(|s| s.name == name).flat_map(|s| &s.points).collect();
    let [ours, faster]: [Vec<&Point>; 2] = [OURS, "memory-bound baseline"].map(of);
    let ratios = || ours.iter().zip(&faster).map(|(ours, other)| ours.y / other.y);
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    let title = format!(
        "A batch takes {least:.1}x to {most:.1}x the time that loading one line per key takes"
    );
    let bytes = |keys: u64| {
        let bytes = keys as f64 * report.bits_per_key / 8.0;
        if bytes < 1e6 { format!("{} KB", bytes / 1e3) } else { format!("{} MB", bytes / 1e6) }
    };
    let tick = |keys: u64| (keys as f64, format!("{}\n{}", counted(keys), bytes(keys)));
    let ticks = distinct(times.iter().map(|time| time.keys)).into_iter().map(tick).collect();
    let panel = panel(String::new(), "keys in the filter", ticks, drawn, 420.0);
    let shown = format!(
        "{} bits per key, absent keys, hashes given, {BATCH} keys a call. {MEDIAN}",
        report.bits_per_key
    );
    let reference = "Memory-bound baseline, a reference and not a bound: the faster of two loops \
                     that load one line per key and test nothing.";
    chart(report, title, &[&shown, reference], vec![panel])
}

/// The rate of blocked-bloom, as it predicts it, of enough keys that rounding up to a whole block
/// makes no difference.
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
        rates.map(|rate| flat((rate.bits_per_key, rate.percent()))).collect()
    };
    let is_measured = !report.rates.is_empty();
    let list = [
        ("sbbf-rs-safe (split blocks)", GREEN, Line::None, Mark::Ring, measured(SBBF_RS)),
        ("blocked-bloom, predicted", ORANGE, Line::Thick, Mark::None, curve(predicted)),
        ("blocked-bloom, measured", ORANGE, Line::None, Mark::Dot, measured(OURS)),
        ("classical filter, formula", PURPLE, Line::Thin, Mark::None, curve(classical)),
        ("fastbloom (classical)", PURPLE, Line::None, Mark::Dot, measured("fastbloom")),
        ("xorf BinaryFuse8", BROWN, Line::None, Mark::Diamond, measured("xorf BinaryFuse8")),
    ];
    let drawn = list.into_iter().filter(|(.., points)| is_measured && !points.is_empty());
    let drawn = drawn.map(|(name, colour, line, mark, points)| {
        let name = name.to_owned();
        Series { name, colour, points, line, mark, is_listed: true }
    });
    let bits = [6, 8, 10, 12, 14, 16, 18, 20].map(|bits| (f64::from(bits), bits.to_string()));
    let (label, ticks) = ("bits per key".to_owned(), bits.to_vec());
    let percents = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
    let panel = Panel {
        title: String::new(),
        x: Axis { label, is_log: false, min: 5.5, max: 20.5, ticks },
        y: Axis::log("false positives", (0.003, 16.0), &percents, " %"),
        series: drawn.collect(),
        height: 400.0,
        right: 16.0,
    };
    let [keys, queries] =
        report.rates.first().map_or([0; 2], |rate| [rate.keys, rate.queries]).map(counted);
    let shown = format!("Measured with {keys} keys and {queries} absent ones for each filter.");
    let [ours, other] = [predicted(10.0), classical(10.0)].map(|rate| 100.0 * rate);
    let title =
        format!("One line a key: {ours:.2} % false positives at 10 bits, classical {other:.2} %");
    chart(report, title, &[&shown], vec![panel])
}

fn batches(report: &Report) -> Chart {
    let all: Vec<&Time> = report.section(Section::Batch).collect();
    let numbers = distinct(all.iter().map(|time| time.batch));
    // The least number of keys from which on the batch call is the faster one, at every size.
    let ns = |time: &Time, row| {
        let is_it =
            |other: &&&Time| (&*other.row, other.keys, other.batch) == (row, time.keys, time.batch);
        all.iter().find(is_it).map_or(f64::INFINITY, |time| time.ns.median)
    };
    let slower = all.iter().filter(|time| ns(time, OURS) > ns(time, OURS_SINGLE));
    let last = slower.map(|time| time.batch).max().unwrap_or(0);
    let from = numbers.iter().copied().find(|&batch| batch > last).unwrap_or(last);
    let panel = |keys: u64| {
        let times: Vec<&Time> = all.iter().copied().filter(|time| time.keys == keys).collect();
        let drawn = lines(&BATCH_CHART, &times, |time| time.batch as f64);
        let ticks = numbers.iter().map(|&batch| (batch as f64, batch.to_string())).collect();
        panel(format!("{} keys", counted(keys)), "keys a call", ticks, drawn, 290.0)
    };
    let panels = distinct(all.iter().map(|time| time.keys)).into_iter().map(panel).collect();
    let shown =
        format!("{} bits per key, absent keys, hashes given. {MEDIAN}", report.bits_per_key);
    let title =
        format!("From {from} keys a call on, a batch takes less time than a call for each key");
    chart(report, title, &[&shown], panels)
}
