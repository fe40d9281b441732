//! What the benches share: sizes and their names, questions, the machine's limit loops, and how much of the matrix a run measures.
//!
//! This file owns the words that names are made of. It refuses anything in a name that differs from run to run, since criterion
//! finds a baseline by name: a row is `bench/row/size/...`, and rows of kernels are missing where the CPU lacks them.
#![allow(dead_code, reason = "each bench uses a part")]

#[path = "../../src/bin/blocked-bloom/bench/limits.rs"]
pub(crate) mod limits;
#[path = "../../src/bin/blocked-bloom/bench/workload.rs"]
pub(crate) mod workload;

use std::hint::black_box;
use std::sync::Once;
use std::time::Duration;

use blocked_bloom::{BloomFilter, Params, Sizing};
use criterion::{Criterion, Throughput};
use workload::Mix;

/// Keys of an iteration, whatever the batch: times per iteration compare from batch to batch.
pub(crate) const TURN: usize = 4096;

/// Keys a call.
pub(crate) const BATCHES: [usize; 5] = [1, 8, 32, 128, TURN];

/// Probes per key: six are the choice for ten bits per key. AVX2 tests up to eight in one pass, up to sixteen in two.
pub(crate) const PROBES: [u32; 5] = [3, 6, 8, 12, 20];

/// A number of keys, at ten bits each, and its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64, pub(crate) &'static str);

/// 125 KB and 125 MB: a second-level cache, and memory.
pub(crate) const CACHE: Size = Size(100_000, "100k");
pub(crate) const MEMORY: Size = Size(100_000_000, "100M");

/// 12.5 KB to 125 MB: a first-, second- and third-level cache, a third-level cache shared with others or none, memory.
const SIZES: [Size; 5] =
    [Size(10_000, "10k"), CACHE, Size(1_000_000, "1M"), Size(10_000_000, "10M"), MEMORY];

pub(crate) fn sizes() -> impl Iterator<Item = Size> {
    SIZES.into_iter().filter(|&Size(keys, _)| is_full() || keys != 10_000_000)
}

impl Size {
    pub(crate) fn params(self) -> Params {
        Sizing::BitsPerKey(10.0).params(self.0).expect("ten bits per key are legal")
    }

    pub(crate) fn filled(self, probes: u32) -> BloomFilter {
        let params = self.params().with_probes(probes).expect("a legal number of probes");
        workload::filled(params, self.0).expect("memory for the filter")
    }

    pub(crate) fn questions(self, mix: Mix) -> Questions {
        Questions::new(mix.questions(self.0, workload::question_count(self.0)))
    }
}

/// Hashes handed out in turns, round and round. Each turn asks about others than the one before, so that the filter, not a batch's
/// lines, is what has to be in a cache. It lives longer than a sample: criterion calls a bench anew for each.
pub(crate) struct Questions {
    hashes: Vec<u64>,
    next: usize,
}

impl Questions {
    pub(crate) fn new(hashes: Vec<u64>) -> Self {
        Questions { hashes, next: 0 }
    }

    /// The next `count` hashes, from the first again if there are fewer left. There must be so many in all.
    pub(crate) fn turn(&mut self, count: usize) -> &[u64] {
        let start = if self.next + count > self.hashes.len() { 0 } else { self.next };
        self.next = start + count;
        black_box(&self.hashes[start..][..count])
    }
}

/// If the environment asks for the whole matrix.
///
/// # Panics
///
/// If it asks for something else.
pub(crate) fn is_full() -> bool {
    match std::env::var("BLOCKED_BLOOM_BENCH") {
        Err(_) => false,
        Ok(value) if value == "full" => true,
        Ok(value) => panic!("BLOCKED_BLOOM_BENCH is {value:?}, not \"full\" or unset"),
    }
}

/// The settings of all benches, which arguments override: a second and a half for a row. Says how to measure more or less.
pub(crate) fn criterion() -> Criterion {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let bench = env!("CARGO_CRATE_NAME");
        let what = if is_full() {
            "the whole matrix; a subset without BLOCKED_BLOOM_BENCH"
        } else {
            "a subset; the whole matrix by BLOCKED_BLOOM_BENCH=full"
        };
        eprintln!(
            "{bench}: {what}; a part by cargo bench --bench {bench} -- REGEX, names by --list"
        );
    });
    // Neighbours on the machine move a row by some percent; more resamplings only take time.
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(50)
        .nresamples(10_000)
        .noise_threshold(0.03)
}

/// For rows of which an iteration takes up to a tenth of a second; their groups sample flatly.
pub(crate) fn slow() -> Criterion {
    criterion().sample_size(10)
}

/// Keys, and the lines of the filter that they touch.
pub(crate) fn lines(keys: usize) -> Throughput {
    Throughput::ElementsAndBytes { elements: keys as u64, bytes: 64 * keys as u64 }
}
