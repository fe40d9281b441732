//! Bit planes compared with scans of rows and with filters looked up one by one; and appending.
//!
//! `cargo bench -p blocked-bloom-benches --bench planes` takes a minute and 1.2 GB of memory; `--
//! --quick` uses fewer rows, and `-- scan` runs one part. Before each cold measurement the program
//! reads other memory, many times the size of the third-level cache.

#![allow(clippy::print_stdout, reason = "figures to be quoted")]

mod scan;

use std::hint::black_box;

use benches::clock::{Case, Named};
use benches::rows::Arguments;
use benches::workload::hash;
use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, Sizing};
use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
use scan::Row;

const COLUMNS: u64 = 10;

/// Rows whose numbers are a multiple of this have the same values, so that no 512 rows are without
/// one that has them all.
const COMMON: u64 = 500;

/// A column's value in a row, as its hash: one of a million.
fn value(row: u64, column: u64) -> u64 {
    let value =
        if row.is_multiple_of(COMMON) { 0 } else { 1 + hash(row * 16 + column) % 1_000_000 };
    hash(value * 16 + column)
}

fn values(row: u64) -> impl Iterator<Item = u64> {
    (0..COLUMNS).map(move |column| value(row, column))
}

/// Reads memory from end to end, by all that the plain instruction set has.
fn read(words: &[u64]) {
    let mut sums = [0_u64; 16];
    for words in words.as_chunks::<16>().0 {
        sums.iter_mut().zip(words).for_each(|(sum, word)| *sum ^= word);
    }
    black_box(sums);
}

/// As many words as leave the caches nothing else when they are read.
const EVICTION_WORDS: usize = (256 << 20) / 8;

fn row_of(shape: Shape, hashes: impl Iterator<Item = u64>) -> Row {
    let mut row = [0; 2];
    for plane in hashes.flat_map(|hash| shape.planes_of(hash)) {
        row[plane as usize / 64] |= 1 << (plane % 64);
    }
    row
}

fn appending(shape: Shape, rounds: usize) {
    let rows: Vec<[u64; COLUMNS as usize]> =
        (0..2_000_000).map(|row| std::array::from_fn(|column| value(row, column as u64))).collect();
    let mut ways = Named::default();
    let plain = |_| rows.iter().map(|row| row_of(shape, row.iter().copied())).collect::<Vec<Row>>();
    ways.add("row-major", Case::new(rows.len(), plain));
    let planes = |_| {
        let mut stored = Vec::new();
        let mut builder = PlanesOptions::new(shape).builder().expect("memory for a group");
        for row in &rows {
            let group = builder.append(row.iter().copied()).expect("memory for a group");
            stored.extend(group.unwrap_or_default());
        }
        stored.extend(builder.finish().expect("memory for a group"));
        stored
    };
    ways.add("planes", Case::new(rows.len(), planes));
    ways.print(format!("appending {} rows, ns a row", rows.len()), rounds);
}

fn scanning(shape: Shape, count: u64, rounds: usize) {
    let rows: &Vec<Row> = &(0..count).map(|row| row_of(shape, values(row))).collect();
    let options = PlanesOptions::new(shape);
    let planes = &Planes::from_hashes(&options, (0..count).map(values)).expect("memory");
    let elsewhere = &vec![1; EVICTION_WORDS];
    let (name, scan) = scan::fastest();
    // With all planes rows are left in every line, so that no plane is left out.
    for (is_common, columns) in [false, true].into_iter().flat_map(|c| [1, 2, 4, 6].map(|n| (c, n)))
    {
        let wanted = move |pass: usize| {
            values(if is_common { 0 } else { 12_345 + pass as u64 }).take(columns)
        };
        let query = move |pass| Query::all(wanted(pass));
        let cold = move |pass| {
            read(elsewhere);
            query(pass)
        };
        let warm = move |pass| {
            planes.query(&query(pass), &mut Bitmask::new());
            query(pass)
        };
        let (mut answers, mut hits) = (vec![0; count.div_ceil(64) as usize], Bitmask::new());
        scan(rows, row_of(shape, wanted(0)), &mut answers);
        planes.query(&query(0), &mut hits);
        assert_eq!(hits.words(), answers);
        let mut again = hits.clone();
        // Microseconds: of a thousand "keys" nanoseconds.
        const UNIT: usize = 1_000;
        let mut ways = Named::default();
        let row = move |pass| row_of(shape, wanted(pass));
        let scan = |row| scan(rows, row, &mut answers);
        ways.add(name, Case::with_setup(None, UNIT, row, scan));
        let look_up = |query| planes.query(&query, &mut hits);
        ways.add("planes, cold", Case::with_setup(None, UNIT, cold, look_up));
        let batch = |query| {
            let mut found = 0;
            planes.query_batch(&[query], |_, _, hits| found += hits.words().len());
            found
        };
        ways.add("planes by batch, cold", Case::with_setup(None, UNIT, cold, batch));
        let look_up = |query| planes.query(&query, &mut again);
        ways.add("planes, warm", Case::with_setup(None, UNIT, warm, look_up));
        let of = if is_common { ", all planes" } else { "" };
        ways.print(format!("{count} rows, {columns} columns{of}; us a query"), rounds);
    }

    println!("\nbytes requested of a file of {} bytes", planes.as_bytes().len());
    for columns in [1, 2, 6] {
        let query = Query::all(values(12_345).take(columns));
        let layout = planes.layout();
        let groups =
            (0..layout.groups()).map(|group| layout.locate(&query, group).expect("a group"));
        let planes: Vec<_> = groups.flat_map(|at| at.planes).collect();
        let bytes: u64 = planes.iter().map(|at| at.length).sum();
        println!("  {columns} columns: {} requests, {bytes} bytes", planes.len());
    }
}

