//! What an engine calls for a point lookup: one absent key in the filters of 20 tables, ten bits per key.
//!
//! Ways: `one by one` tests the opened filters in turn, `prefetch first` calls `prefetch_hash` of all and then tests, `set` looks the key up
//! by a `FilterSet`, `stored bytes` tests by `contains_hash_in` what has just been fetched, `opened each time` opens that by
//! `from_bytes_trusted` and tests. `MultiGet of 8` and more are batches in a `FilterSet`. The first, of a filter that was opened, is 1.00.
//!
//! `cargo bench --bench engine` takes 20 seconds and 250 MB of memory. Rounds of all ways are interleaved, so that a neighbour on the
//! machine slows all of them; times are ns per key in 20 tables: median of the rounds, least in brackets, ratio of the medians.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;
use std::time::Instant;

use benches::workload::key;
use blocked_bloom::{
    BitMatrix, BloomFilter, BloomFilterRef, FilterOptions, FilterSet, KeyHash, Sizing,
};

const TABLES: usize = 20;

/// Keys in a table: in a second-level cache together, in a third-level cache, in memory.
const SIZES: [usize; 3] = [3_276, 200_000, 5_000_000];

/// Keys looked up by each way in a round.
const LOOKUPS: usize = 2_048;

struct Tables {
    stored: Vec<Vec<u8>>,
}

impl Tables {
    fn new(keys: usize) -> Self {
        let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
        let stored = (0..TABLES as u64).map(|table| {
            let hashes: Vec<u64> = (0..keys as u64).map(|i| key(i * 64 + table)).collect();
            let filter = BloomFilter::from_hashes(&options, &hashes);
            filter.expect("memory for the filter").to_bytes()
        });
        Tables { stored: stored.collect() }
    }
}

/// A way to look up all of some hashes in all tables; returns how many were found, which is the same for all ways.
type Way<'a> = Box<dyn FnMut(&[u64]) -> usize + 'a>;

fn multi_get<'a>(set: &'a FilterSet<'a>, batch: usize) -> Way<'a> {
    let mut hits = BitMatrix::new();
    Box::new(move |hashes| {
        let mut found = 0;
        for hashes in hashes.chunks(batch) {
            set.contains_hashes(hashes, &mut hits).expect("memory for the answers");
            found += hits.count_hits();
        }
        found
    })
}

fn ways<'a>(
    tables: &'a Tables,
    views: &'a [BloomFilterRef<'a>],
    set: &'a FilterSet<'a>,
) -> Vec<(&'static str, Way<'a>)> {
    let key_hash = KeyHash::default();
    let each = |test: fn(&'a [BloomFilterRef<'a>], u64) -> usize| -> Way<'a> {
        Box::new(move |hashes| hashes.iter().map(|&hash| test(views, hash)).sum())
    };
    let stored = &tables.stored;
    let mut word = [0];
    vec![
        (
            "one by one",
            each(|views, hash| views.iter().filter(|view| view.contains_hash(hash)).count()),
        ),
        (
            "prefetch first",
            each(|views, hash| {
                views.iter().for_each(|view| view.prefetch_hash(hash));
                views.iter().filter(|view| view.contains_hash(hash)).count()
            }),
        ),
        (
            "set",
            Box::new(move |hashes| {
                let one = |&hash: &u64| {
                    set.contains_hash_into(hash, &mut word).expect("a word for 20 filters");
                    word[0].count_ones() as usize
                };
                hashes.iter().map(one).sum()
            }),
        ),
        (
            "stored bytes",
            Box::new(move |hashes| {
                let one = |&hash: &u64| {
                    let test =
                        |bytes: &&Vec<u8>| BloomFilterRef::contains_hash_in(bytes, key_hash, hash);
                    stored.iter().filter(test).count()
                };
                hashes.iter().map(one).sum()
            }),
        ),
        (
            "opened each time",
            Box::new(move |hashes| {
                let one = |&hash: &u64| {
                    let test = |bytes: &&Vec<u8>| {
                        let view = BloomFilterRef::from_bytes_trusted(bytes);
                        view.expect("a filter").contains_hash(hash)
                    };
                    stored.iter().filter(test).count()
                };
                hashes.iter().map(one).sum()
            }),
        ),
        ("MultiGet of 8", multi_get(set, 8)),
        ("MultiGet of 32", multi_get(set, 32)),
        ("MultiGet of 256", multi_get(set, 256)),
    ]
}

fn main() {
    let given = |wanted| std::env::args().skip(1).any(|argument| argument == wanted);
    if given("--list") {
        return println!("engine: all rows, in one run");
    }
    let rounds = if given("--quick") { 7 } else { 41 };
    println!(
        "engine: one absent key in {TABLES} tables, ns; {rounds} rounds: median (least) ratio"
    );
    for keys in SIZES {
        let tables = Tables::new(keys);
        let views: Vec<BloomFilterRef<'_>> = tables
            .stored
            .iter()
            .map(|bytes| BloomFilterRef::from_bytes(bytes).expect("a filter"))
            .collect();
        let set =
            FilterSet::new(KeyHash::default(), views.iter().copied()).expect("filters of one hash");
        let mut ways = ways(&tables, &views, &set);
        let mut times = vec![Vec::new(); ways.len()];
        // Every way of every round has keys of its own, whose lines no other has brought into the cache; only in the first round all
        // have the same, and must find the same.
        let mut next = 1 << 40;
        let mut expected = None;
        for round in 0..=rounds {
            for ((name, way), times) in ways.iter_mut().zip(&mut times) {
                let hashes: Vec<u64> = (next..next + LOOKUPS as u64).map(|i| key(key(i))).collect();
                let start = Instant::now();
                let found = way(black_box(&hashes));
                let nanoseconds = start.elapsed().as_nanos() as f64 / LOOKUPS as f64;
                if round == 0 {
                    assert_eq!(*expected.get_or_insert(found), found, "{name} finds others");
                } else {
                    times.push(nanoseconds);
                    next += LOOKUPS as u64;
                }
            }
            next += LOOKUPS as u64;
        }
        println!(
            "\n{keys} keys a table, {} KB of filters",
            tables.stored.iter().map(Vec::len).sum::<usize>() / 1000
        );
        let mut reference = 0.0;
        for ((name, _), times) in ways.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            if reference == 0.0 {
                reference = median;
            }
            println!("  {name:<17} {median:8.1} ({:.1}) {:.2}", times[0], median / reference);
        }
    }
}
