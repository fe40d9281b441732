//! Opened filters of any kind: recognised by their bytes, with the filter's own answers, and
//! "maybe" for everything unknown.

use std::ops::Bound::{Excluded, Included};

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    Bitmask, BloomFilter, Filter, FilterOptions, FormatError, KeyHash, KeyHasher, PrefixExtractor,
    Sizing,
};
use blocked_bloom_lsm::{
    FilterChoice, FilterIdentity, FilterKind, FilterPolicy, KindPlan, Level,
    PartitionedFilterBuilder, TableFilter, TableFilterError, tables_to_read,
};
use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};

use crate::common::Random;
use crate::found::{self, Hashes};

const KEYS: u32 = 3_000;

fn options() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(10.0))
}

fn bloom(options: &FilterOptions) -> BloomFilter {
    let mut builder = options.builder();
    builder.extend((0..KEYS).map(u32::to_be_bytes)).unwrap();
    builder.finish().unwrap()
}

fn ribbon(options: &FilterOptions) -> Vec<u8> {
    let mut builder = RibbonOptions::for_filters(options).builder();
    builder.extend((0..KEYS).map(u32::to_be_bytes)).unwrap();
    builder.finish().unwrap().as_bytes().to_vec()
}

fn index(options: &FilterOptions) -> Vec<u8> {
    let mut builder = PartitionedFilterBuilder::new(options.clone(), 1_024).unwrap();
    for key in 0..KEYS {
        builder.insert(key.to_be_bytes()).unwrap();
    }
    builder.finish().unwrap().1
}

/// Hashes of all keys, and of as many absent keys.
fn hashes(options: &FilterOptions) -> Vec<u64> {
    let hasher = options.hasher().unwrap();
    (0..2 * KEYS).map(|key| hasher.hash(key.to_be_bytes())).collect()
}

/// In order, for all kinds of filters, and without lookups after the caller stops.
#[test]
fn tables_to_read_returns_the_tables_that_may_contain_the_key() {
    let options = options();
    let open = |bytes| TableFilter::from_bytes(bytes, options.key_hash()).unwrap();
    let tables: Vec<(usize, TableFilter)> = [
        bloom(&options).into(),
        options.empty_filter(100).unwrap().into(),
        open(bloom(&options).to_bytes()),
        open(ribbon(&options)),
        open(index(&options)),
        TableFilter::None(options.key_hash()),
    ]
    .into_iter()
    .enumerate()
    .collect();
    let mut lengths = [0; 7];
    for hash in hashes(&options) {
        let to_read = tables_to_read(&tables, |table| (&table.1, hash));
        let to_read: Vec<usize> = to_read.map(|table| table.0).collect();
        let expected = tables.iter().filter(|table| table.1.contains_hash(hash));
        assert_eq!(to_read, expected.map(|table| table.0).collect::<Vec<_>>());
        lengths[to_read.len()] += 1;
    }
    // Present and absent keys.
    assert!(lengths[5] >= KEYS as usize && lengths[2] > KEYS as usize / 2, "{lengths:?}");
    // 150 tables: 64, 64 and 22 are looked up together.
    let kind = |i: usize| &tables[i * i / 5 % 6].1;
    let many: Vec<(usize, &TableFilter)> = (0..150).map(|i| (i, kind(i))).collect();
    let looked_up = std::cell::Cell::new(0);
    for hash in hashes(&options).into_iter().step_by(7) {
        looked_up.set(0);
        let lookup = |table| {
            looked_up.set(looked_up.get() + 1);
            let (i, filter): &(usize, &TableFilter) = table;
            (*filter, hash ^ u64::from(i % 50 == 49) << 40)
        };
        let mut to_read = tables_to_read(&many, lookup);
        let first: Vec<usize> =
            to_read.by_ref().map(|table| table.0).take_while(|i| *i < 60).collect();
        let later: Vec<usize> = to_read.by_ref().map(|table| table.0).collect();
        // Once more for each filter that has no blocks of the probe scheme.
        let calls = |tables: &[(usize, &TableFilter)]| {
            let others = tables.iter().filter(|table| table.1.block_and_probes(hash).is_none());
            tables.len() + others.count()
        };
        assert!(to_read.next().is_none());
        assert_eq!(looked_up.get(), calls(&many));
        let expected = |table: &&(usize, &TableFilter)| {
            table.1.contains_hash(hash ^ u64::from(table.0 % 50 == 49) << 40)
        };
        let expected: Vec<usize> = many.iter().filter(expected).map(|table| table.0).collect();
        let (below, above) = expected.split_at(expected.partition_point(|i| *i < 60));
        assert_eq!((&first[..], &later[..]), (below, &above[1..]));
        looked_up.set(0);
        assert_eq!(tables_to_read(&many, lookup).next().map(|table| table.0), Some(expected[0]));
        // Later groups are not looked up after the caller stops.
        assert_eq!(looked_up.get(), calls(&many[..64]));
    }
}

