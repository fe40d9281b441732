//! What an engine calls for a point lookup: one absent key in the filters of 20 tables, ten bits
//! per key. Each table has fewer keys than the one before, by a thousandth of the first's.
//!
//! Rows: `one by one` tests the opened filters in turn. `prefetch first` calls `prefetch_hash` of
//! every filter and then tests; `tables_to_read` computes the bits of the key once for all
//! filters. These rows borrow the blocks of the opened filters; `tables_to_read, stored` and
//! `TableFilter` look up the opened filters, of the core's type and of the LSM kit's. `stored
//! bytes` tests the stored bytes with `contains_hash_in`; `opened each time` opens them with
//! `from_bytes_trusted` and then tests. `MultiGet of 8` and larger look up a batch in one filter
//! after the other, and prefetch 64 keys in the next filter. `tables, one by one` and `tables,
//! prefetch first` first compare the key with the smallest and largest key of each table, as an
//! engine does. `RocksDB's loop` and `lsm-tree's filter` are two other engines' filters of as
//! many bits, both written here after their descriptions. For different numbers of probes, every
//! second table has 14 bits per key. The partitioned tables have 200,000 keys in filters of 4 KiB:
//! the index is searched by the key, and then the opened partition is tested.
//!
//! `cargo bench -p blocked-bloom-benches --bench engine` takes a minute and 500 MB of memory. Times
//! are ns per key in 20 tables.

use std::cell::Cell;

use benches::clock::{Case, Named};
use benches::rows::Arguments;
use benches::workload::hash;
use blocked_bloom::{Bitmask, Block, BloomFilter, Filter, FilterOptions, KeyHash, Sizing, Stored};
use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder, TableFilter, tables_to_read};

const TABLES: usize = 20;

/// Keys looked up by each way in a round.
const LOOKUPS: usize = 2_048;

const OPTIONS: FilterOptions = FilterOptions::new(Sizing::BitsPerKey(10.0));

type View<'a> = BloomFilter<&'a [Block]>;
type Boxed<'a> = Box<Table<'a>>;
type Opened<'a> = BloomFilter<Stored<&'a Vec<u8>>>;

/// A way to look up all of some hashes in all tables; returns how many were found.
type Row<'a> = (&'static str, Box<dyn FnMut(&[u64]) -> usize + 'a>);

/// A row that takes one hash after the other. It prepares all items for the hash (by a prefetch,
/// for example), and then looks the hash up in each item.
fn query_row<'a, T>(
    name: &'static str,
    all: &'a [T],
    first: impl Fn(&T, u64) + 'a,
    has: impl Fn(&T, u64) -> bool + 'a,
) -> Row<'a> {
    let count = move |&hash: &u64| {
        all.iter().for_each(|one| first(one, hash));
        all.iter().filter(|one| has(one, hash)).count()
    };
    (name, Box::new(move |hashes| hashes.iter().map(&count).sum()))
}

fn skip_prefetch<T>(_: &T, _: u64) {}

fn multi_get<'a>(name: &'static str, views: &'a [View<'a>], batch: usize) -> Row<'a> {
    let mut hits = Bitmask::new();
    let count = move |hashes: &[u64]| {
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
    };
    (name, Box::new(count))
}

/// What an engine has of a table: the range of its keys, somewhere on the heap, and its filter.
struct Table<'a> {
    least: Vec<u8>,
    greatest: Vec<u8>,
    filter: View<'a>,
}

impl Table<'_> {
    fn may_have(&self, hash: u64) -> bool {
        let key = &hash.to_be_bytes()[..];
        *self.least <= *key && *key <= *self.greatest && self.filter.contains_hash(hash)
    }
}

