//! The crate's own formats: checksums cover every byte, so all damage is rejected unless the test mends them; then the answers are
//! those of a naive reading of the header as it stands.

use std::ops::Range;

use blocked_bloom::{
    BatchQuery, Bitmask, BloomFilter, BloomFilterRef, FilterOptions, FormatError, Kernel, KeyHash,
    PartitionIndex, PartitionLocation, PartitionedFilterBuilder, PrefixExtractor,
    ScalableBloomFilterRef, ScalableOptions, Sizing,
};
use xxhash_rust::xxh3::xxh3_64;

use super::campaign::{Case, Expected, Outcome, Report, Seal};
use super::naive;
use crate::common::kernels;

/// Prefixes of the keys are cut by this rule.
const RULE: &str = "fixed:4";

/// Of 20 prefixes; `set` tells keys that are in one filter from those of another.
fn keys(set: &str, numbers: Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|i| format!("{set}{:03}/{i:06}", i % 20).into_bytes()).collect()
}

fn options(set: &str) -> FilterOptions {
    // Another set, another seed: a splice mixes hashes, too.
    let seed = u64::from(set.as_bytes()[0]);
    FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(KeyHash::Xxh3 { seed })
}

fn built(options: &FilterOptions, set: &str) -> Vec<u8> {
    let mut builder = options.builder();
    builder.extend(keys(set, 0..100)).unwrap();
    builder.finish().unwrap().to_bytes()
}

/// By all kernels and one by one, which must agree.
fn answers(filter: BloomFilterRef<'_>, keys: &[Vec<u8>], kernels: &[Kernel]) -> Vec<bool> {
    let answers: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
    let mut hits = Bitmask::new();
    for &kernel in kernels {
        filter.with_kernel(kernel).contains_batch(keys, &mut hits);
        assert!((0..keys.len()).all(|i| hits.get(i) == Some(answers[i])), "{kernel:?}");
    }
    answers
}

/// Makes both checksums of a filter or an index fit again, as a hostile or buggy writer would.
fn seal(bytes: &mut [u8]) {
    let sum = xxh3_64(&bytes[64..]);
    bytes[48..56].copy_from_slice(&sum.to_le_bytes());
    seal_header(bytes);
}

fn seal_header(bytes: &mut [u8]) {
    let sum = xxh3_64(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
}

fn filter(name: &'static str, bytes: Vec<u8>, other: Vec<u8>) -> Report {
    let (kernels, rule) = (kernels(), PrefixExtractor::fixed(4));
    let queries = [keys("a", 0..100), keys("n", 0..100)].concat();
    // The first 100 are of added prefixes, too, and are looked up as such before the others.
    let (added, absent) = queries.split_at(100);
    let look_up = |bytes: &[u8]| match BloomFilterRef::from_bytes(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => {
            assert_eq!(filter.to_bytes(), bytes);
            let scan = |key: &Vec<u8>| filter.contains_prefix(&rule, key);
            let mut all = answers(filter, added, &kernels);
            all.extend(added.iter().map(scan));
            all.extend(answers(filter, absent, &kernels));
            all.extend(absent.iter().map(scan));
            Outcome::answers(all)
        }
    };
    let naive = |bytes: &[u8]| {
        Expected::of(naive::Filter::open(bytes).map(|filter| {
            let key = |key: &Vec<u8>| filter.contains(key);
            let scan = |key: &Vec<u8>| filter.contains_prefix(RULE, &key[..4]);
            let of = |keys: &[Vec<u8>]| -> Vec<bool> {
                keys.iter().map(key).chain(keys.iter().map(scan)).collect()
            };
            [of(added), of(absent)].concat()
        }))
    };
    let (added, header) = (200, 0..48);
    Case { name, bytes, other, added, header, seal: Some(&seal), look_up: &look_up, naive: &naive }
        .run()
}

/// What holds for every format whose header is checked: nearly all values are rejected, some open, and answer as described.
fn check(report: &Report) {
    assert!(report.all_refused());
    assert!(report.header.refused > 5_000 && report.header.harmless + report.header.wrong > 500);
    assert!(report.sealed.refused > 1_000);
}

#[test]
fn filters() {
    let rule = || PrefixExtractor::fixed(4);
    let plain = filter("filter", built(&options("a"), "a"), built(&options("b"), "b"));
    let both = |set: &str| built(&options(set).with_prefixes(rule()), set);
    let prefix = filter("filter with prefixes", both("a"), both("b"));
    let only = |set: &str| built(&options(set).with_only_prefixes(rule()), set);
    let only = filter("filter of prefixes", only("a"), only("b"));
    for report in [plain, prefix, only] {
        check(&report);
        assert!(report.sealed.harmless + report.sealed.wrong > 1_000);
    }
    let pass_all = |seed| BloomFilter::pass_all(KeyHash::Xxh3 { seed }).unwrap().to_bytes();
    let report = filter("pass-all filter", pass_all(1), pass_all(2));
    check(&report);
    // Whatever a mended header says, a block of ones rules nothing out.
    assert_eq!(report.header.wrong, 0);
}

/// An index, and the partitions one behind the other.
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

/// The bytes of a partition, if they are there.
fn load<'p>(partitions: &'p [u8], at: &PartitionLocation) -> Option<&'p [u8]> {
    let end = usize::try_from(at.offset + at.length).ok()?;
    partitions.get(usize::try_from(at.offset).ok()?..end)
}