/// Finds a copy that is opened with the default hash.
#[test]
fn copies_of_every_kind_keep_their_seed() {
    let options = options().with_key_hash(KeyHash::Xxh3 { seed: 7 });
    for bytes in [bloom(&options).to_bytes(), ribbon(&options), index(&options)] {
        let filter = TableFilter::from_bytes(bytes, options.key_hash()).unwrap();
        let copy = filter.into_own_memory().unwrap();
        assert_eq!(copy.key_hash(), options.key_hash());
        assert!(hashes(&options)[..KEYS as usize].iter().all(|&hash| copy.contains_hash(hash)));
    }
}

/// Finds an iterator that ends after 64 tables of which none contains the key.
#[test]
fn a_table_after_64_absent_ones_is_returned() {
    let options = options();
    let (present, absent) = (bloom(&options), options.empty_filter(100).unwrap());
    let hash = options.hasher().unwrap().hash(7_u32.to_be_bytes());
    for place in [0, 63, 64, 65, 127, 128, 199] {
        let filter = |i| if i == place { &present } else { &absent };
        let tables: Vec<_> = (0..200).map(|i| (i, filter(i))).collect();
        let to_read = tables_to_read(&tables, |table| (table.1, hash));
        assert_eq!(to_read.map(|table| table.0).collect::<Vec<_>>(), [place]);
    }
}

/// One hash for all tables would miss nearly every key of the tables with another seed.
#[test]
fn tables_with_different_seeds_each_get_their_own_hash() {
    let seeded: Vec<FilterOptions> =
        (0..2).map(|seed| options().with_key_hash(KeyHash::Xxh3 { seed })).collect();
    let tables: Vec<(KeyHasher, Box<dyn Filter>)> = seeded
        .iter()
        .map(|options| -> (_, Box<dyn Filter>) {
            (options.hasher().unwrap(), Box::new(bloom(options)))
        })
        .collect();
    for key in (0..KEYS).map(u32::to_be_bytes) {
        let to_read = tables_to_read(&tables, |(hasher, filter)| (&**filter, hasher.hash(key)));
        assert_eq!(to_read.count(), 2);
    }
}

