//! Bit planes beside scans of rows and beside filters looked up one by one; appending; and whether the rarest plane first would pay.
//!
//! `cargo bench --bench planes` takes a minute and 1.2 GB of memory; `-- --rows 1000000` is for fewer rows. Rounds of all ways are
//! interleaved. Before a cold way other memory is read, many times the third-level cache. Times are medians of the rounds, the least in
//! brackets.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

mod scan;

use std::hint::black_box;
use std::time::Instant;

use benches::workload::key;
use blocked_bloom::{Bitmask, BloomFilter, KeyHash, PrefetchAhead, Sizing};
use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
use scan::Row;

const COLUMNS: u64 = 10;

/// Rows whose numbers are a multiple of this have the same values, so that no 512 rows are without one that has them all.
const COMMON: u64 = 500;

/// A column's value in a row, as its hash: one of a million.
fn value(row: u64, column: u64) -> u64 {
    let value = if row.is_multiple_of(COMMON) { 0 } else { 1 + key(row * 16 + column) % 1_000_000 };
    key(value * 16 + column)
}

/// Seconds of each round.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn time<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = black_box(run());
        self.0.push(start.elapsed().as_secs_f64());
        result
    }

    fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    fn milliseconds(&self) -> String {
        format!("{:.3} ({:.3})", self.median() * 1e3, self.least() * 1e3)
    }
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
    let (mut plain, mut planes) = (Times::default(), Times::default());
    for _ in 0..rounds {
        let kept = plain.time(|| {
            let mut kept: Vec<Row> = Vec::new();
            kept.extend(hashes.iter().map(|row| row_of(shape, row.iter().copied())));
            kept
        });
        assert_eq!(kept.len(), hashes.len());
        drop(kept);
        let stored = planes.time(|| {
            let mut stored = Vec::new();
            let mut builder = PlanesOptions::new(shape).builder().expect("memory for a group");
            for row in hashes {
                let group = builder.append(row.iter().copied()).expect("memory for a group");
                stored.extend(group.unwrap_or_default());
            }
            stored.extend(builder.finish().expect("memory for a group"));
            stored
        });
        assert!(stored.len() as u64 > rows * 16);
    }
    let nanoseconds = |times: &Times| {
        let [median, least] = [times.median(), times.least()].map(|time| time * 1e9 / rows as f64);
        format!("{median:.1} ({least:.1})")
    };
    println!("\nappending {rows} rows, ns a row");
    println!("  row-major {}", nanoseconds(&plain));
    println!(
        "  planes    {}: {:.2} times, of the least {:.2}",
        nanoseconds(&planes),
        planes.median() / plain.median(),
        planes.least() / plain.least()
    );
}

