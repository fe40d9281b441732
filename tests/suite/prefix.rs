//! Prefixes: compares the rules with simple readings of their documentation, and filters of
//! prefixes with the inserted keys. Lookups of other contents than were inserted return "maybe".

use std::collections::BTreeSet;

use crate::common::{Random, kernels};
use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    AtomicBloomFilter, Bitmask, Block, BloomFilter, FilterContents, FilterOptions, FormatError,
    KeyError, KeyHash, MergeError, PrefixExtractor, Sizing,
};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// The first byte minus 97 is the length of the following bytes, which belong to the prefix.
fn counted(bytes: &[u8]) -> Option<usize> {
    let length = 1 + usize::from(bytes.first()?.checked_sub(b'a')?);
    (length <= bytes.len()).then_some(length)
}

fn extractors() -> Vec<PrefixExtractor> {
    vec![
        PrefixExtractor::fixed(0),
        PrefixExtractor::fixed(1),
        PrefixExtractor::fixed(3),
        PrefixExtractor::capped(0),
        PrefixExtractor::capped(2),
        PrefixExtractor::capped(4),
        PrefixExtractor::delimiter(b'/', 0),
        PrefixExtractor::delimiter(b'/', 1),
        PrefixExtractor::delimiter(b'/', 2),
        PrefixExtractor::custom("counted", counted, counted),
        PrefixExtractor::custom("odd lengths", |_| Some(usize::MAX), |_| Some(usize::MAX)),
    ]
}

/// Few letters and short keys, so that keys share prefixes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'c'), Just(b'/')], 0..7)
}

fn options() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(10.0))
}

/// Filters of prefixes by this rule, with and without whole keys.
fn with_prefixes(options: FilterOptions, extractor: &PrefixExtractor, only: bool) -> FilterOptions {
    match only {
        true => options.with_only_prefixes(extractor.clone()),
        false => options.with_prefixes(extractor.clone()),
    }
}

fn build<K: AsRef<[u8]>>(
    options: &FilterOptions,
    keys: impl IntoIterator<Item = K>,
) -> BloomFilter {
    let mut builder = options.builder();
    builder.extend(keys).unwrap();
    builder.finish().unwrap()
}

proptest! {
    /// Catches a rule whose two functions disagree, which would make a scan "absent" by mistake.
    #[test]
    fn keys_of_a_scan_have_the_prefix_of_the_scan(key in key(), cut in 0_usize..7) {
        let start = &key[..cut.min(key.len())];
        for extractor in extractors() {
            if let Some(prefix) = extractor.scan_prefix(start) {
                prop_assert_eq!(extractor.prefix(&key), Some(prefix), "{}", extractor);
                prop_assert!(start.starts_with(prefix));
            }
            if let Some(prefix) = extractor.prefix(&key) {
                prop_assert!(key.starts_with(prefix));
            }
        }
    }

    #[test]
    fn no_scan_that_would_find_a_key_is_ruled_out(
        keys in proptest::collection::btree_set(key(), 0..40),
        only in any::<bool>(),
        seed in any::<u64>(),
    ) {
        for extractor in extractors() {
            let options = options().with_key_hash(KeyHash::Xxh3 { seed });
            let mut builder = with_prefixes(options, &extractor, only).builder();
            builder.extend(&keys).unwrap();
            let added = added(&keys, &extractor, only);
            prop_assert_eq!(builder.len(), added);
            let stored = builder.finish_verified().unwrap().to_bytes();
            let filter = BloomFilter::from_bytes_any_hash(&stored).unwrap();
            prop_assert_eq!(filter.keys_inserted(), added);
            for key in &keys {
                prop_assert!(filter.contains(key));
                for cut in 0..=key.len() {
                    prop_assert!(filter.contains_prefix(&extractor, &key[..cut]), "{}", extractor);
                }
            }
        }
    }
}

