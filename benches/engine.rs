//! What an engine calls for a point lookup: one absent key in the filters of 20 tables, ten bits per key. Each table has fewer keys than the
//! one before, by a thousandth of the first's.
//!
//! Ways: `one by one` tests the opened filters in turn, `prefetch first` calls `prefetch_hash` of all and then tests, `stored bytes` tests
//! by `contains_hash_in` what has just been fetched, `opened each time` opens that by `from_bytes_trusted` and tests. `MultiGet of 8` and
//! more look up batches in one filter after the other, and prefetch 64 keys in the next. `tables, one by one` and `tables, prefetch first`
//! compare the key with the least and greatest of each table before they test its filter, as an engine does. `RocksDB's loop` and
//! `lsm-tree's filter` are two other engines' filters of as many bits, both written here after their descriptions.
//!
//! The partitioned tables have 200,000 keys in filters of 4 KiB: the index is searched by the key, and then the partition is tested.
//!
//! `cargo bench --bench engine` takes a minute and 500 MB of memory. Rounds of all ways are interleaved, so that a neighbour on the
//! machine slows all of them; times are ns per key in 20 tables: median of the rounds, least in brackets, ratio of the medians.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;
use std::time::Instant;

use benches::peers::LsmTreeFilter;
use benches::workload::key;
use blocked_bloom::{Bitmask, Block, BloomFilter, FilterOptions, KeyHash, Sizing, Stored};
use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder};

const TABLES: usize = 20;

/// Keys looked up by each way in a round.
const LOOKUPS: usize = 2_048;

/// Where the filters are: in the bytes that were stored, or in memory of their own, whose blocks are cache lines, on huge pages if large.
#[derive(Clone, Copy, PartialEq)]
enum Memory {
    Stored,
    Own,
}

type View<'a> = BloomFilter<&'a [Block]>;

/// What an engine has of a table: the range of its keys, somewhere on the heap, and its filter.
struct Table<'a> {
    least: Vec<u8>,
    greatest: Vec<u8>,
    filter: View<'a>,
}

impl<'a> Table<'a> {
    fn boxed(filter: View<'a>) -> Box<Self> {
        Box::new(Table { least: vec![0; 8], greatest: vec![255; 8], filter })
    }

    fn may_have(&self, key: &[u8], hash: u64) -> bool {
        *self.least <= *key && *key <= *self.greatest && self.filter.contains_hash(hash)
    }
}

struct Tables {
    stored: Vec<Vec<u8>>,
    owned: Vec<BloomFilter>,
    lsm_tree: Vec<LsmTreeFilter>,
}

impl Tables {
    fn new(keys: usize, memory: Memory) -> Self {
        let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
        let mut tables = Tables { stored: Vec::new(), owned: Vec::new(), lsm_tree: Vec::new() };
        for table in 0..TABLES as u64 {
            // Of equally many keys, the blocks of a key would be at the same place of all filters: in one set of the first-level cache, and, on huge pages,
            // of the second, which has fewer ways than there are tables.
            let keys = keys - keys * table as usize / 1000;
            let hashes: Vec<u64> = (0..keys as u64).map(|i| key(i * 64 + table)).collect();
            let filter = BloomFilter::from_hashes(&options, &hashes).expect("memory");
            tables.stored.push(filter.to_bytes());
            tables.lsm_tree.push(LsmTreeFilter::new(&hashes, 10 * keys));
            if memory == Memory::Own {
                tables.owned.push(filter);
            }
        }
        tables
    }
}

/// A way to look up all of some hashes in all tables; returns how many were found, which is the same for all ways.
type Way<'a> = Box<dyn FnMut(&[u64]) -> usize + 'a>;

