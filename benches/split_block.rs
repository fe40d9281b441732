//! Split-block filters as query engines use them: filled by one owner, by threads that share them,
//! and looked up into a bitmask or a selection vector.
//!
//! Filling: 2^20 hashes in batches of 4096 into a filter of zeros, ns a hash, CPU time of the
//! thread that is busy longest: by its owner, by this many threads that share it, or into so many
//! parts, one for each thread, that are merged. Looking up 4096 rows a call, ns a row: `one_by_one`
//! is the loop that engines write by hand: the scalar probe scheme, and the row number pushed if it
//! may be present; `contains_hash` the same loop with a call of the kernel for each. Ten bits per
//! value; sizes are powers of two.
//!
//! `cargo bench -p blocked-bloom-benches --bench split_block` takes half a minute and 300 MB of
//! memory; `-- fill` or `-- rows` measures a part.

use benches::clock::{Case, Named};
use benches::rows::{Arguments, ITERATION, SIZES, Size};
use benches::workload::{hash, visit_hashes};
use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_split::split_block::{block_index, contains};
use blocked_bloom_split::{AtomicSplitBlockFilter, SplitBlockFilter};
use rayon::ThreadPoolBuilder;

/// Number of hashes inserted, and of rows looked up, in one pass.
const FILL: usize = 1 << 20;
const ROWS: usize = 1 << 16;

fn empty(Size(values, _): Size) -> SplitBlockFilter {
    let blocks = (values * 10 / 256).next_power_of_two().min(1 << 22) as u32;
    SplitBlockFilter::with_blocks(blocks).expect("memory for the filter")
}

fn filled(mut filter: SplitBlockFilter, hashes: &[u64]) -> SplitBlockFilter {
    hashes.chunks(ITERATION).for_each(|batch| filter.insert_hashes(batch));
    filter
}

fn fill(size: Size, rounds: usize) {
    let hashes: &Vec<u64> = &(0..FILL as u64).map(hash).collect();
    let pools =
        [1, 2, 4].map(|n| ThreadPoolBuilder::new().num_threads(n).build().expect("threads"));
    let mut ways = Named::default();
    let zeros = move |_| empty(size);
    ways.add("owned", Case::with_setup(None, FILL, zeros, |filter| filled(filter, hashes)));
    for pool in &pools {
        let threads = pool.current_num_threads();
        let part = move |thread: usize| &hashes[thread * (FILL / threads)..][..FILL / threads];
        // A filter for each thread, and all merged by the one that waits.
        let merged = move |mut whole: SplitBlockFilter| {
            let parts = pool.broadcast(|thread| filled(empty(size), part(thread.index())));
            parts.iter().for_each(|part| whole.union_with(part).expect("equal sizes"));
            whole
        };
        ways.add(format!("{threads} parts"), Case::with_setup(Some(pool), FILL, zeros, merged));
        let shared = move |filter: AtomicSplitBlockFilter| {
            pool.broadcast(|thread| {
                let batches = part(thread.index()).chunks(ITERATION);
                batches.for_each(|batch| filter.insert_hashes(batch));
            });
            filter.into_filter()
        };
        let zeros = move |_| AtomicSplitBlockFilter::from(empty(size));
        ways.add(format!("{threads} threads"), Case::with_setup(Some(pool), FILL, zeros, shared));
    }
    ways.print(format!("fill, {} values, ns a hash", size.1), rounds);
}

fn rows(size: Size, rounds: usize) {
    let mut filter = empty(size);
    visit_hashes(size.0, |hashes| filter.insert_hashes(hashes));
    let row = |i: u64| {
        let value = hash(i) % size.0;
        hash(value + if i % 100 < 50 { 0 } else { size.0 })
    };
    let all: Vec<u64> = (0..8 * ROWS as u64).map(row).collect();
    let (mut hits, mut selected) = (Bitmask::new(), Vec::new());
    let (mut pushed, mut by_kernel) = (Vec::<u32>::new(), Vec::<u32>::new());
    let mut ways = Named::default();
    let blocks = filter.blocks();
    let one_by_one = |rows: &[u64]| {
        pushed.clear();
        let block = |hash| &blocks[block_index(hash, blocks.len() as u32) as usize];
        let found = (0..).zip(rows).filter(|&(_, &hash)| contains(block(hash), hash));
        pushed.extend(found.map(|(row, _)| row));
    };
    ways.add("one_by_one", Case::batches(&all, ROWS, ITERATION, one_by_one));
    let contains_hash = |rows: &[u64]| {
        by_kernel.clear();
        let found = (0..).zip(rows).filter(|(_, hash)| filter.contains_hash(**hash));
        by_kernel.extend(found.map(|(row, _)| row));
    };
    ways.add("contains_hash", Case::batches(&all, ROWS, ITERATION, contains_hash));
    let bitmask = |rows: &[u64]| filter.contains_hashes(rows, &mut hits);
    ways.add("bitmask", Case::batches(&all, ROWS, ITERATION, bitmask));
    let select = |rows: &[u64]| filter.select_hashes(rows, &mut selected).expect("memory");
    ways.add("select", Case::batches(&all, ROWS, ITERATION, select));
    ways.print(format!("rows, {} values, half of them present, ns a row", size.1), rounds);
}

fn main() {
    let given = Arguments::from_command_line();
    for size in [SIZES[0], SIZES[1], SIZES[2], SIZES[4]] {
        if given.is_requested("fill") {
            fill(size, given.rounds(21));
        }
        if given.is_requested("rows") {
            rows(size, given.rounds(41));
        }
    }
}
