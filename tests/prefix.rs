//! Prefixes: the rules against naive readings of what they promise, filters of prefixes against the keys that went in, and
//! "maybe" wherever something else is asked than was added.

mod common;

use std::collections::BTreeSet;

use blocked_bloom::{
    Added, Bitmask, BloomFilter, BloomFilterBuilder, BloomFilterRef, BuildError, FormatError,
    KeyHash, MergeError, PrefixExtractor, Sizing,
};
use common::{Random, kernels};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// The first byte, less 97, is the length of what follows and belongs to the prefix.
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

/// Few letters and short keys, so that prefixes are shared.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'c'), Just(b'/')], 0..7)
}

fn sizing() -> Sizing {
    Sizing::BitsPerKey(10.0)
}

proptest! {
    /// What a wrong "absent" about a scan would come from: a rule whose two halves disagree.
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
            let builder = BloomFilterBuilder::with_key_hash(sizing(), KeyHash::Xxh3 { seed });
            let mut builder = match only {
                true => builder.only_prefixes(extractor.clone()),
                false => builder.prefixes(extractor.clone()),
            };
            builder.extend(&keys);
            let added = added(&keys, &extractor, only);
            prop_assert_eq!(builder.len(), added);
            let stored = builder.finish_verified().unwrap().to_bytes();
            let filter = BloomFilterRef::from_bytes(&stored).unwrap();
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
    /// What a wrong "absent" about a scan would come from in an engine that cuts prefixes itself.
    #[test]
    fn prefixes_that_the_caller_cut_are_added_as_the_builder_would(
        keys in proptest::collection::vec(key(), 0..40),
        only in any::<bool>(),
        seed in any::<u64>(),
    ) {
        for extractor in extractors() {
            let builder = BloomFilterBuilder::with_key_hash(sizing(), KeyHash::Xxh3 { seed });
            let mut one = match only {
                true => builder.only_prefixes(extractor.clone()),
                false => builder.prefixes(extractor.clone()),
            };
            let mut other = one.clone();
            for (i, key) in keys.iter().enumerate() {
                one.insert(key);
                match i % 3 {
                    0 => other.insert(key),
                    _ => other.insert_with_prefix(key, extractor.prefix(key)),
                }
            }
            prop_assert_eq!(other.len(), one.len());
            prop_assert_eq!(other.finish_verified(), one.finish_verified(), "{}", extractor);
        }
    }
}

#[test]
fn a_builder_of_keys_ignores_prefixes_and_cannot_hash_for_the_caller() {
    let mut builder = BloomFilterBuilder::new(sizing());
    builder.insert_with_prefix("abcd/1", Some(b"abcd"));
    assert_eq!(builder.len(), 1);
    let filter = builder.finish().unwrap();
    assert_eq!(filter.view().added(), Added::WholeKeys);
    assert!(filter.contains("abcd/1") && !filter.contains("abcd"));
    let caller = KeyHash::Caller { tag: 5 };
    let mut builder = BloomFilterBuilder::with_key_hash(sizing(), caller);
    builder.insert_with_prefix("abcd/1", Some(b"abcd"));
    assert_eq!(builder.finish().unwrap_err(), BuildError::KeyWithoutHash { tag: 5 });
}