proptest! {
    /// The same for an engine that extracts prefixes itself.
    #[test]
    fn prefixes_that_the_caller_cut_are_added_as_the_builder_would(
        keys in proptest::collection::vec(key(), 0..40),
        only in any::<bool>(),
        seed in any::<u64>(),
    ) {
        for extractor in extractors() {
            let options = options().with_key_hash(KeyHash::Xxh3 { seed });
            let mut one = with_prefixes(options, &extractor, only).builder();
            let mut other = one.clone();
            for (i, key) in keys.iter().enumerate() {
                one.insert(key).unwrap();
                match i % 3 {
                    0 => other.insert(key).unwrap(),
                    _ => other.insert_with_prefix(key, extractor.prefix(key)).unwrap(),
                }
            }
            prop_assert_eq!(other.len(), one.len());
            prop_assert_eq!(other.finish_verified(), one.finish_verified(), "{}", extractor);
        }
    }
}

#[test]
fn a_builder_of_keys_ignores_prefixes_and_cannot_hash_for_the_caller() {
    let mut builder = options().builder();
    builder.insert_with_prefix("abcd/1", Some(b"abcd")).unwrap();
    assert_eq!(builder.len(), 1);
    let filter = builder.finish().unwrap();
    assert_eq!(filter.contents(), FilterContents::WholeKeys);
    assert!(filter.contains("abcd/1") && !filter.contains("abcd"));
    let mut builder = options().with_key_hash(KeyHash::Caller { tag: 5 }).builder();
    let error = Err(KeyError::NoHasher { tag: 5 });
    assert_eq!(builder.insert_with_prefix("abcd/1", Some(b"abcd")), error);
    assert_eq!(builder.insert("abcd/1"), error);
    assert_eq!(builder.extend(["abcd/1", "abcd/2"]), error);
    assert!(builder.is_empty() && builder.finish().unwrap().is_empty());
}

/// A scan would not find a key that was added with another prefix.
#[cfg(debug_assertions)]
#[test]
fn a_prefix_that_the_rule_does_not_cut_is_a_mistake() {
    let rule = PrefixExtractor::fixed(4);
    for prefix in [Some(&b"abc"[..]), Some(b"abcde"), None] {
        let rule = rule.clone();
        let inserted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let mut builder = options().with_prefixes(rule).builder();
            builder.insert_with_prefix("abcd/1", prefix)
        }));
        let message = inserted.unwrap_err();
        let message = message.downcast_ref::<&str>().expect("a text");
        assert!(message.contains("not the one that the options' extractor cuts"), "{message}");
    }
    let mut builder = options().with_prefixes(rule).builder();
    builder.insert_with_prefix("abcd/1", Some(b"abcd")).unwrap();
    builder.insert_with_prefix("abc", None).unwrap();
}

/// The number of additions of a builder for sorted keys, counted in a simple way.
fn added(keys: &BTreeSet<Vec<u8>>, extractor: &PrefixExtractor, only: bool) -> u64 {
    let mut last = None;
    let mut added = 0;
    for key in keys {
        added += u64::from(!only);
        let Some(prefix) = extractor.prefix(key) else { continue };
        let is_there = !only && prefix == key;
        if !is_there && last != Some(prefix) {
            last = Some(prefix);
            added += 1;
        }
    }
    added
}

#[test]
fn the_rules_cut_what_their_table_says() {
    let fixed = PrefixExtractor::fixed(4);
    assert_eq!(fixed.prefix(b"abcde"), Some(&b"abcd"[..]));
    assert_eq!((fixed.prefix(b"abc"), fixed.scan_prefix(b"abc")), (None, None));
    let capped = PrefixExtractor::capped(4);
    assert_eq!(capped.prefix(b"abc"), Some(&b"abc"[..]));
    assert_eq!((capped.prefix(b""), capped.scan_prefix(b"abc")), (Some(&b""[..]), None));
    assert_eq!(capped.scan_prefix(b"abcde"), Some(&b"abcd"[..]));
    let second = PrefixExtractor::delimiter(b'/', 2);
    assert_eq!(second.prefix(b"a//b"), Some(&b"a//"[..]));
    assert_eq!(second.prefix(b"//"), Some(&b"//"[..]));
    assert_eq!((second.prefix(b"a/b"), second.scan_prefix(b"a/b")), (None, None));
    // A rule with a prefix longer than the key uses the whole key, and returns no prefix for a
    // scan.
    let greedy = PrefixExtractor::custom("greedy", |_| Some(9), |_| Some(9));
    assert_eq!((greedy.prefix(b"abc"), greedy.scan_prefix(b"abc")), (Some(&b"abc"[..]), None));
}

