//! The policy without the engine.

use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, Sizing};
use blocked_bloom_surrealkv::BlockedBloomPolicy;
use proptest::prelude::*;
use surrealkv::FilterPolicy;

use crate::common::{ours, theirs};

fn keys(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|i| format!("key {i}").into_bytes()).collect()
}

fn count_maybes(policy: &dyn FilterPolicy, filter: &[u8], keys: &[Vec<u8>]) -> usize {
    keys.iter().filter(|key| policy.may_contain(filter, key)).count()
}

/// The core may change its format only under another name of the policy.
#[test]
fn the_name_agrees_with_the_stored_bytes() {
    let policy = ours(Sizing::BitsPerKey(10.0));
    assert_eq!(policy.name(), "blocked-bloom:compact1:scheme1:xxh3-0:keys");
    let filter = policy.create_filter(&keys(0..100));
    assert_eq!(filter.len(), 2 * 64 + 8);
    // Kind, version, probes, flags "whole keys", and the number of keys.
    assert_eq!(filter[128..], [0xbc, 1, 7, 1, 100, 0, 0, 0]);
    let opened = BloomFilter::from_compact_bytes(&filter, KeyHash::Xxh3 { seed: 0 }).unwrap();
    assert!(keys(0..100).iter().all(|key| opened.contains(key)));
}

#[test]
fn every_sizing_keeps_its_rate() {
    for (sizing, limit) in [
        (Sizing::BitsPerKey(10.0), 0.0105),
        (Sizing::BitsPerKey(12.5), 0.0042),
        (Sizing::FalsePositiveRate(0.001), 0.0012),
    ] {
        let policy = ours(sizing);
        let filter = policy.create_filter(&keys(0..50_000));
        assert_eq!(count_maybes(&*policy, &filter, &keys(0..50_000)), 50_000);
        let passed = count_maybes(&*policy, &filter, &keys(50_000..250_000)) as f64 / 200_000.0;
        assert!(passed > 0.0 && passed < limit, "{sizing:?}: {passed}");
    }
}

#[test]
fn partitions_take_as_many_bytes_as_the_engine_asks_for() {
    for sizing in [Sizing::BitsPerKey(10.0), Sizing::FalsePositiveRate(0.0001)] {
        for bytes in [72, 500, 16_384, 1 << 20] {
            let policy = ours(sizing);
            let count = policy.filter_keys_per_partition(bytes) as u32;
            let filter = policy.create_filter(&keys(0..count));
            assert!(filter.len() <= bytes, "{sizing:?}, {bytes}: {}", filter.len());
            assert!(filter.len() + 64 + 8 > bytes, "{sizing:?}, {bytes}: {}", filter.len());
        }
        // A partition has at least one key, although no filter is so small.
        assert_eq!(ours(sizing).filter_keys_per_partition(10), 1);
    }
}

#[test]
fn unknown_bytes_answer_maybe() {
    let policy = ours(Sizing::BitsPerKey(10.0));
    let filter = policy.create_filter(&keys(0..1_000));
    let absent = keys(1_000..1_100);
    assert!(count_maybes(&*policy, &filter, &absent) < 10);
    let maybe = |bytes: &[u8]| count_maybes(&*policy, bytes, &absent) == absent.len();
    for length in 0..filter.len() {
        assert!(maybe(&filter[..length]), "{length}");
    }
    // Kind, version and flags.
    for at in [8, 7, 5].map(|end| filter.len() - end) {
        for bit in 0..8 {
            let mut damaged = filter.clone();
            damaged[at] ^= 1 << bit;
            assert!(maybe(&damaged), "byte {at}, bit {bit}");
        }
    }
    let mut damaged = filter.clone();
    for probes in [0, 31, 255] {
        damaged[filter.len() - 6] = probes;
        assert!(maybe(&damaged), "{probes} probes");
    }
    assert!(maybe(&theirs().create_filter(&keys(0..1_000))));
}

#[test]
fn a_wrong_sizing_is_an_error_and_a_filter_without_memory_answers_maybe() {
    for sizing in [Sizing::BitsPerKey(f64::NAN), Sizing::FalsePositiveRate(2.0)] {
        BlockedBloomPolicy::new(sizing).unwrap_err();
    }
    let pass_all = ours(Sizing::BitsPerKey(0.0));
    let filter = pass_all.create_filter(&keys(0..10));
    assert_eq!(count_maybes(&*pass_all, &filter, &keys(10..20)), 10);
    assert_eq!(pass_all.unusable_filters(), 0, "the sizing means no filter");
    assert_eq!(pass_all.filter_keys_per_partition(16_384), usize::MAX);
}

/// The upper half of the engine's own hash is zero, so all its keys would set the first bit of
/// their block: nothing would be ruled out.
#[test]
fn the_hash_of_the_engines_policy_is_refused() {
    let theirs = theirs();
    let hashes: Vec<u64> = keys(0..10_000).iter().map(|key| theirs.key_hash(key)).collect();
    assert!(hashes.iter().all(|hash| hash >> 32 == 0));
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let options = options.with_key_hash(KeyHash::Caller { tag: 1 });
    let error = BloomFilter::from_hashes(&options, &hashes).unwrap_err();
    assert!(error.to_string().contains("mixed"), "{error}");
}

proptest! {
    #[test]
    fn keys_and_their_hashes_build_the_same_bytes(
        keys in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..100),
    ) {
        let policy = ours(Sizing::BitsPerKey(10.0));
        let hashes: Vec<u64> = keys.iter().map(|key| policy.key_hash(key)).collect();
        let filter = policy.create_filter(&keys);
        prop_assert_eq!(&filter, &policy.create_filter_from_hashes(&hashes));
        prop_assert_eq!(count_maybes(&*policy, &filter, &keys), keys.len());
    }
}