/// What a builder adds for sorted keys, told naively.
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
    // A rule that wants more than there is takes a whole key, and no scan.
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
fn what_was_not_added_is_maybe() {
    let extractor = PrefixExtractor::fixed(4);
    let keys: Vec<String> = (0..500).map(|i| format!("{:04}/{i}", i % 7)).collect();
    let build = |builder: BloomFilterBuilder| {
        let mut builder = builder;
        builder.extend(&keys);
        builder.finish().unwrap()
    };
    let builder = || BloomFilterBuilder::new(sizing());
    let whole = build(builder());
    let both = build(builder().prefixes(extractor.clone()));
    let only = build(builder().only_prefixes(extractor.clone()));
    assert_eq!(whole.view().added(), Added::WholeKeys);
    let id = extractor.id();
    assert_eq!(both.view().added(), Added::WholeKeysAndPrefixes { extractor: id });
    assert_eq!(only.view().added(), Added::Prefixes { extractor: id });

    let others: Vec<String> = (0..5_000).map(|i| format!("{i:04}")).collect();
    let hits = |filter: BloomFilterRef<'_>| {
        let mut counts = BTreeSet::new();
        let mut hits = Bitmask::new();
        for kernel in kernels() {
            let filter = filter.with_kernel(kernel);
            filter.contains_batch(&others, &mut hits);
            counts.insert(hits.count_hits());
            filter.contains_batch(&others[..60], &mut hits);
            let few = others[..60].iter().filter(|key| filter.contains(key)).count();
            assert_eq!(hits.count_hits(), few);
            let hasher = filter.key_hash().hasher().unwrap();
            let mut hashes = Vec::new();
            hasher.hash_batch(&others, &mut hashes);
            filter.contains_hashes(&hashes, &mut hits);
            counts.insert(hits.count_hits());
            counts.insert(hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count());
        }
        assert_eq!(counts.len(), 1, "batches and single questions agree");
        counts.pop_first().unwrap()
    };
    // Seven of the prefixes are there; about one in a hundred others is a false positive.
    assert!((7..200).contains(&hits(both.view().prefixes(&extractor))));
    assert!((7..200).contains(&hits(only.view().prefixes(&extractor))));
    assert!(hits(whole.view()) < 200 && hits(both.view()) < 200);
    // Keys of a filter of prefixes, prefixes of a filter of keys, another rule.
    assert_eq!(hits(only.view()), others.len());
    assert_eq!(hits(whole.view().prefixes(&extractor)), others.len());
    let other = PrefixExtractor::capped(4);
    for filter in [&whole, &both, &only] {
        assert_eq!(hits(filter.view().prefixes(&other)), others.len());
        assert!(filter.contains_prefix(&other, "9999"));
        // A view of prefixes is of the same filter.
        assert_eq!(filter.view().prefixes(&other).to_bytes(), filter.to_bytes());
    }
    // A batch of starts is answered as one by one.
    let start = |i: usize| format!("{:01$}{2}", i % 30, 1 + i % 5, ["", "/1"][i / 5 % 2]);
    let starts: Vec<String> = (0..300).map(start).collect();
    let mut hits = Bitmask::new();
    for filter in [&whole, &both, &only] {
        for length in [0, 1, 63, 64, 65, 300] {
            filter.view().contains_prefix_batch(&extractor, &starts[..length], &mut hits);
            assert_eq!(hits.len(), length);
            for (i, start) in starts[..length].iter().enumerate() {
                assert_eq!(hits.get(i), Some(filter.contains_prefix(&extractor, start)));
                assert!(start.len() >= 4 || hits.get(i) == Some(true), "no whole prefix");
            }
        }
    }
    // The caller's hash: the filter cannot hash a prefix either.
    let caller = BloomFilter::pass_all(KeyHash::Caller { tag: 1 }).unwrap();
    assert!(caller.contains_prefix(&extractor, "9999"));
}

#[test]
fn a_filter_with_prefixes_forgets_them_when_keys_are_added() {
    let extractor = PrefixExtractor::fixed(4);
    let build = |only| {
        let builder = BloomFilterBuilder::new(sizing());
        let mut builder = match only {
            true => builder.only_prefixes(extractor.clone()),
            false => builder.prefixes(extractor.clone()),
        };
        builder.extend((0..1_000).map(|i| format!("{i:04}/{i}")));
        builder.finish().unwrap()
    };
    let ways: [fn(&mut BloomFilter); 5] = [
        |filter| _ = filter.insert("zzzz/1"),
        |filter| _ = filter.insert_hash(filter.view().key_hash().hasher().unwrap().hash("zzzz/1")),
        |filter| filter.insert_batch(&["zzzz/1"]),
        |filter| {
            filter.insert_hashes(&[filter.view().key_hash().hasher().unwrap().hash("zzzz/1")]);
        },
        |filter| {
            let shared = blocked_bloom::AtomicBloomFilter::from(filter.clone());
            shared.insert("zzzz/1");
            *filter = shared.into_filter();
        },
    ];
    for (i, way) in ways.into_iter().enumerate() {
        for only in [false, true] {
            let mut filter = build(only);
            assert!(!filter.contains_prefix(&extractor, "zzzz"));
            way(&mut filter);
            assert!(filter.contains_prefix(&extractor, "zzzz"), "way {i}");
            assert!(filter.contains("zzzz/1"));
            assert_eq!(filter.view().is_pass_all(), only);
            assert_eq!(filter.contains("absent"), only, "keys are still told apart");
            assert!(BloomFilterRef::from_bytes(&filter.to_bytes()).is_ok());
        }
    }
    // Nothing added, nothing forgotten.
    let mut filter = build(true);
    filter.insert_batch::<&str>(&[]);
    filter.insert_hashes(&[]);
    assert_eq!(filter, build(true));
}