#[test]
fn names_are_the_identity_of_rules() {
    let mut ids = BTreeSet::new();
    for extractor in extractors() {
        assert_eq!(extractor.id(), xxh3_64(extractor.name().as_bytes()));
        assert!(ids.insert(extractor.id()), "{extractor} has the name of another");
        match extractor.name().parse::<PrefixExtractor>() {
            Ok(parsed) => assert_eq!(parsed, extractor),
            Err(error) => assert!(extractor.name().starts_with("custom:"), "{error}"),
        }
    }
    for name in [
        "",
        "fixed",
        "fixed:",
        "fixed:-1",
        "fixed:04",
        "delimiter:2F:1",
        "delimiter:2f",
        "custom:x",
    ] {
        let error = name.parse::<PrefixExtractor>().unwrap_err();
        assert_eq!(error.name, name);
    }
    assert!("fixed:99999999999999999999999".parse::<PrefixExtractor>().is_err());
}

#[test]
fn entries_of_a_kind_not_added_answer_maybe() {
    let extractor = PrefixExtractor::fixed(4);
    let keys: Vec<String> = (0..500).map(|i| format!("{:04}/{i}", i % 7)).collect();
    let whole = build(&options(), &keys);
    let both = build(&options().with_prefixes(extractor.clone()), &keys);
    let only = build(&options().with_only_prefixes(extractor.clone()), &keys);
    assert_eq!(whole.contents(), FilterContents::WholeKeys);
    let id = extractor.id();
    assert_eq!(both.contents(), FilterContents::WholeKeysAndPrefixes { extractor: id });
    assert_eq!(only.contents(), FilterContents::Prefixes { extractor: id });

    let others: Vec<String> = (0..5_000).map(|i| format!("{i:04}")).collect();
    let hits = |filter: BloomFilter<&[Block]>| {
        let mut counts = BTreeSet::new();
        let mut hits = Bitmask::new();
        for kernel in kernels() {
            let filter = filter.with_kernel(kernel);
            filter.contains_batch(&others, &mut hits);
            counts.insert(hits.count_hits());
            // Nearly all of these are absent. Two and three keys are looked up one by one.
            for length in [60, 3, 2, 1] {
                let few = &others[100..][..length];
                filter.contains_batch(few, &mut hits);
                let found = few.iter().filter(|key| filter.contains(key)).count();
                assert_eq!(hits.count_hits(), found, "{length} keys");
            }
            let hasher = filter.hasher().unwrap();
            let mut hashes = Vec::new();
            hasher.hash_batch(&others, &mut hashes);
            filter.contains_hashes(&hashes, &mut hits);
            counts.insert(hits.count_hits());
            counts.insert(hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count());
        }
        assert_eq!(counts.len(), 1, "batches and single lookups agree");
        counts.pop_first().unwrap()
    };
    // Seven of the prefixes are present; about one in a hundred others is a false positive.
    assert!((7..200).contains(&hits(both.prefixes(&extractor))));
    assert!((7..200).contains(&hits(only.prefixes(&extractor))));
    assert!(hits(whole.view()) < 200 && hits(both.view()) < 200);
    // Keys in a filter of prefixes, prefixes in a filter of keys, another rule.
    assert_eq!(hits(only.view()), others.len());
    assert_eq!(hits(whole.prefixes(&extractor)), others.len());
    let other = PrefixExtractor::capped(4);
    for filter in [&whole, &both, &only] {
        assert_eq!(hits(filter.prefixes(&other)), others.len());
        assert!(filter.contains_prefix(&other, "9999"));
        // A view for prefixes has the same bits.
        assert_eq!(filter.prefixes(&other).to_bytes(), filter.to_bytes());
    }
    // The answers of a batch of starts equal those one by one.
    let start = |i: usize| format!("{:01$}{2}", i % 30, 1 + i % 5, ["", "/1"][i / 5 % 2]);
    let starts: Vec<String> = (0..300).map(start).collect();
    let mut hits = Bitmask::new();
    for filter in [&whole, &both, &only] {
        for length in [0, 1, 63, 64, 65, 300] {
            filter.contains_prefix_batch(&extractor, &starts[..length], &mut hits);
            assert_eq!(hits.len(), length);
            for (i, start) in starts[..length].iter().enumerate() {
                assert_eq!(hits.get(i), Some(filter.contains_prefix(&extractor, start)));
                assert!(start.len() >= 4 || hits.get(i) == Some(true), "no whole prefix");
            }
        }
    }
    // With caller-supplied hashes, the filter cannot hash a prefix either.
    let caller = BloomFilter::pass_all(KeyHash::Caller { tag: 1 }).to_filter().unwrap();
    assert!(caller.contains_prefix(&extractor, "9999"));
}