/// Engines store identities in their manifests.
#[cfg(feature = "serde")]
#[test]
fn an_identity_survives_serialization() {
    use blocked_bloom_lsm::FilterIdentity::{self, HeaderChecksum, Length};
    for (identity, text) in [
        (HeaderChecksum(u64::MAX), r#"{"HeaderChecksum":18446744073709551615}"#),
        (Length(133), r#"{"Length":133}"#),
    ] {
        assert_eq!(serde_json::to_string(&identity).unwrap(), text);
        assert_eq!(serde_json::from_str::<FilterIdentity>(text).unwrap(), identity);
    }
}

/// Bloom filters with prefixes rule out scans. Every other kind, and every other rule, is "maybe".
#[test]
fn filters_with_prefixes_rule_out_scans() {
    let rule = PrefixExtractor::fixed(3);
    let options = options().with_prefixes(rule.clone());
    let bloom = bloom(&options); // of keys that begin with 0, 0 and 0 to 11
    let stored = TableFilter::from_bytes(bloom.to_bytes(), options.key_hash()).unwrap();
    for filter in [bloom.clone().into(), stored] {
        assert!((0..12_u8).all(|i| filter.contains_prefix(&rule, [0, 0, i, 200])));
        let absent = (0..1_000_u32)
            .filter(|i| !filter.contains_prefix(&rule, (i << 12 | 1 << 31).to_be_bytes()));
        assert!(absent.count() > 900);
        assert!(filter.contains_prefix(&rule, [9, 9]), "too short for the rule");
        assert!(filter.contains_prefix(&PrefixExtractor::fixed(2), [9, 9, 9]), "another rule");
    }
    let none = TableFilter::<Vec<u8>>::None(options.key_hash());
    let ribbon = TableFilter::from_bytes(ribbon(&self::options()), options.key_hash()).unwrap();
    let index = TableFilter::from_bytes(index(&options), options.key_hash()).unwrap();
    for filter in [none, ribbon, index] {
        assert!((0..100_u8).all(|i| filter.contains_prefix(&rule, [i, i, i])), "{filter:?}");
    }
}

/// All lookups agree with `expected`: single, in batches and as a `dyn Filter`.
fn assert_answers(filter: &TableFilter<Vec<u8>>, hashes: &[u64], expected: impl Fn(u64) -> bool) {
    let expected: Vec<bool> = hashes.iter().map(|&hash| expected(hash)).collect();
    for (&hash, &expected) in hashes.iter().zip(&expected) {
        filter.prefetch_hash(hash);
        assert_eq!(filter.contains_hash(hash), expected);
    }
    for count in [0, 1, 63, 64, 65, hashes.len()] {
        let mut hits = Bitmask::new();
        filter.contains_hashes(&hashes[..count], &mut hits);
        assert!(hits.iter().eq(expected[..count].iter().copied()));
        let mut words = vec![7; count.div_ceil(64)];
        let dynamic: &dyn Filter = filter;
        dynamic.contains_hashes_into(&hashes[..count], &mut words).unwrap();
        assert_eq!(words, hits.words());
        words.push(7);
        assert!(dynamic.contains_hashes_into(&hashes[..count], &mut words).is_err());
    }
}

#[test]
fn each_kind_is_recognised_and_answers_like_the_filter() {
    let options = options();
    let (hashes, key_hash) = (hashes(&options), options.key_hash());
    let bloom = bloom(&options);
    let open = |bytes: &[u8]| TableFilter::from_bytes(bytes.to_vec(), key_hash).unwrap();

    let full = open(&bloom.to_bytes());
    assert!(matches!(full, TableFilter::Bloom(_)));
    let compact = open(&bloom.to_compact_bytes().unwrap());
    assert!(matches!(compact, TableFilter::Bloom(_)));
    for filter in [full, compact, bloom.clone().into()] {
        assert_answers(&filter, &hashes, |hash| bloom.contains_hash(hash));
        assert_eq!(filter.memory_bytes(), bloom.memory_bytes());
        assert_eq!(filter.expected_false_positive_rate(), bloom.expected_false_positive_rate());
        let owned = filter.into_own_memory().unwrap();
        assert!(matches!(owned, TableFilter::Owned(_)));
        assert_answers(&owned, &hashes, |hash| bloom.contains_hash(hash));
    }

    let bytes = ribbon(&options);
    let direct = RibbonFilter::from_bytes_any_hash(bytes.clone()).unwrap();
    let filter = open(&bytes);
    assert!(matches!(filter, TableFilter::Ribbon(_)));
    assert_answers(&filter, &hashes, |hash| direct.contains_hash(hash));
    assert_eq!(filter.memory_bytes(), direct.memory_bytes());

    let bytes = index(&options);
    let filter = open(&bytes);
    assert_eq!(filter.memory_bytes(), bytes.len() as u64);
    let TableFilter::Partitioned(found) = &filter else { panic!("{filter:?}") };
    assert_eq!(found.keys_inserted(), u64::from(KEYS));
    assert_answers(&filter, &hashes, |_| true);

    let none = open(&[]);
    assert!(matches!(none, TableFilter::None(_)));
    assert_answers(&none, &hashes, |_| true);
    let pass_all = BloomFilter::pass_all(key_hash).to_bytes();
    assert_answers(&open(&pass_all), &hashes, |_| true);
}

/// Bytes 56 to 63 of the stored form, also for a Bloom filter that is stored without its header.
#[test]
fn the_identity_of_a_filter_is_the_checksum_of_its_header() {
    let options = options();
    let bloom = bloom(&options);
    let open = |bytes| TableFilter::from_bytes(bytes, options.key_hash()).unwrap();
    let checksum = |stored: &[u8]| {
        FilterIdentity::HeaderChecksum(u64::from_le_bytes(stored[56..64].try_into().unwrap()))
    };
    let full = bloom.to_bytes();
    for stored in [full.clone(), ribbon(&options), index(&options)] {
        let expected = checksum(&stored);
        assert_eq!(open(stored).identity(), expected);
    }
    assert_eq!(open(bloom.to_compact_bytes().unwrap()).identity(), checksum(&full));
    assert_eq!(TableFilter::<Vec<u8>>::from(bloom).identity(), checksum(&full));
    assert_eq!(open(Vec::new()).identity(), FilterIdentity::Length(0));
}

#[test]
fn every_choice_of_policies_and_plans_can_be_opened() {
    let policy = FilterPolicy::new(options())
        .with_levels([Sizing::BitsPerKey(10.0), Sizing::BitsPerKey(0.0)])
        .with_partitions(2_048, 1_024);
    let key_hash = policy.options().key_hash();
    let stored = |level, keys| match policy.choose_filter(level, keys) {
        FilterChoice::Whole(options) => bloom(&options).to_bytes(),
        FilterChoice::Partitioned { options, .. } => index(&options),
        _ => Vec::new(),
    };
    let kind = |level, keys| TableFilter::from_bytes(stored(level, keys), key_hash).unwrap();
    assert!(matches!(kind(0, 1_000), TableFilter::Bloom(_)));
    assert!(matches!(kind(0, 100_000), TableFilter::Partitioned(_)));
    assert!(matches!(kind(1, 1_000), TableFilter::None(_)));

    let plan = KindPlan::for_budget(&[Level::new(1_000_000)], 1_200_000, 0.0032).unwrap();
    assert!(matches!(plan.levels()[0].kind, FilterKind::Ribbon { .. }));
    let ribbon = TableFilter::from_bytes(ribbon(policy.options()), key_hash).unwrap();
    assert!(matches!(ribbon, TableFilter::Ribbon(_)));
}

#[test]
fn another_seed_is_an_error_for_every_kind() {
    let expected = KeyHash::Xxh3 { seed: 7 };
    let options = options();
    let found = options.key_hash();
    let compact = bloom(&options).to_compact_bytes().unwrap();
    let trailer = compact.len() as u64 - 8;
    let mismatch = |offset| HeaderError::HashMismatch { offset, found, expected };
    for (bytes, error) in [
        (bloom(&options).to_bytes(), FormatError::Header(mismatch(11)).into()),
        (compact, FormatError::Header(mismatch(trailer)).into()),
        (ribbon(&options), TableFilterError::Ribbon(mismatch(11).into())),
        (index(&options), TableFilterError::Partition(mismatch(10).into())),
    ] {
        assert_eq!(TableFilter::from_bytes(bytes.clone(), expected).unwrap_err(), error);
        let text = error.to_string();
        assert!(text.contains("with seed 0") && text.contains("with seed 7"), "{text}");
        let (filter, reason) = TableFilter::open_or_pass_all(bytes, expected);
        assert!(reason == Some(error) && filter.contains_hash(1));
    }
}

/// Every flipped bit and every truncation of the kinds with checksums is an error, and the
/// replacement answers "maybe".
#[test]
fn damage_never_says_absent() {
    let options = options();
    let (key_hash, hasher) = (options.key_hash(), options.hasher().unwrap());
    let present = hasher.hash(5_u32.to_be_bytes());
    let mut random = Random(1);
    let mut seen = 0;
    for stored in [bloom(&options).to_bytes(), ribbon(&options), index(&options)] {
        for case in 0..2_000 {
            let mut bytes = stored.clone();
            if case % 2 == 0 {
                // Also the first bytes, by which the kind is recognised.
                let limit = if case % 4 == 0 { 64 } else { bytes.len() as u64 };
                bytes[(random.next() % limit) as usize] ^= 1 << (random.next() % 8);
            } else {
                bytes.truncate((random.next() % bytes.len() as u64) as usize);
            }
            let (filter, error) = TableFilter::open_or_pass_all(bytes, key_hash);
            assert!(filter.contains_hash(present));
            // Empty bytes mean no filter.
            seen += usize::from(error.is_some());
        }
    }
    assert!(seen > 5_990, "{seen} errors");
}

#[test]
fn errors_name_the_bytes_found() {
    let key_hash = KeyHash::default();
    let error = TableFilter::from_bytes([1, 2, 3], key_hash).unwrap_err();
    assert_eq!(error, TableFilterError::Unknown { found: [1, 2, 3, 0, 0, 0, 0, 0], length: 3 });
    assert_eq!(
        error.to_string(),
        "3 bytes starting with 0102030000000000: not a known kind of filter"
    );
    // Whole words, but not the length of a compact filter: blocks of 64 bytes and 8 others.
    for length in [8 + 8, 64, 64 + 16, 128 + 56] {
        let error = TableFilter::from_bytes(vec![1; length], key_hash).unwrap_err();
        assert_eq!(error, TableFilterError::Unknown { found: [1; 8], length: length as u64 });
    }
    let mut stored = bloom(&options()).to_bytes();
    stored[70] ^= 1;
    let error = TableFilter::from_bytes(stored, key_hash).unwrap_err();
    assert!(std::error::Error::source(&error).is_some());
    assert!(matches!(error, TableFilterError::Bloom(_)));
}

/// Blocks of RocksDB are opened only on request and never guessed, because any bytes can be one.
#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_blocks_answer_like_the_filter() {
    use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder, KEY_HASH, hash_key};
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    builder.extend((0..KEYS).map(u32::to_be_bytes));
    let block = builder.finish().unwrap();
    let hashes: Vec<u64> = (0..2 * KEYS).map(|key| hash_key(key.to_be_bytes())).collect();
    let direct = FilterBlock::from_bytes(&block).unwrap();
    assert!(TableFilter::from_bytes(block.clone(), KEY_HASH).is_err());
    let filter = TableFilter::from_rocksdb_block(block.clone()).unwrap();
    assert_eq!(filter.key_hash(), KEY_HASH);
    assert!((0.002..0.03).contains(&filter.expected_false_positive_rate()));
    assert_answers(&filter, &hashes, |hash| direct.contains_hash(hash));
    for &hash in &hashes {
        let found = tables_to_read(&[&filter], |filter| (*filter, hash)).count() == 1;
        assert_eq!(found, direct.contains_hash(hash));
    }
    let owned = filter.into_own_memory().unwrap();
    assert!(matches!(owned, TableFilter::Owned(_)));
    assert_answers(&owned, &hashes, |hash| direct.contains_hash(hash));
    assert!(TableFilter::from_rocksdb_block(Vec::new()).is_err());
}

