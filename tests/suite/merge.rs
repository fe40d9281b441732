//! Merging: compared bit by bit, in every order; and the filters that cannot be merged.

use crate::common::{Random, empty, filled};
use blocked_bloom::{
    BloomFilter, FilterContents, FilterOptions, KeyHash, MergeError, PrefixExtractor, Sizing,
};
use proptest::prelude::*;

fn pass_all() -> BloomFilter {
    BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap()
}

/// A filter with this many keys, from a separate sequence.
fn with_keys(blocks: u32, probes: u32, seed: u64, keys: usize) -> BloomFilter {
    let mut filter = empty(blocks, probes);
    filter.insert_hashes(&Random(seed).hashes(keys)).unwrap();
    filter
}

/// The filter with another number of keys inserted.
fn recounted(filter: &BloomFilter, keys: u64) -> BloomFilter {
    let mut stored = filter.to_bytes();
    stored[32..40].copy_from_slice(&keys.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&stored[..56]);
    stored[56..64].copy_from_slice(&sum.to_le_bytes());
    BloomFilter::from_bytes_any_hash(&stored).unwrap().to_filter().unwrap()
}

#[test]
fn a_union_holds_both_sides() {
    let (mut left, left_keys) = filled(40, 6, 1);
    let (right, right_keys) = filled(40, 6, 2);
    let mut direct = left.clone();
    direct.insert_hashes(&right_keys).unwrap();
    left.union_with(&right).unwrap();
    assert_eq!(left, direct);
    assert_eq!(left.keys_inserted(), (left_keys.len() + right_keys.len()) as u64);

    // The same with stored bytes.
    let stored = BloomFilter::from_bytes_any_hash(right.to_bytes()).unwrap();
    let mut other = filled(40, 6, 1).0;
    other.union_with(&stored).unwrap();
    assert_eq!(other, direct);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    })]

    /// Compares bits and counts with a model without blocks. Catches a loop that ends early, a
    /// missing input, and a count that is not the sum.
    #[test]
    fn a_union_of_many_is_their_bits_one_by_one(
        blocks in prop_oneof![1_u32..10, 250_u32..260, 510_u32..520, 700_u32..800],
        probes in 1_u32..=30,
        keys in prop::collection::vec(1_usize..4_000, 1..6),
        seed: u64,
    ) {
        let filters: Vec<BloomFilter> = keys
            .iter()
            .zip(seed..)
            .map(|(&keys, seed)| with_keys(blocks, probes, seed, keys))
            .collect();
        let bytes = |filter: &BloomFilter| filter.blocks().as_flattened().to_vec();
        let merged = |a: Vec<u8>, b: Vec<u8>| a.iter().zip(b).map(|(&a, b)| a | b).collect();
        let expected: Vec<u8> = filters.iter().map(bytes).reduce(merged).unwrap();
        let mut union = filters[0].clone();
        filters[1..].iter().for_each(|filter| union.union_with(filter).unwrap());
        prop_assert_eq!(union.blocks().as_flattened(), expected);
        prop_assert_eq!(union.keys_inserted(), keys.iter().sum::<usize>() as u64);
        prop_assert_eq!(union.params().probes(), probes);
    }
}

#[test]
fn strangers_are_refused_and_change_nothing() {
    let (mut filter, _) = filled(40, 6, 1);
    let before = filter.clone();
    let blocks = filled(41, 6, 2).0;
    let probes = filled(40, 7, 2).0;
    let seeded = {
        let params = Sizing::BitsPerKey(10.0).params(2_040).unwrap();
        BloomFilter::with_params(params, KeyHash::Xxh3 { seed: 9 }).unwrap()
    };
    let of = |key_hash| BloomFilter::pass_all(key_hash).to_filter().unwrap();
    let seeded_pass_all = of(KeyHash::Xxh3 { seed: 9 });
    let tagged = of(KeyHash::Caller { tag: 0 });
    let (empty, all) = (empty(3, 6), pass_all());
    let (left, right) = (KeyHash::default(), KeyHash::Xxh3 { seed: 9 });
    let caller = KeyHash::Caller { tag: 0 };
    let shape_mismatch = |other: &BloomFilter| {
        let (left, right) = (before.params(), other.params());
        MergeError::ShapeMismatch { left, right }
    };
    for (other, expected) in [
        (&blocks, shape_mismatch(&blocks)),
        (&probes, shape_mismatch(&probes)),
        (&seeded, MergeError::HashMismatch { left, right }),
        (&seeded_pass_all, MergeError::HashMismatch { left, right }),
        (&tagged, MergeError::HashMismatch { left, right: caller }),
        // An empty filter of another shape is an error too, and no filter becomes pass-all.
        (&empty, shape_mismatch(&empty)),
        (&all, MergeError::PassAll),
    ] {
        assert_eq!(filter.union_with(other), Err(expected));
        assert_eq!((&filter, filter.to_bytes()), (&before, before.to_bytes()));
    }
    // A pass-all filter too keeps to its hash.
    let mut all = all;
    for (other, right) in [(&seeded, right), (&seeded_pass_all, right), (&tagged, caller)] {
        assert_eq!(all.union_with(other), Err(MergeError::HashMismatch { left, right }));
        assert_eq!(all, pass_all());
    }
}