/// RocksDB's loop over the same blocks, where there is AVX2.
fn rocksdb<'a>(views: &'a [View<'a>]) -> Option<Row<'a>> {
    #[cfg(target_arch = "x86_64")]
    if let Some(0) = benches::rocksdb::count_in_all(&[], &[]) {
        let tables: Vec<_> = views.iter().map(|v| (v.blocks(), v.params().probes())).collect();
        let count = move |hashes: &[u64]| benches::rocksdb::count_in_all(&tables, hashes);
        return Some(("RocksDB's loop", Box::new(move |hashes| count(hashes).expect("AVX2"))));
    }
    let _ = views;
    None
}

/// The standard filter of lsm-tree, as its documentation describes it: a classical filter, whose
/// probes are found by double hashing with a division each.
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

/// Times the rows in interleaved rounds. All but the last `others` must find the same.
fn time(title: &str, rows: Vec<Row<'_>>, others: usize, rounds: usize) {
    // Every way of every round has keys of its own, whose lines no other has brought into the
    // cache.
    let next = Cell::new(1 << 40);
    let fresh = || {
        let first = next.replace(next.get() + LOOKUPS as u64);
        (first..first + LOOKUPS as u64).map(|i| hash(hash(i))).collect::<Vec<u64>>()
    };
    let (same, mut first, alike) = (fresh(), None, rows.len() - others);
    let mut named = Named::default();
    for (i, (name, mut way)) in rows.into_iter().enumerate() {
        let found = way(&same);
        assert!(i >= alike || *first.get_or_insert(found) == found, "{name} finds others");
        let look_up = move |hashes: Vec<u64>| way(&hashes);
        named.add(name, Case::with_setup(None, LOOKUPS, |_| fresh(), look_up));
    }
    named.print(title, rounds);
}

/// `tables_to_read` over filters.
fn to_read_row<'f, F: Filter>(name: &'static str, filters: &'f [F]) -> Row<'f> {
    let count = |&hash: &u64| tables_to_read(filters, |filter| (filter, hash)).count();
    (name, Box::new(move |hashes| hashes.iter().map(count).sum()))
}

fn opened(bytes: &Vec<u8>) -> Opened<'_> {
    BloomFilter::from_bytes(bytes, KeyHash::default()).expect("a filter")
}

/// Returns the hashes of a table's keys.
///
/// Of equally many keys, the blocks of a key would be at the same place of all filters: in one set
/// of the first-level cache, and, on huge pages, of the second, which has fewer rows than there are
/// tables.
fn hashes_of(table: u64, keys: usize) -> Vec<u64> {
    let keys = keys - keys * table as usize / 1000;
    (0..keys as u64).map(|i| hash(i * 64 + table)).collect()
}

/// Filters in the bytes that were stored, or in memory of their own, whose blocks are cache lines,
/// on huge pages if large.
fn whole(keys: usize, is_own: bool, rounds: usize) {
    let (mut stored, mut owned, mut lsm_tree) = (Vec::new(), Vec::new(), Vec::new());
    for table in 0..TABLES as u64 {
        let hashes = hashes_of(table, keys);
        let filter = BloomFilter::from_hashes(&OPTIONS, &hashes).expect("memory");
        stored.push(filter.to_bytes());
        lsm_tree.push(LsmTreeFilter::new(&hashes, 10 * hashes.len()));
        owned.extend(is_own.then_some(filter));
    }
    let opened: Vec<Opened<'_>> = stored.iter().map(opened).collect();
    let views: Vec<View<'_>> = match is_own {
        true => owned.iter().map(|filter| filter.view()).collect(),
        false => opened.iter().map(|filter| filter.view()).collect(),
    };
    let table = |filter| Box::new(Table { least: vec![0; 8], greatest: vec![255; 8], filter });
    let tables: Vec<Boxed<'_>> = views.iter().copied().map(table).collect();
    fn contains(view: &View<'_>, hash: u64) -> bool {
        view.contains_hash(hash)
    }
    let in_bytes =
        |bytes: &Vec<u8>, hash| BloomFilter::contains_hash_in(bytes, KeyHash::default(), hash);
    let open = |bytes: &Vec<u8>, hash| {
        let opened = BloomFilter::from_bytes_trusted(bytes, KeyHash::default());
        opened.expect("a filter").contains_hash(hash)
    };
    let ahead = |table: &Boxed<'_>, hash| table.filter.prefetch_hash(hash);
    let has = |table: &Boxed<'_>, hash| table.may_have(hash);
    let filters: Vec<TableFilter<&Vec<u8>>> = opened.iter().map(|one| (*one).into()).collect();
    let mut rows: Vec<Row<'_>> = vec![
        query_row("one by one", &views, skip_prefetch, contains),
        query_row("prefetch first", &views, |view, hash| view.prefetch_hash(hash), contains),
        to_read_row("tables_to_read", &views),
        query_row("stored bytes", &stored, skip_prefetch, in_bytes),
        query_row("opened each time", &stored, skip_prefetch, open),
        query_row("tables, one by one", &tables, skip_prefetch, has),
        query_row("tables, prefetch first", &tables, ahead, has),
        multi_get("MultiGet of 8", &views, 8),
        multi_get("MultiGet of 32", &views, 32),
        multi_get("MultiGet of 256", &views, 256),
    ];
    if !is_own {
        rows.push(to_read_row("tables_to_read, stored", &opened));
        rows.push(to_read_row("TableFilter", &filters));
    }
    rows.extend(rocksdb(&views));
    // Its false positives are its own.
    rows.push(query_row("lsm-tree's filter", &lsm_tree, skip_prefetch, LsmTreeFilter::contains));
    let place = if is_own { ", whole lines and huge pages" } else { "" };
    let title = format!("{keys} keys a table{place}");
    time(&title, rows, 1, rounds);
}