#[test]
fn rules_and_what_was_added_have_a_text() {
    let rule = PrefixExtractor::delimiter(b'/', 2);
    assert_eq!(rule.to_string(), "delimiter:2f:2");
    assert_eq!(rule.to_string().parse(), Ok(rule.clone()));
    assert_ne!(rule, PrefixExtractor::fixed(2));
    let error = "fixed:four".parse::<PrefixExtractor>().unwrap_err();
    assert!(error.to_string().starts_with("no prefix rule \"fixed:four\": give fixed:BYTES"));
    for (added, text) in [
        (Added::WholeKeys, "whole keys"),
        (Added::Prefixes { extractor: 42 }, "prefixes by extractor 000000000000002a"),
        (
            Added::WholeKeysAndPrefixes { extractor: 42 },
            "whole keys and prefixes by extractor 000000000000002a",
        ),
    ] {
        assert_eq!(added.to_string(), text);
    }
}

#[test]
fn hashes_have_no_prefix() {
    let extractor = PrefixExtractor::fixed(4);
    let mut builder = BloomFilterBuilder::new(sizing()).prefixes(extractor.clone());
    builder.insert("abcd/1");
    builder.insert_hash(77);
    builder.insert_hash(78);
    assert_eq!(builder.len(), 4, "a key, its prefix and two hashes");
    assert_eq!(builder.finish().unwrap_err(), BuildError::HashWithoutPrefix { hash: 77 });
    let caller = KeyHash::Caller { tag: 5 };
    let mut builder = BloomFilterBuilder::with_key_hash(sizing(), caller).prefixes(extractor);
    builder.insert("abcd/1");
    builder.insert_with_prefix("abcd/2", Some(b"abcd"));
    assert_eq!(builder.len(), 2);
    assert_eq!(builder.finish().unwrap_err(), BuildError::KeyWithoutHash { tag: 5 });
}

#[test]
fn limits_and_no_filter_with_prefixes() {
    let extractor = PrefixExtractor::fixed(4);
    let keys: Vec<String> = (0..20_000).map(|i| format!("{:04}/{i}", i / 10)).collect();
    let mut whole = BloomFilterBuilder::new(sizing()).prefixes(extractor.clone());
    whole.extend(&keys);
    let whole = whole.finish().unwrap();
    assert_eq!(whole.view().keys_inserted(), 22_000);
    let limited = BloomFilterBuilder::new(sizing()).prefixes(extractor.clone());
    let mut limited = limited.memory_limit(1 << 10).expected_items(22_000);
    limited.extend(&keys);
    assert_eq!(limited.finish_verified().unwrap(), whole);

    let mut none = BloomFilterBuilder::new(Sizing::BitsPerKey(0.0)).prefixes(extractor.clone());
    none.extend(&keys);
    let none = none.finish().unwrap();
    assert!(none.view().is_pass_all() && none.contains_prefix(&extractor, "zzzz"));
    assert_eq!(none.view().added(), Added::WholeKeys);
    assert!(BloomFilterRef::from_bytes(&none.to_bytes()).is_ok());
}

#[cfg(feature = "rayon")]
#[test]
fn threads_collect_what_one_would() {
    use rayon::prelude::*;
    let keys: Vec<String> = (0..30_000).map(|i| format!("{:03}", i / 7)).collect();
    for only in [false, true] {
        let builder = |extractor| match only {
            true => BloomFilterBuilder::new(sizing()).only_prefixes(extractor),
            false => BloomFilterBuilder::new(sizing()).prefixes(extractor),
        };
        for extractor in [PrefixExtractor::fixed(2), PrefixExtractor::capped(4)] {
            let mut one = builder(extractor.clone());
            one.extend(&keys);
            let mut many = builder(extractor);
            let (first, rest) = keys.split_at(9_999);
            many.par_extend(first.par_iter().with_max_len(13));
            many.par_extend(rest.par_iter().with_max_len(1_000));
            assert_eq!(many.finish().unwrap(), one.finish().unwrap());
        }
    }
    let mut hashes = BloomFilterBuilder::new(sizing()).prefixes(PrefixExtractor::fixed(2));
    hashes.par_extend_hashes((0..100_u64).into_par_iter());
    assert!(matches!(hashes.finish(), Err(BuildError::HashWithoutPrefix { .. })));
}

