//! The classical filters of Guava, Spark and RedisBloom: the systems' own answers and bytes, naive
//! readings of the formats, damage.
//!
//! `naive.rs` reads the formats again, independently and slowly. Kernels take no part: a classical
//! filter has no block for them.

mod guava;
pub(crate) mod naive;
mod redis;
mod spark;

use std::cell::Cell;
use std::error::Error;

use blocked_bloom::{AllocError, Bitmask};
use blocked_bloom_formats::cassandra::{CassandraFilter, Layout, hash_key};
use blocked_bloom_formats::guava::GuavaFilter;
use blocked_bloom_formats::spark::{SparkFilter, Version};
use blocked_bloom_formats::{ClassicalError, ClassicalFilter};

use crate::common::Random;

pub(crate) fn random_key(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.next() as u8).collect()
}

/// Keys of every short length, with bytes of both signs.
fn keys(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| random_key(random, i % 40)).collect()
}

/// Random words with three quarters of their bits set, so that half of all keys pass two probes.
fn words(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).flat_map(|_| (random.next() | random.next()).to_le_bytes()).collect()
}

/// Compares the answers of batches of these lengths, into masks that held something else, with the
/// answers expected.
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

/// An owner of bytes who is told from outside how many of them to lend.
struct Owner<'c>(Vec<u8>, &'c Cell<usize>);

impl AsRef<[u8]> for Owner<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1.get()]
    }
}

/// Filters of 100 keys, the last of 400 KB, which batches look up in stages. While the owner lends
/// more or fewer bytes than were opened, every answer is "maybe", and nothing is copied or merged.
#[test]
fn an_owner_that_lends_other_bytes_makes_every_answer_maybe() {
    let keys = keys(&mut Random(5), 300);
    let hashes: Vec<_> = keys.iter().map(hash_key).collect();
    for layout in Layout::ALL {
        for partitions in [100, 300_000] {
            let mut filter = CassandraFilter::new(layout, partitions, 0.01).unwrap();
            filter.extend(&keys[..100]);
            let length = filter.as_bytes().len();
            let lent = Cell::new(length);
            let mut bytes = filter.as_bytes().to_vec();
            bytes.resize(length + 64, 0);
            let opened = CassandraFilter::from_bytes(Owner(bytes, &lent), layout).unwrap();
            for length in [length - 1, length + 1, 8, 7, 0, length + 64] {
                lent.set(length);
                assert!(opened.is_pass_all() && opened.words().is_empty());
                assert!(hashes.iter().all(|&hash| opened.contains_hash(hash)));
                let expected = [true; 300];
                check_batches([0, 1, 64, 299], &expected, |n, hits| {
                    opened.contains_batch(&keys[..n], hits);
                });
                check_batches([0, 1, 64, 299], &expected, |n, hits| {
                    opened.contains_hashes(&hashes[..n], hits);
                });
                opened.prefetch_hash(hashes[0]);
                let rates = (opened.fill_ratio(), opened.estimated_false_positive_rate());
                assert_eq!((rates, opened.estimated_keys()), ((1.0, 1.0), None));
                let error = |result: Result<(), ClassicalError>| match result.unwrap_err() {
                    ClassicalError::Length { found, .. } => assert_eq!(found, length as u64),
                    error => panic!("{error}"),
                };
                error(opened.to_filter().map(|_| ()));
                error(filter.clone().union_with(&opened));
                assert_ne!(opened, filter);
            }
            lent.set(length);
            assert!(opened == filter && opened.words() == &filter.as_bytes()[8..]);
            assert!(
                !opened.is_pass_all() && hashes.iter().any(|&hash| !opened.contains_hash(hash))
            );
            assert_eq!(opened.to_filter().unwrap(), filter);
            assert_eq!(opened.into_inner().0[..length], filter.into_inner());
        }
        // Of no bytes, and later a header's.
        let lent = Cell::new(0);
        let opened = CassandraFilter::from_bytes(Owner(vec![0; 16], &lent), layout).unwrap();
        for length in [0, 7, 8, 16] {
            lent.set(length);
            assert!(opened.is_pass_all() && opened.words().is_empty());
            check_batches([0, 1, 64, 299], &[true; 300], |n, hits| {
                opened.contains_batch(&keys[..n], hits);
            });
            let rates = (opened.fill_ratio(), opened.estimated_false_positive_rate());
            assert_eq!((rates, opened.estimated_keys()), ((1.0, 1.0), None));
            assert_eq!(opened.to_filter().is_ok(), length == 0);
        }
    }
}

