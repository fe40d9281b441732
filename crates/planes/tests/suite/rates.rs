//! Measured false-positive rates match the predicted rates.

use blocked_bloom::Bitmask;
use blocked_bloom_planes::{Planes, Query, Shape};

use crate::naive::{Random, options};

/// Blocks, bits, probes, items, rows in a group.
const CASES: [(u32, u32, u32, usize, u32); 22] = [
    (1, 16, 1, 3, 512),
    (1, 16, 2, 4, 1_024),
    (1, 16, 3, 2, 512),
    (1, 16, 4, 8, 512),
    (1, 24, 3, 5, 512),
    (1, 32, 4, 6, 1_536),
    (1, 64, 2, 20, 512),
    (1, 64, 6, 6, 512),
    (1, 80, 2, 10, 512),
    (1, 100, 7, 9, 2_048),
    (1, 128, 2, 10, 512),
    (1, 128, 4, 20, 4_096),
    (1, 200, 5, 30, 512),
    (1, 256, 3, 60, 512),
    (1, 512, 4, 80, 512),
    (1, 512, 8, 60, 512),
    (2, 16, 2, 8, 512),
    (2, 100, 3, 30, 512),
    (3, 77, 4, 25, 512),
    (5, 512, 5, 300, 512),
    (16, 32, 3, 60, 512),
    (40, 500, 4, 2_500, 512),
];

#[expect(clippy::print_stdout, reason = "figures to be quoted")]
#[test]
fn measured_rates_are_within_three_standard_errors_of_the_prediction() {
    for (case, (blocks, bits, probes, items, group_rows)) in CASES.into_iter().enumerate() {
        let shape = Shape::new(blocks, bits, probes).unwrap();
        // Few rows and few queries are independent by themselves. Together, the spread is
        // computed from their own counts.
        let (rows, queries) = (8_192, 2_000);
        let mut random = Random(case as u64);
        let rows: Vec<Vec<u64>> = (0..rows).map(|_| random.hashes(items)).collect();
        let options = options((blocks, bits, probes), group_rows);
        let count = rows.len();
        let planes = Planes::from_hashes(&options, rows).unwrap();
        let mut hits = Bitmask::new();
        let (mut by_query, mut by_row) = (Vec::new(), vec![0.0; count]);
        for _ in 0..queries {
            planes.query(&Query::all([random.next()]), &mut hits);
            by_query.push(hits.count_hits() as f64 / count as f64);
            hits.hits().for_each(|row| by_row[row] += 1.0 / f64::from(queries));
        }
        // A query whose probes share a bit matches more rows, and a full row matches more
        // queries, so both vary.
        let variance = |rates: &[f64]| {
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
            squares / (rates.len() as f64 - 1.0) / rates.len() as f64
        };
        let measured = by_query.iter().sum::<f64>() / by_query.len() as f64;
        let predicted = shape.false_positive_rate(items as u64);
        let error = (variance(&by_query) + variance(&by_row)).sqrt();
        let distance = (measured - predicted) / error;
        println!(
            "| {blocks} | {bits} | {probes} | {items} | {group_rows} | {:.4} % | {:.4} % | {distance:+.2} |",
            predicted * 100.0,
            measured * 100.0
        );
        assert!(distance.abs() < 3.0, "{shape}, {items} items: {distance} standard errors");
    }
}