#[test]
fn only_filters_of_the_same_kind_merge() {
    let (four, two) = (PrefixExtractor::fixed(4), PrefixExtractor::fixed(2));
    // Neighbours have different prefixes, so that every kind has as many additions and as many blocks.
    let key = |i: u32| format!("{:02}{:02}", i % 100, i / 100);
    let build = |builder: BloomFilterBuilder, keys: std::ops::Range<u32>| {
        let mut builder = builder;
        builder.extend(keys.map(key));
        builder.finish().unwrap()
    };
    let builder = || BloomFilterBuilder::new(Sizing::MaxBytes(64 * 9)).probes(6);
    let kinds = [
        builder(),
        builder().prefixes(four.clone()),
        builder().only_prefixes(four.clone()),
        builder().prefixes(two),
    ];
    for (i, left) in kinds.iter().enumerate() {
        for (j, right) in kinds.iter().enumerate() {
            let (a, b) = (build(left.clone(), 0..300), build(right.clone(), 200..500));
            let (mut union, mut common) = (a.clone(), a.clone());
            let (united, intersected) = (union.union_with(&b), common.intersect_with(&b));
            if i == j {
                assert_eq!((united, intersected), (Ok(()), Ok(())));
                assert_eq!(union.view().added(), a.view().added());
                assert!(
                    union.contains_prefix(&four, key(450))
                        && common.contains_prefix(&four, key(250))
                );
            } else {
                let (left, right) = (a.view().added(), b.view().added());
                let error = MergeError::AddedMismatch { left, right };
                assert_eq!((united, intersected), (Err(error), Err(error)));
                assert_eq!((&union, &common), (&a, &a), "unchanged");
            }
            // A filter without a key adds nothing, or is replaced; one of prefixes alone only among its like.
            let mut empty = build(right.clone(), 0..0);
            let mut same = a.clone();
            if empty.view().added().whole_keys() || i == j {
                same.union_with(&empty).unwrap();
                assert_eq!(same, a);
                empty.union_with(&a).unwrap();
                assert_eq!(empty.view().added(), a.view().added());
                assert!(empty.contains_prefix(&four, key(123)));
            } else {
                assert!(same.union_with(&empty).is_err() && empty.union_with(&a).is_err());
            }
        }
    }
    let mut folded = build(builder().prefixes(four.clone()), 0..30);
    let before = folded.view().added();
    folded.fold(folded.params().blocks()).unwrap();
    assert_eq!(folded.view().added(), before);
    assert!(folded.contains_prefix(&four, key(12)));
}

/// A filter of prefixes alone may have no bit, of keys that have no prefix: it is not empty.
#[test]
fn no_merge_loses_keys_without_a_prefix() {
    let rule = |bytes| PrefixExtractor::fixed(bytes);
    let build = |builder: BloomFilterBuilder, keys: &[&str]| {
        let mut builder = builder;
        builder.extend(keys);
        builder.finish().unwrap()
    };
    let builder = || BloomFilterBuilder::new(sizing());
    let without_bits = build(builder().only_prefixes(rule(4)), &["ab", "cd"]);
    assert!(without_bits.contains("ab") && !without_bits.view().is_empty());
    let others = [
        build(builder(), &["ab", "apple"]),
        build(builder(), &[]),
        build(builder().prefixes(rule(4)), &["apple"]),
        build(builder().only_prefixes(rule(8)), &["wxyz"]),
        build(builder().only_prefixes(rule(4)), &["abcdX"]),
    ];
    let is_safe = |merged: &BloomFilter| {
        assert!(merged.contains("ab"), "{merged:?}");
        assert!(merged.contains_prefix(&rule(4), "ab"));
    };
    for other in &others {
        let (mut one, mut two) = (without_bits.clone(), other.clone());
        let united = (one.union_with(other), two.union_with(&without_bits));
        for (result, merged) in [(united.0, &one), (united.1, &two)] {
            if result.is_ok() {
                is_safe(merged);
                let has_wxyz = other.view().added().extractor() == Some(rule(8).id());
                assert!(!has_wxyz || merged.contains_prefix(&rule(4), "wxyz"));
            }
        }
        let mut all = without_bits.clone();
        if all.union_all([other, &without_bits]).is_ok() {
            is_safe(&all);
        }
        let (mut one, mut two) = (without_bits.clone(), other.clone());
        if other.contains("ab") {
            if one.intersect_with(other).is_ok() {
                is_safe(&one);
            }
            if two.intersect_with(&without_bits).is_ok() {
                is_safe(&two);
            }
        }
    }
}

