//! The damage campaign of the core's tests, on an index and its partitions. All damage is an error
//! unless the test repairs the checksums; then the answers are those of a naive reader of the
//! index.
//!
//! It prints its tables: `cargo test -p blocked-bloom-lsm --test suite damage:: -- --nocapture
//! --test-threads 1`.

use std::ops::Range;

use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, KeyHash, Sizing, Stored};
use blocked_bloom_lsm::{
    PartitionError, PartitionIndex, PartitionLocation, PartitionedFilterBuilder,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::partitions::{group_by_partition, seal};

use self::campaign::{Case, Expected, Outcome};
use self::naive::{Filter, u16_at, u32_at, u64_at};

#[path = "../../../../tests/suite/damage/campaign.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod campaign;
#[path = "../../../../tests/suite/damage/naive.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod naive;

fn keys(set: &str, numbers: Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|i| format!("{set}{:03}/{i:06}", i % 20).into_bytes()).collect()
}

fn options(set: &str) -> FilterOptions {
    // Each set has its own seed, so that a splice also mixes hashes.
    let seed = u64::from(set.as_bytes()[0]);
    FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(KeyHash::Xxh3 { seed })
}

/// "Index of a partitioned filter" of `docs/format.md`, read independently of the crate.
struct Index<'a> {
    seed: u64,
    flags: u8,
    /// Checksum of the partition's header, its start and end, and its separator.
    entries: Vec<(u64, u64, u64, &'a [u8])>,
}

impl<'a> Index<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 64 || bytes[..8] != *b"\x89BBPART\n" || u16_at(bytes, 8) != 1 {
            return None;
        }
        let (hash, flags, count) = (bytes[10], bytes[11], u32_at(bytes, 12));
        let separators = u64_at(bytes, 32);
        let legal = u64_at(bytes, 56) == xxh3_64(&bytes[..56])
            && hash == 1
            && (1..=3).contains(&flags)
            && count >= 1
            && (u64_at(bytes, 40) != 0) == (flags > 1)
            && bytes.len() as u128 == 64 + 24 * u128::from(count) + u128::from(separators)
            && u64_at(bytes, 48) == xxh3_64(&bytes[64..]);
        if !legal {
            return None;
        }
        let (entries, separators) = bytes[64..].split_at(24 * count as usize);
        let mut read: Vec<(u64, u64, u64, &[u8])> = Vec::new();
        let (mut begin, mut from) = (0, 0);
        for entry in entries.chunks(24) {
            let (end, to) = (u64_at(entry, 8), u64_at(entry, 16));
            if end <= begin || to < from || to > separators.len() as u64 {
                return None;
            }
            let separator = &separators[from as usize..to as usize];
            let blocks = (end - begin) / 64 - u64::from(end - begin >= 64);
            let in_order = match read.last() {
                None => separator.is_empty(),
                Some(before) => separator > before.3,
            };
            if !(end - begin).is_multiple_of(64) || !(1..1 << 32).contains(&blocks) || !in_order {
                return None;
            }
            read.push((u64_at(entry, 0), begin, end, separator));
            (begin, from) = (end, to);
        }
        (from == separators.len() as u64).then_some(Index {
            seed: u64_at(bytes, 16),
            flags,
            entries: read,
        })
    }

    fn contains(&self, key: &[u8], partitions: &[u8]) -> bool {
        let place = self.entries.iter().rev().find(|(.., separator)| *separator <= key);
        let &(checksum, begin, end, _) = place.expect("the first separator is empty");
        let partition = if end <= partitions.len() as u64 {
            &partitions[begin as usize..end as usize]
        } else {
            &[]
        };
        match Filter::open(partition) {
            Some(filter) if u64_at(partition, 56) == checksum => {
                self.flags & 1 == 0
                    || (filter.hash, filter.seed) != (1, self.seed)
                    || filter.contains(key)
            }
            _ => true,
        }
    }
}