/// Scans would not find keys whose prefixes are not inserted.
#[test]
fn keys_cannot_be_added_to_a_filter_that_holds_prefixes() {
    type Insertion = fn(&mut BloomFilter) -> Result<(), KeyError>;
    fn hash(filter: &BloomFilter) -> u64 {
        filter.hasher().unwrap().hash("zzzz/1")
    }
    /// The same with a filter that threads share, which must not lose keys either.
    fn shared(
        filter: &mut BloomFilter,
        add: impl Fn(&AtomicBloomFilter) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        let shared = AtomicBloomFilter::from(filter.clone());
        let result = add(&shared);
        *filter = shared.into_filter();
        result
    }
    let extractor = PrefixExtractor::fixed(4);
    let keys: Vec<String> = (0..1_000).map(|i| format!("{i:04}/{i}")).collect();
    let ways: [Insertion; 8] = [
        |filter| filter.insert("zzzz/1").map(drop),
        |filter| filter.insert_hash(hash(filter)).map(drop),
        |filter| filter.insert_batch(&["zzzz/1"]),
        |filter| filter.insert_hashes(&[hash(filter)]),
        |filter| shared(filter, |shared| shared.insert("zzzz/1").map(drop)),
        |filter| shared(filter, |shared| shared.insert_hash(77).map(drop)),
        |filter| shared(filter, |shared| shared.insert_batch(&["zzzz/1"])),
        |filter| shared(filter, |shared| shared.insert_hashes(&[77])),
    ];
    for only in [false, true] {
        let before = build(&with_prefixes(options(), &extractor, only), &keys);
        let contents = before.contents();
        let mut filter = before.clone();
        for (i, way) in ways.into_iter().enumerate() {
            assert!(!filter.contains_prefix(&extractor, "zzzz"));
            assert_eq!(way(&mut filter), Err(KeyError::NoPrefix { contents }), "way {i}");
            assert_eq!((&filter, filter.contents()), (&before, contents), "way {i}");
            assert!(!filter.is_pass_all());
            assert_eq!(filter.contains("absent"), only, "keys are still distinguished");
            assert!(BloomFilter::from_bytes_any_hash(&filter.to_bytes()).is_ok());
        }
        #[cfg(feature = "rayon")]
        {
            let error = blocked_bloom::BuildError::Key(KeyError::NoPrefix { contents });
            assert_eq!(filter.par_insert_batch(&["zzzz/1"]), Err(error));
            assert_eq!(filter.par_insert_hashes(&[77]), Err(error));
            assert_eq!(filter, before);
        }
        // Nothing was inserted or changed.
        _ = filter.insert_batch::<&str>(&[]);
        _ = filter.insert_hashes(&[]);
        assert_eq!(filter, before);
    }
}

