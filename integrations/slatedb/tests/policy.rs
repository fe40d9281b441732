//! The policy without the engine: names, sizes, answers, and "maybe" wherever bytes are damaged or
//! something else is looked up than was added.

mod common;

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use blocked_bloom::{BloomFilter, FilterContents, KeyHash, PrefixExtractor as Core, Sizing};
use blocked_bloom_range::RangeOptions;
use blocked_bloom_slatedb::{BlockedBloomPolicy, RangePolicy};
use common::{First, LastSlash, bytes, entry, first_two_bytes, ours, sizing, theirs};
use proptest::prelude::*;
use slatedb::{Filter, FilterPolicy, FilterQuery, PrefixExtractor, PrefixTarget};

fn build(policy: &dyn FilterPolicy, keys: &[Vec<u8>]) -> Arc<dyn Filter> {
    let mut builder = policy.builder();
    for key in keys {
        builder.add_entry(&entry(key));
    }
    builder.build()
}

fn encoded(filter: &dyn Filter) -> Vec<u8> {
    let mut encoded = Vec::new();
    filter.encode(&mut encoded);
    encoded
}

fn keys(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("{:02}/{i:06}", i % 7).into_bytes()).collect()
}

fn contains(filter: &dyn Filter, key: impl AsRef<[u8]>) -> bool {
    filter.might_match(&FilterQuery::point(bytes(key)))
}

fn scans(filter: &dyn Filter, start: impl AsRef<[u8]>) -> bool {
    filter.might_match(&FilterQuery::prefix(bytes(start)))
}

/// A wrong "absent" after an upgrade of the core would come from bytes that changed under the same
/// name.
#[test]
fn names_tell_what_the_bytes_say() {
    let [whole, both, only] = ours();
    assert_eq!(whole.name(), "blocked-bloom:v1:scheme1:xxh3-0:keys");
    assert_eq!(both.name(), "blocked-bloom:v1:scheme1:xxh3-0:keys+prefixes=first-2");
    assert_eq!(only.name(), "blocked-bloom:v1:scheme1:xxh3-0:prefixes=first-2");
    let rate = BlockedBloomPolicy::new(Sizing::FalsePositiveRate(0.001)).unwrap();
    assert_eq!(rate.name(), whole.name(), "the sizing may change");
    let id = Core::custom("first-2", |_| None, |_| None).id();
    let all_contents = [
        FilterContents::WholeKeys,
        FilterContents::WholeKeysAndPrefixes { extractor: id },
        FilterContents::Prefixes { extractor: id },
    ];
    for (policy, contents) in [whole, both, only].iter().zip(all_contents) {
        let stored = encoded(&*build(policy, &keys(100)));
        let filter = BloomFilter::from_bytes_any_hash(&stored).unwrap();
        assert_eq!(filter.contents(), contents);
        assert_eq!(filter.key_hash(), KeyHash::Xxh3 { seed: 0 });
        assert_eq!((&stored[8..10], stored[10]), (&1_u16.to_le_bytes()[..], 1), "version, scheme");
    }
}

#[test]
fn keys_and_prefixes_are_told_apart_before_and_after_storing() {
    let keys = keys(3_000);
    for (number, policy) in ours().iter().enumerate() {
        let built = build(policy, &keys);
        let stored = encoded(&*built);
        let read = policy.decode(&stored);
        for filter in [&built, &read, &read.clamp_allocated_size()] {
            assert_eq!((filter.size(), encoded(&**filter)), (stored.len(), stored.clone()));
            assert!(keys.iter().all(|key| contains(&**filter, key)));
            let absent = (0..3_000).filter(|i| contains(&**filter, format!("03/x{i}"))).count();
            // With prefixes alone, the filter contains "03", so every key with that prefix may be
            // present.
            assert_eq!(absent < 100, number != 2, "{absent}");
            assert!(number != 2 || !contains(&**filter, "99/000001"));
            assert!(number != 2 || contains(&**filter, "9"), "keys without a prefix");
            assert!(scans(&**filter, "03") && scans(&**filter, "03/00") && scans(&**filter, "0"));
            assert_eq!(scans(&**filter, "99"), number == 0);
            let bounds = (Bound::Included(bytes("a")), Bound::Excluded(bytes("b")));
            assert!(filter.might_match(&FilterQuery::range(bounds.0, bounds.1)));
        }
        assert_eq!(policy.supports_prefix_queries(), number > 0);
        assert!(!policy.supports_range_queries());
        assert_eq!(policy.unusable_filters(), 0);
    }
}

