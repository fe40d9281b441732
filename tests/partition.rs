//! Partitioned filters: never a wrong "absent", whatever the cuts, the batches and the loader; bytes as the document says.

mod common;
#[path = "common/partitions.rs"]
mod partitions;

use std::collections::BTreeSet;
use std::convert::Infallible;

use blocked_bloom::{
    Added, Bitmask, BloomFilterBuilder, BloomFilterRef, FormatError, KeyHash, PartitionBuildError,
    PartitionError, PartitionIndex, PartitionLocation, PartitionedFilterBuilder, PrefixExtractor,
    Sizing,
};
use common::Random;
use partitions::{Built, numbers, separate, template};
use proptest::prelude::*;

type Key = Vec<u8>;

/// Few letters, so that keys share prefixes and many are the beginning of others; zero and 255 are the ends of the order.
fn key() -> impl Strategy<Value = Key> {
    proptest::collection::vec(prop_oneof![Just(0), Just(b'/'), Just(b'a'), Just(255_u8)], 0..6)
}

fn extractors() -> Vec<PrefixExtractor> {
    let tenant = |bytes: &[u8]| bytes.first().map(|&n| 1 + usize::from(n) % 3);
    let tenant = move |bytes: &[u8]| tenant(bytes).filter(|&n| n <= bytes.len());
    vec![
        PrefixExtractor::fixed(0),
        PrefixExtractor::fixed(2),
        PrefixExtractor::fixed(4),
        PrefixExtractor::capped(3),
        PrefixExtractor::delimiter(b'/', 1),
        PrefixExtractor::delimiter(b'/', 2),
        PrefixExtractor::custom("tenant", tenant, tenant),
    ]
}