#[test]
fn rules_and_contents_have_a_text() {
    let rule = PrefixExtractor::delimiter(b'/', 2);
    assert_eq!(rule.to_string(), "delimiter:2f:2");
    assert_eq!(rule.to_string().parse(), Ok(rule.clone()));
    assert_ne!(rule, PrefixExtractor::fixed(2));
    let error = "fixed:four".parse::<PrefixExtractor>().unwrap_err();
    assert!(error.to_string().starts_with("unknown prefix rule \"fixed:four\": use fixed:BYTES"));
    for (contents, text) in [
        (FilterContents::WholeKeys, "whole keys"),
        (FilterContents::Prefixes { extractor: 42 }, "prefixes by extractor 000000000000002a"),
        (
            FilterContents::WholeKeysAndPrefixes { extractor: 42 },
            "whole keys and prefixes by extractor 000000000000002a",
        ),
    ] {
        assert_eq!(contents.to_string(), text);
    }
}

#[test]
fn hashes_have_no_prefix() {
    let extractor = PrefixExtractor::fixed(4);
    for only in [false, true] {
        let options = with_prefixes(options(), &extractor, only);
        let contents = options.contents();
        let mut builder = options.builder();
        builder.insert("abcd/1").unwrap();
        let added = builder.len();
        assert_eq!(added, if only { 1 } else { 2 }, "a prefix, and its key");
        for hash in [77, 78] {
            assert_eq!(builder.insert_hash(hash), Err(KeyError::NoPrefix { contents }));
        }
        assert_eq!(builder.len(), added);
        let filter = builder.finish_verified().unwrap();
        assert_eq!(filter, build(&options, ["abcd/1"]));
        let caller = options.with_key_hash(KeyHash::Caller { tag: 5 });
        let mut builder = caller.builder();
        let error = Err(KeyError::NoHasher { tag: 5 });
        assert_eq!(builder.insert("abcd/1"), error);
        assert_eq!(builder.insert_with_prefix("abcd/2", Some(b"abcd")), error);
        assert_eq!(builder.insert_hash(77), Err(KeyError::NoPrefix { contents }));
        assert!(builder.is_empty());
    }
}

