//! Unions and intersections, of two and of many: against the bits one by one, in every order, and what is rejected.

use crate::common::{Random, empty, filled};
use blocked_bloom::{
    BloomFilter, BloomFilterBytes, BloomFilterRef, FilterContents, FilterOptions, KeyHash,
    MergeError, PrefixExtractor, Sizing,
};
use proptest::prelude::*;

fn pass_all() -> BloomFilter {
    BloomFilter::pass_all(KeyHash::default()).unwrap()
}

/// A filter with this many keys of a sequence of its own.
fn with_keys(blocks: u32, probes: u32, seed: u64, keys: usize) -> BloomFilter {
    let mut filter = empty(blocks, probes);
    filter.insert_hashes(&Random(seed).hashes(keys)).unwrap();
    filter
}

/// The filter with another number of keys inserted in its header than were.
fn recounted(filter: &BloomFilter, keys: u64) -> BloomFilter {
    let mut stored = filter.to_bytes();
    stored[32..40].copy_from_slice(&keys.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&stored[..56]);
    stored[56..64].copy_from_slice(&sum.to_le_bytes());
    BloomFilterRef::from_bytes(&stored).unwrap().to_filter().unwrap()
}

#[test]
fn a_union_holds_both_sides() {
    let (mut left, left_keys) = filled(40, 6, 1);
    let (right, right_keys) = filled(40, 6, 2);
    let mut direct = left.clone();
    direct.insert_hashes(&right_keys).unwrap();
    left.union_with(&right).unwrap();
    assert_eq!(left, direct);
    assert_eq!(left.view().keys_inserted(), (left_keys.len() + right_keys.len()) as u64);

    // The same over stored bytes.
    let stored = BloomFilterBytes::from_bytes(right.to_bytes()).unwrap();
    let mut other = filled(40, 6, 1).0;
    other.union_with(&stored).unwrap();
    assert_eq!(other, direct);
}

#[test]
fn an_intersection_holds_what_both_sides_hold_and_no_more_than_either() {
    let keys = Random(5).hashes(3_000);
    let (mut left, mut right) = (empty(40, 6), empty(40, 6));
    left.insert_hashes(&keys[..2_000]).unwrap();
    right.insert_hashes(&keys[1_000..]).unwrap();
    right.insert_hashes(&keys[2_900..]).unwrap();
    let mut both = left.clone();
    both.intersect_with(&right).unwrap();
    assert!(keys[1_000..2_000].iter().all(|&key| both.contains_hash(key)));
    for hash in Random(6).hashes(100_000).into_iter().chain(keys.iter().copied()) {
        assert!(!both.contains_hash(hash) || left.contains_hash(hash) && right.contains_hash(hash));
    }
    let rate = both.estimated_false_positive_rate();
    assert!(rate <= left.estimated_false_positive_rate());
    assert!(rate <= right.estimated_false_positive_rate());
    // Not a filter of the common keys: chance bits of the others remain.
    let mut built = empty(40, 6);
    built.insert_hashes(&keys[1_000..2_000]).unwrap();
    assert!(both.fill_ratio() > built.fill_ratio());
    assert_eq!(both.view().keys_inserted(), 2_000);

    let stored = BloomFilterBytes::from_bytes(left.to_bytes()).unwrap();
    right.intersect_with(&stored).unwrap();
    assert_eq!(right, both);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Bytes and counts against a model that knows neither blocks nor ranges. Catches a range that starts at the wrong block or
    /// ends early, an input left out, and a count that is not the sum or the minimum.
    #[test]
    fn many_at_once_are_their_bits_one_by_one(
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
        let of_bytes = |merge: fn(u8, u8) -> u8| -> Vec<u8> {
            let bytes = |filter: &BloomFilter| filter.view().blocks().as_flattened().to_vec();
            let merged = |a: Vec<u8>, b: Vec<u8>| a.iter().zip(b).map(|(&a, b)| merge(a, b)).collect();
            filters.iter().map(bytes).reduce(merged).unwrap()
        };
        let (mut union, mut common) = (filters[0].clone(), filters[0].clone());
        union.union_all(&filters[1..]).unwrap();
        filters[1..].iter().for_each(|other| common.intersect_with(other).unwrap());
        prop_assert_eq!(union.view().blocks().as_flattened(), of_bytes(|a, b| a | b));
        prop_assert_eq!(common.view().blocks().as_flattened(), of_bytes(|a, b| a & b));
        prop_assert_eq!(union.view().keys_inserted(), keys.iter().sum::<usize>() as u64);
        prop_assert_eq!(common.view().keys_inserted(), *keys.iter().min().unwrap() as u64);
        prop_assert_eq!(union.params().probes(), probes);
        prop_assert_eq!(common.params().probes(), probes);
    }
}

