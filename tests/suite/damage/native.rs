//! The crate's own formats. Checksums cover every byte, so all damage is rejected unless the test
//! corrects them. Then the answers are those of a second reader of the same header.

use std::ops::Range;

use blocked_bloom::{
    Bitmask, Block, BloomFilter, FilterOptions, Kernel, KeyHash, PrefixExtractor, Sizing,
};
use xxhash_rust::xxh3::xxh3_64;

use super::campaign::{Case, Expected, Outcome, Report};
use super::naive;
use crate::common::kernels;

/// The prefix rule.
const RULE: &str = "fixed:4";

/// A key with one of 20 prefixes; `set` distinguishes the keys of two filters.
fn keys(set: &str, numbers: Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|i| format!("{set}{:03}/{i:06}", i % 20).into_bytes()).collect()
}

fn options(set: &str) -> FilterOptions {
    // Another set and another seed, so that a splice also mixes hashes.
    let seed = u64::from(set.as_bytes()[0]);
    FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(KeyHash::Xxh3 { seed })
}

fn built(options: &FilterOptions, set: &str) -> Vec<u8> {
    let mut builder = options.builder();
    builder.extend(keys(set, 0..100)).unwrap();
    builder.finish().unwrap().to_bytes()
}

/// By all kernels and one by one, which must agree.
fn answers(filter: BloomFilter<&[Block]>, keys: &[Vec<u8>], kernels: &[Kernel]) -> Vec<bool> {
    let answers: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
    let mut hits = Bitmask::new();
    for &kernel in kernels {
        filter.with_kernel(kernel).contains_batch(keys, &mut hits);
        assert!((0..keys.len()).all(|i| hits.get(i) == Some(answers[i])), "{kernel:?}");
    }
    answers
}

/// Corrects both checksums of a filter or an index, as a hostile or faulty writer would.
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
    // The first 100 are also inserted prefixes, and are looked up as such first.
    let (added, absent) = queries.split_at(100);
    let look_up = |bytes: &[u8]| match BloomFilter::from_bytes_any_hash(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => {
            assert_eq!(filter.to_bytes(), bytes);
            let scan = |key: &Vec<u8>| filter.contains_prefix(&rule, key);
            let mut all = answers(filter.view(), added, &kernels);
            all.extend(added.iter().map(scan));
            all.extend(answers(filter.view(), absent, &kernels));
            all.extend(absent.iter().map(scan));
            Outcome::answers(all)
        }
    };
    let naive = |bytes: &[u8]| {
        Expected::from_answers(naive::Filter::open(bytes).map(|filter| {
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

/// For every format whose header is checked: nearly all values are rejected, and the others open
/// and answer as documented.
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
    let pass_all = |seed| BloomFilter::pass_all(KeyHash::Xxh3 { seed }).to_bytes();
    let report = filter("pass-all filter", pass_all(1), pass_all(2));
    check(&report);
    // A block of ones rules nothing out, with any header.
    assert_eq!(report.header.wrong, 0);
}