/// An index, and its partitions one after another.
fn partitioned(set: &str) -> (Vec<u8>, Vec<u8>) {
    let mut partitions = Vec::new();
    let mut builder = PartitionedFilterBuilder::new(options(set), 128).unwrap();
    let mut keys = keys(set, 0..150);
    keys.sort();
    for key in keys {
        partitions.extend(builder.insert(key).unwrap().iter().flat_map(BloomFilter::to_bytes));
    }
    let (last, index) = builder.finish().unwrap();
    partitions.extend(last.to_bytes());
    (index, partitions)
}

/// The bytes of a partition, if they exist.
fn load<'p>(partitions: &'p [u8], at: &PartitionLocation) -> Option<&'p [u8]> {
    let end = usize::try_from(at.offset + at.length).ok()?;
    partitions.get(usize::try_from(at.offset).ok()?..end)
}

/// Looks up a batch like an engine, and some keys one by one. A partition that cannot be opened is
/// an error, and its keys are "maybe".
fn look_up_index(index: &[u8], partitions: &[u8], keys: &[Vec<u8>]) -> Outcome {
    let index = match PartitionIndex::from_bytes_any_hash(index) {
        Ok(index) => index,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Outcome::refused();
        }
    };
    let open =
        |at: &PartitionLocation| -> Result<BloomFilter<Stored<&[u8]>>, Option<PartitionError>> {
            Ok(index.open(at, load(partitions, at).ok_or(None)?)?)
        };
    let (mut error, mut answers, mut hits) = (false, vec![true; keys.len()], Bitmask::new());
    if !index.contents().whole_keys() {
        // The index knows it: nothing needs to be loaded.
        return Outcome::answers(answers);
    }
    for (at, positions) in group_by_partition(&index, keys) {
        match open(&at) {
            Ok(filter) => {
                let group: Vec<&Vec<u8>> = positions.iter().map(|&i| &keys[i]).collect();
                filter.contains_batch(&group, &mut hits);
                positions.iter().zip(hits.iter()).for_each(|(&i, hit)| answers[i] = hit);
            }
            Err(_) => error = true,
        }
    }
    for (key, &answer) in keys.iter().zip(&answers).step_by(9) {
        match open(&index.locate(key)) {
            Ok(filter) => assert_eq!(filter.contains(key), answer),
            Err(_) => assert!(error && answer),
        }
    }
    Outcome { error, answers: Some(answers) }
}

#[test]
fn partitions() {
    let ((index, partitions), (other_index, other_partitions)) =
        (partitioned("a"), partitioned("b"));
    assert_eq!(partitions.len(), 3 * 128);
    let queries = [keys("a", 0..150), keys("n", 0..50), keys("a", 500..550)].concat();
    let naive = |index: &[u8], partitions: &[u8]| {
        Expected::from_answers(
            Index::open(index)
                .map(|index| queries.iter().map(|key| index.contains(key, partitions)).collect()),
        )
    };
    let report = Case {
        name: "partition index",
        bytes: index.clone(),
        other: other_index,
        added: 150,
        header: 0..48,
        seal: Some(&seal),
        look_up: &|bytes| look_up_index(bytes, &partitions, &queries),
        naive: &|bytes| naive(bytes, &partitions),
    }
    .run();
    // Nearly all values are rejected; some open, and answer as described.
    assert!(report.all_refused());
    assert!(report.header.refused > 5_000 && report.header.harmless + report.header.wrong > 500);
    assert!(report.sealed.refused > 1_000);
    assert!(report.sealed.harmless + report.sealed.wrong > 200);

    // Damage of one partition is an error in addition to the answers. It stays an error with
    // repaired checksums, because the index knows the header's checksum.
    let header = 0..48;
    let seal = |bytes: &mut [u8]| bytes.chunks_mut(128).for_each(seal);
    let report = Case {
        name: "partitions",
        bytes: partitions.clone(),
        other: other_partitions,
        added: 150,
        header,
        seal: Some(&seal),
        look_up: &|bytes| look_up_index(&index, bytes, &queries),
        naive: &|bytes| naive(&index, bytes),
    }
    .run();
    assert!(report.all_refused());
    for mended in [report.header, report.sealed] {
        assert!(mended.refused > 5_000 && mended.harmless + mended.wrong == 0, "{mended:?}");
    }
}