/// The bytes of a builder that receives keys, and the same answers by hash, in an opened filter and
/// in place.
#[test]
fn keys_and_prefixes_are_added_by_their_hashes() {
    let extractor = PrefixExtractor::fixed(4);
    let keys: Vec<String> = (0..3_000).map(|i| format!("{:03}/{i}", i / 7)).collect();
    for only in [false, true] {
        for key_hash in [KeyHash::default(), KeyHash::Caller { tag: 5 }] {
            let by_key = with_prefixes(options(), &extractor, only);
            let by_hash = by_key.clone().with_key_hash(key_hash);
            let (mut one, mut two) = (by_key.builder(), by_hash.builder());
            for key in &keys {
                one.insert(key).unwrap();
                let prefix = extractor.prefix(key.as_bytes()).map(xxh3_64);
                two.insert_hash_with_prefix(xxh3_64(key.as_bytes()), prefix);
            }
            // A key without a prefix.
            one.insert("abc").unwrap();
            two.insert_hash_with_prefix(xxh3_64(b"abc"), None);
            assert_eq!(one.len(), two.len());
            let (one, two) = (one.finish().unwrap(), two.finish_verified().unwrap());
            assert_eq!((one.blocks(), one.contents()), (two.blocks(), two.contents()));
            let (bytes, prefixes) = (two.to_bytes(), two.prefixes(&extractor));
            let in_place = |rule: &PrefixExtractor, hash| {
                BloomFilter::contains_prefix_hash_in(&bytes, key_hash, rule, hash)
            };
            for i in 0..1_000 {
                let hash = xxh3_64(format!("{i:03}/").as_bytes());
                assert!(i >= 429 || in_place(&extractor, hash));
                assert_eq!(in_place(&extractor, hash), prefixes.contains_hash(hash));
                assert_eq!(
                    BloomFilter::contains_hash_in(&bytes, key_hash, hash),
                    two.contains_hash(hash)
                );
                // Another rule, another hash, or no prefixes: "maybe".
                assert!(in_place(&PrefixExtractor::capped(4), hash));
                let other = KeyHash::Xxh3 { seed: 1 };
                assert!(BloomFilter::contains_prefix_hash_in(&bytes, other, &extractor, hash));
            }
            assert!((0..1_000_u64).any(|hash| !in_place(&extractor, hash << 32 | hash)));
        }
    }
    // A builder of keys alone ignores the prefix.
    let (mut one, mut two) = (options().builder(), options().builder());
    one.insert_hash(1).unwrap();
    two.insert_hash_with_prefix(1, Some(2));
    let filter = two.finish().unwrap();
    assert_eq!(filter, one.finish().unwrap());
    let (bytes, compact) = (filter.to_bytes(), filter.to_compact_bytes().unwrap());
    let mut long = [&extractor.id().to_le_bytes()[..]; 8].concat();
    long.extend(&compact[64..]);
    for stored in [&bytes[..], &compact, &long, &bytes[..40], &[]] {
        for hash in 0..100 {
            let key_hash = KeyHash::default();
            assert!(BloomFilter::contains_prefix_hash_in(stored, key_hash, &extractor, hash));
        }
    }
}

#[test]
fn limits_and_no_filter_with_prefixes() {
    let extractor = PrefixExtractor::fixed(4);
    let keys: Vec<String> = (0..20_000).map(|i| format!("{:04}/{i}", i / 10)).collect();
    let with_prefixes = options().with_prefixes(extractor.clone());
    let whole = build(&with_prefixes, &keys);
    assert_eq!(whole.keys_inserted(), 22_000);
    let limited = with_prefixes.with_memory_limit(1 << 10).with_expected_items(22_000);
    let mut limited = limited.builder();
    limited.extend(&keys).unwrap();
    assert_eq!(limited.finish_verified().unwrap(), whole);

    let none = FilterOptions::new(Sizing::BitsPerKey(0.0)).with_prefixes(extractor.clone());
    let none = build(&none, &keys);
    assert!(none.is_pass_all() && none.contains_prefix(&extractor, "zzzz"));
    assert_eq!(none.contents(), FilterContents::WholeKeys);
    assert!(BloomFilter::from_bytes_any_hash(&none.to_bytes()).is_ok());
}

#[test]
fn a_batch_adds_the_prefixes_that_single_keys_add() {
    // More keys than are hashed at once.
    let keys: Vec<String> = (0..3_000).map(|i| format!("{:03}/{i}", i / 7)).collect();
    for only in [false, true] {
        for extractor in [PrefixExtractor::fixed(3), PrefixExtractor::capped(2)] {
            let options = with_prefixes(options(), &extractor, only);
            let mut batch = options.builder();
            batch.insert_batch(&keys[..1]).unwrap();
            batch.insert_batch(&keys[1..]).unwrap();
            assert_eq!(batch.finish().unwrap(), build(&options, &keys));
        }
    }
}

#[cfg(feature = "rayon")]
#[test]
fn threads_collect_what_one_would() {
    use rayon::prelude::*;
    let keys: Vec<String> = (0..30_000).map(|i| format!("{:03}", i / 7)).collect();
    for only in [false, true] {
        for extractor in [PrefixExtractor::fixed(2), PrefixExtractor::capped(4)] {
            let options = with_prefixes(options(), &extractor, only);
            let mut many = options.builder();
            let (first, rest) = keys.split_at(9_999);
            many.par_extend(first.par_iter().with_max_len(13)).unwrap();
            many.par_extend(rest.par_iter().with_max_len(1_000)).unwrap();
            let one = build(&options, &keys);
            assert_eq!(many.clone().finish().unwrap(), one);
            assert_eq!(many.par_finish_verified().unwrap(), one);
        }
    }
    let options = options().with_prefixes(PrefixExtractor::fixed(2));
    let mut caller = options.with_key_hash(KeyHash::Caller { tag: 5 }).builder();
    assert_eq!(caller.par_extend(keys.par_iter()), Err(KeyError::NoHasher { tag: 5 }));
    assert!(caller.is_empty());
}