fn multi_get<'a>(views: &'a [View<'a>], batch: usize) -> Way<'a> {
    let mut hits = Bitmask::new();
    Box::new(move |hashes| {
        let mut found = 0;
        for hashes in hashes.chunks(batch) {
            for (i, view) in views.iter().enumerate() {
                if let Some(next) = views.get(i + 1) {
                    hashes.iter().take(64).for_each(|&hash| next.prefetch_hash(hash));
                }
                view.contains_hashes(hashes, &mut hits);
                found += hits.count_hits();
            }
        }
        found
    })
}

fn ways<'a>(
    tables: &'a Tables,
    views: &'a [View<'a>],
    in_tables: &'a [Box<Table<'a>>],
) -> Vec<(&'static str, Way<'a>)> {
    let key_hash = KeyHash::default();
    let each = |test: fn(&'a [View<'a>], u64) -> usize| -> Way<'a> {
        Box::new(move |hashes| hashes.iter().map(|&hash| test(views, hash)).sum())
    };
    let stored = &tables.stored;
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
            "stored bytes",
            Box::new(move |hashes| {
                let one = |&hash: &u64| {
                    let test =
                        |bytes: &&Vec<u8>| BloomFilter::contains_hash_in(bytes, key_hash, hash);
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
                        let filter = BloomFilter::from_bytes_trusted(bytes);
                        filter.expect("a filter").contains_hash(hash)
                    };
                    stored.iter().filter(test).count()
                };
                hashes.iter().map(one).sum()
            }),
        ),
        (
            "tables, one by one",
            Box::new(move |hashes| {
                let one = |&hash: &u64| {
                    let key = hash.to_be_bytes();
                    in_tables.iter().filter(|table| table.may_have(&key, hash)).count()
                };
                hashes.iter().map(one).sum()
            }),
        ),
        (
            "tables, prefetch first",
            Box::new(move |hashes| {
                let one = |&hash: &u64| {
                    let key = hash.to_be_bytes();
                    in_tables.iter().for_each(|table| table.filter.prefetch_hash(hash));
                    in_tables.iter().filter(|table| table.may_have(&key, hash)).count()
                };
                hashes.iter().map(one).sum()
            }),
        ),
        ("MultiGet of 8", multi_get(views, 8)),
        ("MultiGet of 32", multi_get(views, 32)),
        ("MultiGet of 256", multi_get(views, 256)),
    ]
}

/// The loop of RocksDB over the same blocks, and the filter of lsm-tree, whose false positives are its own.
fn peers<'a>(tables: &'a Tables, views: &'a [View<'a>]) -> Vec<(&'static str, Way<'a>)> {
    let mut ways: Vec<(&'static str, Way<'_>)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    if benches::peers::rocksdb::count(&[], &[]).is_some() {
        let count = |hashes: &[u64]| benches::peers::rocksdb::count(views, hashes).expect("AVX2");
        ways.push(("RocksDB's loop", Box::new(count)));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = views;
    let count = |hashes: &[u64]| {
        let one =
            |&hash: &u64| tables.lsm_tree.iter().filter(|filter| filter.contains(hash)).count();
        hashes.iter().map(one).sum()
    };
    ways.push(("lsm-tree's filter", Box::new(count)));
    ways
}

/// A table of ascending keys whose filter is in partitions of 4 KiB.
struct Partitioned {
    index: PartitionIndex<Vec<u8>>,
    stored: Vec<Vec<u8>>,
}

impl Partitioned {
    fn new(keys: u64, table: u64) -> Self {
        let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
        let mut builder = PartitionedFilterBuilder::new(options, 4_096).expect("a legal size");
        let mut keys: Vec<u64> = (0..keys).map(|i| key(i * 64 + table)).collect();
        keys.sort_unstable();
        let mut stored = Vec::new();
        for key in keys {
            stored.extend(builder.insert(key.to_be_bytes()).expect("ascending keys"));
        }
        let (last, index) = builder.finish().expect("memory");
        stored.push(last);
        let stored = stored.iter().map(BloomFilter::to_bytes).collect();
        Partitioned { index: PartitionIndex::from_bytes(index).expect("an index"), stored }
    }
}

/// Ways to look keys up in partitioned tables: the hash of a key is that of its eight bytes.
fn partitioned_ways<'a>(
    tables: &'a [Partitioned],
    opened: &'a [Vec<BloomFilter<Stored<&'a Vec<u8>>>>],
) -> Vec<(&'static str, Way<'a>)> {
    let hasher = KeyHash::default().hasher().expect("the default hash");
    type Test<'a> = Box<dyn Fn(usize, &[u8; 8], u64) -> bool + 'a>;
    let per_key = move |test: Test<'a>| -> Way<'a> {
        Box::new(move |keys| {
            let one = |key: &u64| {
                let key = key.to_be_bytes();
                let hash = hasher.hash(key);
                (0..TABLES).filter(|&table| test(table, &key, hash)).count()
            };
            keys.iter().map(one).sum()
        })
    };
    let key_hash = KeyHash::default();
    vec![
        (
            "index, opened",
            per_key(Box::new(move |table, key, hash| {
                let at = tables[table].index.locate(key);
                opened[table][at.partition].contains_hash(hash)
            })),
        ),
        (
            "index, stored bytes",
            per_key(Box::new(move |table, key, hash| {
                let at = tables[table].index.locate(key);
                let bytes = &tables[table].stored[at.partition];
                BloomFilter::contains_hash_in(bytes, key_hash, hash)
            })),
        ),
        (
            "index, opened each time",
            per_key(Box::new(move |table, key, hash| {
                let at = tables[table].index.locate(key);
                let bytes = &tables[table].stored[at.partition];
                let opened = tables[table].index.open_trusted(&at, bytes);
                opened.expect("the partition").contains_hash(hash)
            })),
        ),
    ]
}