/// Cassandra itself cannot merge filters, so only this test covers merged filters and filters
/// without bytes.
#[test]
fn cassandras_filters_merge_into_what_holds_the_keys_of_both() {
    let keys = keys(&mut Random(6), 200);
    for layout in Layout::ALL {
        let filter = |keys: &[Vec<u8>]| {
            let mut filter = CassandraFilter::new(layout, 200, 0.01).unwrap();
            filter.extend(keys);
            filter
        };
        let (mut left, right) = (filter(&keys[..90]), filter(&keys[90..]));
        left.union_with(&right.view()).unwrap();
        assert_eq!(left, filter(&keys));
        let other =
            if layout == Layout::Cassandra4 { Layout::Cassandra2 } else { Layout::Cassandra4 };
        let error = left.union_with(&CassandraFilter::new(other, 200, 0.01).unwrap()).unwrap_err();
        let (found, expected) = (other as i64, layout as i64);
        assert_eq!(error, ClassicalError::Mismatch { field: "layout", found, expected });
        let mut none = CassandraFilter::new(layout, 200, 1.0).unwrap();
        let error = left.union_with(&none).unwrap_err();
        assert!(matches!(error, ClassicalError::Mismatch { field: "probes", found: 0, .. }));
        none.union_with(&none.clone()).unwrap();
        assert!(none.is_pass_all() && none.to_filter().unwrap() == none);
        assert_eq!(left, filter(&keys));
    }
}

/// A cloned link counts inserted keys like a chain.
#[test]
fn a_link_counts_the_keys_that_were_new() {
    let chain = blocked_bloom_formats::redis::RedisFilter::new(500, 0.01, None).unwrap();
    let mut link = chain.links()[0].clone();
    let keys = keys(&mut Random(7), 300);
    let mut is_new = 0;
    for key in keys.iter().chain(&keys[..50]) {
        let was_there = link.contains(key);
        assert_eq!(link.insert(key), !was_there);
        is_new += u64::from(!was_there);
    }
    assert!((290..=300).contains(&is_new) && link.size() == is_new);
    assert_eq!(link.as_bytes().len() as u64, link.shape().stored_bytes());
}

/// Filters of one container, one scheme, and one name are one type.
#[test]
fn errors_name_their_source_and_filters_their_shape() {
    let error = ClassicalError::from(AllocError::new(640));
    assert_eq!(error.to_string(), "no memory for 640 bytes");
    assert_eq!(error.source().unwrap().to_string(), "no memory for 640 bytes");
    let error = ClassicalError::RateTooLow { rate: 1e-5, least: 6.71e-5 };
    assert_eq!(error.to_string(), "false-positive rate 1e-5: give at least 6.71e-5");
    assert!(error.source().is_none());
    let spark: ClassicalFilter<Version> = SparkFilter::new(Version::V1, 100, 0.03).unwrap();
    let text = format!("{spark:?} {:?}", GuavaFilter::new(100, 0.03).unwrap().view());
    assert!(text.contains("scheme: V1, probes: 5, bits: 768"), "{text}");
    assert!(text.contains("scheme: Mitz64, probes: 5, bits: 768"), "{text}");
}

/// The cells of every line but the first.
fn rows(path: &std::path::Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}
