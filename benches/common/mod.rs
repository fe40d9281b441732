//! What the benches share: sizes and their names, hashes to look up, the memory-bound baseline, and how much of the matrix a run
//! measures.
//!
//! A row is `bench/row/size/...`, and nothing in a name differs from run to run, since criterion finds a baseline by name; there are rows
//! for the kernels that this CPU has.

// The command-line tool measures with the same loops and hashes; a library for these two files alone would be one more to publish.
#[path = "../../crates/cli/src/bench/baseline.rs"]
pub mod baseline;
pub mod peers;
#[cfg(target_arch = "x86_64")]
pub mod rocksdb_loop;
#[path = "../../crates/cli/src/bench/workload.rs"]
pub mod workload;

use std::hint::black_box;
use std::sync::Once;
use std::time::Duration;

use blocked_bloom::{BloomFilter, Params, Sizing};
use criterion::{Criterion, Throughput};
use workload::Mix;

/// Keys of an iteration, whatever the batch: times per iteration compare from batch to batch.
pub const ITERATION: usize = 4096;

/// Keys a call.
pub const BATCHES: [usize; 5] = [1, 8, 32, 128, ITERATION];

/// Probes per key: six are the choice for ten bits per key. AVX2 tests up to eight in one pass, up to sixteen in two.
pub const PROBES: [u32; 5] = [3, 6, 8, 12, 20];

/// The rows of the memory-bound baseline, which loads one line per key and tests nothing, and whether it prefetches.
pub const BASELINES: [(&str, bool); 2] = [("baseline", false), ("baseline_ahead", true)];

/// A number of keys, at ten bits each, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64, pub &'static str);

/// 125 KB: a second-level cache.
pub const CACHE: Size = Size(100_000, "100k");

/// 125 MB: memory.
pub const MEMORY: Size = Size(100_000_000, "100M");

/// 12.5 KB to 125 MB: a first-, second- and third-level cache, a third-level cache shared with others or none, memory.
const SIZES: [Size; 5] =
    [Size(10_000, "10k"), CACHE, Size(1_000_000, "1M"), Size(10_000_000, "10M"), MEMORY];

/// The sizes that this run measures.
pub fn sizes() -> impl Iterator<Item = Size> {
    SIZES.into_iter().filter(|&Size(keys, _)| is_full() || keys != 10_000_000)
}

impl Size {
    /// The shape of a filter of this size.
    pub fn params(self) -> Params {
        Sizing::BitsPerKey(10.0).params(self.0).expect("ten bits per key are legal")
    }

    /// A filter of this size with all its keys.
    pub fn filled(self, probes: u32) -> BloomFilter {
        let params = self.params().with_probes(probes).expect("a legal number of probes");
        workload::filled(params, self.0).expect("memory for the filter")
    }

    /// Hashes to look up in a filter of this size.
    pub fn lookups(self, mix: Mix) -> Lookups {
        Lookups::new(mix.lookups(self.0, workload::lookup_count(self.0)))
    }
}

/// Hashes to look up, handed out round and round. Each iteration gets others than the one before, so that the filter, not a batch's
/// lines, is what has to be in a cache. It lives longer than a sample: criterion calls a bench anew for each.
#[derive(Debug)]
pub struct Lookups {
    hashes: Vec<u64>,
    next: usize,
}

impl Lookups {
    /// Hands out these.
    pub fn new(hashes: Vec<u64>) -> Self {
        Lookups { hashes, next: 0 }
    }

    /// The next `count` hashes, from the first again if there are fewer left. There must be this many in all.
    pub fn next(&mut self, count: usize) -> &[u64] {
        let start = if self.next + count > self.hashes.len() { 0 } else { self.next };
        self.next = start + count;
        black_box(&self.hashes[start..][..count])
    }
}

/// Whether the environment names the whole matrix.
///
/// # Panics
///
/// If it names something else.
pub fn is_full() -> bool {
    match std::env::var("BLOCKED_BLOOM_BENCH") {
        Err(_) => false,
        Ok(value) if value == "full" => true,
        Ok(value) => panic!("BLOCKED_BLOOM_BENCH is {value:?}, not \"full\" or unset"),
    }
}

/// The settings of all benches, which arguments override: a second and a half for a row. Says how to measure more or less of the bench of
/// this name.
pub fn criterion(bench: &str) -> Criterion {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
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
pub fn slow(bench: &str) -> Criterion {
    criterion(bench).sample_size(10)
}

/// Keys, and the lines of the filter that they touch.
pub fn lines(keys: usize) -> Throughput {
    Throughput::ElementsAndBytes { elements: keys as u64, bytes: 64 * keys as u64 }
}
