//! Simulated indexes: of uneven row groups, and of many. The false-positive rate is one in a
//! thousand.

use std::time::Instant;

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{Column, FileIdentity, FileIndex, FileIndexOptions};
use datafusion::object_store::OBJECT_STORE_COALESCE_DEFAULT;

use crate::Failure;
use crate::data::Random;
use crate::report::Report;

/// Builds an index of row groups with the given numbers of distinct random values.
fn index(values: impl Iterator<Item = u64>) -> Result<(FileIndex, u64, f64), Failure> {
    let options = FileIndexOptions::new(vec![Column::new("v", KeyHash::Xxh3 { seed: 1 })], 1);
    let mut builder = options.with_false_row_groups(1.0, 1000).builder()?;
    let (mut random, mut bytes, mut all) = (Random(5), Vec::new(), 0);
    let mut seconds = 0.0;
    for (number, values) in values.enumerate() {
        let hashes: Vec<u64> = (0..values).map(|_| random.next()).collect();
        let start = Instant::now();
        let name = format!("data/part-{number:06}.parquet");
        let mut file =
            builder.file(FileIdentity::new(&name, 1).with_etag("e"), &[Some("Int64")], 1)?;
        file.insert_hashes(0, &hashes)?;
        bytes.extend(file.end_row_group()?);
        file.end()?;
        seconds += start.elapsed().as_secs_f64();
        all += values;
    }
    let start = Instant::now();
    bytes.extend(builder.finish()?);
    seconds += start.elapsed().as_secs_f64();
    Ok((FileIndex::from_bytes(bytes)?, all, seconds * 1e6 / all as f64))
}

/// The cost of looking up random values.
#[derive(Default)]
struct LookedUp {
    /// False positives.
    found: Vec<f64>,
    us: Vec<f64>,
    /// Requests by ranges. Like object stores, ranges less than 1 MiB apart are joined.
    requests: Vec<f64>,
    mb: Vec<f64>,
}

fn look_up(index: &FileIndex, values: u64) -> Result<LookedUp, Failure> {
    let (mut random, mut all) = (Random(6), LookedUp::default());
    for _ in 0..values {
        let hash = random.next();
        let start = Instant::now();
        let lookup = index.manifest().lookup(0, KeyHash::Xxh3 { seed: 1 }, |_| true, [hash])?;
        let found = index.candidates(&lookup)?.count();
        all.us.push(start.elapsed().as_secs_f64() * 1e6);
        all.found.push(found as f64);
        let (mut requests, mut bytes, mut end) = (0, 0, None);
        for range in index.manifest().locate(&[lookup])?.ranges() {
            let first = end.filter(|&end| range.start < end + OBJECT_STORE_COALESCE_DEFAULT);
            requests += u64::from(first.is_none());
            bytes += range.end - first.unwrap_or(range.start);
            end = Some(range.end);
        }
        all.requests.push(requests as f64);
        all.mb.push(bytes as f64 / 1e6);
    }
    Ok(all)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) const SHAPES: &str = "2,000 row groups";
pub(crate) type Size = fn(&mut Random) -> u64;
pub(crate) const UNEVEN: [(&str, Size); 3] = [
    ("2,000 values each", |_| 2000),
    ("10 to 100,000 values, log-uniform", |r| (10.0 * 1e4f64.powf(r.unit())) as u64),
    ("log-normal about 1,000 values", |r| {
        let normal = (0..12).map(|_| r.unit()).sum::<f64>() - 6.0;
        (1000.0 * (1.5 * normal).exp()).max(1.0) as u64
    }),
];

/// Measures row groups whose sizes differ by factors of hundreds.
pub(crate) fn uneven(report: &mut Report) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (workload, size) in UNEVEN {
        let mut random = Random(8);
        let (index, values, us) = index((0..2000).map(|_| size(&mut random)))?;
        let bits = index.as_bytes().len() as f64 * 8.0 / values as f64;
        let found = mean(&look_up(&index, 2000)?.found) / 2.0;
        rows.push((workload, vec![vec![bits], vec![found], vec![us]]));
    }
    let measures = ["bits a value", "false row groups of 1,000", "us a value to build"];
    report.add(SHAPES, &measures, &rows);
    Ok(())
}

pub(crate) const LARGE: &str = "row groups of 200 values, simulated";
/// Numbers of row groups, and the maximum microseconds of a lookup in memory.
pub(crate) const ROW_GROUP_COUNTS: [(u64, f64); 2] = [(10_000, 20.0), (100_000, 100.0)];

/// Measures many row groups.
pub(crate) fn measure_many_row_groups(report: &mut Report) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (row_groups, _) in ROW_GROUP_COUNTS {
        let (index, _, _) = index((0..row_groups).map(|_| 200))?;
        let LookedUp { found, us, requests, mb } = look_up(&index, 500)?;
        let in_vain = vec![mean(&found)];
        rows.push((format!("{row_groups} row groups"), vec![us, requests, mb, in_vain]));
    }
    let rows: Vec<_> = rows.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    let measures = ["us in memory", "requests by ranges", "MB", "false row groups"];
    report.add(LARGE, &measures, &rows);
    Ok(())
}
