//! Pins the stored bytes. A change breaks existing files: never update a line, add a tag scheme.
//!
//! `tests/golden/goldens.txt` has one line per filter: number of keys, slack, hash, operations
//! (keys inserted, keys removed again), and the length and XXH3-64 of the stored bytes. Keys are
//! the integers from 0 as 8 little-endian bytes. If `tests/golden/NAME.tags` exists, it contains
//! the same bytes.

use blocked_bloom::{Filter, KeyHash, KeyHasher};
use blocked_bloom_removable::{RemovableFilter, RemovableOptions};

use crate::common::kernels;
use crate::naive::Naive;

struct Golden {
    name: &'static str,
    keys: u64,
    slack: f64,
    key_hash: KeyHash,
    /// Inserts keys `0 .. added`, removes every third of them, then inserts key 0 this many times.
    added: u64,
    copies: u64,
}

const SEED_0: KeyHash = KeyHash::Xxh3 { seed: 0 };
const CALLER: KeyHash = KeyHash::Caller { tag: 42 };

const GOLDENS: [Golden; 6] = [
    Golden { name: "empty", keys: 1, slack: 0.125, key_hash: SEED_0, added: 0, copies: 0 },
    Golden { name: "one-key", keys: 60, slack: 0.125, key_hash: SEED_0, added: 1, copies: 1 },
    Golden { name: "copies", keys: 100, slack: 0.2, key_hash: SEED_0, added: 60, copies: 30 },
    Golden { name: "full", keys: 64, slack: 0.0, key_hash: CALLER, added: 56, copies: 0 },
    Golden {
        name: "seeded",
        keys: 300,
        slack: 0.125,
        key_hash: KeyHash::Xxh3 { seed: u64::MAX },
        added: 300,
        copies: 3,
    },
    Golden {
        name: "large",
        keys: 1_000_000,
        slack: 0.125,
        key_hash: SEED_0,
        added: 1_000_000,
        copies: 1,
    },
];

fn hash_of(golden: &Golden, key: u64) -> u64 {
    match golden.key_hash.hasher() {
        Ok(hasher) => hasher.hash(key.to_le_bytes()),
        Err(_) => (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

fn build(golden: &Golden, mut filter: RemovableFilter) -> RemovableFilter {
    let hashes: Vec<u64> = (0..golden.added).map(|key| hash_of(golden, key)).collect();
    filter.insert_hashes(&hashes).unwrap();
    let removed: Vec<u64> = hashes.iter().step_by(3).copied().collect();
    let mut found = blocked_bloom::Bitmask::new();
    assert_eq!(filter.remove_hashes(&removed, &mut found), removed.len());
    (0..golden.copies).for_each(|_| _ = filter.insert_hash(hash_of(golden, 0)).unwrap());
    filter
}

fn line(golden: &Golden, stored: &[u8]) -> String {
    let filter = RemovableFilter::from_bytes_any_hash(stored).unwrap();
    format!(
        "{}: for {} keys, slack {}, {}, {} added, {} copies, {} lines, {} tags, {} bytes, {:016x}",
        golden.name,
        golden.keys,
        golden.slack,
        golden.key_hash,
        golden.added,
        golden.copies,
        filter.lines().len(),
        filter.keys_inserted(),
        stored.len(),
        KeyHasher::default().hash(stored),
    )
}

fn options(golden: &Golden) -> RemovableOptions {
    let options = RemovableOptions::new(golden.keys).with_slack(golden.slack);
    options.with_key_hash(golden.key_hash)
}

#[test]
fn filters_have_the_golden_bytes_by_every_kernel() {
    let mut built = String::new();
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/golden-removable");
    std::fs::create_dir_all(folder).unwrap();
    for golden in &GOLDENS {
        let empty = options(golden).empty_filter().unwrap();
        let stored = build(golden, empty.clone()).to_bytes();
        for kernel in kernels() {
            let same = build(golden, empty.clone().with_kernel(kernel)).to_bytes();
            assert!(same == stored, "{}: {kernel}", golden.name);
        }
        std::fs::write(format!("{folder}/{}.tags", golden.name), &stored).unwrap();
        built += &(line(golden, &stored) + "\n");
    }
    std::fs::write(format!("{folder}/goldens.txt"), &built).unwrap();
    let expected = include_str!("../golden/goldens.txt");
    assert_eq!(built, expected, "compare {folder} with tests/golden");
}

#[test]
fn golden_files_still_open_and_answer() {
    let lines = include_str!("../golden/goldens.txt");
    let mut files = 0;
    for golden in &GOLDENS {
        let path = format!("{}/tests/golden/{}.tags", env!("CARGO_MANIFEST_DIR"), golden.name);
        let Ok(stored) = std::fs::read(&path) else {
            continue;
        };
        files += 1;
        let line = line(golden, &stored);
        assert!(lines.lines().any(|expected| expected == line), "{path}: {line}");
        let (filter, naive) =
            (RemovableFilter::from_bytes_any_hash(&stored).unwrap(), Naive::from_stored(&stored));
        assert_eq!(filter.keys_inserted(), naive.len());
        for key in 0..10_000 {
            let hash = hash_of(golden, key);
            assert_eq!(filter.contains_hash(hash), naive.contains(hash), "{path}, key {key}");
            let must_be_there = key < golden.added && key % 3 != 0 || key == 0 && golden.copies > 0;
            assert!(naive.contains(hash) || !must_be_there, "{path} lost key {key}");
        }
    }
    assert_eq!(files, 5, "golden files found");
}