/// For each kind of filter, every lookup finds the keys inserted into its builder.
#[test]
fn inserted_keys_are_found() {
    for seed in [0, 7] {
        let options = options().with_key_hash(KeyHash::Xxh3 { seed });
        let integers = found::integers();
        let mut builder = options.builder();
        builder.insert_batch(&found::keys()).unwrap();
        builder.extend(integers.iter().map(|key| key.to_le_bytes())).unwrap();
        let bloom = builder.finish().unwrap();
        let mut builder = RibbonOptions::for_filters(&options).builder();
        builder.insert_batch(&found::keys()).unwrap();
        builder.extend(integers.iter().map(|key| key.to_le_bytes())).unwrap();
        let ribbon = builder.finish().unwrap();
        let stored = [("bloom", bloom.to_bytes()), ("ribbon", ribbon.as_bytes().to_vec())];
        for (name, bytes) in stored {
            let filter = TableFilter::from_bytes(bytes, options.key_hash()).unwrap();
            found::check(name, &filter, Hashes::AsKeys);
        }
        let compact = options.key_hash() == KeyHash::default();
        if let (true, Ok(bytes)) = (compact, bloom.to_compact_bytes()) {
            let filter = TableFilter::from_bytes(bytes, options.key_hash()).unwrap();
            found::check("compact", &filter, Hashes::AsKeys);
        }
        found::check("owned", &TableFilter::<Vec<u8>>::from(bloom), Hashes::AsKeys);
    }
}