/// As an engine looks up a batch, and some of the keys one by one. A partition that cannot be opened is an error, and its keys are
/// answered "maybe".
fn look_up_index(index: &[u8], partitions: &[u8], keys: &[Vec<u8>]) -> Outcome {
    let index = match PartitionIndex::from_bytes(index) {
        Ok(index) => index,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Outcome::refused();
        }
    };
    let open = |at: &PartitionLocation| -> Result<BloomFilterRef<'_>, Option<FormatError>> {
        Ok(index.open(at, load(partitions, at).ok_or(None)?)?)
    };
    let (mut error, mut answers, mut hits) = (false, vec![true; keys.len()], Bitmask::new());
    if !index.contents().whole_keys() {
        // The index says so: nothing need be loaded.
        return Outcome::answers(answers);
    }
    for (at, positions) in index.locate_batch(keys).unwrap() {
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
        Expected::of(
            naive::Index::open(index)
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
    check(&report);
    assert!(report.sealed.harmless + report.sealed.wrong > 200);

    // Damage of one partition is an error beside the answers. Mended, it still is: the index knows the header's checksum.
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

#[test]
fn growing_filters() {
    let made = |set: &str| {
        let key_hash = KeyHash::Xxh3 { seed: 1 };
        let options = ScalableOptions::new(0.02, 20).with_key_hash(key_hash);
        let mut filter = options.build().unwrap();
        let mut numbers = 0..;
        while filter.keys_inserted() < 70 {
            filter.insert(&keys(set, numbers.next().unwrap()..200)[0]).unwrap();
        }
        filter
    };
    let (filter, other) = (made("a"), made("b"));
    assert_eq!((filter.links().len(), other.links().len()), (3, 3));
    let mut queries = keys("a", 0..200);
    // Those that were taken for known when they came are in no link's count, but none was ever absent.
    queries.retain(|key| filter.contains(key));
    let added = queries.len();
    queries.extend(keys("n", 0..50));
    let (bytes, other) = (filter.to_bytes(), other.to_bytes());
    let look_up = |bytes: &[u8]| match ScalableBloomFilterRef::from_bytes(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => {
            assert_eq!(filter.to_filter().unwrap().to_bytes(), bytes);
            let mut hits = Bitmask::new();
            filter.contains_batch(&queries, &mut hits);
            let answers = queries.iter().enumerate().map(|(i, key)| {
                let answer = filter.contains(key);
                assert_eq!(hits.get(i), Some(answer));
                answer
            });
            Outcome::answers(answers.collect())
        }
    };
    let naive = |bytes: &[u8]| {
        Expected::of(
            naive::Growing::open(bytes)
                .map(|filter| queries.iter().map(|key| filter.contains(key)).collect()),
        )
    };
    let seal: &Seal = &seal_header;
    let header = 0..56;
    let name = "growing filter";
    let report = Case {
        name,
        bytes,
        other,
        added,
        header,
        seal: Some(seal),
        look_up: &look_up,
        naive: &naive,
    }
    .run();
    for counts in [report.truncated, report.flipped, report.random, report.spliced] {
        assert!(counts.refused > 0 && counts.harmless + counts.wrong == 0, "{counts:?}");
    }
    assert!(report.header.refused > 5_000 && report.sealed.refused > 1_000);
}
