//! Helpers for several test files: a random sequence, the kernels under test, filters of a given
//! shape.
#![allow(dead_code, reason = "each test file uses a part")]

use blocked_bloom::{BloomFilter, Kernel, KeyHash, Sizing};

/// SplitMix64 (Steele, Lea, Flood 2014): a fixed sequence of well-mixed words.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub(crate) fn hashes(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// Every kernel of this machine. Fails if the environment variable `EXPECT_KERNELS` (names
/// separated by commas, in any order) is set to other kernels, so that a kernel that is no longer
/// detected fails the run.
#[expect(clippy::print_stdout, reason = "a run shows which kernels it covered")]
pub(crate) fn kernels() -> Vec<Kernel> {
    let kernels: Vec<Kernel> = Kernel::supported().collect();
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name()).collect();
    println!("kernels under test: {}", names.join(","));
    if let Ok(expected) = std::env::var("EXPECT_KERNELS") {
        let mut expected: Vec<&str> = expected.split(',').collect();
        let mut found = names;
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "kernels found and EXPECT_KERNELS");
    }
    kernels
}

/// Creates an empty filter of exactly this shape.
pub(crate) fn empty(blocks: u32, probes: u32) -> BloomFilter {
    let params = Sizing::MaxBytes(64 + 64 * u64::from(blocks))
        .params(u64::from(blocks) * 51)
        .and_then(|params| params.with_probes(probes))
        .unwrap();
    assert_eq!((params.blocks(), params.probes()), (blocks, probes));
    BloomFilter::with_params(params, KeyHash::default()).unwrap()
}

/// Creates a filter of this shape, filled with ten bits per key.
pub(crate) fn filled(blocks: u32, probes: u32, seed: u64) -> (BloomFilter, Vec<u64>) {
    let mut filter = empty(blocks, probes);
    let hashes = Random(seed).hashes(blocks as usize * 51);
    filter.insert_hashes(&hashes).unwrap();
    (filter, hashes)
}
