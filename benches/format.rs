//! Stored filters: opened with and without verification, and written, beside loops that read and copy as many bytes; ns a filter.
//!
//! `open_verified` is `BloomFilter::from_bytes`, which reads everything and is what verifying a filter costs; `open_trusted` reads the
//! header. `to_bytes` allocates, `write_to` writes into a vector with capacity. `baseline` reads all bytes and ORs them; `copy` copies them.
//!
//! `cargo bench --bench format` takes some seconds and 500 MB of memory; `-- 10k` measures the table of one size.

#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;

use benches::clock::{Case, Named};
use benches::rows::{Given, SIZES};
use blocked_bloom::BloomFilter;

/// ORs all words: what reading these bytes costs, without knowing the instruction set.
fn load_bytes(bytes: &[u8]) -> u64 {
    let mut all = [0_u64; 8];
    for line in bytes.as_chunks::<64>().0 {
        for (all, word) in all.iter_mut().zip(line.as_chunks().0) {
            *all |= u64::from_le_bytes(*word);
        }
    }
    all.iter().fold(0, |all, word| all | word)
}

/// A case of this many runs, which together are long enough for the clock.
fn repeated<'a, R>(times: usize, mut run: impl FnMut() -> R + 'a) -> Case<'a> {
    Case::new(times, move |_| (0..times).for_each(|_| drop(black_box(run()))))
}

fn main() {
    let given = Given::to("format");
    for size in SIZES.into_iter().filter(|size| given.has(size.1)) {
        let filter = &size.filled();
        let stored = &filter.to_bytes()[..];
        let times = (100_000_000 / stored.len()).clamp(1, 1_000);
        let (mut copied, mut written) = (Vec::new(), Vec::new());
        let mut ways = Named::default();
        ways.add("baseline", repeated(times, || load_bytes(black_box(stored))));
        let verified = || BloomFilter::from_bytes(black_box(stored)).is_ok();
        ways.add("open_verified", repeated(times, verified));
        let trusted = || BloomFilter::from_bytes_trusted(black_box(stored)).is_ok();
        ways.add("open_trusted", repeated(times, trusted));
        let copy = || {
            copied.clear();
            copied.extend_from_slice(black_box(stored));
        };
        ways.add("copy", repeated(times, copy));
        let write = || {
            written.clear();
            filter.write_to(&mut written).expect("a vector takes everything");
        };
        ways.add("write_to", repeated(times, write));
        ways.add("to_bytes", repeated(times, || filter.to_bytes()));
        println!("\n{} keys, {} bytes\n{}", size.1, stored.len(), ways.lines(given.rounds(31)));
    }
}