/// A rule without an answer for scans still serves lookups; one that wants more bytes than there
/// are takes the whole key.
#[test]
fn odd_extractors_are_never_wrong() {
    struct Greedy;
    impl PrefixExtractor for Greedy {
        fn name(&self) -> &str {
            "greedy"
        }
        fn prefix_len(&self, _: &PrefixTarget) -> Option<usize> {
            Some(usize::MAX)
        }
    }
    let rules: [Arc<dyn PrefixExtractor>; 4] = [
        Arc::new(LastSlash),
        Arc::new(Greedy),
        Arc::new(First(0, "nothing")),
        Arc::new(First(99, "never")),
    ];
    for rule in rules {
        let policy = || BlockedBloomPolicy::new(sizing()).unwrap();
        for policy in [policy().prefixes(rule.clone()), policy().only_prefixes(rule.clone())] {
            let keys = keys(500);
            let filter = policy.decode(&encoded(&*build(&policy, &keys)));
            for key in &keys {
                assert!(contains(&*filter, key), "{}", policy.name());
                assert!(
                    (0..=key.len()).all(|end| scans(&*filter, &key[..end])),
                    "{}",
                    policy.name()
                );
            }
        }
    }
    let policy = BlockedBloomPolicy::new(sizing()).unwrap().only_prefixes(Arc::new(LastSlash));
    let filter = build(&policy, &keys(500));
    assert!(
        contains(&*filter, "03/anything")
            && !contains(&*filter, "99/anything")
            && contains(&*filter, "none")
    );
}

#[test]
fn damage_of_any_byte_is_maybe_and_counted() {
    let keys = keys(200);
    for policy in ours() {
        let stored = encoded(&*build(&policy, &keys));
        let mut unusable = 0;
        for place in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[place] ^= 1 << (place % 8);
            let filter = policy.decode(&damaged);
            assert!(
                keys.iter().all(|key| contains(&*filter, key)) && contains(&*filter, "99/absent")
            );
            assert!(scans(&*filter, "99"));
            // What takes its place in a cache on disk can be read.
            let replacement = encoded(&*filter);
            assert_eq!(filter.size(), replacement.len());
            unusable += 1;
            assert_eq!(policy.unusable_filters(), unusable);
            assert!(contains(&*policy.decode(&replacement), "99/absent"));
            assert_eq!(policy.unusable_filters(), unusable);
        }
        for end in 0..stored.len() {
            assert!(contains(&*policy.decode(&stored[..end]), "99/absent"));
        }
        assert!(contains(&*policy.decode(&[&stored[..], &[0]].concat()), "99/absent"));
        assert_eq!(policy.unusable_filters(), unusable + stored.len() as u64 + 1);
    }
}

#[test]
fn filters_of_other_policies_are_maybe() {
    let keys = keys(200);
    let [whole, both, only] = ours();
    let others: [&dyn FilterPolicy; 4] = [&whole, &both, &only, &*theirs()];
    let another =
        BlockedBloomPolicy::new(sizing()).unwrap().prefixes(Arc::new(First(3, "first-3")));
    for other in others {
        // The engine would not hand them over: their names differ.
        assert_ne!(other.name(), another.name());
        let filter = another.decode(&encoded(&*build(other, &keys)));
        assert!(keys.iter().all(|key| contains(&*filter, key) && scans(&*filter, &key[..4])));
        assert!(scans(&*filter, "zzz"));
    }
}