/// Every way to put these filters in a row.
fn orders<T: Copy>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for i in 0..items.len() {
        let mut rest = items.to_vec();
        let first = rest.remove(i);
        all.extend(orders(&rest).into_iter().map(|order| [vec![first], order].concat()));
    }
    all
}

/// With filters without bits and pass-all ones of other shapes among them. Catches a shape taken from the wrong input, inputs
/// that are skipped after the one whose shape was taken, and counts that depend on the way.
#[test]
fn many_at_once_equal_one_by_one_in_every_order() {
    let [a, b, c] = [1, 2, 3].map(|seed| filled(40, 6, seed).0);
    let one = filled(1, 6, 4).0;
    let (small, large, all) = (empty(3, 9), empty(70, 6), recounted(&pass_all(), 77));
    for filters in [
        vec![&a, &b, &c],
        vec![&a, &b, &small],
        vec![&a, &small, &large],
        vec![&a, &b, &large, &small],
        vec![&a, &b, &all],
        vec![&a, &all, &all],
        vec![&one, &all, &small],
        vec![&all, &all],
    ] {
        let mut results = Vec::new();
        for order in orders(&filters) {
            let (mut union, mut one_by_one) = (order[0].clone(), order[0].clone());
            union.union_all(order[1..].iter().copied()).unwrap();
            for other in &order[1..] {
                one_by_one.union_with(*other).unwrap();
            }
            assert_eq!(union, one_by_one, "{order:?}");
            results.push(union);
        }
        assert!(results.iter().all(|union| *union == results[0]), "{filters:?}");
        assert_eq!(results[0].view().is_pass_all(), filters.contains(&&all));
    }
    // The shape of an empty intersection is that of the first that is not pass-all, so only its bits do not depend on the order.
    for filters in [
        vec![&a, &b, &c],
        vec![&a, &b, &all],
        vec![&a, &all, &all],
        vec![&a, &small, &all],
        vec![&a, &small, &large],
        vec![&one, &all],
        vec![&one, &small, &all],
        vec![&all, &all],
    ] {
        let mut results = Vec::new();
        for order in orders(&filters) {
            let mut common = order[0].clone();
            order[1..].iter().for_each(|other| common.intersect_with(*other).unwrap());
            results.push(common);
        }
        let nothing = filters.iter().any(|filter| filter.view().is_empty());
        for common in &results {
            assert_eq!(common.view().is_empty(), nothing);
            assert_eq!(common.view().keys_inserted(), results[0].view().keys_inserted());
            assert!(nothing || common == &results[0], "{filters:?}");
            assert_eq!(BloomFilterRef::from_bytes(&common.to_bytes()), Ok(common.view()));
        }
    }
}

#[test]
fn nothing_to_merge_changes_nothing() {
    for filter in [filled(40, 6, 1).0, empty(3, 9), pass_all()] {
        let mut same = filter.clone();
        same.union_all::<&BloomFilter>([]).unwrap();
        assert_eq!(same, filter);
    }
}