/// Filters of the core, and transposed.
struct Filters {
    filters: Vec<BloomFilter>,
    planes: Planes,
}

impl Filters {
    /// Of this many keys each, ten bits a key.
    fn new(count: u64, keys: u64) -> Self {
        let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
        let hashes = |table| (0..keys).map(move |i| hash(i << 16 | table)).collect::<Vec<u64>>();
        let filled = |table| BloomFilter::from_hashes(&options, &hashes(table)).expect("memory");
        let filters: Vec<BloomFilter> = (0..count).map(filled).collect();
        let planes = Planes::from_filters(&filters).expect("filters of one shape");
        Filters { filters, planes }
    }

    /// How many may have a hash.
    fn look_up(&self, is_by_planes: bool, hash: u64, hits: &mut Bitmask) -> usize {
        if is_by_planes {
            self.planes.query(&Query::all([hash]), hits);
            return hits.count_hits();
        }
        self.filters.iter().filter(|filter| filter.contains_hash(hash)).count()
    }
}

/// Measures 10,000 filters of `keys` keys each. A cold lookup is the first one after other memory
/// was read; a lookup in other, small filters precedes it, so that the code is warm. Warm lookups
/// are 32 lookups of different keys in a row.
fn filters(keys: u64, rounds: usize) {
    let (many, few, elsewhere) =
        (&Filters::new(10_000, keys), &Filters::new(600, 100), &vec![1; EVICTION_WORDS]);
    let mut ways = Named::default();
    for (state, lookups) in [("cold", 1), ("warm", 32)] {
        for (is_by_planes, name) in [(false, "one by one"), (true, "planes")] {
            let setup = move |pass| {
                let (mut hits, first) = (Bitmask::new(), (1 << 60) + 64 * pass as u64);
                read(elsewhere);
                black_box(few.look_up(is_by_planes, hash(first), &mut hits));
                if lookups > 1 {
                    black_box(many.look_up(is_by_planes, hash(first), &mut hits));
                }
                (first + 1, hits)
            };
            let look_up = move |(first, mut hits): (u64, Bitmask)| {
                let hashes = (first..first + lookups).map(hash);
                hashes.map(|hash| many.look_up(is_by_planes, hash, &mut hits)).sum::<usize>()
            };
            // Microseconds.
            let keys = lookups as usize * 1_000;
            ways.add(format!("{state}, {name}"), Case::with_setup(None, keys, setup, look_up));
        }
    }
    ways.print(format!("10,000 filters of {keys} keys, {}; us a key", many.planes.shape()), rounds);
}

fn main() {
    let given = Arguments::from_command_line();
    let (rows, rounds) = if given.is_quick { (1_000_000, 3) } else { (10_000_000, 15) };
    let shape = Shape::new(1, 128, 2).expect("a legal shape");
    if given.is_requested("append") {
        appending(shape, rounds);
    }
    if given.is_requested("scan") {
        scanning(shape, rows, rounds);
    }
    if given.is_requested("filters") {
        filters(1_000, rounds);
        filters(10_000, rounds);
    }
}