#[test]
fn sizes_are_estimated_within_a_block_and_no_filter_is_none() {
    let sizings = [
        Sizing::BitsPerKey(10.0),
        Sizing::BitsPerKey(0.5),
        Sizing::FalsePositiveRate(0.01),
        Sizing::MaxBytes(4_096),
        Sizing::MaxBytes(128),
    ];
    for sizing in sizings {
        let policy = BlockedBloomPolicy::new(sizing).unwrap();
        for count in [0, 1, 50, 1_000, 20_000] {
            let (size, estimate) =
                (build(&policy, &keys(count)).size(), policy.estimate_size(count as usize));
            let slack = 64 + size / 50;
            assert!(size.abs_diff(estimate) <= slack, "{sizing}, {count} keys: {size}, {estimate}");
        }
        assert!(policy.estimate_size(usize::MAX) > 0);
    }
    let none = BlockedBloomPolicy::new(Sizing::BitsPerKey(0.0)).unwrap();
    let filter = build(&none, &keys(10));
    assert_eq!((filter.size(), none.estimate_size(10)), (128, 128));
    assert!(contains(&*filter, "anything"));
    assert_eq!(none.unusable_filters(), 0, "it was wanted");
    for sizing in
        [Sizing::BitsPerKey(f64::NAN), Sizing::FalsePositiveRate(0.0), Sizing::MaxBytes(1)]
    {
        assert!(BlockedBloomPolicy::new(sizing).is_err());
    }
}

#[test]
fn a_builder_gives_its_keys_once() {
    let [whole, ..] = ours();
    let mut builder = whole.builder();
    builder.add_entry(&entry(b"apple"));
    assert!(!contains(&*builder.build(), "pear"));
    builder.add_entry(&entry(b"pear"));
    // The keys of the first are not in it.
    assert!(contains(&*builder.build(), "apple") && contains(&*builder.build(), "anything"));
    let empty = whole.builder().build();
    assert!(!contains(&*empty, "apple"), "a table without keys");
}

type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

fn contains_range(filter: &dyn Filter, (lower, upper): Bounds<'_>) -> bool {
    filter.might_match(&FilterQuery::range(lower.map(bytes), upper.map(bytes)))
}

/// All strings of up to three letters, sorted, among them runs of 0xff and prefixes of others.
fn short_strings() -> Vec<Vec<u8>> {
    let mut all = vec![vec![]];
    for from in [0, 1, 4] {
        for i in from..all.len() {
            all.extend([0, b'/', 255].map(|letter| [&all[i][..], &[letter]].concat()));
        }
    }
    all.sort();
    all
}

fn all_ranges(strings: &[Vec<u8>]) -> Vec<Bounds<'_>> {
    let both = strings.iter().flat_map(|s| [Bound::Included(&s[..]), Bound::Excluded(&s[..])]);
    let bounds: Vec<Bound<&[u8]>> = both.chain([Bound::Unbounded]).collect();
    bounds.iter().flat_map(|&lower| bounds.iter().map(move |&upper| (lower, upper))).collect()
}

/// The policies that answer ranges, and one without prefixes, which answers "maybe".
fn range_policies() -> Vec<Box<dyn FilterPolicy>> {
    let mut policies: Vec<Box<dyn FilterPolicy>> =
        ours().into_iter().map(|policy| Box::new(policy.with_ranges()) as _).collect();
    let last_slash = BlockedBloomPolicy::new(sizing()).unwrap().prefixes(Arc::new(LastSlash));
    policies.push(Box::new(last_slash.with_ranges()));
    policies.push(Box::new(RangePolicy::new(RangeOptions::new(20.0)).unwrap()));
    policies
}