/// An empty receiver must not take the shape of the other filter: that once replaced 1,954 blocks
/// by one.
#[test]
fn a_receiver_keeps_its_shape() {
    let (other, _) = filled(1, 6, 1);
    let mut receiver = empty(1_954, 6);
    let error = receiver.union_with(&other);
    let (left, right) = (receiver.params(), other.params());
    assert_eq!(error, Err(MergeError::ShapeMismatch { left, right }));
    assert_eq!(receiver, empty(1_954, 6));
}

/// Merging into a pass-all filter loses nothing and counts the keys.
#[test]
fn a_pass_all_filter_takes_any_of_its_hash_and_stays_as_it_is() {
    for other in [filled(40, 6, 1).0, empty(3, 9)] {
        let mut all = recounted(&pass_all(), 77);
        all.union_with(&other).unwrap();
        all.union_with(&other.view()).unwrap();
        all.union_with(&pass_all()).unwrap();
        let keys = 77 + 2 * other.keys_inserted();
        assert_eq!(all, recounted(&pass_all(), keys));
        assert_eq!(BloomFilter::from_bytes_any_hash(&all.to_bytes()).unwrap(), all);
    }
}

#[test]
fn a_union_is_the_same_in_every_order() {
    let [a, b, c] = [1, 2, 3].map(|seed| filled(40, 6, seed).0);
    let mut unions = Vec::new();
    for order in
        [[&a, &b, &c], [&a, &c, &b], [&b, &a, &c], [&b, &c, &a], [&c, &a, &b], [&c, &b, &a]]
    {
        let mut union = order[0].clone();
        order[1..].iter().for_each(|other| union.union_with(*other).unwrap());
        unions.push(union);
    }
    assert!(unions.iter().all(|union| *union == unions[0]));
}

#[test]
fn many_counts_saturate() {
    let (filter, _) = filled(3, 6, 1);
    let many = recounted(&filter, u64::MAX - 5);
    let mut union = filter;
    union.union_with(&many).unwrap();
    union.union_with(&many).unwrap();
    assert_eq!(union.keys_inserted(), u64::MAX);
}

/// Filters of keys and filters of prefixes, or of prefixes by different rules, are not merged, and
/// nothing changes.
#[test]
fn filters_that_hold_something_else_are_refused_and_change_nothing() {
    // All have the same shape.
    let options = FilterOptions::new(Sizing::MaxBytes(64 + 64 * 8)).with_probes(6);
    let built = |options: &FilterOptions| {
        let mut builder = options.builder();
        builder.extend((0..200_u32).map(|key| format!("t{:03}/{key}", key % 100))).unwrap();
        builder.finish().unwrap()
    };
    let rule = PrefixExtractor::fixed;
    let filters = [
        built(&options),
        built(&options.clone().with_prefixes(rule(4))),
        built(&options.clone().with_only_prefixes(rule(4))),
        built(&options.clone().with_prefixes(rule(3))),
    ];
    assert!(filters.iter().all(|filter| filter.blocks().len() == 8));
    for (i, left) in filters.iter().enumerate() {
        for (j, right) in filters.iter().enumerate() {
            let contents: [FilterContents; 2] = [left, right].map(|side| side.contents());
            let mut merged = left.clone();
            if i == j {
                merged.union_with(right).unwrap();
                assert_eq!(merged.contents(), contents[0]);
                assert_eq!(merged.blocks(), left.blocks());
                continue;
            }
            let expected = MergeError::ContentsMismatch { left: contents[0], right: contents[1] };
            assert_eq!(merged.union_with(right), Err(expected));
            assert_eq!((&merged, merged.to_bytes()), (left, left.to_bytes()));
        }
    }
}
