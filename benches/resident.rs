//! What a slot of a resident set costs over a bare lookup, and what planning takes.
//!
//! A get looks up one absent hash in the filters of 11 tables, of 2,000 keys each: everything is in a cache. `bare` has the filters in a
//! vector, `slot` looks up slots under one pin per get and counts, `slot, prefetched` prefetches all first, `RwLock` clones an `Arc` from
//! under one and counts each. On one thread and on two, which look up the same slots.
//!
//! `cargo bench --bench resident` takes 20 seconds. Rounds of all ways are interleaved, so that a neighbour on the machine slows all of
//! them; times are ns per table, the median of the rounds and the least, and the medians of the ratio to `bare` and of what is over it.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use benches::clock::{Case, Clock, Named, Timing};
use benches::rows::Size;
use benches::workload::{Mix, hash};
use blocked_bloom::BloomFilter;
use blocked_bloom_lsm::{
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

/// Looks up all gets, and gives how many tables may have their hash.
type Way = fn(&Engine, &[Get]) -> usize;

const WAYS: [(&str, Way); 4] = [
    ("bare", |engine, gets| {
        let mut hits = 0;
        for (tables, hash) in gets {
            for &table in tables {
                hits += usize::from(engine.bare[table as usize].contains_hash(*hash));
            }
        }
        hits
    }),
    ("slot", |engine, gets| {
        let mut hits = 0;
        for (tables, hash) in gets {
            let pin = FilterPin::new();
            for &table in tables {
                hits += usize::from(engine.slots[table as usize].query(&pin, *hash).must_read());
            }
        }
        hits
    }),
    ("slot, prefetched", |engine, gets| {
        let mut hits = 0;
        for (tables, hash) in gets {
            let pin = FilterPin::new();
            tables.iter().for_each(|&table| engine.slots[table as usize].prefetch(&pin, *hash));
            for &table in tables {
                hits += usize::from(engine.slots[table as usize].query(&pin, *hash).must_read());
            }
        }
        hits
    }),
    ("RwLock", |engine, gets| {
        let mut hits = 0;
        for (tables, hash) in gets {
            for &table in tables {
                let (filter, absent) = &engine.locked[table as usize];
                let filter = Arc::clone(&filter.read().expect("no panic under it"));
                let is_hit = filter.contains_hash(*hash);
                hits += usize::from(is_hit);
                absent.fetch_add(u64::from(!is_hit), Relaxed);
            }
        }
        hits
    }),
];

fn main() {
    let size = Size(2_000, "2k");
    let filter = || size.filled();
    let set = ResidentSet::new(ResidentOptions::new(u64::MAX).with_key_hash(filter().key_hash()));
    let slots: Vec<_> = (0..TABLES)
        .map(|number| {
            let slot = set.add(ResidentTable::new(number as u64, 1));
            assert!(set.offer(&slot, filter()).expect("a filter of the set's hash"));
            slot
        })
        .collect();
    let engine = Engine {
        bare: (0..TABLES).map(|_| filter()).collect(),
        locked: (0..TABLES).map(|_| (RwLock::new(Arc::new(filter())), AtomicU64::new(0))).collect(),
        slots,
    };
    // Half of the visits are of the few tables of the small levels.
    let below = |limit: usize, i: usize| (hash(i as u64) % limit as u64) as u32;
    let visit = |get: usize, i: usize| below(if i < 6 { 16 } else { TABLES }, get * VISITS + i);
    let hashes = Mix::Absent.lookups(size.0, 2 * GETS).all.into_iter().enumerate();
    let gets: Vec<Get> =
        hashes.map(|(get, hash)| (std::array::from_fn(|i| visit(get, i)), hash)).collect();
    println!("{VISITS} of {TABLES} tables a get; a slot takes {} bytes", size_of::<FilterSlot>());
    let (engine, gets) = (&engine, &gets);
    for threads in [1, 2] {
        let pool = &ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let mut ways = Named::default();
        for (name, way) in WAYS {
            let each = move |thread: usize| way(engine, black_box(&gets[thread * GETS..][..GETS]));
            let all = move |()| pool.broadcast(|thread| each(thread.index()));
            ways.add(name, Case::in_pool(pool, GETS * VISITS, |_| (), all));
        }
        println!("\n{threads} threads: ns per table, ratio to bare, over bare\n{}", ways.lines(41));
    }
    for tables in [2_000, 20_000, 320_000] {
        planning(tables);
    }
    ticks(20_000);
}

/// Ticks of the planner alone, of which every filter was looked up, with a tenth of the bytes as budget.
fn planning(tables: u64) {
    let params = blocked_bloom::FilterOptions::new(blocked_bloom::Sizing::BitsPerKey(10.0))
        .foldable()
        .params(1_000_000)
        .expect("ten bits per key are legal");
    let mut planner =
        ResidentPlanner::new(ResidentOptions::new(tables * params.stored_bytes() / 10));
    for number in 0..tables {
        let bytes = params.stored_bytes() - number % 4_096 * 64;
        planner.add(ResidentTable::new(number, bytes).with_params(&params));
    }
    let mut times = Vec::new();
    for _ in 0..11 {
        for index in 0..tables {
            planner.count(index as usize, 10 * tables / (index * 7_919 % tables + 1));
        }
        let clock = Clock::start();
        let changes = planner.tick(Duration::from_secs(1));
        times.push(clock.seconds() * 1e3);
        for (index, size) in changes {
            planner.resize(index, size);
        }
    }
    println!("\nplanning {tables} slots: {} ms", Timing::of(times));
}

/// Ticks of a whole set, whose counters are then read from the slots.
fn ticks(tables: u64) {
    let set = ResidentSet::new(ResidentOptions::new(tables << 16));
    let slots: Vec<_> = (0..tables)
        .map(|number| set.add(ResidentTable::new(number, 1_000_000).with_run_share(0.001)))
        .collect();
    let mut times = Vec::new();
    for _ in 0..11 {
        slots.iter().for_each(|slot| slot.count_absent(160));
        let clock = Clock::start();
        drop(black_box(set.tick(Duration::from_secs(1))));
        times.push(clock.seconds() * 1e3);
    }
    println!("a tick of a set of {tables} slots: {} ms", Timing::of(times));
}
