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
//! machine slows all of them; times are ns per key in 20 tables: median of the rounds, least in brackets, median of the ratios and of the
//! differences to the first row.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::cell::Cell;

use benches::clock::{Case, Named};
use benches::rows::Given;
use benches::workload::hash;
use blocked_bloom::{
    Bitmask, Block, BloomFilter, FilterOptions, KeyHash, KeyHasher, Sizing, Stored,
};
use blocked_bloom_lsm::{PartitionIndex, PartitionLocation, PartitionedFilterBuilder};

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
            let hashes: Vec<u64> = (0..keys as u64).map(|i| hash(i * 64 + table)).collect();
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

/// A way to look up all of some hashes in all tables; returns how many were found.
type Way<'a> = Box<dyn FnMut(&[u64]) -> usize + 'a>;

/// A way that looks up one hash after the other.
fn each<'a>(test: impl Fn(u64) -> usize + 'a) -> Way<'a> {
    Box::new(move |hashes| hashes.iter().map(|&hash| test(hash)).sum())
}

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

/// Ways that find the same.
fn ways<'a>(
    stored: &'a [Vec<u8>],
    views: &'a [View<'a>],
    in_tables: &'a [Box<Table<'a>>],
) -> Vec<(&'static str, Way<'a>)> {
    let key_hash = KeyHash::default();
    let one_by_one = move |hash: u64| views.iter().filter(|view| view.contains_hash(hash)).count();
    let in_bytes = move |hash: u64| {
        let test = |bytes: &&Vec<u8>| BloomFilter::contains_hash_in(bytes, key_hash, hash);
        stored.iter().filter(test).count()
    };
    let opened = move |hash: u64| {
        let test = |bytes: &&Vec<u8>| {
            let filter = BloomFilter::from_bytes_trusted(bytes);
            filter.expect("a filter").contains_hash(hash)
        };
        stored.iter().filter(test).count()
    };
    let in_tables_one_by_one = move |hash: u64| {
        let key = hash.to_be_bytes();
        in_tables.iter().filter(|table| table.may_have(&key, hash)).count()
    };
    vec![
        ("one by one", each(one_by_one)),
        (
            "prefetch first",
            each(move |hash| {
                views.iter().for_each(|view| view.prefetch_hash(hash));
                one_by_one(hash)
            }),
        ),
        ("stored bytes", each(in_bytes)),
        ("opened each time", each(opened)),
        ("tables, one by one", each(in_tables_one_by_one)),
        (
            "tables, prefetch first",
            each(move |hash| {
                in_tables.iter().for_each(|table| table.filter.prefetch_hash(hash));
                in_tables_one_by_one(hash)
            }),
        ),
        ("MultiGet of 8", multi_get(views, 8)),
        ("MultiGet of 32", multi_get(views, 32)),
        ("MultiGet of 256", multi_get(views, 256)),
    ]
}

