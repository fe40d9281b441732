//! What it costs to be told which keys were new: `insert_hashes` and `insert_hashes_new` of each kernel, in calls of 4096 keys; ns a key.
//!
//! `cargo bench --bench build` takes half a minute and 700 MB of memory; `-- 10k` measures the tables of one size. `cargo bench --bench query`
//! has inserts by every kernel, `blocked-bloom bench --op build` whole filters by one thread and by all.

use std::cell::Cell;

use benches::clock::{Case, Named};
use benches::rows::{Given, ITERATION, SIZES};
use benches::workload::hash;
use blocked_bloom::{Bitmask, Kernel};

/// Keys that are added in a round.
const AT_ONCE: u64 = 1 << 18;

/// Adds a batch.
type Add = Box<dyn FnMut(&[u64])>;

fn main() {
    const TAKES_ALL: &str = "a filter of whole keys that hashes them itself";
    let given = Given::get();
    for size in [SIZES[0], SIZES[3], SIZES[4]].into_iter().filter(|size| given.has(size.1)) {
        let next = Cell::new(0);
        // Other hashes in each pass.
        let fresh = || {
            let first = next.replace(next.get() + AT_ONCE);
            (first..first + AT_ONCE).map(|i| hash(i % size.0)).collect::<Vec<u64>>()
        };
        for kernel in Kernel::supported() {
            if size.0 > 10_000_000 && kernel != Kernel::default() {
                continue;
            }
            let [mut silent, mut says] = [0, 1].map(|_| size.empty().with_kernel(kernel));
            let mut new = Bitmask::new();
            let case = |mut add: Add| {
                let all = move |hashes: Vec<u64>| hashes.chunks(ITERATION).for_each(&mut add);
                Case::with_setup(AT_ONCE as usize, |_| fresh(), all)
            };
            let silent = move |part: &[u64]| silent.insert_hashes(part).expect(TAKES_ALL);
            let says = move |part: &[u64]| {
                says.insert_hashes_new(part, &mut new).expect(TAKES_ALL);
            };
            let mut ways = Named::default();
            ways.add("insert_hashes", case(Box::new(silent)));
            ways.add("insert_hashes_new", case(Box::new(says)));
            ways.print(format!("{} keys, {kernel}", size.1), given.rounds(31));
        }
    }
}
