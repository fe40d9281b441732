//! The crate's own formats: checksums cover every byte, so all damage is refused unless the test mends them; then the answers are
//! those of a naive reading of the header as it stands.

use std::cell::RefCell;
use std::ops::Range;

use blocked_bloom::{
    Bitmask, BloomFilter, BloomFilterBuilder, BloomFilterRef, Kernel, KeyHash, PartitionIndex,
    PartitionLocation, PartitionedFilterBuilder, PrefixExtractor, ScalableBloomFilter,
    ScalableBloomFilterRef, Sizing,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::campaign::{Case, Expected, Report, Seal, Told};
use crate::common::kernels;
use crate::naive;

/// Prefixes of the keys are cut by this rule.
const RULE: &str = "fixed:4";

/// Of 20 prefixes; `set` tells keys that are in one filter from those of another.
fn keys(set: &str, numbers: Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|i| format!("{set}{:03}/{i:06}", i % 20).into_bytes()).collect()
}

fn builder(set: &str) -> BloomFilterBuilder {
    // Another set, another seed: a splice mixes hashes, too.
    let seed = u64::from(set.as_bytes()[0]);
    BloomFilterBuilder::with_key_hash(Sizing::BitsPerKey(10.0), KeyHash::Xxh3 { seed })
}

fn built(mut builder: BloomFilterBuilder, set: &str) -> Vec<u8> {
    keys(set, 0..100).iter().for_each(|key| builder.insert(key));
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
    let questions = [keys("a", 0..100), keys("n", 0..100)].concat();
    // The first 100 are of added prefixes, too, and are asked about as such before the others.
    let (added, absent) = questions.split_at(100);
    let ask = |bytes: &[u8]| match BloomFilterRef::from_bytes(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Told::refused()
        }
        Ok(filter) => {
            assert_eq!(filter.to_bytes(), bytes);
            let scan = |key: &Vec<u8>| filter.contains_prefix(&rule, key);
            let mut all = answers(filter, added, &kernels);
            all.extend(added.iter().map(scan));
            all.extend(answers(filter, absent, &kernels));
            all.extend(absent.iter().map(scan));
            Told::answers(all)
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
    Case { name, bytes, other, added, header, seal: Some(&seal), ask: &ask, naive: &naive }.run()
}

/// What holds for every format whose header is checked: nearly all values are refused, some open, all by the law.
fn check(report: &Report) {
    assert!(report.all_refused());
    assert!(report.header.refused > 5_000 && report.header.harmless + report.header.wrong > 500);
    assert!(report.sealed.refused > 1_000);
}

#[test]
fn filters() {
    let rule = || PrefixExtractor::fixed(4);
    let plain = filter("filter", built(builder("a"), "a"), built(builder("b"), "b"));
    let both = |set: &str| built(builder(set).prefixes(rule()), set);
    let prefix = filter("filter with prefixes", both("a"), both("b"));
    let only = |set: &str| built(builder(set).only_prefixes(rule()), set);
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
    let partitions = RefCell::new(Vec::new());
    let sink = |filter: BloomFilter| {
        partitions.borrow_mut().extend(filter.to_bytes());
        Ok::<(), std::convert::Infallible>(())
    };
    let mut builder = PartitionedFilterBuilder::new(builder(set), 128, sink).unwrap();
    let mut keys = keys(set, 0..150);
    keys.sort();
    keys.iter().for_each(|key| builder.insert(key).unwrap());
    let index = builder.finish().unwrap();
    (index, partitions.into_inner())
}

/// Asked in one batch, and some of them one by one.
fn ask_index(index: &[u8], partitions: &[u8], keys: &[Vec<u8>]) -> Told {
    let index = match PartitionIndex::from_bytes(index) {
        Ok(index) => index,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Told::refused();
        }
    };
    let load = |at: PartitionLocation| {
        let end = usize::try_from(at.offset + at.length).map_err(drop)?;
        partitions.get(at.offset as usize..end).ok_or(())
    };
    let mut hits = Bitmask::new();
    let failures = index.contains_batch(keys, &mut hits, load);
    for (i, key) in keys.iter().enumerate().step_by(9) {
        let (maybe, failure) = index.contains(key, load);
        assert_eq!(hits.get(i), Some(maybe));
        assert!(failure.is_none_or(|failure| failures.contains(&failure)));
    }
    let answers = (0..keys.len()).map(|i| hits.get(i).unwrap()).collect();
    Told { error: !failures.is_empty(), answers: Some(answers) }
}

#[test]
fn partitions() {
    let ((index, partitions), (other_index, other_partitions)) =
        (partitioned("a"), partitioned("b"));
    assert_eq!(partitions.len(), 3 * 128);
    let questions = [keys("a", 0..150), keys("n", 0..50), keys("a", 500..550)].concat();
    let naive = |index: &[u8], partitions: &[u8]| {
        Expected::of(
            naive::Index::open(index)
                .map(|index| questions.iter().map(|key| index.contains(key, partitions)).collect()),
        )
    };
    let report = Case {
        name: "partition index",
        bytes: index.clone(),
        other: other_index,
        added: 150,
        header: 0..48,
        seal: Some(&seal),
        ask: &|bytes| ask_index(bytes, &partitions, &questions),
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
        ask: &|bytes| ask_index(&index, bytes, &questions),
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
        let mut filter = ScalableBloomFilter::with_key_hash(0.02, 20, key_hash).unwrap();
        let mut numbers = 0..;
        while filter.keys_inserted() < 70 {
            filter.insert(&keys(set, numbers.next().unwrap()..200)[0]).unwrap();
        }
        filter
    };
    let (filter, other) = (made("a"), made("b"));
    assert_eq!((filter.links().len(), other.links().len()), (3, 3));
    let mut questions = keys("a", 0..200);
    // Those that were taken for known when they came are in no link's count, but none was ever absent.
    questions.retain(|key| filter.contains(key));
    let added = questions.len();
    questions.extend(keys("n", 0..50));
    let (bytes, other) = (filter.to_bytes(), other.to_bytes());
    let ask = |bytes: &[u8]| match ScalableBloomFilterRef::from_bytes(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Told::refused()
        }
        Ok(filter) => {
            assert_eq!(filter.to_filter().unwrap().to_bytes(), bytes);
            let mut hits = Bitmask::new();
            filter.contains_batch(&questions, &mut hits);
            let answers = questions.iter().enumerate().map(|(i, key)| {
                let answer = filter.contains(key);
                assert_eq!(hits.get(i), Some(answer));
                answer
            });
            Told::answers(answers.collect())
        }
    };
    let naive = |bytes: &[u8]| {
        Expected::of(
            naive::Growing::open(bytes)
                .map(|filter| questions.iter().map(|key| filter.contains(key)).collect()),
        )
    };
    let seal: &Seal = &seal_header;
    let header = 0..56;
    let name = "growing filter";
    let report =
        Case { name, bytes, other, added, header, seal: Some(seal), ask: &ask, naive: &naive }
            .run();
    for counts in [report.truncated, report.flipped, report.random, report.spliced] {
        assert!(counts.refused > 0 && counts.harmless + counts.wrong == 0, "{counts:?}");
    }
    assert!(report.header.refused > 5_000 && report.sealed.refused > 1_000);
}