/// Filters that hold few keys a partition, so that there are many cuts: at 100 bits a key, 5 fill a block.
fn small_partitions() -> BloomFilterBuilder {
    BloomFilterBuilder::new(Sizing::BitsPerKey(100.0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_key_is_lost_and_batches_answer_as_single_keys_do(
        keys in proptest::collection::btree_set(key(), 0..120),
        asked in proptest::collection::vec(key(), 0..150),
        seed in any::<u64>(),
    ) {
        let template = BloomFilterBuilder::with_key_hash(
            Sizing::BitsPerKey(50.0),
            KeyHash::Xxh3 { seed },
        );
        let built = Built::new(template, 128, &keys);
        let index = built.open();
        prop_assert_eq!(index.partitions(), built.partitions.len());
        prop_assert_eq!(index.keys_inserted(), keys.len() as u64);
        prop_assert_eq!(index.key_hash(), KeyHash::Xxh3 { seed });
        let asked: Vec<Key> = keys.iter().cloned().chain(asked).collect();
        let mut hits = Bitmask::new();
        let mut loaded = Vec::new();
        let failures = index.contains_batch(&asked, &mut hits, |at| {
            loaded.push(at.partition);
            built.load()(at)
        });
        prop_assert!(failures.is_empty());
        prop_assert!(loaded.is_sorted_by(|one, next| one < next), "each once: {:?}", loaded);
        let mut words = vec![u64::MAX; asked.len().div_ceil(64)];
        index.contains_batch_into(&asked, &mut words, built.load()).unwrap();
        prop_assert_eq!(&words[..], hits.words());
        for (i, key) in asked.iter().enumerate() {
            prop_assert_eq!(hits.get(i), Some(built.contains(key)));
            prop_assert!(!keys.contains(key) || hits.get(i) == Some(true));
        }
    }

    #[test]
    fn separators_are_shortest_and_each_key_is_in_its_partition(
        keys in proptest::collection::btree_set(key(), 1..120),
    ) {
        let built = Built::new(small_partitions(), 128, &keys);
        let index = built.open();
        let opened = &index;
        let of_partition = |partition| {
            keys.iter().filter(move |key| opened.partition_of(key) == Some(partition))
        };
        let mut kept = 0;
        for partition in 0..index.partitions() {
            // The filter has exactly the keys that the index sends to it.
            let filter = BloomFilterRef::from_bytes(&built.partitions[partition]).unwrap();
            prop_assert_eq!(filter.keys_inserted(), of_partition(partition).count() as u64);
            prop_assert!(of_partition(partition).all(|key| filter.contains(key)));
            kept += filter.keys_inserted();
            if partition == 0 { continue }
            let (low, high) = (of_partition(partition - 1).max(), of_partition(partition).min());
            let separator = index.separator(partition).unwrap();
            prop_assert!(low.unwrap().as_slice() < separator);
            prop_assert!(separator <= high.unwrap().as_slice());
            let shorter = &separator[..separator.len() - 1];
            prop_assert!(shorter <= low.unwrap().as_slice());
        }
        prop_assert_eq!(kept, keys.len() as u64);
    }

    /// What a missing neighbour's prefix at a cut would break: each scan and each place to go on from, against the keys.
    #[test]
    fn no_scan_that_would_find_a_key_is_ruled_out(
        keys in proptest::collection::btree_set(key(), 0..60),
        starts in proptest::collection::vec(key(), 0..20),
        only in any::<bool>(),
        separators in 0..3,
    ) {
        for extractor in extractors() {
            let template = match only {
                true => small_partitions().only_prefixes(extractor.clone()),
                false => small_partitions().prefixes(extractor.clone()),
            };
            let mut built = Built::new(template, 128, &keys);
            // The shortest separators, those right behind the last key of a partition, and the first keys.
            match separators {
                0 => {}
                1 => built.index = separate(&built.index, &keys, |last, _| [last, &[0]].concat()),
                _ => built.index = separate(&built.index, &keys, |_, first| first.to_vec()),
            }
            let beginnings = keys.iter().flat_map(|key| (0..=key.len()).map(|cut| key[..cut].to_vec()));
            let starts: BTreeSet<Key> = beginnings.chain(starts.iter().cloned()).collect();
            for start in &starts {
                prop_assert!(built.contains(start) || !keys.contains(start));
                let Some(prefix) = extractor.scan_prefix(start) else { continue };
                let has_prefix = |key: &&Key| extractor.prefix(key) == Some(prefix);
                let forward = keys.range(start.clone()..).any(|key| has_prefix(&key));
                let back = keys.range(..=start.clone()).any(|key| has_prefix(&key));
                let found = built.contains_prefix(&extractor, start);
                prop_assert!(found || !(forward || back), "{}: {:?}", extractor, start);
            }
        }
    }
}

/// The cuts themselves, with any separator that may be between two partitions: a scan begins in one and finds its first key in the
/// other.
#[test]
fn scans_that_begin_at_a_cut_find_what_is_on_the_other_side() {
    let tenant = PrefixExtractor::fixed(1);
    // Each key is a tenant of its own.
    let keys: BTreeSet<Key> = (1..200).map(|tenant| vec![tenant, 100]).collect();
    let built = Built::new(small_partitions().prefixes(tenant.clone()), 128, &keys);
    assert!(built.open().partitions() > 50);
    for (forward, index) in [
        (true, separate(&built.index, &keys, |_, first| first.to_vec())),
        (false, separate(&built.index, &keys, |last, _| [last, &[0]].concat())),
    ] {
        let index = PartitionIndex::from_bytes(index).unwrap();
        let mut elsewhere = 0;
        for key in &keys {
            let start = [key[0], if forward { 0 } else { 255 }];
            assert_eq!(index.contains_prefix(&tenant, start, built.load()), (true, None));
            elsewhere += usize::from(index.partition_of(start) != index.partition_of(key));
        }
        assert_eq!(elsewhere, index.partitions() - 1);
        let absent = |&other: &u8| !index.contains_prefix(&tenant, [other, 0], built.load()).0;
        assert!((200..=255).filter(absent).count() > 40);
    }
}

/// The index is most of what a builder of many partitions holds.
#[test]
fn a_builder_tells_the_memory_of_its_index() {
    let sink = |_| Ok::<(), Infallible>(());
    let mut builder = PartitionedFilterBuilder::new(small_partitions(), 128, sink).unwrap();
    let empty = builder.memory_bytes();
    for key in 0..9_000_u32 {
        builder.insert(key.to_be_bytes()).unwrap();
    }
    let told = builder.memory_bytes() - empty;
    let index = builder.finish().unwrap().len() as u64;
    assert!((index - 100..=2 * index + 2_000).contains(&told), "{told} bytes, an index of {index}");
}

#[test]
fn what_was_not_added_is_maybe_without_loading() {
    let rule = PrefixExtractor::fixed(2);
    let keys = numbers(300);
    let not_called = |_| -> Result<Vec<u8>, Infallible> { panic!("nothing needs to be loaded") };
    let built = Built::new(template().only_prefixes(rule.clone()), 256, &keys);
    let index = built.open();
    assert_eq!(index.added(), Added::Prefixes { extractor: rule.id() });
    assert_eq!(index.contains("no key", not_called), (true, None));
    let mut hits = Bitmask::new();
    assert!(index.contains_batch(&numbers(70), &mut hits, not_called).is_empty());
    assert_eq!(hits.count_hits(), 70);
    // Another rule, a scan of more than one prefix, a filter without prefixes.
    assert_eq!(index.contains_prefix(&PrefixExtractor::fixed(3), "xyz", not_called), (true, None));
    assert_eq!(index.contains_prefix(&rule, "x", not_called), (true, None));
    let whole = Built::new(template(), 256, &keys);
    assert_eq!(whole.open().contains_prefix(&rule, "xyz", not_called), (true, None));
}

#[test]
fn partitions_are_of_the_size_that_was_asked_for() {
    for sizing in [
        Sizing::BitsPerKey(10.0),
        Sizing::BitsPerKey(0.7),
        Sizing::BitsPerKey(100.0),
        Sizing::FalsePositiveRate(0.001),
    ] {
        for bytes in [128, 1_000, 4_096] {
            for prefixes in [false, true] {
                let template = BloomFilterBuilder::new(sizing);
                let template = match prefixes {
                    true => template.prefixes(PrefixExtractor::fixed(3)),
                    false => template,
                };
                let built = Built::new(template, bytes, numbers(20_000));
                let (_, full) = built.partitions.split_last().unwrap();
                for partition in full {
                    let length = partition.len() as u64;
                    assert!(length <= bytes && length + 64 > bytes, "{sizing}, {bytes}: {length}");
                }
                let rates = full.iter().map(|filter| {
                    BloomFilterRef::from_bytes(filter).unwrap().estimated_false_positive_rate()
                });
                if let (Sizing::FalsePositiveRate(rate), 4_096) = (sizing, bytes) {
                    assert!(rates.fold(0.0, f64::max) < 1.3 * rate);
                }
            }
        }
    }
    // No filter at all: one partition, whatever the number of keys.
    let none = Built::new(BloomFilterBuilder::new(Sizing::BitsPerKey(0.0)), 128, numbers(5_000));
    assert_eq!((none.partitions.len(), none.partitions[0].len()), (1, 128));
    assert!(none.contains(b"any key"));
    // No key: certainly absent.
    let empty = Built::new(template(), 4_096, numbers(0));
    assert_eq!(empty.open().partitions(), 1);
    assert!(!empty.contains(b"any key"));
}

/// Real keys: none is lost, and absent ones pass at the rate that the sizing predicts.
#[test]
fn words_are_found_and_others_pass_at_the_predicted_rate() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/words.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let words: BTreeSet<&str> = text.lines().collect();
    let built = Built::new(template(), 4_096, &words);
    assert!(built.partitions.len() > 20);
    // Out of order, as a MultiGet may come.
    let mut asked: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    asked.extend(words.iter().map(|word| format!("{word}~")));
    asked.sort_by_key(|key| blocked_bloom::KeyHasher::default().hash(key));
    let (index, file, mut hits) = (built.open(), built.partitions.concat(), Bitmask::new());
    let (mut loads, mut absent, mut passed) = (0, 0, 0);
    for batch in asked.chunks(4_096) {
        let failures = index.contains_batch(batch, &mut hits, |at| {
            loads += 1;
            file.get(at.offset as usize..(at.offset + at.length) as usize).ok_or(())
        });
        assert!(failures.is_empty());
        for (i, key) in batch.iter().enumerate() {
            let maybe = hits.get(i).unwrap();
            if words.contains(&key[..]) {
                assert!(maybe, "{key}");
            } else {
                (absent, passed) = (absent + 1, passed + u32::from(maybe));
            }
        }
    }
    assert!(loads <= asked.len().div_ceil(4_096) * index.partitions());
    let rate = f64::from(passed) / f64::from(absent);
    assert!((0.008..0.0115).contains(&rate), "{rate}");
}

#[test]
fn equal_keys_count_once_and_are_never_cut_apart() {
    let versions = numbers(300).into_iter().flat_map(|key| [key; 60]);
    assert_eq!(
        Built::new(template(), 128, versions).index,
        Built::new(template(), 128, numbers(300)).index
    );
}

#[test]
fn building_refuses_what_it_cannot_do() {
    type Error = PartitionBuildError<&'static str>;
    let new = |template, bytes| {
        PartitionedFilterBuilder::new(template, bytes, |_| Ok::<(), &str>(())).map(drop)
    };
    let mut with_keys = template();
    with_keys.insert("apple");
    assert_eq!(new(with_keys, 4_096), Err(Error::TemplateHasKeys { keys: 1 }));
    let caller = KeyHash::Caller { tag: 5 };
    let caller = BloomFilterBuilder::with_key_hash(Sizing::BitsPerKey(10.0), caller);
    assert_eq!(new(caller, 4_096), Err(Error::CallerHash { tag: 5 }));
    let by_bytes = BloomFilterBuilder::new(Sizing::MaxBytes(1 << 20));
    assert_eq!(new(by_bytes, 4_096), Err(Error::SizedByBytes { bytes: 1 << 20 }));
    for bytes in [0, 1, 127] {
        assert_eq!(new(template(), bytes), Err(Error::TooFewBytes { bytes, smallest: 128 }));
    }
    assert!(new(template(), u64::MAX).is_ok());
    for wrong in [f64::NAN, -1.0, 1e9] {
        let wrong = BloomFilterBuilder::new(Sizing::BitsPerKey(wrong));
        assert!(matches!(new(wrong, 4_096), Err(Error::Build(_))));
    }
    assert!(matches!(new(template().probes(31), 4_096), Err(Error::Build(_))));

    // Out of order, at the first key of a partition too; afterwards nothing more goes.
    for keys in [2, 51, 52, 103] {
        let mut builder =
            PartitionedFilterBuilder::new(template(), 128, |_| Ok::<(), &str>(())).unwrap();
        for key in 1..=keys {
            builder.insert([key]).unwrap();
        }
        let position = u64::from(keys);
        assert_eq!(builder.insert([keys - 1]), Err(Error::Unsorted { position }));
        assert_eq!(builder.insert([255]), Err(Error::AlreadyFailed));
        assert_eq!(builder.finish(), Err(Error::AlreadyFailed));
    }
    // A sink that fails at the second partition.
    let mut room = 1;
    let mut builder = PartitionedFilterBuilder::new(template(), 128, |_| {
        room -= 1;
        if room < 0 { Err("disk full") } else { Ok(()) }
    })
    .unwrap();
    let error = numbers(200).iter().map(|key| builder.insert(key)).find_map(Result::err);
    assert_eq!(error, Some(Error::Sink("disk full")));
    assert_eq!(error.unwrap().to_string(), "a partition could not be stored: disk full");
    assert_eq!(builder.finish(), Err(Error::AlreadyFailed));
}

/// A loader's errors and damage are "maybe" for the keys of that partition, and reported; the other partitions still answer.
#[test]
fn partitions_that_fail_are_maybe_and_reported() {
    let keys = numbers(500);
    let absent: Vec<[u8; 4]> = (0..500_u32).map(|number| (number * 7 + 3).to_be_bytes()).collect();
    let built = Built::new(template(), 192, &keys);
    let index = built.open();
    let last = index.partitions() - 1;
    assert!(last >= 4);
    type Loaded = Result<Vec<u8>, &'static str>;
    let damaged = |at: PartitionLocation| -> Loaded {
        let mut bytes = built.partitions[at.partition].clone();
        match at.partition {
            0 => return Err("timeout"),
            1 => bytes[100] ^= 4,
            2 => bytes = built.partitions[3].clone(),
            3 => bytes.truncate(190),
            _ => {}
        }
        Ok(bytes)
    };
    for absent_keys in [&absent, &keys] {
        let mut hits = Bitmask::new();
        let failures = index.contains_batch(absent_keys, &mut hits, damaged);
        let failed: Vec<usize> = failures.iter().map(|failure| failure.partition).collect();
        assert_eq!(failed, [0, 1, 2, 3]);
        let errors: Vec<_> = failures.into_iter().map(|failure| failure.error).collect();
        assert_eq!(errors[0], PartitionError::Load("timeout"));
        assert!(matches!(errors[1], PartitionError::Format(FormatError::BlockChecksum { .. })));
        assert!(matches!(errors[2], PartitionError::OtherFilter { .. }));
        let truncated = FormatError::Length { found: 190, expected: 192 };
        assert!(
            matches!(errors[3], PartitionError::Format(error) if error.to_string() == truncated.to_string())
        );
        for (i, key) in absent_keys.iter().enumerate() {
            let failed = index.partition_of(key).unwrap() < 4;
            assert_eq!(hits.get(i), Some(failed || built.contains(key)));
            let (maybe, failure) = index.contains(key, damaged);
            assert_eq!((Some(maybe), failure.is_some()), (hits.get(i), failed));
        }
    }
    // Blocks are not read if the loader is trusted, but a swapped partition and a header still are noticed.
    let trusting = built.open().trust_loaded_blocks();
    let failures = trusting.contains_batch(&keys, &mut Bitmask::new(), damaged);
    assert!(failures.iter().map(|failure| failure.partition).eq([0, 2, 3]));
}

/// Whoever catches the panic still has the words.
#[cfg(panic = "unwind")]
#[test]
fn a_loader_that_panics_leaves_no_absent_behind() {
    let built = Built::new(template(), 192, numbers(500));
    let index = built.open();
    let absent: Vec<String> = (0..130).map(|i| format!("absent {i}")).collect();
    for calls in 0..3 {
        let mut words = [u64::MAX; 3];
        let mut left = calls;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            index.contains_batch_into(&absent, &mut words, |_| -> Result<&[u8], Infallible> {
                assert!(left > 0, "the loader fails");
                left -= 1;
                Ok(b"damaged")
            })
        }));
        if caught.is_err() {
            assert_eq!(words, [u64::MAX, u64::MAX, 3]);
        }
    }
}

