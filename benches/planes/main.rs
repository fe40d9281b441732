//! Bit planes beside scans of rows and beside filters looked up one by one; and appending.
//!
//! `cargo bench --bench planes` takes a minute and 1.2 GB of memory; `-- --quick` is for fewer rows, `-- scan` for a part. Rounds of
//! all ways are interleaved. Before a cold way other memory is read, many times the third-level cache. Times are medians of the rounds, the
//! least in brackets.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

mod scan;

use std::hint::black_box;

use benches::clock::{Case, Named, Schedule, interleaved};
use benches::rows::Given;
use benches::table::markdown;
use benches::workload::hash;
use blocked_bloom::{Bitmask, BloomFilter, KeyHash, PrefetchAhead, Sizing};
use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
use scan::Row;

const COLUMNS: u64 = 10;

/// Rows whose numbers are a multiple of this have the same values, so that no 512 rows are without one that has them all.
const COMMON: u64 = 500;

/// A column's value in a row, as its hash: one of a million.
fn value(row: u64, column: u64) -> u64 {
    let value =
        if row.is_multiple_of(COMMON) { 0 } else { 1 + hash(row * 16 + column) % 1_000_000 };
    hash(value * 16 + column)
}

/// Reads memory from end to end, by all that the plain instruction set has.
fn read(words: &[u64]) -> u64 {
    let mut sums = [0_u64; 16];
    for words in words.as_chunks::<16>().0 {
        sums.iter_mut().zip(words).for_each(|(sum, word)| *sum ^= word);
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}

/// Memory that is read so that the caches hold nothing else.
struct Elsewhere(Vec<u64>);

impl Elsewhere {
    fn new() -> Self {
        Elsewhere(vec![1; (256 << 20) / 8])
    }

    fn read(&self) {
        black_box(read(&self.0));
    }
}

fn row_of(shape: Shape, hashes: impl Iterator<Item = u64>) -> Row {
    let mut row = [0; 2];
    for plane in hashes.flat_map(|hash| shape.planes_of(hash)) {
        row[plane as usize / 64] |= 1 << (plane % 64);
    }
    row
}

fn appending(shape: Shape, rounds: usize) {
    let rows = 2_000_000;
    let hashes: Vec<u64> = (0..rows * COLUMNS).map(|i| value(i / COLUMNS, i % COLUMNS)).collect();
    let hashes = hashes.as_chunks::<{ COLUMNS as usize }>().0;
    let mut ways = Named::default();
    let plain = |_| {
        let mut kept: Vec<Row> = Vec::new();
        kept.extend(hashes.iter().map(|row| row_of(shape, row.iter().copied())));
        kept
    };
    ways.add("row-major", Case::new(hashes.len(), plain));
    let planes = |_| {
        let mut stored = Vec::new();
        let mut builder = PlanesOptions::new(shape).builder().expect("memory for a group");
        for row in hashes {
            let group = builder.append(row.iter().copied()).expect("memory for a group");
            stored.extend(group.unwrap_or_default());
        }
        stored.extend(builder.finish().expect("memory for a group"));
        stored
    };
    ways.add("planes", Case::new(hashes.len(), planes));
    println!("\nappending {rows} rows, ns a row\n{}", ways.lines(rounds));
}

fn scanning(shape: Shape, count: u64, rounds: usize) {
    let values = |row| (0..COLUMNS).map(move |column| value(row, column));
    let rows: Vec<Row> = (0..count).map(|row| row_of(shape, values(row))).collect();
    let options = PlanesOptions::new(shape);
    let planes = &Planes::from_hashes(&options, (0..count).map(values)).expect("memory");
    let scans = scan::all();
    let (rows, elsewhere) = (&rows, &Elsewhere::new());
    let bytes = rows.len() as f64 * 16.0;

    let mut heads = vec!["columns".to_owned()];
    heads.extend(scans.iter().map(|(name, _)| (*name).to_owned()));
    heads.extend(
        [
            "as many bytes in one piece, cold",
            "planes, cold",
            "planes by batch, cold",
            "planes, warm",
            "cold, times the fastest scan",
            "by batch",
            "% of the bandwidth of all",
            "% of one piece",
        ]
        .map(str::to_owned),
    );
    let mut lines = Vec::new();
    // Whether rows are left in every line, so that no plane is left out.
    for (is_common, columns) in [false, true].into_iter().flat_map(|c| [1, 2, 4, 6].map(|n| (c, n)))
    {
        let wanted = move |pass: usize| -> Vec<u64> {
            values(if is_common { 0 } else { 12_345 + pass as u64 }).take(columns).collect()
        };
        let query = move |pass| Query::all(wanted(pass));
        let cold = move |pass| {
            elsewhere.read();
            query(pass)
        };
        // Milliseconds: of a million "keys" nanoseconds.
        const UNIT: usize = 1_000_000;
        let mut cases = vec![Case::new(UNIT, |_| read(rows.as_flattened()))];
        let (mut answers, mut hits) = (vec![0; count.div_ceil(64) as usize], Bitmask::new());
        for (_, scan) in &scans {
            scan(rows, row_of(shape, wanted(0).into_iter()), &mut answers);
            planes.query(&query(0), &mut hits);
            assert_eq!(hits.words(), answers);
            let mut answers = answers.clone();
            let row = move |pass| row_of(shape, wanted(pass).into_iter());
            cases.push(Case::with_setup(UNIT, row, move |row| scan(rows, row, &mut answers)));
        }
        let words = count as usize / 64 * 2 * columns;
        cases.push(Case::with_setup(UNIT, cold, move |_| {
            read(&rows.as_flattened()[1 << 20..][..words])
        }));
        let mut hits = Bitmask::new();
        cases.push(Case::with_setup(UNIT, cold, move |query| planes.query(&query, &mut hits)));
        cases.push(Case::with_setup(UNIT, cold, move |query| {
            let mut found = 0;
            planes.query_batch(&[query], |_, _, hits| found += hits.words().len());
            found
        }));
        let mut hits = Bitmask::new();
        let warm = move |pass| {
            planes.query(&query(pass), &mut Bitmask::new());
            query(pass)
        };
        cases.push(Case::with_setup(UNIT, warm, move |query| planes.query(&query, &mut hits)));

        let times = interleaved(&mut cases, Schedule::rounds(rounds));
        let (all, of_scans) = (times[0], &times[1..=scans.len()]);
        let [piece, cold, batch, _] = times[scans.len() + 1..] else { unreachable!("four ways") };
        let fastest = of_scans.iter().map(|time| time.median).fold(f64::INFINITY, f64::min);
        let read = count as f64 / 8.0 * 2.0 * columns as f64;
        let mut line = vec![format!("{columns}{}", if is_common { ", all planes" } else { "" })];
        line.extend(times[1..].iter().map(|time| format!("{time:.3}")));
        line.extend(
            [
                fastest / cold.median,
                fastest / batch.median,
                100.0 * read / batch.median / (bytes / all.median),
                100.0 * piece.median / batch.median,
            ]
            .map(|figure| format!("{figure:.1}")),
        );
        lines.push(line);
        if lines.len() == 1 {
            let [median, best] = [all.median, all.min].map(|ms| bytes / ms / 1e6);
            println!("\n{count} rows of {COLUMNS} columns, {shape}; ms a query");
            println!("  memory is read at {median:.1} GB/s ({best:.1})\n");
        }
    }
    println!("{}", markdown(&heads, lines));

    println!("bytes requested of a file of {} bytes", planes.as_bytes().len());
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

/// Filters of the core, one by one, prefetched, transposed.
struct Filters {
    filters: Vec<BloomFilter>,
    planes: Planes,
}

const WAYS: [&str; 3] = ["one by one", "prefetched", "planes"];

impl Filters {
    /// Of this many keys each, ten bits a key.
    fn new(count: u64, keys: u64) -> Self {
        let params = Sizing::BitsPerKey(10.0).params(keys).expect("a legal size");
        let filled = (0..count).map(|table| {
            let mut filter = BloomFilter::new(params, KeyHash::default()).expect("memory");
            let hashes: Vec<u64> = (0..keys).map(|i| hash(i << 16 | table)).collect();
            filter.insert_hashes(&hashes).expect("hashes");
            filter
        });
        let filters: Vec<BloomFilter> = filled.collect();
        let planes = Planes::from_filters(&filters).expect("filters of one shape");
        Filters { filters, planes }
    }

    /// How many may have a hash, by one of the ways.
    fn look_up(&self, way: usize, hash: u64, hits: &mut Bitmask) -> usize {
        let contains = |filter: &&BloomFilter| filter.contains_hash(hash);
        match way {
            0 => self.filters.iter().filter(contains).count(),
            1 => {
                let mut ahead =
                    PrefetchAhead::start(&self.filters, |filter| filter.prefetch_hash(hash));
                self.filters.iter().inspect(|_| ahead.advance(1)).filter(contains).count()
            }
            _ => {
                self.planes.query(&Query::all([hash]), hits);
                hits.count_hits()
            }
        }
    }
}

/// 10,000 filters of this many keys each. Cold is the first lookup after other memory was read, and after a lookup in other, small
/// filters, so that the code is warm; warm are 32 lookups of different keys behind another.
fn filters(keys: u64, rounds: usize) {
    let (many, few) = (Filters::new(10_000, keys), Filters::new(600, 100));
    let (many, few, elsewhere) = (&many, &few, &Elsewhere::new());
    println!("\n10,000 filters of {keys} keys, {}; us a key", many.planes.shape());
    for (state, lookups) in [("cold", 1), ("warm", 32)] {
        let mut ways = Named::default();
        for (way, name) in WAYS.iter().enumerate() {
            let first = move |pass: usize| (1 << 60) + 64 * (3 * pass + way) as u64;
            let setup = move |pass| {
                let mut hits = Bitmask::new();
                elsewhere.read();
                black_box(few.look_up(way, hash(first(pass)), &mut hits));
                if lookups > 1 {
                    black_box(many.look_up(way, hash(first(pass)), &mut hits));
                }
                (first(pass) + 1, hits)
            };
            let look_up = move |(first, mut hits): (u64, Bitmask)| {
                let hashes = (first..first + lookups).map(hash);
                hashes.map(|hash| many.look_up(way, hash, &mut hits)).sum::<usize>()
            };
            // Microseconds.
            let keys = lookups as usize * 1_000;
            ways.add(format!("{state}, {name}"), Case::with_setup(keys, setup, look_up));
        }
        print!("{}", ways.lines(rounds));
    }
}

fn main() {
    let given = Given::to("planes");
    let (rows, rounds) = if given.is_quick { (1_000_000, 3) } else { (10_000_000, 15) };
    let shape = Shape::new(1, 128, 2).expect("a legal shape");
    if given.has("append") {
        appending(shape, rounds);
    }
    if given.has("scan") {
        scanning(shape, rows, rounds);
    }
    if given.has("filters") {
        filters(1_000, rounds);
        filters(10_000, rounds);
    }
}
