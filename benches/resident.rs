//! What a slot of a resident set costs over a bare lookup, and what planning takes.
//!
//! A get looks up one absent hash in the filters of 11 tables, of 2,000 keys each: everything is in a cache. `bare` has the filters in a
//! vector, `slot` looks up slots under one pin per get and counts, `slot, prefetched` prefetches all first, `RwLock` clones an `Arc` from
//! under one and counts each. On one thread and on two, which look up the same slots.
//!
//! `cargo bench --bench resident` takes 20 seconds. Rounds of all ways are interleaved, so that a neighbour on the machine slows all of
//! them; times are ns per table, the median of the rounds and the least, and the median of what is over `bare` of the same round.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, RwLock};
use std::time::{Duration, Instant};

use benches::Size;
use benches::workload::Mix;
use blocked_bloom::BloomFilter;
use blocked_bloom_lsm::{
    FilterPin, FilterSlot, ResidentOptions, ResidentPlanner, ResidentSet, ResidentTable,
};

/// Tables of a get.
const VISITS: usize = 11;
const TABLES: usize = 64;
const GETS: usize = 100_000;
const ROUNDS: usize = 41;

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
    let filter = || size.filled(6);
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
    let hashes = Mix::Absent.lookups(size.0, 2 * GETS);
    let mut word = 1_u64;
    let mut below = |limit: u64| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((word >> 33) % limit) as u32
    };
    let gets: Vec<Get> = hashes
        .into_iter()
        .map(|hash| (std::array::from_fn(|i| below(if i < 6 { 16 } else { TABLES as u64 })), hash))
        .collect();
    println!("{VISITS} of {TABLES} tables a get; a slot takes {} bytes", size_of::<FilterSlot>());
    for threads in [1, 2] {
        lookups(&engine, &gets, threads);
    }
    for tables in [2_000, 20_000, 320_000] {
        planning(tables);
    }
    ticks(20_000);
}

fn lookups(engine: &Engine, gets: &[Get], threads: usize) {
    let mut times = vec![Vec::new(); WAYS.len()];
    for _ in 0..ROUNDS {
        for ((_, way), times) in WAYS.iter().zip(&mut times) {
            let barrier = Barrier::new(threads);
            let measure = |gets: &[Get]| {
                way(engine, &gets[..gets.len() / 10]);
                barrier.wait();
                let start = Instant::now();
                black_box(way(engine, black_box(gets)));
                start.elapsed().as_secs_f64() * 1e9 / (gets.len() * VISITS) as f64
            };
            let sum: f64 = std::thread::scope(|scope| {
                let chunks = gets.chunks(GETS).take(threads);
                let handles: Vec<_> = chunks.map(|gets| scope.spawn(|| measure(gets))).collect();
                handles.into_iter().map(|handle| handle.join().expect("a measurement")).sum()
            });
            times.push(sum / threads as f64);
        }
    }
    println!("\n{threads} threads: ns per table     median     least     over bare");
    for ((name, _), mine) in WAYS.iter().zip(&times) {
        let over = mine.iter().zip(&times[0]).map(|(mine, bare)| mine - bare).collect();
        let least = mine.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{name:28} {:10.2}{least:10.2}{:10.2}", median(mine.clone()), median(over));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
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
        let start = Instant::now();
        let changes = planner.tick(Duration::from_secs(1));
        times.push(start.elapsed().as_secs_f64() * 1e3);
        for (index, size) in changes {
            planner.resize(index, size);
        }
    }
    println!("\nplanning {tables} slots: {:.2} ms", median(times));
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
        let start = Instant::now();
        drop(black_box(set.tick(Duration::from_secs(1))));
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("a tick of a set of {tables} slots: {:.2} ms", median(times));
}
