//! Counts and times: what filters cost to build, how many absent keys they let pass, what lookups read.

use std::collections::HashMap;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use blocked_bloom::{BatchQuery, Bitmask, BuildError, FilterOptions, KeyError, Params};

use crate::multi_get::{Cost, MultiGet, get_one};
use crate::table::Table;
use crate::workload::Record;

pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    100.0 * part / whole.max(1.0)
}

pub(crate) fn nanos(time: Duration, count: usize) -> f64 {
    time.as_nanos() as f64 / count.max(1) as f64
}

/// Times the filter's part of a flush, which is too short per key to be timed there.
pub(crate) fn time_to_build(
    run: &[Record],
    options: &FilterOptions,
) -> Result<Duration, BuildError> {
    let start = Instant::now();
    let mut builder = options.builder();
    builder.extend(run.iter().map(|(key, _)| key))?;
    black_box(builder.finish()?);
    Ok(start.elapsed())
}

/// The stored bytes of all filters, and the mean of their predicted false-positive rates in percent.
pub(crate) fn size_and_rate(tables: &[Table]) -> (u64, f64) {
    let shapes: Vec<Params> = tables.iter().map(|table| table.filter().view().params()).collect();
    let rates = shapes.iter().map(Params::false_positive_rate);
    let rate = 100.0 * rates.sum::<f64>() / shapes.len() as f64;
    (shapes.iter().map(Params::stored_bytes).sum(), rate)
}

/// Looks up every key in every filter once. Returns the hits on keys that are not in the filter's
/// table, and the number of pairs of a key and a table without it.
pub(crate) fn count_false_positives(
    tables: &[Table],
    records: &[Record],
    stored: usize,
    options: &FilterOptions,
) -> Result<(usize, usize), KeyError> {
    let hasher = options.hasher()?;
    let hashes: Vec<u64> = records.iter().map(|(key, _)| hasher.hash(key)).collect();
    let mut hits = Bitmask::new();
    let mut all_hits = 0;
    for table in tables {
        table.filter().contains_hashes(&hashes, &mut hits);
        all_hits += hits.count_hits();
    }
    // Each stored key is one true hit, in the table that has it.
    let pairs = records.len() * tables.len();
    Ok((all_hits.saturating_sub(stored), pairs - stored))
}

pub(crate) struct Outcome {
    pub(crate) cost: Cost,
    pub(crate) time: Duration,
    pub(crate) wrong: u64,
}

pub(crate) fn look_up(
    tables: &[Table],
    options: &FilterOptions,
    lookups: &[&[u8]],
    batch: u32,
    truth: &HashMap<&[u8], [u8; 8]>,
) -> io::Result<Outcome> {
    let mut multi_get = MultiGet::new(tables, options)?;
    let mut time = Duration::ZERO;
    let mut wrong = 0;
    for keys in lookups.chunks(batch as usize) {
        let start = Instant::now();
        let values = multi_get.get(keys)?;
        time += start.elapsed();
        for (key, value) in keys.iter().zip(values) {
            wrong += u64::from(truth.get(key).map(|number| &number[..]) != *value);
        }
    }
    let cost = multi_get.cost();
    Ok(Outcome { cost, time, wrong })
}

/// As [`look_up`], one key at a time.
pub(crate) fn look_up_one_by_one(
    tables: &[Table],
    options: &FilterOptions,
    lookups: &[&[u8]],
    truth: &HashMap<&[u8], [u8; 8]>,
) -> io::Result<Outcome> {
    let hasher = options.hasher().map_err(io::Error::other)?;
    let (mut cost, mut wrong) = (Cost::default(), 0);
    let mut values = Vec::with_capacity(lookups.len());
    let start = Instant::now();
    for key in lookups {
        values.push(get_one(tables, hasher, key, &mut cost.block_reads)?);
    }
    let time = start.elapsed();
    for (key, value) in lookups.iter().zip(values) {
        wrong += u64::from(truth.get(key).map(|number| &number[..]) != value);
    }
    Ok(Outcome { cost, time, wrong })
}
