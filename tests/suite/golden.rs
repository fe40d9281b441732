//! Pins the bytes. A change here breaks the stored filters of all users: never update a line, but
//! add a probe scheme.
//!
//! `tests/golden/goldens.txt` has one line per configuration: the sizing, probes, number of keys,
//! seed, the length and XXH3-64 of the stored bytes, and the first ten false positives (an empty
//! filter has none, and those of a filter with one key are too rare). Keys are the integers from 0
//! as 8 little-endian bytes. False positives are the first integers, starting with the number of
//! keys, that the filter does not rule out. If the file `tests/golden/NAME.bloom` exists, it has
//! exactly these bytes.

use std::fmt::Write;

use blocked_bloom::{Block, BloomFilter, FilterOptions, Kernel, KeyHash, Sizing};
use xxhash_rust::xxh3::xxh3_64;

struct Golden {
    name: &'static str,
    sizing: Sizing,
    probes: Option<u32>,
    keys: u64,
    key_hash: KeyHash,
}

const SEED_0: KeyHash = KeyHash::Xxh3 { seed: 0 };

/// Covers probes (one to four passes with AVX2), sizes (one block to 2^17), sizings and seeds.
const GOLDENS: [Golden; 14] = [
    golden("empty", Sizing::BitsPerKey(10.0), None, 0, SEED_0),
    golden("pass-all", Sizing::BitsPerKey(0.0), None, 20, SEED_0),
    golden("one-key", Sizing::BitsPerKey(10.0), None, 1, SEED_0),
    golden("one-probe", Sizing::BitsPerKey(2.0), Some(1), 200, SEED_0),
    golden("ten-bits", Sizing::BitsPerKey(10.0), None, 250, SEED_0),
    golden("seeded", Sizing::BitsPerKey(10.0), None, 250, KeyHash::Xxh3 { seed: 0xdead_beef }),
    golden("fractional", Sizing::BitsPerKey(11.5), None, 300, KeyHash::Xxh3 { seed: u64::MAX }),
    golden("nine-probes", Sizing::BitsPerKey(16.0), Some(9), 100, SEED_0),
    golden("by-rate", Sizing::FalsePositiveRate(0.001), None, 10_000, SEED_0),
    golden("by-bytes", Sizing::MaxBytes(10_000), None, 5_000, KeyHash::Xxh3 { seed: 1 }),
    golden("thirty-probes", Sizing::BitsPerKey(44.0), Some(30), 5_000, SEED_0),
    golden("eight-probes", Sizing::BitsPerKey(14.0), None, 100_000, SEED_0),
    golden("large", Sizing::BitsPerKey(10.0), None, 7_000_000, SEED_0),
    golden("caller", Sizing::BitsPerKey(8.0), Some(17), 1_000_000, KeyHash::Caller { tag: 42 }),
];

const fn golden(
    name: &'static str,
    sizing: Sizing,
    probes: Option<u32>,
    keys: u64,
    key_hash: KeyHash,
) -> Golden {
    Golden { name, sizing, probes, keys, key_hash }
}

/// The hashes of a filter of caller-supplied hashes are the integers times an odd constant.
fn hash_of(key: u64) -> u64 {
    (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn build(golden: &Golden) -> BloomFilter {
    let mut options = FilterOptions::new(golden.sizing).with_key_hash(golden.key_hash);
    if let Some(probes) = golden.probes {
        options = options.with_probes(probes);
    }
    let mut builder = options.builder();
    for key in 0..golden.keys {
        match golden.key_hash {
            KeyHash::Caller { .. } => builder.insert_hash(hash_of(key)),
            _ => builder.insert(key.to_le_bytes()),
        }
        .unwrap();
    }
    builder.finish().unwrap()
}

fn contains(filter: BloomFilter<&[Block]>, key: u64) -> bool {
    match filter.key_hash() {
        KeyHash::Caller { .. } => filter.contains_hash(hash_of(key)),
        _ => filter.contains(key.to_le_bytes()),
    }
}

fn line(golden: &Golden, stored: &[u8]) -> String {
    let filter = BloomFilter::from_bytes_any_hash(stored).unwrap();
    // The last kernel is the scalar one.
    let kernels: Vec<Kernel> = Kernel::supported().collect();
    let scalar = filter.with_kernel(*kernels.last().unwrap());
    let false_positives: Vec<u64> =
        (golden.keys..20_000_000).filter(|&key| contains(scalar.view(), key)).take(10).collect();
    for &kernel in &kernels {
        let mut keys = (0..golden.keys).chain(false_positives.iter().copied());
        let filter = filter.with_kernel(kernel);
        assert!(
            keys.all(|key| contains(filter.view(), key)),
            "{}: {kernel:?} lost a key",
            golden.name
        );
    }
    let false_positives: Vec<String> = false_positives.iter().map(u64::to_string).collect();
    let mut line = String::new();
    write!(
        line,
        "{}: {}, {} keys, {}, {} blocks, {} probes, {} bytes, {:016x}, false positives {}",
        golden.name,
        golden.sizing,
        golden.keys,
        golden.key_hash,
        filter.params().blocks(),
        filter.params().probes(),
        stored.len(),
        xxh3_64(stored),
        false_positives.join(" "),
    )
    .unwrap();
    line
}

#[test]
fn built_filters_have_the_golden_bytes_and_false_positives() {
    let built: Vec<String> =
        GOLDENS.iter().map(|golden| line(golden, &build(golden).to_bytes())).collect();
    let expected: Vec<&str> = include_str!("../golden/goldens.txt").lines().collect();
    if built != expected {
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/golden");
        std::fs::create_dir_all(folder).unwrap();
        for golden in &GOLDENS {
            let file = format!("{folder}/{}.bloom", golden.name);
            std::fs::write(file, build(golden).to_bytes()).unwrap();
        }
        std::fs::write(format!("{folder}/goldens.txt"), built.join("\n") + "\n").unwrap();
        panic!("the bytes differ from the goldens: compare {folder} with tests/golden");
    }
}

#[test]
fn golden_files_still_open_and_answer() {
    let lines = include_str!("../golden/goldens.txt");
    let mut files = 0;
    for golden in &GOLDENS {
        let path = format!("{}/tests/golden/{}.bloom", env!("CARGO_MANIFEST_DIR"), golden.name);
        let Ok(stored) = std::fs::read(&path) else {
            continue;
        };
        files += 1;
        let line = line(golden, &stored);
        assert!(lines.lines().any(|expected| expected == line), "{path}: {line}");
        assert_eq!(stored, build(golden).to_bytes(), "{path}");
    }
    assert_eq!(files, 8, "golden files found");
}
