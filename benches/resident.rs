//! The cost of a resident set's slot over a bare lookup, and of planning.
//!
//! A get looks up one absent hash in the filters of 11 tables of 2,000 keys each, so that
//! everything is in a cache. `bare` keeps the filters in a vector. `slot` takes one pin per get,
//! looks up slots and counts; `tables_to_read` does so in one call. `RwLock` clones an `Arc` under
//! a lock and counts each lookup. One and two threads look up the same slots; figures are ns per
//! table.
//!
//! `cargo bench -p blocked-bloom-benches --bench resident` takes 20 seconds.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use benches::clock::{Case, Named};
use benches::rows::{Arguments, Size};
use benches::workload::{Mix, hash};
use blocked_bloom::{BloomFilter, FilterOptions, Sizing};
use blocked_bloom_lsm::TableFilter;
use blocked_bloom_resident::{
    FilterPin, FilterSlot, ResidentOptions, ResidentPlanner, ResidentSet, ResidentTable,
};
use rayon::ThreadPoolBuilder;

/// Tables of a get.
const VISITS: usize = 11;
const TABLES: usize = 64;
const GETS: usize = 100_000;

/// The tables of a get, and a hash that none has.
type Get = ([u32; VISITS], u64);

struct Engine {
    bare: Vec<BloomFilter>,
    locked: Vec<(RwLock<Arc<BloomFilter>>, AtomicU64)>,
    slots: Vec<Arc<FilterSlot>>,
}

/// How many tables may have their hash, with what `start` makes for a get.
fn count<P>(
    gets: &[Get],
    start: impl Fn(&Get) -> P,
    look_up: impl Fn(&P, usize, u64) -> bool,
) -> usize {
    let mut hits = 0;
    for get in gets {
        let pin = start(get);
        for &table in &get.0 {
            hits += usize::from(look_up(&pin, table as usize, get.1));
        }
    }
    hits
}

type Method = fn(&Engine, &[Get]) -> usize;

const METHODS: [(&str, Method); 4] = [
    ("bare", |Engine { bare, .. }, gets| {
        count(gets, |_| (), |(), table, hash| bare[table].contains_hash(hash))
    }),
    ("slot", |Engine { slots, .. }, gets| {
        let pin = |_: &Get| FilterPin::new();
        count(gets, pin, |pin, table, hash| slots[table].query(pin, hash).must_read())
    }),
    ("tables_to_read", |Engine { slots, .. }, gets| {
        let read = |(visits, hash): &Get| {
            let slot_and_hash = |&table: &u32| (&*slots[table as usize], *hash);
            FilterPin::new().tables_to_read(visits, slot_and_hash).count()
        };
        gets.iter().map(read).sum()
    }),
    ("RwLock", |Engine { locked, .. }, gets| {
        let look_up = |(): &(), table: usize, hash| {
            let (filter, absent) = &locked[table];
            let filter = Arc::clone(&filter.read().expect("no panic under it"));
            let is_hit = filter.contains_hash(hash);
            absent.fetch_add(u64::from(!is_hit), Relaxed);
            is_hit
        };
        count(gets, |_| (), look_up)
    }),
];

fn main() {
    let rounds = Arguments::from_command_line().rounds(41);
    let filter = || Size(2_000, "2k").filled();
    let set = ResidentSet::new(ResidentOptions::new(u64::MAX).with_key_hash(filter().key_hash()));
    let slot = |number| {
        let filter = TableFilter::from(filter());
        let slot = set.add(ResidentTable::new(number, 1), filter.identity());
        assert!(set.offer(&slot, filter).expect("the slot's filter"));
        slot
    };
    let engine = &Engine {
        bare: (0..TABLES).map(|_| filter()).collect(),
        locked: (0..TABLES).map(|_| (RwLock::new(Arc::new(filter())), AtomicU64::new(0))).collect(),
        slots: (0..TABLES as u64).map(slot).collect(),
    };
    // Half of the visits are of the few tables of the small levels.
    let below = |limit: usize, i: usize| (hash(i as u64) % limit as u64) as u32;
    let visit = |get: usize, i: usize| below(if i < 6 { 16 } else { TABLES }, get * VISITS + i);
    let hashes = Mix::Absent.lookups(2_000, 2 * GETS).into_iter().enumerate();
    let gets: &Vec<Get> =
        &hashes.map(|(get, hash)| (std::array::from_fn(|i| visit(get, i)), hash)).collect();
    for threads in [1, 2] {
        let pool = &ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let mut ways = Named::default();
        for (name, way) in METHODS {
            let each = move |thread: usize| way(engine, black_box(&gets[thread * GETS..][..GETS]));
            let all = move |_| pool.broadcast(|thread| each(thread.index()));
            ways.add(name, Case::pooled(pool, GETS * VISITS, all));
        }
        ways.print(format!("{threads} threads, {VISITS} of {TABLES} tables a get"), rounds);
    }
    planning(20_000);
}

/// Measures ticks of the planner alone. Every filter was looked up since the last tick, and the
/// budget is a tenth of the filters' bytes.
fn planning(tables: u64) {
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable();
    let params = options.params(1_000_000).expect("ten bits per key are legal");
    let options = ResidentOptions::new(tables * params.stored_bytes() / 10);
    let mut planner = ResidentPlanner::new(options);
    for number in 0..tables {
        let bytes = params.stored_bytes() - number % 4_096 * 64;
        planner.add(ResidentTable::new(number, bytes).with_params(&params));
    }
    let mut ways = Named::default();
    let tick = |_| {
        for index in 0..tables {
            planner.count(index as usize, 10 * tables / (index * 7_919 % tables + 1));
        }
        for (index, size) in planner.tick(Duration::from_secs(1)) {
            planner.resize(index, size);
        }
    };
    ways.add("counts, tick, changes", Case::new(tables as usize, tick));
    ways.print(format!("planning {tables} slots, ns a slot"), 11);
}