#[test]
fn only_filters_of_the_same_kind_merge() {
    let (four, two) = (PrefixExtractor::fixed(4), PrefixExtractor::fixed(2));
    // Neighbours have different prefixes, so that every kind has as many insertions and blocks.
    let key = |i: u32| format!("{:02}{:02}", i % 100, i / 100);
    let of = |options: &FilterOptions, keys: std::ops::Range<u32>| build(options, keys.map(key));
    let options = FilterOptions::new(Sizing::MaxBytes(64 * 9)).with_probes(6);
    let kinds = [
        options.clone(),
        options.clone().with_prefixes(four.clone()),
        options.clone().with_only_prefixes(four.clone()),
        options.clone().with_prefixes(two),
    ];
    for (i, left) in kinds.iter().enumerate() {
        for (j, right) in kinds.iter().enumerate() {
            let (a, b) = (of(left, 0..300), of(right, 200..500));
            let mut union = a.clone();
            let merged = union.union_with(&b);
            if i == j {
                assert_eq!(merged, Ok(()));
                assert_eq!(union.contents(), a.contents());
                assert!(union.contains_prefix(&four, key(450)));
            } else {
                let (left, right) = (a.contents(), b.contents());
                assert_eq!(merged, Err(MergeError::ContentsMismatch { left, right }));
                assert_eq!(union, a, "unchanged");
            }
            // The same applies to a filter without keys.
            let (empty, mut same) = (of(right, 0..0), a.clone());
            assert!(i == j || same.union_with(&empty).is_err());
            assert_eq!(same, a);
        }
    }
    let filter = of(&options.with_prefixes(four.clone()), 0..30);
    let folded = filter.folded(filter.params().blocks()).unwrap();
    assert_eq!(folded.contents(), filter.contents());
    assert!(folded.contains_prefix(&four, key(12)));
}

/// A filter of prefixes alone may have no bits, if its keys have no prefix. It is not empty.
#[test]
fn no_merge_loses_keys_without_a_prefix() {
    let rule = |bytes| PrefixExtractor::fixed(bytes);
    let without_bits = build(&options().with_only_prefixes(rule(4)), ["ab", "cd"]);
    assert!(without_bits.contains("ab") && !without_bits.is_empty());
    let others = [
        build(&options(), ["ab", "apple"]),
        build::<&str>(&options(), []),
        build(&options().with_prefixes(rule(4)), ["apple"]),
        build(&options().with_only_prefixes(rule(8)), ["wxyz"]),
        build(&options().with_only_prefixes(rule(4)), ["abcdX"]),
    ];
    let is_safe = |merged: &BloomFilter| {
        assert!(merged.contains("ab"), "{merged:?}");
        assert!(merged.contains_prefix(&rule(4), "ab"));
    };
    for other in &others {
        let (mut one, mut two) = (without_bits.clone(), other.clone());
        let results = (one.union_with(other), two.union_with(&without_bits));
        for (result, merged) in [(results.0, &one), (results.1, &two)] {
            if result.is_ok() {
                is_safe(merged);
                let has_wxyz = other.contents().extractor() == Some(rule(8).id());
                assert!(!has_wxyz || merged.contains_prefix(&rule(4), "wxyz"));
            }
        }
    }
}

