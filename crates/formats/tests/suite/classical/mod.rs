//! The classical filters of Guava, Spark and RedisBloom: the systems' own answers and bytes, naive readings of the formats, damage.
//!
//! `naive.rs` reads the formats again, independently and slowly. Kernels take no part: a classical filter has no block for them.

mod guava;
pub(crate) mod naive;
mod redis;
mod spark;

use blocked_bloom::Bitmask;

use crate::common::Random;

pub(crate) fn random_key(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.next() as u8).collect()
}

/// Keys of every short length, with bytes of both signs.
fn keys(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| random_key(random, i % 40)).collect()
}

/// Words of random bytes, three quarters of whose bits are set: half of all keys pass two probes.
fn words(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).flat_map(|_| (random.next() | random.next()).to_le_bytes()).collect()
}

/// Compares the answers of batches of these lengths, into masks that held something else, with the answers expected.
fn check_batches(
    lengths: impl IntoIterator<Item = usize>,
    expected: &[bool],
    contains: impl Fn(usize, &mut Bitmask),
) {
    let mut hits = Bitmask::new();
    for length in lengths {
        hits.write(length, |words| words.fill(u64::MAX));
        contains(length, &mut hits);
        assert!(hits.iter().eq(expected[..length].iter().copied()), "a batch of {length}");
        let used =
            (0..length).map(|i| i / 64).fold(vec![0_u64; length.div_ceil(64)], |mut all, word| {
                all[word] = all[word] << 1 | 1;
                all
            });
        assert!(hits.words().iter().zip(used).all(|(word, used)| word & !used == 0), "{length}");
    }
}

/// The cells of every line but the first.
fn rows(path: &std::path::Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}