#[cfg(feature = "rocksdb")]
#[test]
fn inserted_keys_are_found_in_rocksdb_blocks() {
    use blocked_bloom_formats::rocksdb::{FilterBlockBuilder, RibbonBlockBuilder};
    let keys = found::sorted();
    let mut fast = FilterBlockBuilder::new(10.0).unwrap();
    let mut legacy = FilterBlockBuilder::legacy(10.0).unwrap();
    let mut ribbon = RibbonBlockBuilder::new(10.0).unwrap();
    fast.extend(&keys);
    legacy.extend(&keys);
    ribbon.extend(&keys);
    for (name, block, hashes) in [
        ("fast", fast.finish().unwrap(), Hashes::AsKeys),
        ("legacy", legacy.finish().unwrap(), Hashes::LessThanKeys),
        ("ribbon", ribbon.finish().unwrap(), Hashes::AsKeys),
    ] {
        let filter = TableFilter::from_rocksdb_block(block).unwrap();
        found::check(name, &filter, hashes);
    }
}

/// The same for ranges. A range without keys is ruled out if the filter is a Bloom filter.
#[test]
fn filters_with_prefixes_rule_out_ranges() {
    let rule = PrefixExtractor::fixed(3);
    let options = options().with_prefixes(rule.clone());
    let bloom = bloom(&options); // of keys that begin with 0, 0 and 0 to 11
    let stored = TableFilter::from_bytes(bloom.to_bytes(), options.key_hash()).unwrap();
    let range = |filter: &TableFilter, rule: &PrefixExtractor, low: [u8; 4], high: [u8; 4]| {
        filter.contains_range(rule, Included(&low[..]), Excluded(&high[..]))
    };
    for filter in [bloom.clone().into(), stored] {
        assert!((0..12).all(|i| range(&filter, &rule, [0, 0, i, 0], [0, 0, i + 1, 0])));
        assert!(range(&filter, &rule, [0, 0, 9, 0], [0, 0, 200, 0]));
        let one = |key: [u8; 4]| filter.contains_range(&rule, Included(&key), Included(&key));
        assert!((0..12).all(|i| one([0, 0, i, 0])), "both bounds are included");
        let absent =
            (0..200).filter(|&i| !range(&filter, &rule, [9, i, 0, 7], [9, i, 3, 9])).count();
        assert!(absent > 160, "{absent} ranges of four prefixes");
        assert!(!range(&filter, &rule, [0, 0, 2, 0], [0, 0, 1, 0]), "reversed");
        assert!(range(&filter, &rule, [9, 0, 0, 0], [9, 1, 1, 0]), "the key [9, 1] has no prefix");
        let every = rule.clone().assume_keys_have_prefix();
        assert!(!range(&filter, &every, [9, 0, 255, 0], [9, 1, 1, 0]));
        let other = PrefixExtractor::fixed(2);
        assert!(range(&filter, &other, [9, 0, 0, 0], [9, 0, 1, 0]), "another rule");
    }
    let none = TableFilter::<Vec<u8>>::None(options.key_hash());
    let ribbon = TableFilter::from_bytes(ribbon(&self::options()), options.key_hash()).unwrap();
    let index = TableFilter::from_bytes(index(&options), options.key_hash()).unwrap();
    for filter in [none, ribbon, index] {
        assert!((0..100).all(|i| range(&filter, &rule, [i, i, 0, 0], [i, i, 1, 0])), "{filter:?}");
    }
}