/// Times the ways in interleaved rounds and prints a line for each. The first `same` of them must find the same.
fn time(mut ways: Vec<(&'static str, Way<'_>)>, same: usize, rounds: usize) {
    let mut times = vec![Vec::new(); ways.len()];
    // Every way of every round has keys of its own, whose lines no other has brought into the cache; only in the first round all have
    // the same.
    let mut next = 1 << 40;
    let mut expected = None;
    for round in 0..=rounds {
        for (i, ((name, way), times)) in ways.iter_mut().zip(&mut times).enumerate() {
            let hashes: Vec<u64> = (next..next + LOOKUPS as u64).map(|i| key(key(i))).collect();
            let start = Instant::now();
            let found = way(black_box(&hashes));
            let nanoseconds = start.elapsed().as_nanos() as f64 / LOOKUPS as f64;
            if round > 0 {
                times.push(nanoseconds);
                next += LOOKUPS as u64;
            } else if i < same {
                assert_eq!(*expected.get_or_insert(found), found, "{name} finds others");
            }
        }
        next += LOOKUPS as u64;
    }
    let mut reference = 0.0;
    for ((name, _), times) in ways.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        if reference == 0.0 {
            reference = median;
        }
        println!("  {name:<23} {median:8.1} ({:.1}) {:.2}", times[0], median / reference);
    }
}

fn opened(bytes: &Vec<u8>) -> BloomFilter<Stored<&Vec<u8>>> {
    BloomFilter::from_bytes(bytes).expect("a filter")
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
    let memories = [
        (3_276, Memory::Stored),
        (200_000, Memory::Stored),
        (5_000_000, Memory::Stored),
        (5_000_000, Memory::Own),
    ];
    for (keys, memory) in memories {
        let tables = Tables::new(keys, memory);
        let opened: Vec<_> = tables.stored.iter().map(opened).collect();
        let views: Vec<_> = match &tables.owned[..] {
            [] => opened.iter().map(|filter| filter.view()).collect(),
            owned => owned.iter().map(|filter| filter.view()).collect(),
        };
        let in_tables: Vec<_> = views.iter().copied().map(Table::boxed).collect();
        let mut ways = ways(&tables, &views, &in_tables);
        let same = ways.len();
        ways.extend(peers(&tables, &views));
        let bytes: usize = tables.stored.iter().map(Vec::len).sum();
        let place = if memory == Memory::Own { ", whole lines and huge pages" } else { "" };
        println!("\n{keys} keys a table, {} KB of filters{place}", bytes / 1000);
        time(ways, same, rounds);
    }
    let tables: Vec<_> = (0..TABLES as u64).map(|table| Partitioned::new(200_000, table)).collect();
    let opened: Vec<Vec<_>> =
        tables.iter().map(|table| table.stored.iter().map(opened).collect()).collect();
    println!("\n200000 keys a table, in {} partitions", tables[0].stored.len());
    let ways = partitioned_ways(&tables, &opened);
    let same = ways.len();
    time(ways, same, rounds);
}
