//! Split-block filters as query engines use them: filled by one owner, by threads that share them, and looked up into a bitmask or a
//! selection vector.
//!
//! Filling: 2^20 hashes in batches of 4096 into a filter of zeros, ns a hash: by its owner, by this many threads that share it, or into so
//! many parts, one for each thread, that are merged. Looking up 4096 rows a call, ns a row: `one_by_one` is the loop that engines write by
//! hand: the scalar probe scheme, and the row number pushed if it may be present. Ten bits per value; sizes are powers of two.
//!
//! `cargo bench --bench split_block` takes half a minute and 300 MB of memory; `-- fill` or `-- rows` measures a part.

#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use benches::clock::{Case, Named};
use benches::rows::{Given, ITERATION, SIZES, Size};
use benches::workload::{for_all_hashes, hash};
use blocked_bloom::Bitmask;
use blocked_bloom_formats::parquet::{AtomicSplitBlockFilter, SplitBlockFilter};
use rayon::ThreadPoolBuilder;

/// Hashes that are added, and rows that are looked up in a pass.
const FILL: usize = 1 << 20;
const ROWS: usize = 1 << 16;

fn empty(Size(values, _): Size) -> SplitBlockFilter {
    let blocks = (values * 10 / 256).next_power_of_two().min(1 << 22) as u32;
    SplitBlockFilter::with_blocks(blocks).expect("memory for the filter")
}

fn add(filter: &mut SplitBlockFilter, hashes: &[u64]) {
    hashes.chunks(ITERATION).for_each(|batch| filter.insert_hashes(batch));
}

fn fill(size: Size, rounds: usize) {
    let hashes: &Vec<u64> = &(0..FILL as u64).map(hash).collect();
    let pools =
        [1, 2, 4].map(|n| ThreadPoolBuilder::new().num_threads(n).build().expect("threads"));
    let mut ways = Named::default();
    let owned = |mut filter| {
        add(&mut filter, hashes);
        filter
    };
    ways.add("owned", Case::with_setup(FILL, |_| empty(size), owned));
    for pool in &pools {
        let threads = pool.current_num_threads();
        let part = move |thread: usize| &hashes[thread * (FILL / threads)..][..FILL / threads];
        // A filter for each thread, and all merged by the one that waits.
        let merged = move |mut whole: SplitBlockFilter| {
            let fill = |part: &[u64]| {
                let mut filter = empty(size);
                add(&mut filter, part);
                filter
            };
            let filled = pool.broadcast(|thread| fill(part(thread.index())));
            filled.iter().for_each(|part| whole.union_with(part).expect("equal sizes"));
            whole
        };
        ways.add(format!("{threads} parts"), Case::in_pool(pool, FILL, |_| empty(size), merged));
        let shared = move |filter: AtomicSplitBlockFilter| {
            let add = |part: &[u64]| {
                part.chunks(ITERATION).for_each(|batch| filter.insert_hashes(batch));
            };
            pool.broadcast(|thread| add(part(thread.index())));
            filter.into_filter()
        };
        let zeros = move |_| AtomicSplitBlockFilter::from(empty(size));
        ways.add(format!("{threads} threads"), Case::in_pool(pool, FILL, zeros, shared));
    }
    println!("\nfill, {} values, ns a hash\n{}", size.1, ways.lines(rounds));
}

fn rows(size: Size, rounds: usize) {
    let mut filter = empty(size);
    for_all_hashes(size.0, |hashes| filter.insert_hashes(hashes));
    let filter = &filter;
    for (mix, present) in [("absent", 0), ("half", 50), ("present", 100)] {
        let row = |i: u64| {
            let value = hash(i) % size.0;
            hash(value + if i % 100 < present { 0 } else { size.0 })
        };
        let all: &Vec<u64> = &(0..8 * ROWS as u64).map(row).collect();
        let pass = |pass: usize| all[pass % 8 * ROWS..][..ROWS].chunks(ITERATION);
        let (mut hits, mut selected, mut pushed) = (Bitmask::new(), Vec::new(), Vec::<u32>::new());
        let mut ways = Named::default();
        let one_by_one = |number| {
            for rows in pass(number) {
                pushed.clear();
                pushed.extend(
                    (0..).zip(rows).filter(|(_, hash)| filter.contains_hash(**hash)).map(|r| r.0),
                );
            }
        };
        ways.add("one_by_one", Case::new(ROWS, one_by_one));
        let bitmask = |n| pass(n).for_each(|rows| filter.contains_hashes(rows, &mut hits));
        ways.add("bitmask", Case::new(ROWS, bitmask));
        let select = |n| {
            pass(n).try_for_each(|rows| filter.select_hashes(rows, &mut selected)).expect("memory")
        };
        ways.add("select", Case::new(ROWS, select));
        println!("\nrows, {} values, {mix}, ns a row\n{}", size.1, ways.lines(rounds));
    }
}

fn main() {
    let given = Given::to("split_block");
    for size in [SIZES[0], SIZES[1], SIZES[2], SIZES[4]] {
        if given.has("fill") {
            fill(size, given.rounds(21));
        }
        if given.has("rows") {
            rows(size, given.rounds(41));
        }
    }
}