type Two = fn(&mut BloomFilter, BloomFilterRef<'_>) -> Result<(), MergeError>;
type Many = fn(&mut BloomFilter, Vec<BloomFilterRef<'_>>) -> Result<(), MergeError>;

/// Every way of merging two filters and many.
#[cfg(not(feature = "rayon"))]
const WAYS: [(Two, Option<Many>); 2] = [UNION, INTERSECTION];
#[cfg(feature = "rayon")]
const WAYS: [(Two, Option<Many>); 3] = [
    UNION,
    INTERSECTION,
    (
        |filter, other| filter.par_union_with(other),
        Some(|filter, others| filter.par_union_all(others)),
    ),
];
const UNION: (Two, Option<Many>) =
    (|filter, other| filter.union_with(other), Some(|filter, others| filter.union_all(others)));
const INTERSECTION: (Two, Option<Many>) = (|filter, other| filter.intersect_with(other), None);

#[test]
fn strangers_are_refused_and_change_nothing() {
    let (mut filter, _) = filled(40, 6, 1);
    let before = filter.clone();
    let blocks = filled(41, 6, 2).0;
    let probes = filled(40, 7, 2).0;
    let seeded = {
        let params = Sizing::BitsPerKey(10.0).params(2_040).unwrap();
        BloomFilter::new(params, KeyHash::Xxh3 { seed: 9 }).unwrap()
    };
    let seeded_pass_all = BloomFilter::pass_all(KeyHash::Xxh3 { seed: 9 }).unwrap();
    let tagged = BloomFilter::pass_all(KeyHash::Caller { tag: 0 }).unwrap();
    let (left, right) = (KeyHash::default(), KeyHash::Xxh3 { seed: 9 });
    let caller = KeyHash::Caller { tag: 0 };
    for (other, expected) in [
        (&blocks, MergeError::BlocksMismatch { left: 40, right: 41 }),
        (&probes, MergeError::ProbesMismatch { left: 6, right: 7 }),
        (&seeded, MergeError::HashMismatch { left, right }),
        (&seeded_pass_all, MergeError::HashMismatch { left, right }),
        (&tagged, MergeError::HashMismatch { left, right: caller }),
    ] {
        for (two, many) in WAYS {
            assert_eq!(two(&mut filter, other.view()), Err(expected.clone()));
            assert_eq!((&filter, filter.to_bytes()), (&before, before.to_bytes()));
            let Some(many) = many else { continue };
            // The last of several: those before it must not have been merged already.
            let good = filled(40, 6, 8).0;
            let error = many(&mut filter, vec![good.view(), good.view(), other.view()]);
            assert_eq!(parts(error.unwrap_err()), (None, 2, expected.clone()));
            assert_eq!((&filter, filter.to_bytes()), (&before, before.to_bytes()));
        }
    }
}

/// Of many inputs: which two disagree, and in what.
fn parts(error: MergeError) -> (Option<usize>, usize, MergeError) {
    match error {
        MergeError::Input { left, right, error } => (left, right, *error),
        error => panic!("of no input: {error}"),
    }
}

/// An empty or pass-all receiver takes the shape of an input, which is then the left side.
#[test]
fn errors_among_many_name_the_input_on_either_side() {
    let (a, b) = (filled(40, 6, 1).0, filled(41, 6, 2).0);
    let small = empty(3, 9);
    let expected = MergeError::BlocksMismatch { left: 40, right: 41 };
    let mut receiver = small.clone();
    let error = receiver.union_all([&empty(70, 6), &a, &small, &a, &b]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "inputs 1 and 4: cannot merge a filter of 40 blocks with one of 41: size both for the same keys"
    );
    assert_eq!(parts(error), (Some(1), 4, expected.clone()));
    assert_eq!(receiver, small);
    // An empty receiver of the shape of one of them sides with neither.
    let mut receiver = empty(41, 6);
    let error = receiver.union_all([&a, &b]).unwrap_err();
    assert_eq!(parts(error), (Some(0), 1, expected.clone()));
}

/// Whatever makes the shapes irrelevant does so wherever it stands.
#[test]
fn one_pass_all_or_one_empty_filter_excuses_all_shapes() {
    let (a, b, c) = (filled(40, 6, 1).0, filled(41, 6, 2).0, filled(40, 7, 3).0);
    let (small, all) = (empty(3, 9), pass_all());
    for order in orders(&[&a, &b, &c, &all]) {
        let mut union = order[0].clone();
        union.union_all(order[1..].iter().copied()).unwrap();
        assert_eq!(union.to_bytes().len(), 128);
        assert!(union.view().is_pass_all());
        assert_eq!(union.view().keys_inserted(), (40 + 41 + 40) * 51);
        assert_eq!(BloomFilterRef::from_bytes(&union.to_bytes()), Ok(union.view()));
    }
    for order in orders(&[&a, &small, &all]) {
        let mut common = order[0].clone();
        order[1..].iter().for_each(|other| common.intersect_with(*other).unwrap());
        assert!(common.view().is_empty() && !common.view().is_pass_all());
        assert_eq!(common.view().keys_inserted(), 0);
    }
    // Without such a filter the same are rejected.
    assert!(a.clone().union_all([&b, &small]).is_err());
    assert!(a.clone().intersect_with(&b).is_err());
}

#[test]
fn an_empty_or_pass_all_filter_gives_way_to_the_other() {
    let (filter, _) = filled(40, 6, 1);
    let mut nothing = empty(3, 9);
    nothing.union_with(&filter).unwrap();
    assert_eq!(nothing, filter);
    let mut same = filter.clone();
    same.union_with(&empty(3, 9)).unwrap();
    assert_eq!(same, filter);
    let mut nothing = empty(3, 9);
    nothing.union_with(&empty(5, 2)).unwrap();
    assert_eq!(nothing, empty(3, 9));

    let mut all = recounted(&pass_all(), 3);
    all.intersect_with(&filter).unwrap();
    assert_eq!(all, filter);
    let mut same = filter.clone();
    same.intersect_with(&recounted(&pass_all(), 3)).unwrap();
    assert_eq!(same, filter);
}

/// A filter that says it holds no key but has bits, as a crafted file may, must not be taken for empty.
#[test]
fn emptiness_is_judged_by_bits_not_by_the_count() {
    let (mut filter, keys) = filled(3, 6, 1);
    let crafted = recounted(&filter, 0);
    filter.clear();
    assert!(filter.view().is_empty());
    assert_eq!(crafted.view().keys_inserted(), 0);
    let (mut other, _) = filled(40, 6, 2);
    assert!(other.union_with(&crafted).is_err());
    assert!(other.intersect_with(&crafted).is_err());
    filter.union_with(&crafted).unwrap();
    assert!(keys.iter().all(|&key| filter.contains_hash(key)));
}

#[test]
fn many_counts_saturate() {
    let (filter, _) = filled(3, 6, 1);
    let many = recounted(&filter, u64::MAX - 5);
    let mut union = filter;
    union.union_all([&many, &many]).unwrap();
    assert_eq!(union.view().keys_inserted(), u64::MAX);
}

/// What holds keys and what holds prefixes, or prefixes by another rule, is not merged, and nothing changes.
#[test]
fn filters_that_hold_something_else_are_refused_and_change_nothing() {
    // Of one shape, whatever they hold.
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
    assert!(filters.iter().all(|filter| filter.view().blocks().len() == 8));
    for (i, left) in filters.iter().enumerate() {
        for (j, right) in filters.iter().enumerate() {
            let contents: [FilterContents; 2] = [left, right].map(|side| side.view().contents());
            for (two, many) in WAYS {
                let mut merged = left.clone();
                if i == j {
                    two(&mut merged, right.view()).unwrap();
                    assert_eq!(merged.view().contents(), contents[0]);
                    assert_eq!(merged.view().blocks(), left.view().blocks());
                    continue;
                }
                let expected =
                    MergeError::ContentsMismatch { left: contents[0], right: contents[1] };
                assert_eq!(two(&mut merged, right.view()), Err(expected.clone()));
                if let Some(many) = many {
                    let error = many(&mut merged, vec![left.view(), right.view()]).unwrap_err();
                    assert_eq!(parts(error), (None, 1, expected));
                }
                assert_eq!((&merged, merged.to_bytes()), (left, left.to_bytes()));
            }
        }
    }
}

/// Large enough for the parallel path, with a last range that is short. Also in a pool of one thread, which must not wait for
/// itself, and from within a task of the pool.
#[cfg(feature = "rayon")]
#[test]
fn every_number_of_threads_merges_the_same_bytes() {
    // Two of them are over 32 MiB.
    let blocks = (17 << 20) / 64 + 77;
    let filters: Vec<BloomFilter> =
        (0..4).map(|seed| with_keys(blocks, 6, seed, 900_000 + seed as usize)).collect();
    let merge = || {
        let mut union = filters[0].clone();
        union.par_union_all(&filters[1..]).unwrap();
        union
    };
    let one_by_one = || {
        let mut union = filters[0].clone();
        filters[1..].iter().for_each(|filter| union.par_union_with(filter).unwrap());
        union
    };
    let (mut union, mut at_once) = (filters[0].clone(), filters[0].clone());
    filters[1..].iter().for_each(|filter| union.union_with(filter).unwrap());
    at_once.union_all(&filters[1..]).unwrap();
    assert!(at_once == union);
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (from_outside, twice) = pool.install(|| (merge(), rayon::join(merge, one_by_one)));
        assert!(
            [from_outside, twice.0, twice.1].iter().all(|same| *same == union),
            "{threads} threads"
        );
    }
}
