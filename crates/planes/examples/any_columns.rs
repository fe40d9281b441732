//! One index for every subset of columns, like PostgreSQL's `bloom` index: one filter per row, in
//! which each value is hashed together with its column.
//!
//! `cargo run --release -p blocked-bloom-planes --example any_columns -- [ROWS]`

#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Instant;

use blocked_bloom::Bitmask;
use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};

const COLUMNS: [&str; 10] =
    ["city", "colour", "day", "device", "host", "method", "path", "status", "tenant", "version"];

/// The value of a column in a row: one of 1,000 for most columns, one of a few for others.
fn value(row: u64, column: usize) -> u64 {
    let mixed = (row * 10 + column as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 20;
    mixed % if column % 4 == 3 { 8 } else { 1_000 }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows: u64 = std::env::args().nth(1).map_or(Ok(200_000), |rows| rows.parse())?;
    // 128 bits a row. Each column sets two of them.
    let options = PlanesOptions::new(Shape::new(1, 128, 2)?).with_liveness();
    let hasher = options.hasher()?;
    let hash = |column: usize, value: u64| {
        hasher.hash_parts(&[COLUMNS[column].as_bytes(), &value.to_le_bytes()])
    };
    let start = Instant::now();
    let (mut index, mut builder) = (Vec::new(), options.builder()?);
    for row in 0..rows {
        let items = (0..COLUMNS.len()).map(|column| hash(column, value(row, column)));
        index.extend(builder.append(items)?.unwrap_or_default());
    }
    index.extend(builder.finish()?);
    let shape = options.shape();
    println!(
        "{rows} rows of {} columns: {} bytes of index, {} bits a row, {:.0} ns a row",
        COLUMNS.len(),
        index.len(),
        shape.planes(),
        start.elapsed().as_nanos() as f64 / rows.max(1) as f64
    );

    // A query names any columns: here those of an existing row, so that one row matches.
    let planes = Planes::from_bytes(&index, options.key_hash())?;
    let mut hits = Bitmask::new();
    for columns in [&[0][..], &[3], &[2, 8], &[1, 4, 6, 9], &[0, 1, 2, 4, 5, 6]] {
        let wanted: Vec<(usize, u64)> =
            columns.iter().map(|&column| (column, value(rows / 3, column))).collect();
        let query = Query::all(wanted.iter().map(|&(column, value)| hash(column, value)));
        let start = Instant::now();
        planes.query(&query, &mut hits);
        let took = start.elapsed();
        // Reads the table only at the matching rows.
        let is_match =
            |&row: &usize| wanted.iter().all(|&(column, of)| value(row as u64, column) == of);
        let matches = hits.hits().filter(is_match).count();
        let expected = (0..rows as usize).filter(is_match).count();
        assert_eq!(matches, expected, "no row is lost");
        let names: Vec<&str> = columns.iter().map(|&column| COLUMNS[column]).collect();
        println!(
            "{}: {matches} rows, {} read, {:.2} % of all in vain; {took:?}",
            names.join(", "),
            hits.count_hits(),
            100.0 * (hits.count_hits() - matches) as f64 / rows.max(1) as f64
        );
    }
    Ok(())
}