/// Every partition in every other's place, and those of a table with another seed.
#[test]
fn swapped_partitions_never_answer() {
    let built = Built::new(template(), 192, numbers(500));
    let seeded =
        BloomFilterBuilder::with_key_hash(Sizing::BitsPerKey(10.0), KeyHash::Xxh3 { seed: 1 });
    let other = Built::new(seeded, 192, numbers(500));
    let index = built.open();
    for (wanted, key) in numbers(500)
        .iter()
        .enumerate()
        .step_by(30)
        .map(|(_, key)| (index.partition_of(key).unwrap(), key))
    {
        for (given, bytes) in built.partitions.iter().chain(&other.partitions).enumerate() {
            let (maybe, failure) = index.contains(key, |_| Ok::<_, Infallible>(bytes));
            assert!(maybe);
            assert_eq!(failure.is_some(), given != wanted, "{given} for {wanted}");
        }
    }
}

/// An owner that lends other bytes later, shorter ones and equally long ones.
#[test]
fn an_index_that_changes_is_maybe() {
    struct Fickle(Vec<u8>, Vec<u8>, std::cell::Cell<bool>);
    impl AsRef<[u8]> for Fickle {
        fn as_ref(&self) -> &[u8] {
            if self.2.replace(true) { &self.1 } else { &self.0 }
        }
    }
    let built = Built::new(template(), 128, numbers(500));
    let key = numbers(500)[321];
    let wild: Vec<u8> =
        Random(3).hashes(built.index.len()).iter().map(|word| *word as u8).collect();
    for later in [vec![], built.index[..70].to_vec(), vec![0; built.index.len()], wild] {
        let fickle = Fickle(built.index.clone(), later, std::cell::Cell::new(false));
        let index = PartitionIndex::from_bytes(fickle).unwrap();
        index.location(3);
        index.separator(3);
        let load =
            |at: PartitionLocation| built.partitions.get(at.partition).ok_or("no such partition");
        let (maybe, failure) = index.contains(key, load);
        assert!(maybe && failure.is_some());
        let mut hits = Bitmask::new();
        assert!(!index.contains_batch(&[key; 3], &mut hits, load).is_empty());
        assert_eq!(hits.count_hits(), 3);
    }
}