#[test]
fn no_range_that_contains_a_key_is_ruled_out() {
    let strings = short_strings();
    assert_eq!(strings.len(), 40);
    let ranges = all_ranges(&strings);
    for policy in range_policies() {
        let mut ruled_out = 0;
        for step in 5..9 {
            let keys: Vec<Vec<u8>> = strings.iter().skip(step / 2).step_by(step).cloned().collect();
            let filter = policy.decode(&encoded(&*build(&*policy, &keys)));
            for &range in &ranges {
                let has_key =
                    keys.iter().any(|key| RangeBounds::<[u8]>::contains(&range, &key[..]));
                let found = contains_range(&*filter, range);
                assert!(found || !has_key, "{}: {range:?} of {keys:?}", policy.name());
                ruled_out += usize::from(!found);
            }
            assert!(keys.iter().all(|key| contains(&*filter, key)));
            assert!(keys.iter().all(|key| (0..=key.len()).all(|end| scans(&*filter, &key[..end]))));
        }
        let can_answer = !policy.name().ends_with(":keys");
        assert_eq!(ruled_out > 1_000, can_answer, "{}: {ruled_out}", policy.name());
    }
}

#[test]
fn range_filters_rule_out_scans_of_prefixes() {
    let policy = RangePolicy::new(RangeOptions::new(20.0)).unwrap();
    assert!(policy.supports_prefix_queries());
    let filter = build(&policy, &[b"aa".to_vec(), b"c\xff".to_vec(), b"\xff\xff".to_vec()]);
    for start in [&b""[..], b"a", b"aa", b"c", b"c\xff", b"\xff", b"\xff\xff"] {
        assert!(scans(&*filter, start), "{start:?}");
    }
    for start in [&b"b"[..], b"ab", b"b\xff", b"c\xfe", b"\xfe", b"\xff\xfe"] {
        assert!(!scans(&*filter, start), "{start:?}");
    }
}

/// Damaged filters, filters of keys that are not sorted, and those that a builder returns later.
#[test]
fn unusable_filters_rule_out_no_range() {
    let strings = short_strings();
    let ranges = all_ranges(&strings);
    let all_maybe = |filter: &dyn Filter| ranges.iter().all(|&range| contains_range(filter, range));
    for policy in range_policies() {
        let mut builder = policy.builder();
        builder.add_entry(&entry(b"/"));
        let stored = encoded(&*builder.build());
        assert!(all_maybe(&*policy.decode(&stored[1..])), "{}", policy.name());
        assert!(all_maybe(&*builder.build()), "{}", policy.name());
    }
    let policy = RangePolicy::new(RangeOptions::new(20.0)).unwrap();
    let filter = build(&policy, &[b"b".to_vec(), b"a".to_vec()]);
    assert!(all_maybe(&*filter) && contains(&*filter, "a"));
    assert_eq!(policy.unusable_filters(), 1);
}

proptest! {
    #[test]
    fn garbage_is_maybe_or_a_filter(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        for policy in ours() {
            let filter = policy.decode(&data);
            prop_assert!(contains(&*filter, &data) && scans(&*filter, &data));
            prop_assert_eq!(policy.unusable_filters(), 1);
        }
    }

    #[test]
    fn no_key_and_no_scan_that_finds_one_is_ruled_out(
        mut keys in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..6), 0..50),
        sorted in any::<bool>(),
    ) {
        if sorted {
            keys.sort();
        }
        for policy in ours() {
            let filter = policy.decode(&encoded(&*build(&policy, &keys)));
            for key in &keys {
                prop_assert!(contains(&*filter, key));
                for end in 0..=key.len() {
                    prop_assert!(scans(&*filter, &key[..end]));
                }
            }
        }
    }
}

#[test]
fn policies_are_shared_by_threads() {
    fn shared<T: Send + Sync + std::fmt::Debug + 'static>(policy: T) -> String {
        format!("{policy:?}")
    }
    let [_, both, _] = ours();
    assert!(shared(both.prefixes(first_two_bytes())).contains("first-2"));
}