/// RocksDB's loop over the same blocks, where there is AVX2.
fn rocksdb<'a>(views: &'a [View<'a>]) -> Option<Way<'a>> {
    #[cfg(target_arch = "x86_64")]
    if let Some(0) = benches::rocksdb::count_in_all(&[], &[]) {
        let tables: Vec<_> = views.iter().map(|v| (v.blocks(), v.params().probes())).collect();
        let count = move |hashes: &[u64]| benches::rocksdb::count_in_all(&tables, hashes);
        return Some(Box::new(move |hashes| count(hashes).expect("AVX2")));
    }
    let _ = views;
    None
}

/// The standard filter of lsm-tree, as its documentation describes it: a classical filter, whose probes are found by double hashing with
/// a division each.
struct LsmTreeFilter {
    bits: Vec<u8>,
    probes: u64,
}

impl LsmTreeFilter {
    fn new(hashes: &[u64], bits: usize) -> Self {
        let probes = (bits as f64 / hashes.len() as f64 * core::f64::consts::LN_2) as u64;
        let mut filter = LsmTreeFilter { bits: vec![0; bits.div_ceil(8)], probes: probes.max(1) };
        for &hash in hashes {
            let places: Vec<u64> = filter.places(hash).collect();
            places.iter().for_each(|&place| filter.bits[(place / 8) as usize] |= 1 << (place % 8));
        }
        filter
    }

    fn places(&self, mut hash: u64) -> impl Iterator<Item = u64> + use<> {
        let bits = 8 * self.bits.len() as u64;
        let mut step = (hash >> 32).wrapping_mul(0x517c_c1b7_2722_0a95);
        (1..=self.probes).map(move |i| {
            let place = hash % bits;
            hash = hash.wrapping_add(step);
            step = step.wrapping_mul(i);
            place
        })
    }

    fn contains(&self, hash: u64) -> bool {
        self.places(hash).all(|place| self.bits[(place / 8) as usize] >> (place % 8) & 1 == 1)
    }
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
        let mut keys: Vec<u64> = (0..keys).map(|i| hash(i * 64 + table)).collect();
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

/// Ways to look keys up in partitioned tables: keys are hashed by their eight bytes.
fn partitioned_ways<'a>(
    tables: &'a [Partitioned],
    opened: &'a [Vec<BloomFilter<Stored<&'a Vec<u8>>>>],
) -> Vec<(&'static str, Way<'a>)> {
    let key_hash = KeyHash::default();
    let hasher = key_hash.hasher().expect("the default hash");
    // Of a table by its number: the partition of a key, and the key's hash in it.
    fn per_table<'a>(
        tables: &'a [Partitioned],
        hasher: KeyHasher,
        test: impl Fn(usize, &PartitionLocation, u64) -> bool + 'a,
    ) -> Way<'a> {
        each(move |key| {
            let key = key.to_be_bytes();
            let hash = hasher.hash(key);
            let has = |&table: &usize| test(table, &tables[table].index.locate(key), hash);
            (0..TABLES).filter(has).count()
        })
    }
    let ways: [(_, Way<'a>); 3] = [
        (
            "index, opened",
            per_table(tables, hasher, |table, at, hash| {
                opened[table][at.partition].contains_hash(hash)
            }),
        ),
        (
            "index, stored bytes",
            per_table(tables, hasher, move |table, at, hash| {
                let bytes = &tables[table].stored[at.partition];
                BloomFilter::contains_hash_in(bytes, key_hash, hash)
            }),
        ),
        (
            "index, opened each time",
            per_table(tables, hasher, |table, at, hash| {
                let Partitioned { index, stored } = &tables[table];
                let opened = index.open_trusted(at, &stored[at.partition]);
                opened.expect("the partition").contains_hash(hash)
            }),
        ),
    ];
    ways.into()
}

/// Times the ways in interleaved rounds and prints a line for each. All but the last `others` must find the same.
fn time(mut ways: Vec<(&'static str, Way<'_>)>, others: usize, rounds: usize) {
    // Every way of every round has keys of its own, whose lines no other has brought into the cache.
    let next = Cell::new(1 << 40);
    let fresh = || {
        let first = next.replace(next.get() + LOOKUPS as u64);
        (first..first + LOOKUPS as u64).map(|i| hash(hash(i))).collect::<Vec<u64>>()
    };
    let same = fresh();
    let found: Vec<usize> = ways.iter_mut().map(|(_, way)| way(&same)).collect();
    let alike = &found[..found.len() - others];
    assert!(alike.iter().all(|count| *count == alike[0]), "some find others: {found:?}");
    let mut named = Named::default();
    for (name, mut way) in ways {
        named.add(
            name,
            Case::with_setup(LOOKUPS, |_| fresh(), move |hashes: Vec<u64>| way(&hashes)),
        );
    }
    println!("{}", named.lines(rounds));
}

fn opened(bytes: &Vec<u8>) -> BloomFilter<Stored<&Vec<u8>>> {
    BloomFilter::from_bytes(bytes).expect("a filter")
}

fn main() {
    let rounds = Given::to("engine").rounds(41);
    println!("engine: one absent key in {TABLES} tables, ns; {rounds} rounds");
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
        let mut ways = ways(&tables.stored, &views, &in_tables);
        ways.extend(rocksdb(&views).map(|way| ("RocksDB's loop", way)));
        // Its false positives are its own.
        let lsm_tree =
            |hash: u64| tables.lsm_tree.iter().filter(|table| table.contains(hash)).count();
        ways.push(("lsm-tree's filter", each(lsm_tree)));
        let bytes: usize = tables.stored.iter().map(Vec::len).sum();
        let place = if memory == Memory::Own { ", whole lines and huge pages" } else { "" };
        println!("\n{keys} keys a table, {} KB of filters{place}", bytes / 1000);
        time(ways, 1, rounds);
    }
    let tables: Vec<_> = (0..TABLES as u64).map(|table| Partitioned::new(200_000, table)).collect();
    let opened: Vec<Vec<_>> =
        tables.iter().map(|table| table.stored.iter().map(opened).collect()).collect();
    println!("\n200000 keys a table, in {} partitions", tables[0].stored.len());
    time(partitioned_ways(&tables, &opened), 0, rounds);
}
