//! Partitioned filters: never a wrong "absent", for any cuts, batches and loaded bytes; the bytes
//! follow the document.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common::Random;
use crate::partitions::{Built, group_by_partition, numbers, options, seal, separate};
use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    Bitmask, BloomFilter, BuildError, Filter, FilterContents, FilterOptions, FormatError, KeyHash,
    ParamsError, PrefixExtractor, Sizing,
};
use blocked_bloom_lsm::{
    PartitionBuildError, PartitionError, PartitionIndex, PartitionLocation,
    PartitionedFilterBuilder,
};
use proptest::prelude::*;

type Key = Vec<u8>;

/// Few letters, so that keys share prefixes and many are prefixes of others. 0 and 255 are the ends
/// of the order.
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

/// Filters with few keys per partition, and so many cuts: at 100 bits per key, 5 keys fill a block.
fn small_partitions() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(100.0))
}

/// The checksum at the end of a stored filter's header.
fn header_checksum(stored: &[u8]) -> u64 {
    u64::from_le_bytes(stored[56..64].try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_key_is_lost_and_batches_match_single_lookups(
        keys in proptest::collection::btree_set(key(), 0..120),
        others in proptest::collection::vec(key(), 0..150),
        seed in any::<u64>(),
    ) {
        let options =
            FilterOptions::new(Sizing::BitsPerKey(50.0)).with_key_hash(KeyHash::Xxh3 { seed });
        let built = Built::new(options.clone(), 128, &keys);
        let index = built.open();
        prop_assert_eq!(index.partitions(), built.partitions.len());
        prop_assert_eq!(index.keys_inserted(), keys.len() as u64);
        prop_assert_eq!(index.key_hash(), KeyHash::Xxh3 { seed });
        prop_assert_eq!(index.hasher(), options.hasher());
        let queries: Vec<Key> = keys.iter().cloned().chain(others).collect();
        let hasher = options.hasher().unwrap();
        let mut hits = Bitmask::new();
        for (at, positions) in &group_by_partition(&index, &queries) {
            prop_assert_eq!(index.location(at.partition), Some(*at));
            let filter = index.open(at, built.load(at).to_vec()).unwrap();
            prop_assert_eq!(&filter, &index.open_trusted(at, built.load(at)).unwrap());
            let group: Vec<&Key> = positions.iter().map(|&i| &queries[i]).collect();
            filter.contains_batch(&group, &mut hits);
            let mut words = vec![u64::MAX; group.len().div_ceil(64)];
            filter.contains_batch_into(&group, &mut words).unwrap();
            prop_assert_eq!(&words[..], hits.words());
            for (key, hit) in group.into_iter().zip(hits.iter()) {
                prop_assert_eq!(built.contains(key), hit);
                prop_assert_eq!(filter.contains_hash(hasher.hash(key)), hit);
                prop_assert!(hit || !keys.contains(key), "{:?} is lost", key);
            }
        }
    }

    #[test]
    fn separators_are_shortest_and_locate_every_key(
        keys in proptest::collection::btree_set(key(), 1..120),
    ) {
        let built = Built::new(small_partitions(), 128, &keys);
        let index = built.open();
        let opened = &index;
        let of_partition = |partition| {
            keys.iter().filter(move |key| opened.locate(key).partition == partition)
        };
        let mut kept = 0;
        for partition in 0..index.partitions() {
            // The filter contains exactly the keys that the index locates in it.
            let filter = BloomFilter::from_bytes_any_hash(&built.partitions[partition]).unwrap();
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

    /// Fails if a neighbour's prefix is missing at a cut: each scan and each place to continue,
    /// compared with the keys.
    #[test]
    fn scans_that_find_a_key_are_never_ruled_out(
        keys in proptest::collection::btree_set(key(), 0..60),
        starts in proptest::collection::vec(key(), 0..20),
        only in any::<bool>(),
        separators in 0..3,
        seed in any::<u64>(),
    ) {
        for extractor in extractors() {
            let options = small_partitions().with_key_hash(KeyHash::Xxh3 { seed });
            let options = match only {
                true => options.with_only_prefixes(extractor.clone()),
                false => options.with_prefixes(extractor.clone()),
            };
            let mut built = Built::new(options, 128, &keys);
            // The shortest separators, those just after the last key of a partition, and the first
            // keys.
            match separators {
                0 => {}
                1 => built.index = separate(&built.index, &keys, |last, _| [last, &[0]].concat()),
                _ => built.index = separate(&built.index, &keys, |_, first| first.to_vec()),
            }
            let cuts = keys.iter().flat_map(|key| (0..=key.len()).map(move |cut| (key, cut)));
            let beginnings = cuts.map(|(key, cut)| key[..cut].to_vec());
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Ranges between any two strings, whose partitions are the ones that the keys between them
    /// are in.
    #[test]
    fn ranges_that_contain_a_key_are_never_ruled_out(
        keys in proptest::collection::btree_set(key(), 0..60),
        bounds in proptest::collection::vec((key(), key(), 0..3, 0..3), 60),
        separators in 0..3,
        only in any::<bool>(),
    ) {
        for extractor in extractors() {
            let options = match only {
                true => small_partitions().with_only_prefixes(extractor.clone()),
                false => small_partitions().with_prefixes(extractor.clone()),
            };
            let mut built = Built::new(options, 128, &keys);
            match separators {
                0 => {}
                1 => built.index = separate(&built.index, &keys, |last, _| [last, &[0]].concat()),
                _ => built.index = separate(&built.index, &keys, |_, first| first.to_vec()),
            }
            let index = built.open();
            // The separators themselves are bounds too.
            let cuts: Vec<Key> =
                (0..index.partitions()).map(|at| index.separator(at).unwrap().to_vec()).collect();
            for (at, (low, high, lower, upper)) in bounds.iter().enumerate() {
                let high = if at % 2 == 0 { high } else { &cuts[at % cuts.len()] };
                let bound = |kind: &i32, key| match kind {
                    0 => Included(key),
                    1 => Excluded(key),
                    _ => Unbounded,
                };
                let (lower, upper) = (bound(lower, &low[..]), bound(upper, &high[..]));
                let touched: Vec<PartitionLocation> = index.locate_range(lower, upper).collect();
                let maybe = touched.iter().any(|at| {
                    let filter = index.open(at, built.load(at)).unwrap();
                    filter.contains_range(&extractor, lower, upper)
                });
                let between = |key: &&Key| (lower, upper).contains(&key[..]);
                let expected: BTreeSet<usize> =
                    keys.iter().filter(between).map(|key| index.locate(key).partition).collect();
                prop_assert!(maybe || expected.is_empty(), "{}: {:?} {:?}", extractor, lower, upper);
                prop_assert!(touched.is_sorted_by(|a, b| a.partition + 1 == b.partition));
                let last = touched.last().unwrap().partition;
                prop_assert!(expected.iter().all(|at| (touched[0].partition..=last).contains(at)));
                // The last partition starts below the bound, unless it is also the first.
                let starts_below = match upper {
                    Included(key) => index.separator(last).unwrap() <= key,
                    Excluded(key) => index.separator(last).unwrap() < key,
                    Unbounded => true,
                };
                prop_assert!(starts_below || touched.len() == 1);
            }
        }
    }
}

/// If the owner of the index returns other bytes, each location of a range cannot be opened: the
/// range is "maybe".
#[test]
fn a_changed_index_opens_no_partition_of_a_range() {
    struct Changing<'k>(&'k [u8], &'k AtomicBool);
    impl AsRef<[u8]> for Changing<'_> {
        fn as_ref(&self) -> &[u8] {
            if self.1.load(Relaxed) { &[] } else { self.0 }
        }
    }
    let (built, changed) =
        (Built::new(small_partitions(), 128, numbers(300)), AtomicBool::new(false));
    let index = PartitionIndex::from_bytes_any_hash(Changing(&built.index, &changed)).unwrap();
    let mut touched = index.locate_range(Unbounded, Unbounded);
    let first = touched.next().unwrap();
    assert!(index.open(&first, built.load(&first)).is_ok());
    changed.store(true, Relaxed);
    let others: Vec<PartitionLocation> = touched.collect();
    assert_eq!(others.len() + 1, index.partitions());
    let again: Vec<PartitionLocation> = index.locate_range(Unbounded, Unbounded).collect();
    for at in others.iter().chain(&again) {
        assert!(at.length == 0 && index.open(at, built.load(at)).is_err());
    }
}

/// The cuts themselves, with any separator between two partitions: a scan starts in one and finds
/// its first key in the other.
#[test]
fn scans_at_a_cut_find_keys_on_the_other_side() {
    let tenant = PrefixExtractor::fixed(1);
    // Each key is a separate tenant.
    let keys: BTreeSet<Key> = (1..200).map(|tenant| vec![tenant, 100]).collect();
    let built = Built::new(small_partitions().with_prefixes(tenant.clone()), 128, &keys);
    assert!(built.open().partitions() > 50);
    for (forward, index) in [
        (true, separate(&built.index, &keys, |_, first| first.to_vec())),
        (false, separate(&built.index, &keys, |last, _| [last, &[0]].concat())),
    ] {
        let index = PartitionIndex::from_bytes_any_hash(index).unwrap();
        let contains_prefix = |start: [u8; 2]| {
            let at = index.locate(start);
            index.open(&at, built.load(&at)).unwrap().contains_prefix(&tenant, start)
        };
        let mut elsewhere = 0;
        for key in &keys {
            let start = [key[0], if forward { 0 } else { 255 }];
            assert!(contains_prefix(start));
            elsewhere += usize::from(index.locate(start) != index.locate(key));
        }
        assert_eq!(elsewhere, index.partitions() - 1);
        let absent = |&other: &u8| !contains_prefix([other, 0]);
        assert!((200..=255).filter(absent).count() > 40);
    }
}

/// Prefixes of neighbours are hashed with the seed of the keys.
#[test]
fn partitions_contain_the_prefixes_of_their_neighbours() {
    let tenant = PrefixExtractor::fixed(1);
    // Each key is a separate tenant.
    let keys: Vec<[u8; 2]> = (1..200).map(|tenant| [tenant, 100]).collect();
    for seed in [0, 7, u64::MAX] {
        let options = small_partitions().with_key_hash(KeyHash::Xxh3 { seed });
        let built = Built::new(options.with_prefixes(tenant.clone()), 128, &keys);
        let index = built.open();
        let mut cuts = 0;
        for (last, first) in keys.iter().zip(&keys[1..]) {
            let [before, behind] = [last, first].map(|key| built.partition_for(key));
            if before == behind {
                continue;
            }
            assert!(before.contains_prefix(&tenant, first), "seed {seed}, {first:?}");
            assert!(behind.contains_prefix(&tenant, last), "seed {seed}, {last:?}");
            cuts += 1;
        }
        assert!(cuts == index.partitions() - 1 && cuts > 50);
    }
}

/// A prefix may start many partitions before the place where its scan continues. An engine loads
/// one partition: that of the scan's next key, or the one before it.
#[test]
fn scans_are_located_by_their_start() {
    let tenant = PrefixExtractor::fixed(1);
    // A small tenant, a large one, another small one.
    let small = |tenant: u8| (0..7).map(move |number| vec![tenant, number]);
    let keys: BTreeSet<Key> =
        small(1).chain((0..200).map(|number| vec![2, number])).chain(small(3)).collect();
    let built = Built::new(small_partitions().with_prefixes(tenant.clone()), 128, &keys);
    let index = built.open();
    let of_prefix = index.locate([2]).partition;
    let mut passed = BTreeSet::new();
    for number in 0..200 {
        // From a key, and from just after it.
        for start in [vec![2, number], vec![2, number, 0]] {
            let at = index.locate(&start);
            let next = keys.range(start.clone()..).next().unwrap();
            let behind = index.locate(next).partition - at.partition;
            assert!(behind <= 1, "{start:?} in {}, its next key {behind} behind", at.partition);
            let filter = index.open(&at, built.load(&at)).unwrap();
            assert!(filter.contains_prefix(&tenant, &start));
            passed.insert(at.partition);
        }
    }
    assert!(passed.len() >= 40 && passed.iter().all(|&partition| partition >= of_prefix));
}

/// The index is most of the memory of a builder with many partitions.
#[test]
fn memory_bytes_include_the_index() {
    let mut builder = PartitionedFilterBuilder::new(small_partitions(), 128).unwrap();
    let empty = builder.memory_bytes();
    for key in 0..9_000_u32 {
        builder.insert(key.to_be_bytes()).unwrap();
    }
    let held = builder.memory_bytes() - empty;
    let index = builder.finish().unwrap().1.len() as u64;
    assert!((index - 100..=2 * index + 2_000).contains(&held), "{held} bytes, an index of {index}");
}

/// The index knows the contents of the partitions, so that an engine need not load one in vain.
/// Loaded anyway, the answer is "maybe".
#[test]
fn missing_contents_are_maybe() {
    let rule = PrefixExtractor::fixed(2);
    let keys = numbers(300);
    let built = Built::new(options().with_only_prefixes(rule.clone()), 256, &keys);
    assert_eq!(built.open().contents(), FilterContents::Prefixes { extractor: rule.id() });
    assert!(built.contains(b"no key"));
    let mut hits = Bitmask::new();
    for (at, positions) in group_by_partition(&built.open(), &numbers(70)) {
        let group: Vec<[u8; 4]> = positions.iter().map(|&i| numbers(70)[i]).collect();
        built.open().open(&at, built.load(&at)).unwrap().contains_batch(&group, &mut hits);
        assert_eq!(hits.count_hits(), group.len());
    }
    // Another rule, a scan of several prefixes, a filter without prefixes.
    assert!(built.contains_prefix(&PrefixExtractor::fixed(3), b"xyz"));
    assert!(built.contains_prefix(&rule, b"x"));
    let whole = Built::new(options(), 256, &keys);
    assert_eq!(whole.open().contents(), FilterContents::WholeKeys);
    assert!(whole.contains_prefix(&rule, b"xyz"));
    let both = Built::new(options().with_prefixes(rule.clone()), 256, &keys);
    let expected = FilterContents::WholeKeysAndPrefixes { extractor: rule.id() };
    assert_eq!(both.open().contents(), expected);
}

#[test]
fn partitions_have_the_requested_size() {
    for sizing in [
        Sizing::BitsPerKey(10.0),
        Sizing::BitsPerKey(0.7),
        Sizing::BitsPerKey(100.0),
        Sizing::FalsePositiveRate(0.001),
    ] {
        for bytes in [128, 1_000, 4_096] {
            // Without prefixes, with one for about 36 keys, and with one for each key.
            for prefix in [None, Some(3), Some(4)] {
                let options = FilterOptions::new(sizing);
                let options = match prefix {
                    Some(length) => options.with_prefixes(PrefixExtractor::fixed(length)),
                    None => options,
                };
                let keys = numbers(20_000).into_iter().map(|number| [&number[..], b"/"].concat());
                let built = Built::new(options, bytes, keys);
                let (_, full) = built.partitions.split_last().unwrap();
                for partition in full {
                    let length = partition.len() as u64;
                    assert!(length <= bytes && length + 64 > bytes, "{sizing}, {bytes}: {length}");
                }
                let rates = full.iter().map(|filter| {
                    BloomFilter::from_bytes_any_hash(filter)
                        .unwrap()
                        .estimated_false_positive_rate()
                });
                if let (Sizing::FalsePositiveRate(rate), 4_096) = (sizing, bytes) {
                    assert!(rates.fold(0.0, f64::max) < 1.3 * rate);
                }
            }
        }
    }
    // No filter: one partition for any number of keys.
    let none = Built::new(FilterOptions::new(Sizing::BitsPerKey(0.0)), 128, numbers(5_000));
    assert_eq!((none.partitions.len(), none.partitions[0].len()), (1, 128));
    assert!(none.contains(b"any key"));
    // No keys: certainly absent.
    let empty = Built::new(options(), 4_096, numbers(0));
    assert_eq!(empty.open().partitions(), 1);
    assert!(!empty.contains(b"any key"));
}

/// Real keys: none is lost, and absent keys pass at the predicted rate.
#[test]
fn words_are_found_and_absent_keys_pass_at_the_predicted_rate() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/keys/words.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let words: BTreeSet<&str> = text.lines().collect();
    let built = Built::new(options(), 4_096, &words);
    assert!(built.partitions.len() > 20);
    // Out of order, as in a MultiGet.
    let mut queries: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    queries.extend(words.iter().map(|word| format!("{word}~")));
    queries.sort_by_key(|key| blocked_bloom::KeyHasher::default().hash(key));
    let (index, mut hits) = (built.open(), Bitmask::new());
    let (mut loads, mut absent, mut passed) = (0, 0, 0);
    for batch in queries.chunks(4_096) {
        let mut answered = 0;
        for (at, positions) in group_by_partition(&index, batch) {
            loads += 1;
            let group: Vec<&String> = positions.iter().map(|&i| &batch[i]).collect();
            index.open(&at, built.load(&at)).unwrap().contains_batch(&group, &mut hits);
            for (key, maybe) in group.into_iter().zip(hits.iter()) {
                if words.contains(&key[..]) {
                    assert!(maybe, "{key}");
                } else {
                    (absent, passed) = (absent + 1, passed + u32::from(maybe));
                }
            }
            answered += hits.len();
        }
        assert_eq!(answered, batch.len());
    }
    assert!(loads <= queries.len().div_ceil(4_096) * index.partitions());
    let rate = f64::from(passed) / f64::from(absent);
    assert!((0.008..0.0115).contains(&rate), "{rate}");
}

#[test]
fn equal_keys_count_once_and_are_never_cut_apart() {
    let versions = numbers(300).into_iter().flat_map(|key| [key; 60]);
    assert_eq!(
        Built::new(options(), 128, versions).index,
        Built::new(options(), 128, numbers(300)).index
    );
}

#[test]
fn unusable_options_are_rejected() {
    use PartitionBuildError as Error;
    let new = |options, bytes| PartitionedFilterBuilder::new(options, bytes).map(drop);
    let caller = options().with_key_hash(KeyHash::Caller { tag: 5 });
    assert_eq!(new(caller, 4_096), Err(Error::CallerHash { tag: 5 }));
    let by_bytes = FilterOptions::new(Sizing::MaxBytes(1 << 20));
    assert_eq!(new(by_bytes, 4_096), Err(Error::SizedByBytes { bytes: 1 << 20 }));
    for bytes in [0, 1, 127] {
        assert_eq!(new(options(), bytes), Err(Error::TooFewBytes { bytes, smallest: 128 }));
    }
    assert!(new(options(), u64::MAX).is_ok());
    for wrong in [f64::NAN, -1.0, 1e9] {
        let error = new(FilterOptions::new(Sizing::BitsPerKey(wrong)), 4_096).unwrap_err();
        let Error::Build(BuildError::Params(ParamsError::BitsPerKeyOutOfRange { bits_per_key })) =
            error
        else {
            panic!("{error}");
        };
        assert_eq!(bits_per_key.to_bits(), wrong.to_bits());
    }
    let error = ParamsError::ProbesOutOfRange { probes: 31 };
    assert_eq!(new(options().with_probes(31), 4_096), Err(Error::Build(error.into())));
}

/// Also at the first key of a partition: the key is rejected, and the filter is the same as without
/// it.
#[test]
fn a_key_out_of_order_is_rejected_and_the_builder_continues() {
    for keys in [2, 51, 52, 103] {
        let mut builder = PartitionedFilterBuilder::new(options(), 128).unwrap();
        let mut partitions = Vec::new();
        for key in 1..=keys {
            partitions.extend(builder.insert([key]).unwrap());
        }
        let error = PartitionBuildError::Unsorted { position: u64::from(keys) };
        assert_eq!(builder.insert([keys - 1]), Err(error));
        partitions.extend(builder.insert([255]).unwrap());
        let (last, index) = builder.finish().unwrap();
        partitions.push(last);
        let stored: Vec<Vec<u8>> = partitions.iter().map(|filter| filter.to_bytes()).collect();
        let expected = Built::new(options(), 128, (1..=keys).chain([255]).map(|key| [key]));
        assert_eq!((stored, index), (expected.partitions, expected.index));
    }
}

/// The keys of a partition that cannot be finished are lost, so every further call fails.
#[test]
fn a_partition_that_cannot_be_finished_ends_the_build() {
    let small = options().with_memory_limit(100);
    let limit = BuildError::MemoryLimit { limit_bytes: 100, keys: 51 };
    let mut builder = PartitionedFilterBuilder::new(small.clone(), 128).unwrap();
    let error = numbers(200).iter().map(|key| builder.insert(key)).find_map(Result::err);
    assert_eq!(error, Some(PartitionBuildError::Build(limit)));
    assert_eq!(error.unwrap().to_string(), limit.to_string());
    assert_eq!(builder.insert([255; 4]), Err(PartitionBuildError::AlreadyFailed));
    assert_eq!(builder.finish().unwrap_err(), PartitionBuildError::AlreadyFailed);
    // The last partition.
    let mut builder = PartitionedFilterBuilder::new(small, 128).unwrap();
    for key in numbers(20) {
        assert_eq!(builder.insert(key), Ok(None));
    }
    let limit = BuildError::MemoryLimit { limit_bytes: 100, keys: 20 };
    assert_eq!(builder.finish().unwrap_err(), PartitionBuildError::Build(limit));
}

/// A limit that is smaller than a partition's hashes, with an estimate for far fewer keys.
#[test]
fn a_partition_for_far_too_few_keys_is_an_error() {
    let small = options().with_memory_limit(100).with_expected_items(2);
    let mut builder = PartitionedFilterBuilder::new(small, 4_096).unwrap();
    let error = numbers(5_000).iter().map(|key| builder.insert(key)).find_map(Result::err);
    let Some(PartitionBuildError::Build(BuildError::MemoryLimit { limit_bytes: 100, .. })) = error
    else {
        panic!("{error:?}");
    };
}

/// A partition that cannot be loaded or opened is "maybe" for its keys, with a typed error. The
/// other partitions still answer.
#[test]
fn failed_partitions_are_maybe_and_the_others_answer() {
    let keys = numbers(500);
    let absent: Vec<[u8; 4]> = (0..500_u32).map(|number| (number * 7 + 3).to_be_bytes()).collect();
    let is_damaged = |error: &PartitionError| match *error {
        PartitionError::Format(FormatError::Header(error)) => {
            matches!(error, HeaderError::BodyChecksum { .. })
        }
        _ => false,
    };
    let built = Built::new(options(), 192, &keys);
    let index = built.open();
    let last = index.partitions() - 1;
    assert!(last >= 4);
    // `None` cannot be loaded.
    let mut loaded: Vec<Option<Vec<u8>>> = built.partitions.iter().cloned().map(Some).collect();
    loaded[0] = None;
    loaded[1].as_mut().unwrap()[100] ^= 4;
    loaded[2] = loaded[3].clone();
    loaded[3].as_mut().unwrap().truncate(190);
    let bytes_of = |at: &PartitionLocation| loaded[at.partition].as_deref();
    for queries in [&absent, &keys] {
        // Until a partition answers.
        let mut answers = vec![true; queries.len()];
        let mut failed = Vec::new();
        for (at, positions) in group_by_partition(&index, queries) {
            match bytes_of(&at).map(|bytes| index.open(&at, bytes)) {
                Some(Ok(filter)) => {
                    positions.into_iter().for_each(|i| answers[i] = filter.contains(queries[i]));
                }
                Some(Err(error)) => failed.push((at.partition, Some(error))),
                None => failed.push((at.partition, None)),
            }
        }
        let (partitions, errors): (Vec<usize>, Vec<Option<PartitionError>>) =
            failed.into_iter().unzip();
        assert_eq!(partitions, [0, 1, 2, 3]);
        assert_eq!(errors[0], None);
        let error = errors[1].as_ref().unwrap();
        assert!(is_damaged(error), "{error}");
        assert_eq!(error.offset(), 48);
        let [expected, found] = [2, 3].map(|i| header_checksum(&built.partitions[i]));
        assert_eq!(errors[2], Some(PartitionError::OtherPartition { found, expected }));
        let truncated = HeaderError::Length { found: 190, expected: 192 };
        assert_eq!(errors[3], Some(PartitionError::Format(truncated.into())));
        for (key, answer) in queries.iter().zip(answers) {
            let at = index.locate(key);
            let failed = at.partition < 4;
            assert_eq!(answer, failed || built.contains(key));
            let opened = bytes_of(&at).and_then(|bytes| index.open(&at, bytes).ok());
            assert_eq!(opened.is_none(), failed);
            assert_eq!(opened.is_none_or(|filter| filter.contains(key)), answer);
        }
    }
    // Trusted blocks are not read, but swapped partitions and damaged headers are still detected.
    let mut failed = Vec::new();
    for (at, _) in group_by_partition(&index, &keys) {
        match bytes_of(&at).map(|bytes| index.open_trusted(&at, bytes)) {
            Some(Ok(_)) => {}
            _ => failed.push(at.partition),
        }
    }
    assert_eq!(failed, [0, 2, 3]);
}

/// Locations without a partition or of another table, and bytes that are not a filter.
#[test]
fn bytes_that_are_not_the_partition_are_rejected() {
    let built = Built::new(options(), 192, numbers(500));
    let index = built.open();
    for partition in 0..index.partitions() {
        let at = index.location(partition).unwrap();
        for (bytes, error) in [
            (&b""[..], HeaderError::TooShort { found: 0 }),
            (b"damaged", HeaderError::TooShort { found: 7 }),
            (&built.load(&at)[..64], HeaderError::Length { found: 64, expected: at.length }),
        ] {
            let error = PartitionError::Format(error.into());
            assert_eq!(index.open(&at, bytes), Err(error));
            assert_eq!(index.open_trusted(&at, bytes), Err(error));
        }
        let error = index.open(&at, &built.index).unwrap_err();
        let is_magic = |error| matches!(error, FormatError::Header(HeaderError::Magic { .. }));
        assert!(matches!(error, PartitionError::Format(error) if is_magic(error)), "{error}");
    }
    assert_eq!(index.location(index.partitions()), None);
    // A location of a larger table.
    let larger = Built::new(options(), 192, numbers(1_000));
    for partition in index.partitions()..larger.open().partitions() {
        let at = larger.open().location(partition).unwrap();
        let field = HeaderError::field(12, "partition", partition as u64, "not in the index");
        assert_eq!(index.open(&at, larger.load(&at)), Err(field.into()));
        assert_eq!(index.open_trusted(&at, larger.load(&at)), Err(field.into()));
    }
}

/// Every partition in every other's place, and those of a table with another seed.
#[test]
fn swapped_partitions_never_answer() {
    let built = Built::new(options(), 192, numbers(500));
    let seeded = options().with_key_hash(KeyHash::Xxh3 { seed: 1 });
    let other = Built::new(seeded.clone(), 192, numbers(500));
    let index = built.open();
    for key in numbers(500).iter().step_by(30) {
        let at = index.locate(key);
        let expected = header_checksum(&built.partitions[at.partition]);
        for (given, bytes) in built.partitions.iter().chain(&other.partitions).enumerate() {
            let found = header_checksum(bytes);
            for opened in [index.open(&at, bytes), index.open_trusted(&at, bytes)] {
                match given == at.partition {
                    true => assert!(opened.unwrap().contains(key)),
                    false => {
                        let hash = HeaderError::HashMismatch {
                            offset: 11,
                            found: seeded.key_hash(),
                            expected: options().key_hash(),
                        };
                        let error = match given < built.partitions.len() {
                            true => PartitionError::OtherPartition { found, expected },
                            false => PartitionError::Format(hash.into()),
                        };
                        assert_eq!(opened, Err(error));
                    }
                }
            }
        }
    }
}

/// The index of a writer with the wrong seed: its partitions would answer "absent" for their keys.
#[test]
fn partitions_with_another_seed_are_rejected() {
    let built = Built::new(options(), 192, numbers(500));
    let mut index = built.index.clone();
    index[16] = 9;
    seal(&mut index);
    let index = PartitionIndex::from_bytes_any_hash(index).unwrap();
    let expected = KeyHash::Xxh3 { seed: 9 };
    assert_eq!(index.key_hash(), expected);
    for key in numbers(500) {
        let at = index.locate(key);
        let found = KeyHash::default();
        let mismatch = HeaderError::HashMismatch { offset: 11, found, expected };
        let error = PartitionError::Format(mismatch.into());
        assert_eq!(error.offset(), 11);
        assert_eq!(index.open(&at, built.load(&at)), Err(error));
        assert_eq!(index.open_trusted(&at, built.load(&at)), Err(error));
    }
}

/// Partitions of seed 7 would answer "absent" for nearly all hashes of seed 0: the reader passes
/// its hash when it opens the index.
#[test]
fn an_index_with_another_hash_is_rejected() {
    let found = KeyHash::Xxh3 { seed: 7 };
    let built = Built::new(options().with_key_hash(found), 192, numbers(500));
    let index = |expected| PartitionIndex::from_bytes(&built.index[..], expected);
    for expected in
        [0, 8].map(|seed| KeyHash::Xxh3 { seed }).into_iter().chain([KeyHash::Caller { tag: 7 }])
    {
        let mismatch = HeaderError::HashMismatch { offset: 10, found, expected };
        assert_eq!(index(expected).map(drop), Err(mismatch.into()));
    }
    let (index, hasher) = (index(found).unwrap(), found.hasher().unwrap());
    for key in numbers(500) {
        let at = index.locate(key);
        assert!(index.open(&at, built.load(&at)).unwrap().contains_hash(hasher.hash(key)));
    }
}

/// An owner that later returns other bytes: shorter, longer and of the same length.
#[test]
fn a_changed_index_opens_no_partition() {
    struct Fickle(Vec<u8>, Vec<u8>, std::cell::Cell<bool>);
    impl AsRef<[u8]> for Fickle {
        fn as_ref(&self) -> &[u8] {
            if self.2.replace(true) { &self.1 } else { &self.0 }
        }
    }
    let built = Built::new(options(), 128, numbers(500));
    let key = numbers(500)[321];
    let wild: Vec<u8> =
        Random(3).hashes(built.index.len()).iter().map(|word| *word as u8).collect();
    let longer = |bytes: usize| [&built.index[..], &vec![0; bytes]].concat();
    let short = [vec![], built.index[..70].to_vec()];
    let others = [vec![0; built.index.len()], wild, longer(1), longer(64), longer(100_000)];
    for later in short.into_iter().chain(others) {
        let is_short = later.len() < built.index.len();
        let fickle = Fickle(built.index.clone(), later, std::cell::Cell::new(false));
        let index = PartitionIndex::from_bytes_any_hash(fickle).unwrap();
        index.location(3);
        index.separator(3);
        let at = index.locate(key);
        assert!(at.length == 0 || !is_short);
        for bytes in &built.partitions {
            assert!(index.open(&at, bytes).is_err());
            assert!(index.open_trusted(&at, bytes).is_err());
        }
    }
}
