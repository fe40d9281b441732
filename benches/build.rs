//! What it costs to be told which keys were new: `insert_hashes` and `insert_hashes_new` of each kernel, in calls of 4096 keys; one atomic
//! filter filled by one thread and by two; and a growing filter beside one that was sized for its keys.
//!
//! `cargo bench --bench build` takes half a minute and 700 MB of memory; `-- 10k` measures the tables of one size. Rounds are interleaved.
//! `cargo bench --bench query` has inserts by every kernel, `blocked-bloom bench --op build` whole filters by one thread and by all.

#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::cell::Cell;

use benches::clock::{Case, Named};
use benches::rows::{Given, ITERATION, SIZES};
use benches::workload::hash;
use blocked_bloom::{AtomicBloomFilter, Bitmask, Kernel};
use blocked_bloom_scalable::ScalableOptions;
use rayon::ThreadPoolBuilder;

/// Why adding cannot fail.
const TAKES_ALL: &str = "a filter of whole keys that hashes them itself";

/// Keys that are added in a round.
const AT_ONCE: u64 = 1 << 18;

/// Other hashes in each pass, of the first `keys`.
struct Fresh {
    keys: u64,
    next: Cell<u64>,
}

impl Fresh {
    fn hashes(&self) -> Vec<u64> {
        let first = self.next.replace(self.next.get() + AT_ONCE);
        (first..first + AT_ONCE).map(|i| hash(i % self.keys)).collect()
    }

    fn case<'a>(&'a self, mut add: impl FnMut(&[u64]) + 'a) -> Case<'a> {
        let add = move |hashes: Vec<u64>| hashes.chunks(ITERATION).for_each(&mut add);
        Case::with_setup(AT_ONCE as usize, |_| self.hashes(), add)
    }
}

fn main() {
    let given = Given::to("build");
    let rounds = given.rounds(31);
    println!("build: ns per key, median (least), medians of ratios and differences to the first");
    let pools = [2, 1].map(|n| ThreadPoolBuilder::new().num_threads(n).build().expect("threads"));
    for size in [SIZES[0], SIZES[3], SIZES[4]].into_iter().filter(|size| given.has(size.1)) {
        let fresh = Fresh { keys: size.0, next: Cell::new(0) };
        for kernel in Kernel::supported() {
            let [mut silent, mut says] = [0, 1].map(|_| size.empty().with_kernel(kernel));
            let mut new = Bitmask::new();
            let mut ways = Named::default();
            let add = |hashes: &[u64]| silent.insert_hashes(hashes).expect(TAKES_ALL);
            ways.add("insert_hashes", fresh.case(add));
            let add = |hashes: &[u64]| says.insert_hashes_new(hashes, &mut new).expect(TAKES_ALL);
            ways.add("insert_hashes_new", fresh.case(add));
            println!("\n{} keys, {kernel}\n{}", size.1, ways.lines(rounds));
        }
        let mut ways = Named::default();
        for pool in &pools {
            let filter = AtomicBloomFilter::from(size.empty());
            let add = move |part: &[u64]| {
                let mut new = Bitmask::new();
                for hashes in part.chunks(ITERATION) {
                    filter.insert_hashes_new(hashes, &mut new).expect(TAKES_ALL);
                }
            };
            let threads = pool.current_num_threads();
            let part = AT_ONCE as usize / threads;
            let add = move |hashes: Vec<u64>| {
                pool.broadcast(|thread| add(&hashes[thread.index() * part..][..part]));
            };
            let case = Case::in_pool(pool, AT_ONCE as usize, |_| fresh.hashes(), add);
            ways.add(format!("{threads} threads"), case);
        }
        println!("\n{} keys, AtomicBloomFilter\n{}", size.1, ways.lines(rounds));
    }
    if given.has("growing") {
        // Links for 1/7 of the keys, 2/7 and 4/7, and one that had the right size.
        let fresh = Fresh { keys: 10_000_000, next: Cell::new(0) };
        let mut ways = Named::default();
        for first_items in [10_000_000, 1_000_000] {
            let options = ScalableOptions::new(0.01, first_items);
            let (mut filter, mut new) = (options.build().expect("in range"), Bitmask::new());
            let add = move |hashes: &[u64]| {
                filter.insert_hashes_new(hashes, &mut new).expect("memory for the filter");
            };
            ways.add(format!("growing from {first_items}"), fresh.case(add));
        }
        println!("\n10M keys, ScalableBloomFilter\n{}", ways.lines(rounds));
    }
}