/// Filters whose number of probes changes from table to table, so that the bits of a key are
/// computed for each.
fn mixed(keys: usize, rounds: usize) {
    let filter = |table: u64| {
        let options = FilterOptions::new(Sizing::BitsPerKey([10.0, 14.0][table as usize % 2]));
        BloomFilter::from_hashes(&options, &hashes_of(table, keys)).expect("memory")
    };
    let filters: Vec<BloomFilter> = (0..TABLES as u64).map(filter).collect();
    let views: Vec<View<'_>> = filters.iter().map(|filter| filter.view()).collect();
    let probes = |table: usize| views[table].params().probes();
    assert!((1..TABLES).all(|table| probes(table) != probes(table - 1)));
    let contains = |view: &View<'_>, hash: u64| view.contains_hash(hash);
    let one_by_one = query_row("one by one", &views, skip_prefetch, contains);
    let rows = vec![one_by_one, to_read_row("tables_to_read", &views)];
    time(&format!("{keys} keys a table, different numbers of probes"), rows, 0, rounds);
}

type Partitioned = (PartitionIndex<Vec<u8>>, Vec<BloomFilter<Stored<Vec<u8>>>>);

/// Tables of ascending keys whose filters are in partitions of 4 KiB; the hash of a key is that of
/// its eight bytes.
fn partitioned(rounds: usize) {
    let stored = |table: u64| {
        let mut builder = PartitionedFilterBuilder::new(OPTIONS, 4_096).expect("a legal size");
        let mut keys: Vec<u64> = (0..200_000).map(|i| hash(i * 64 + table)).collect();
        keys.sort_unstable();
        let mut stored = Vec::new();
        for key in keys {
            stored.extend(builder.insert(key.to_be_bytes()).expect("ascending keys"));
        }
        let (last, index) = builder.finish().expect("memory");
        stored.push(last);
        let open = |filter: BloomFilter| {
            BloomFilter::from_bytes(filter.to_bytes(), OPTIONS.key_hash()).expect("opens")
        };
        let opened = stored.into_iter().map(open).collect();
        (PartitionIndex::from_bytes(index, OPTIONS.key_hash()).expect("an index"), opened)
    };
    let tables: Vec<Partitioned> = (0..TABLES as u64).map(stored).collect();
    let hasher = KeyHash::default().hasher().expect("the default hash");
    let has = |(index, parts): &Partitioned, key: u64| {
        let key = key.to_be_bytes();
        parts[index.locate(key).partition].contains_hash(hasher.hash(key))
    };
    let title = format!("200000 keys a table, in {} partitions", tables[0].1.len());
    time(&title, vec![query_row("index, opened", &tables, skip_prefetch, has)], 0, rounds);
}

fn main() {
    let rounds = Arguments::from_command_line().rounds(41);
    for (keys, own) in [(3_276, false), (200_000, false), (5_000_000, false), (5_000_000, true)] {
        whole(keys, own, rounds);
    }
    mixed(3_276, rounds);
    partitioned(rounds);
}