/// The prefixes of keys that came before, and the keys of a builder of prefixes alone, would be missing.
#[test]
fn prefixes_cannot_be_asked_for_after_a_key() {
    let rule = |bytes| PrefixExtractor::fixed(bytes);
    let after: [fn(BloomFilterBuilder) -> BloomFilterBuilder; 2] = [
        |builder| builder.prefixes(PrefixExtractor::fixed(4)),
        |builder| builder.only_prefixes(PrefixExtractor::fixed(4)),
    ];
    for change in after {
        let mut builders = [
            BloomFilterBuilder::new(sizing()),
            BloomFilterBuilder::new(sizing()).prefixes(rule(2)),
            BloomFilterBuilder::new(sizing()).only_prefixes(rule(2)),
            // Of which nothing is added for the key.
            BloomFilterBuilder::new(sizing()).only_prefixes(rule(99)),
            BloomFilterBuilder::new(Sizing::BitsPerKey(0.0)),
        ];
        for builder in &mut builders {
            let unused = change(builder.clone());
            assert!(unused.finish().is_ok(), "no key has come");
            builder.insert("ab12/x");
            let mut late = change(builder.clone());
            late.insert("cd34/y");
            assert_eq!(late.finish_verified().unwrap_err(), BuildError::PrefixesAfterKeys);
        }
        let mut hashes = BloomFilterBuilder::new(sizing());
        hashes.insert_hash(5);
        assert_eq!(change(hashes).finish().unwrap_err(), BuildError::PrefixesAfterKeys);
        let mut cut = BloomFilterBuilder::new(sizing());
        cut.insert_with_prefix("ab12/x", Some(b"ab12"));
        let (filter, error) = change(cut).finish_verified_or_pass_all().unwrap();
        assert!(filter.view().is_pass_all() && error == Some(BuildError::PrefixesAfterKeys));
    }
}

/// Sets the flags and the hash of the extractor's name, and makes the checksum fit.
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
    let stored = BloomFilterBuilder::new(sizing()).finish().unwrap().to_bytes();
    let open = |flags, extractor| {
        let bytes = sealed(&stored, flags, extractor);
        BloomFilterRef::from_bytes(&bytes).map(|filter| filter.added())
    };
    assert_eq!(open(1, 0), Ok(Added::WholeKeys));
    assert_eq!(open(2, 9), Ok(Added::Prefixes { extractor: 9 }));
    assert_eq!(open(3, 9), Ok(Added::WholeKeysAndPrefixes { extractor: 9 }));
    assert_eq!(open(1, 9), Err(FormatError::NotZero { offset: 40, found: 9 }));
    assert_eq!(open(1, 9 << 56), Err(FormatError::NotZero { offset: 47, found: 9 }));
    for flags in [2, 3] {
        let error = open(flags, 0).unwrap_err();
        assert_eq!((error, error.offset()), (FormatError::NoExtractor, 40));
    }
    for flags in [0, 4, 6, 7, 8, 9, 0x80] {
        assert_eq!(open(flags, 9), Err(FormatError::Flags { found: flags }));
    }
}

/// Pins the bytes, as `tests/golden.rs` does.
#[test]
fn filters_with_prefixes_have_the_golden_bytes() {
    let mut random = Random(7);
    let keys: BTreeSet<String> =
        (0..200).map(|_| format!("{:02}/{}", random.next() % 30, random.next() % 1_000)).collect();
    for (name, only) in [("prefixes", false), ("only-prefixes", true)] {
        let rule = PrefixExtractor::delimiter(b'/', 1);
        let builder = BloomFilterBuilder::with_key_hash(sizing(), KeyHash::Xxh3 { seed: 3 });
        let mut builder = match only {
            true => builder.only_prefixes(rule.clone()),
            false => builder.prefixes(rule.clone()),
        };
        builder.extend(&keys);
        let built = builder.finish().unwrap().to_bytes();
        let path = format!("{}/tests/golden/{name}.bloom", env!("CARGO_MANIFEST_DIR"));
        let stored = std::fs::read(&path).unwrap_or_default();
        if built != stored {
            let other = format!("{}/{name}.bloom", env!("CARGO_TARGET_TMPDIR"));
            std::fs::write(&other, &built).unwrap();
            panic!("the bytes differ from the golden: compare {other} with {path}");
        }
        let filter = BloomFilterRef::from_bytes(&stored).unwrap();
        assert!(keys.iter().all(|key| filter.contains_prefix(&rule, key)));
        assert!(!filter.contains_prefix(&rule, "99/"));
    }
}