fn scanning(shape: Shape, count: u64, rounds: usize) {
    let values = |row| (0..COLUMNS).map(move |column| value(row, column));
    let rows: Vec<Row> = (0..count).map(|row| row_of(shape, values(row))).collect();
    let options = PlanesOptions::new(shape);
    let planes = Planes::from_hashes(&options, (0..count).map(values)).expect("memory");
    let scans = scan::all();
    let elsewhere = Elsewhere::new();
    let mut answers = vec![0; count.div_ceil(64) as usize];
    let mut hits = Bitmask::new();
    let mut bandwidth = Times::default();

    // Columns, and whether rows are left in every line, so that no plane is left out.
    let cases = [
        (1, false),
        (2, false),
        (4, false),
        (6, false),
        (1, true),
        (2, true),
        (4, true),
        (6, true),
    ];
    let mut times: Vec<Vec<Times>> = Vec::new();
    times.resize_with(cases.len(), || (0..scans.len() + 4).map(|_| Times::default()).collect());
    for round in 0..rounds as u64 {
        for (&(columns, is_common), times) in cases.iter().zip(&mut times) {
            let row = if is_common { 0 } else { 12_345 + round };
            let wanted: Vec<u64> = values(row).take(columns).collect();
            let query = Query::all(wanted.iter().copied());
            let (scan_times, plane_times) = times.split_at_mut(scans.len());
            let wanted = row_of(shape, wanted.into_iter());
            for ((_, scan), times) in scans.iter().zip(scan_times) {
                times.time(|| scan(&rows, wanted, &mut answers));
            }
            let [piece, whole, batch, warm] = plane_times else { unreachable!("four ways") };
            bandwidth.time(|| read(rows.as_flattened()));
            elsewhere.read();
            let words = count as usize / 64 * 2 * columns;
            piece.time(|| read(&rows.as_flattened()[1 << 20..][..words]));
            elsewhere.read();
            whole.time(|| planes.query(&query, &mut hits));
            assert_eq!(hits.words(), answers);
            warm.time(|| planes.query(&query, &mut hits));
            elsewhere.read();
            let mut found = 0;
            batch.time(|| {
                let query = std::slice::from_ref(&query);
                planes.query_batch(query, |_, _, hits| found += hits.words().len());
            });
            assert_eq!(found, answers.len());
        }
    }

    let bytes = rows.len() as f64 * 16.0;
    println!("\n{count} rows of {COLUMNS} columns, {shape}; ms a query");
    println!(
        "  memory is read at {:.1} GB/s ({:.1})",
        bytes / bandwidth.median() / 1e9,
        bytes / bandwidth.least() / 1e9
    );
    print!("| columns |");
    scans.iter().for_each(|(name, _)| print!(" {name} |"));
    println!(
        " as many bytes in one piece, cold | planes, cold | planes by batch, cold | planes, warm | cold, times the fastest scan | of the bandwidth | warm |"
    );
    for ((columns, is_common), times) in cases.iter().zip(&times) {
        print!("| {columns}{} |", if *is_common { ", all planes" } else { "" });
        times.iter().for_each(|times| print!(" {} |", times.milliseconds()));
        let (scans, planes) = times.split_at(scans.len());
        let fastest = scans.iter().map(Times::median).fold(f64::INFINITY, f64::min);
        let [piece, cold, batch, warm] = planes else { unreachable!("four ways") };
        let read = count as f64 / 8.0 * 2.0 * *columns as f64;
        println!(
            " {:.1}, by batch {:.1} | {:.0} % of all, {:.0} % of one piece | {:.1} |",
            fastest / cold.median(),
            fastest / batch.median(),
            100.0 * read / batch.median() / (bytes / bandwidth.median()),
            100.0 * piece.median() / batch.median(),
            fastest / warm.median()
        );
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

/// Filters of the core, one by one, prefetched, transposed.
struct Filters {
    filters: Vec<BloomFilter>,
    planes: Planes,
}

impl Filters {
    /// Of this many keys each, ten bits a key.
    fn new(count: u64, keys: u64) -> Self {
        let params = Sizing::BitsPerKey(10.0).params(keys).expect("a legal size");
        let filled = (0..count).map(|table| {
            let mut filter = BloomFilter::new(params, KeyHash::default()).expect("memory");
            let hashes: Vec<u64> = (0..keys).map(|i| key(i << 16 | table)).collect();
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
    let elsewhere = Elsewhere::new();
    let mut hits = Bitmask::new();
    let mut times: [[Times; 3]; 2] = Default::default();
    let mut next = 1 << 60;
    for _ in 0..rounds {
        for (is_warm, times) in [false, true].into_iter().zip(&mut times) {
            for (way, times) in times.iter_mut().enumerate() {
                elsewhere.read();
                black_box(few.look_up(way, key(next), &mut hits));
                if is_warm {
                    black_box(many.look_up(way, key(next), &mut hits));
                }
                let lookups = if is_warm { 32 } else { 1 };
                times.time(|| {
                    let hashes = (next + 1..=next + lookups).map(key);
                    hashes.map(|hash| many.look_up(way, hash, &mut hits)).sum::<usize>()
                });
                if let Some(last) = times.0.last_mut() {
                    *last /= lookups as f64;
                }
                next += 64;
            }
        }
    }
    println!("\n10,000 filters of {keys} keys, {}; us a key", many.planes.shape());
    for (state, [one, prefetched, planes]) in ["cold", "warm"].iter().zip(&times) {
        let us =
            |times: &Times| format!("{:.1} ({:.1})", times.median() * 1e6, times.least() * 1e6);
        println!(
            "  {state}: one by one {}, prefetched {}, planes {}: {:.0} and {:.0} times",
            us(one),
            us(prefetched),
            us(planes),
            one.median() / planes.median(),
            prefetched.median() / planes.median()
        );
    }
}

/// Whether it would pay to know how many rows each plane has: the same query with its items in the order of the columns, and with those of
/// the fewest rows first.
fn rarest_first(shape: Shape, count: u64, rounds: usize) {
    // Of six columns as many as said have the same value in nine rows of ten.
    let value = |constant: u64, row: u64, column: u64| {
        let is_constant = column < constant && !key(row << 8 | column).is_multiple_of(10);
        let value = if is_constant { 0 } else { key(row * 16 + column) % 1_000_000 };
        key(value * 16 + column)
    };
    println!(
        "\n{count} rows, six columns looked up, some of which are 0 in nine rows of ten; ms a query, cold"
    );
    let elsewhere = Elsewhere::new();
    for constant in [0, 1, 3, 5] {
        let values = |row| (0..COLUMNS).map(move |column| value(constant, row, column));
        let planes = Planes::from_hashes(&PlanesOptions::new(shape), (0..count).map(values))
            .expect("memory");
        let mut hits = Bitmask::new();
        let mut times: [Times; 2] = Default::default();
        for round in 0..rounds as u64 {
            let row = (0..).map(|i| round * 1_000 + i).find(|&row| {
                (0..constant).all(|column| value(constant, row, column) == key(column))
            });
            let wanted: Vec<u64> = values(row.expect("a row of constants")).take(6).collect();
            let mut counts: Vec<(usize, u64)> = Vec::new();
            for &hash in &wanted {
                planes.query(&Query::all([hash]), &mut hits);
                counts.push((hits.count_hits(), hash));
            }
            counts.sort_unstable();
            let orders = [wanted, counts.into_iter().map(|(_, hash)| hash).collect()];
            for (order, times) in orders.into_iter().zip(&mut times) {
                let query = Query::all(order);
                elsewhere.read();
                times.time(|| planes.query(&query, &mut hits));
            }
        }
        let [given, rarest] = &times;
        println!(
            "  {constant}: as given {}, rarest first {}",
            given.milliseconds(),
            rarest.milliseconds()
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |wanted: &str| arguments.iter().position(|argument| argument == wanted);
    if given("--list").is_some() {
        return println!("planes: all rows, in one run");
    }
    let rows = given("--rows").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let (rows, rounds) = match given("--quick") {
        Some(_) => (rows.unwrap_or(1_000_000), 3),
        None => (rows.unwrap_or(10_000_000), 15),
    };
    let shape = Shape::new(1, 128, 2).expect("a legal shape");
    let only = given("--only").and_then(|at| arguments.get(at + 1));
    let runs = |part: &str| only.is_none_or(|only| only == part);
    if runs("append") {
        appending(shape, rounds);
    }
    if runs("scan") {
        scanning(shape, rows, rounds);
    }
    if runs("filters") {
        filters(1_000, rounds);
        filters(10_000, rounds);
    }
    if runs("rarest") {
        rarest_first(shape, rows / 5, rounds);
    }
}
