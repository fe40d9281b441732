//! Hashing keys: one by one, in batches, in parts and of a width known when compiled, beside a loop that only touches them; ns a key.
//!
//! `one` is `KeyHasher::hash` in a loop, `batch` `hash_batch` of slices, `offsets` `hash_offsets`, `array` `hash_batch` of arrays, `array_one`
//! a loop over them, `integers` `hash_fixed`, `parts` `hash_parts` of two halves, `baseline` touches a byte of every 64 and
//! the last. A pass is 4096 keys, or as many as take 256 KB.
//!
//! `cargo bench --bench hash` takes some seconds.

#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;

use benches::clock::{Case, Named};
use benches::rows::{Given, ITERATION};
use benches::workload::hash as word;
use blocked_bloom::KeyHasher;

const HASHER: KeyHasher = KeyHasher::with_seed(0);

/// XXH3 goes other ways up to 3, 8, 16, 128 and 240 bytes, and beyond.
const LENGTHS: [usize; 9] = [3, 8, 16, 24, 32, 100, 240, 1_000, 4_000];

/// A byte of every 64, and the last.
fn touch(key: &[u8]) -> u8 {
    let last = key.last().copied().unwrap_or_default();
    key.iter().step_by(64).fold(last, |all, byte| all | byte)
}

/// A case of some passes, so that it is long enough for the clock.
fn case<'a, R>(keys: usize, mut run: impl FnMut() -> R + 'a) -> Case<'a> {
    Case::new(16 * keys, move |_| (0..16).for_each(|_| drop(black_box(run()))))
}

fn slices(length: usize, rounds: usize) {
    let count = ITERATION.min(256_000 / length);
    let words = (0..(count * length).div_ceil(8) as u64).map(word);
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let keys: &Vec<&[u8]> = &bytes.chunks_exact(length).take(count).collect();
    let offsets: Vec<i32> = (0..=count).map(|i| (i * length) as i32).collect();
    let (mut hashes, mut of_offsets) = (Vec::new(), vec![0; count]);
    let parts = |key: &'_ &[u8]| {
        let (first, second) = key.split_at(length / 2);
        HASHER.hash_parts(&[first, second])
    };
    let mut ways = Named::default();
    let one = || black_box(keys).iter().fold(0, |all, key| all ^ HASHER.hash(key));
    ways.add("one", case(count, one));
    let baseline = || black_box(keys).iter().fold(0, |all, key| all | touch(key));
    ways.add("baseline", case(count, baseline));
    ways.add("batch", case(count, || HASHER.hash_batch(black_box(keys), &mut hashes)));
    let offsets = || HASHER.hash_offsets(black_box(&bytes), &offsets, &mut of_offsets);
    ways.add("offsets", case(count, offsets));
    let parts = || black_box(keys).iter().fold(0, |all, key| all ^ parts(key));
    ways.add("parts", case(count, parts));
    println!("\nslices of {length} bytes\n{}", ways.lines(rounds));
}

fn array<const LENGTH: usize>(rounds: usize) {
    let keys: &Vec<[u8; LENGTH]> = &(0..ITERATION as u64)
        .map(|i| std::array::from_fn(|j| (word(i) >> (j % 8 * 8)) as u8))
        .collect();
    let [mut one, mut many] = [Vec::new(), Vec::new()];
    let mut fixed = vec![0; ITERATION];
    let mut ways = Named::default();
    let array_one = || {
        one.clear();
        one.extend(black_box(keys).iter().map(|key| HASHER.hash(key)));
    };
    ways.add("array_one", case(ITERATION, array_one));
    ways.add("array", case(ITERATION, || HASHER.hash_batch(black_box(keys), &mut many)));
    if LENGTH <= 8 {
        let integers = || HASHER.hash_fixed(black_box(keys), &mut fixed);
        ways.add("integers", case(ITERATION, integers));
    }
    println!("\narrays of {LENGTH} bytes\n{}", ways.lines(rounds));
}

fn main() {
    let rounds = Given::to("hash").rounds(101);
    LENGTHS.into_iter().for_each(|length| slices(length, rounds));
    array::<4>(rounds);
    array::<8>(rounds);
    array::<16>(rounds);
    array::<32>(rounds);
}