/// Options are complete before a builder has a key, so no order is wrong: the last rule applies.
#[test]
fn the_last_rule_is_the_rule() {
    let rule = PrefixExtractor::fixed;
    let keys = ["ab12/x", "ab12/y", "cd34/z"];
    for only in [false, true] {
        let expected = with_prefixes(options(), &rule(4), only);
        for options in [
            options(),
            options().with_prefixes(rule(2)),
            options().with_only_prefixes(rule(2)),
            options().with_only_prefixes(rule(99)),
        ] {
            let options = with_prefixes(options, &rule(4), only);
            assert_eq!((options.extractor(), &options), (Some(&rule(4)), &expected));
            let filter = build(&options, keys);
            assert_eq!(filter.contents(), expected.contents());
            for key in keys {
                assert!(filter.contains(key) && filter.contains_prefix(&rule(4), key));
            }
        }
        // A builder keeps its options.
        let builder = expected.builder();
        let changed = expected.clone().with_prefixes(rule(2));
        assert_eq!((builder.options(), builder.options() == &changed), (&expected, false));
    }
}

/// Sets the flags and the hash of the extractor's name, and corrects the checksum.
fn sealed(stored: &[u8], flags: u8, extractor: u64) -> Vec<u8> {
    let mut bytes = stored.to_vec();
    bytes[13] = flags;
    bytes[40..48].copy_from_slice(&extractor.to_le_bytes());
    let sum = xxh3_64(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn headers_that_contradict_themselves_are_refused() {
    let stored = options().builder().finish().unwrap().to_bytes();
    let open = |flags, extractor| {
        let bytes = sealed(&stored, flags, extractor);
        BloomFilter::from_bytes_any_hash(&bytes).map(|filter| filter.contents())
    };
    assert_eq!(open(1, 0), Ok(FilterContents::WholeKeys));
    assert_eq!(open(2, 9), Ok(FilterContents::Prefixes { extractor: 9 }));
    assert_eq!(open(3, 9), Ok(FilterContents::WholeKeysAndPrefixes { extractor: 9 }));
    // The offset of the wrong field, and its value.
    let refused = |flags, extractor| match open(flags, extractor) {
        Err(FormatError::Header(HeaderError::Field { offset, found, .. })) => (offset, found),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(1, 9), (40, 9));
    assert_eq!(refused(1, 9 << 56), (47, 9));
    for flags in [2, 3] {
        assert_eq!(refused(flags, 0), (40, 0));
        let text = "offset 40: extractor 0 (must not be 0 in a filter of prefixes)";
        assert_eq!(open(flags, 0).unwrap_err().to_string(), text);
    }
    for flags in [0, 4, 6, 7, 8, 9, 0x80] {
        assert_eq!(refused(flags, 9), (13, flags.into()));
    }
}

/// Pins the bytes, like `golden`.
#[test]
fn filters_with_prefixes_have_the_golden_bytes() {
    let mut random = Random(7);
    let keys: BTreeSet<String> =
        (0..200).map(|_| format!("{:02}/{}", random.next() % 30, random.next() % 1_000)).collect();
    for (name, only) in [("prefixes", false), ("only-prefixes", true)] {
        let rule = PrefixExtractor::delimiter(b'/', 1);
        let options = options().with_key_hash(KeyHash::Xxh3 { seed: 3 });
        let built = build(&with_prefixes(options, &rule, only), &keys).to_bytes();
        let path = format!("{}/tests/golden/{name}.bloom", env!("CARGO_MANIFEST_DIR"));
        let stored = std::fs::read(&path).unwrap_or_default();
        if built != stored {
            let other = format!("{}/{name}.bloom", env!("CARGO_TARGET_TMPDIR"));
            std::fs::write(&other, &built).unwrap();
            panic!("the bytes differ from the golden: compare {other} with {path}");
        }
        let filter = BloomFilter::from_bytes_any_hash(&stored).unwrap();
        assert!(keys.iter().all(|key| filter.contains_prefix(&rule, key)));
        assert!(!filter.contains_prefix(&rule, "99/"));
    }
}
