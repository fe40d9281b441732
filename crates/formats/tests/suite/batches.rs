//! Properties of the batches of all filters: keys get the answers of their hashes, words must have
//! the right length, and after a panic no remaining answer is "absent".

use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use blocked_bloom::{Bitmask, Filter, KeyHash};
use blocked_bloom_formats::cassandra::{CassandraFilter, Layout};
use blocked_bloom_formats::parquet::Value;
use blocked_bloom_formats::rocksdb::{
    FilterBlock, FilterBlockBuilder, FilterKind, FilterLayout, RibbonBlockBuilder, RocksdbError,
    SstFilter, hash_key,
};
use blocked_bloom_split::{AtomicSplitBlockFilter, SplitBlockFilter, hash_value};

use crate::common::{Random, kernels};
use crate::fixtures::committed;
use crate::found::{self, Hashes};
use crate::sst::{self, Sst};

fn keys(name: &str, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("{name}{i:05}").into_bytes()).collect()
}

/// Every filter block of RocksDB by name: of 300 keys, some of none.
fn blocks(keys: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    let built = |builder: Result<FilterBlockBuilder, _>| {
        let mut builder = builder.unwrap();
        builder.extend(keys);
        builder.finish().unwrap()
    };
    vec![
        ("fast", built(FilterBlockBuilder::new(10.0))),
        ("legacy", built(FilterBlockBuilder::legacy(10.0))),
        ("pass all", FilterBlock::pass_all().as_bytes().to_vec()),
        ("no keys", vec![0xff, 0, 6, 0, 0]),
    ]
}

const WHOLE: (&str, &[u8]) = ("rocksdb.block.based.table.whole.key.filtering", b"1");
const BYTEWISE: (&str, &[u8]) = ("rocksdb.comparator", b"leveldb.BytewiseComparator");
const USER_KEYS: (&str, &[u8]) = ("rocksdb.index.key.is.user.key", &[1]);

/// A file with this filter block, or with one partition for each of several.
fn file(blocks: &[(Vec<u8>, Vec<u8>)], properties: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = Sst::default();
    if let [(_, block)] = blocks {
        let place = file.block(block);
        return file.finish(&[("fullfilter.rocksdb.BuiltinBloomFilter", place)], Some(properties));
    }
    let places: Vec<_> =
        blocks.iter().map(|(last, block)| (last.clone(), file.block(block))).collect();
    let place = file.block(&sst::index(&places, 1, false));
    file.finish(&[("partitionedfilter.rocksdb.BuiltinBloomFilter", place)], Some(properties))
}

/// Files of 300 keys by name: full filters, partitions with either comparator, and a filter that
/// supports no lookup.
fn files(keys: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    let all = blocks(keys);
    let full = |which: usize| [(keys[299].clone(), all[which].1.clone())];
    let partitions: Vec<_> =
        keys.chunks(50).map(|keys| (keys[49].clone(), blocks(keys)[0].1.clone())).collect();
    vec![
        ("full", file(&full(0), &[WHOLE, BYTEWISE])),
        ("full, legacy", file(&full(1), &[WHOLE, BYTEWISE])),
        ("partitions", file(&partitions, &[WHOLE, BYTEWISE, USER_KEYS])),
        ("partitions, other comparator", file(&partitions, &[WHOLE, USER_KEYS])),
        ("no whole keys", file(&full(0), &[BYTEWISE])),
    ]
}

/// Masks and words agree, in every length of batch; other numbers of words are errors that write
/// nothing.
fn check(filter: &impl Filter, keys: &[Vec<u8>], hashes: &[u64], name: &str) {
    let (mut hits, mut words) = (Bitmask::new(), vec![0; 64]);
    let numbers: Vec<u64> = (0..keys.len() as u64).map(|i| i % 500).collect();
    let bytes: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
    for length in [0, 1, 63, 64, 65, 200, keys.len()] {
        let (keys, hashes) = (&keys[..length], &hashes[..length]);
        let words = &mut words[..length.div_ceil(64)];
        words.fill(0x5555_5555_5555_5555);
        filter.contains_batch(keys, &mut hits);
        filter.contains_batch_into(keys, words).unwrap();
        assert_eq!((hits.words(), hits.len()), (&*words, length), "{name}: {length} keys");
        filter.contains_hashes(hashes, &mut hits);
        filter.contains_hashes_into(hashes, words).unwrap();
        assert_eq!((hits.words(), hits.len()), (&*words, length), "{name}: {length} hashes");
        assert!(hits.hits().all(|i| i < length), "{name}: a bit past the last");
        for (i, &hash) in hashes.iter().enumerate() {
            filter.prefetch_hash(hash);
            assert_eq!(hits.get(i), Some(filter.contains_hash(hash)), "{name}: hash {i}");
        }
        filter.contains_batch(&bytes[..length], &mut hits);
        filter.contains_u64s_into(&numbers[..length], words).unwrap();
        assert_eq!((hits.words(), hits.len()), (&*words, length), "{name}: {length} numbers");
        filter.contains_u64s(&numbers[..length], &mut hits);
        assert_eq!((hits.words(), hits.len()), (&*words, length), "{name}: {length} numbers");
    }
    // The core cannot hash keys as these filters do, and knows it.
    assert!(matches!(filter.key_hash(), KeyHash::Caller { .. }), "{name}");
    assert!(filter.hasher().is_err(), "{name}");
    for count in [0, 1, 3] {
        let mut words = vec![7; count];
        let error = filter.contains_batch_into(&keys[..65], &mut words).unwrap_err();
        assert_eq!((error.words, error.expected), (count, 2), "{name}");
        let error = filter.contains_u64s_into(&numbers[..65], &mut words).unwrap_err();
        assert_eq!((error.words, error.expected), (count, 2), "{name}");
        let error = filter.contains_hashes_into(&hashes[..65], &mut words).unwrap_err();
        assert_eq!((error.words, error.expected), (count, 2), "{name}");
        assert_eq!(words, vec![7; count], "{name}");
    }
}

fn answers(filter: &dyn Filter, hashes: &[u64]) -> Vec<bool> {
    let mut hits = Bitmask::new();
    hits.write(hashes.len(), |words| filter.contains_hashes_into(hashes, words).unwrap());
    hits.iter().collect()
}

#[test]
fn rocksdb_blocks() {
    let added = keys("a", 300);
    let looked_up = [added.clone(), keys("n", 500)].concat();
    let hashes: Vec<u64> = looked_up.iter().map(hash_key).collect();
    for (name, bytes) in blocks(&added) {
        let block = FilterBlock::from_bytes_or_no_keys(&bytes).unwrap();
        for kernel in kernels() {
            check(&block.with_kernel(kernel), &looked_up, &hashes, name);
        }
        let expected: Vec<bool> = match block.kind() {
            // It has another hash.
            FilterKind::LegacyBloom { .. } => vec![true; hashes.len()],
            _ => looked_up.iter().map(|key| block.contains(key)).collect(),
        };
        assert_eq!(answers(&block, &hashes), expected, "{name}");
        // Whatever points to a filter answers like the filter.
        let (dynamic, boxed): (&dyn Filter, _) = (&block, Box::new(&block));
        for key in &looked_up {
            let found = block.contains(key);
            assert_eq!((dynamic.contains_key(key), boxed.contains(key)), (found, found), "{name}");
        }
    }
}

/// A hash does not say which partition its key is in: it is looked up in all of them.
#[test]
fn rocksdb_files() {
    let added = keys("a", 300);
    let looked_up = [added.clone(), keys("n", 500)].concat();
    let hashes: Vec<u64> = looked_up.iter().map(hash_key).collect();
    for (name, bytes) in files(&added) {
        let file = SstFilter::open(&bytes).unwrap();
        for kernel in kernels() {
            check(&file.clone().with_kernel(kernel), &looked_up, &hashes, name);
        }
        let any_block = |&hash| file.filter_blocks().any(|block| block.contains_hash(hash));
        let expected: Vec<bool> = match file.whole_keys() {
            Some(true) => hashes.iter().map(any_block).collect(),
            _ => vec![true; hashes.len()],
        };
        let hash_answers = answers(&file, &hashes);
        assert_eq!(hash_answers, expected, "{name}");
        assert!(hash_answers[..300].iter().all(|&maybe| maybe), "{name}");
        // A key whose hash is absent is absent.
        assert!(
            looked_up.iter().zip(&hash_answers).all(|(key, &maybe)| maybe || !file.contains(key))
        );
        let has_partitions = file.layout() == FilterLayout::Partitioned;
        assert_eq!(name.starts_with("partitions"), has_partitions);
        assert_eq!(file.filter_blocks().count(), if has_partitions { 6 } else { 1 });
    }
    // One that RocksDB wrote.
    let path = committed("rocksdb").join("bloom_b10_n5000_partitioned.sst");
    let bytes = fs::read(path).unwrap();
    let file = SstFilter::open(&bytes).unwrap();
    let (mut key_answers, mut hash_answers) = (Bitmask::new(), Bitmask::new());
    file.contains_batch(&looked_up, &mut key_answers);
    file.contains_hashes(&hashes, &mut hash_answers);
    assert!(
        key_answers.count_hits() <= hash_answers.count_hits() && hash_answers.count_hits() < 120
    );
    assert!(key_answers.hits().all(|i| hash_answers.get(i) == Some(true)));
}

#[test]
fn parquet_filters() {
    let looked_up = [keys("a", 300), keys("n", 500)].concat();
    let hashes: Vec<u64> = looked_up.iter().map(hash_value).collect();
    for kernel in kernels() {
        let mut filter = SplitBlockFilter::new(300, 0.01).unwrap().with_kernel(kernel);
        filter.insert_hashes(&hashes[..300]);
        check(&filter, &looked_up, &hashes, "owned");
        check(&filter.view(), &looked_up, &hashes, "borrowed");
        let expected: Vec<bool> = looked_up.iter().map(|key| filter.contains(key)).collect();
        assert!(expected[..300].iter().all(|&maybe| maybe) && expected.contains(&false));
        assert_eq!(answers(&filter, &hashes), expected);
        assert!(hashes.iter().zip(&expected).all(|(&hash, &is)| filter.contains_hash(hash) == is));
        let atomic = AtomicSplitBlockFilter::from(filter);
        assert_eq!(answers(&atomic, &hashes), expected);
        let (mut key_answers, mut batch_answers) = (Bitmask::new(), Bitmask::new());
        atomic.contains_batch(&looked_up, &mut key_answers);
        atomic.contains_hashes(&hashes, &mut batch_answers);
        assert!(key_answers == batch_answers && key_answers.iter().eq(expected));
        assert!(
            looked_up.iter().zip(key_answers.iter()).all(|(key, is)| atomic.contains(key) == is)
        );
        let error = atomic.contains_hashes_into(&hashes[..65], &mut [0; 3]).unwrap_err();
        assert_eq!((error.words, error.expected), (3, 2));
    }
}

/// A key that panics when it is read, or is not to be read at all.
#[derive(Clone)]
struct Key(Option<Vec<u8>>);

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref().expect("a key that panics")
    }
}

/// What is left of a batch whose key `at` panics: no key that may be present is absent.
fn check_panic(filter: &impl Filter, keys: &[Vec<u8>], at: usize, name: &str) {
    let mut expected = Bitmask::new();
    filter.contains_batch(keys, &mut expected);
    let mut hostile: Vec<Key> = keys.iter().cloned().map(Some).map(Key).collect();
    hostile[at] = Key(None);
    let mut words = vec![0; keys.len().div_ceil(64)];
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        filter.contains_batch_into(&hostile, &mut words).unwrap();
    }));
    // Where the answer does not depend on keys, they are not read.
    if outcome.is_ok() {
        assert!(expected.count_hits() == 0 || expected.count_misses() == 0, "{name}");
    }
    for (i, (left, expected)) in words.iter().zip(expected.words()).enumerate() {
        assert_eq!(left & expected, *expected, "{name}: word {i}, key {at} panics");
    }
}

#[test]
fn keys_that_panic_leave_maybe() {
    let added = keys("a", 300);
    let mut random = Random(4);
    let blocks: Vec<_> = blocks(&added);
    let files = files(&added);
    let mut parquet = SplitBlockFilter::new(300, 0.01).unwrap();
    added.iter().for_each(|key| _ = parquet.insert(key));
    // Prefetched while keys are hashed, group by group.
    let mut large = SplitBlockFilter::new(4_000_000, 0.01).unwrap();
    added.iter().for_each(|key| _ = large.insert(key));
    let mut cassandra = CassandraFilter::new(Layout::Cassandra4, 300, 0.01).unwrap();
    cassandra.extend(&added);
    for at in (0..20).map(|_| random.next() as usize % 300) {
        for (name, bytes) in &blocks {
            let block = FilterBlock::from_bytes_or_no_keys(bytes).unwrap();
            check_panic(&block, &added, at, name);
        }
        for (name, bytes) in &files {
            check_panic(&SstFilter::open(bytes).unwrap(), &added, at, name);
        }
        check_panic(&parquet, &added, at, "parquet");
        check_panic(&large, &added, at, "large parquet");
        // Of Cassandra's filters there are masks only.
        let mut hostile: Vec<Key> = added.iter().cloned().map(Some).map(Key).collect();
        hostile[at] = Key(None);
        let mut hits = Bitmask::new();
        cassandra.view().contains_batch(&added, &mut hits);
        assert_eq!(hits.count_hits(), 300);
        let view = cassandra.view();
        let outcome = catch_unwind(AssertUnwindSafe(|| view.contains_batch(&hostile, &mut hits)));
        assert!(outcome.is_err() && hits.is_empty() && hits.get(0).is_none());
    }
}

/// Blocks of what [`found`] looks up, by name.
fn blocks_of(keys: &[Vec<u8>]) -> [(&'static str, Vec<u8>, Hashes); 3] {
    let mut fast = FilterBlockBuilder::new(10.0).unwrap();
    let mut legacy = FilterBlockBuilder::legacy(10.0).unwrap();
    let mut ribbon = RibbonBlockBuilder::new(10.0).unwrap();
    fast.extend(keys);
    legacy.extend(keys);
    ribbon.extend(keys);
    [
        ("fast", fast.finish().unwrap(), Hashes::AsKeys),
        ("legacy", legacy.finish().unwrap(), Hashes::LessThanKeys),
        ("ribbon", ribbon.finish().unwrap(), Hashes::AsKeys),
    ]
}

#[test]
fn finds_every_key_in_rocksdb_filters() {
    let sorted = found::sorted();
    for (name, block, hashes) in blocks_of(&sorted) {
        let filter = FilterBlock::from_bytes(&block).unwrap();
        assert_eq!(name == "ribbon", matches!(filter.kind(), FilterKind::Ribbon { .. }));
        found::check(name, &filter, hashes);
        let bytes = file(&[(sorted.last().unwrap().clone(), block)], &[WHOLE, BYTEWISE]);
        found::check(name, &SstFilter::open(&bytes).unwrap(), hashes);
    }
    for which in 0..2 {
        let partition =
            |keys: &[Vec<u8>]| (keys.last().unwrap().clone(), blocks_of(keys)[which].1.clone());
        let partitions: Vec<_> = sorted.chunks(300).map(partition).collect();
        for properties in [&[WHOLE, USER_KEYS, BYTEWISE][..], &[WHOLE, USER_KEYS]] {
            let bytes = file(&partitions, properties);
            let filter = SstFilter::open(&bytes).unwrap();
            assert_eq!(filter.layout(), FilterLayout::Partitioned);
            found::check("partitions", &filter, Hashes::LessThanKeys);
        }
    }
}

#[test]
fn finds_every_key_in_parquet_filters() {
    let large = SplitBlockFilter::with_blocks(1 << 20).unwrap();
    for mut filter in [SplitBlockFilter::new(1_400, 0.01).unwrap(), large] {
        found::keys().iter().for_each(|key| assert!(filter.insert(key) || filter.contains(key)));
        for integer in found::integers() {
            filter.insert_hash(Value::Int64(integer.cast_signed()).hash());
        }
        for kernel in kernels() {
            filter = filter.with_kernel(kernel);
            found::check("owned", &filter, Hashes::AsKeys);
            found::check("borrowed", &filter.view(), Hashes::AsKeys);
        }
        let stored = [&[0][..], &filter.to_bytes()].concat();
        let opened = SplitBlockFilter::from_bytes(&stored[1..]).unwrap();
        found::check("stored", &opened, Hashes::AsKeys);
    }
    let filter = AtomicSplitBlockFilter::new(1_400, 0.01).unwrap();
    for key in found::keys() {
        filter.insert_hash(Value::ByteArray(&key).hash());
    }
    let integers = found::integers();
    let hashes: Vec<u64> = integers.iter().map(|i| hash_value(i.to_le_bytes())).collect();
    filter.insert_hashes(&hashes);
    found::check("atomic", &filter, Hashes::AsKeys);
}

/// Bytes that get shorter or longer when their owner is told to.
struct ResizingOwner {
    bytes: Vec<u8>,
    lent: Cell<usize>,
}

impl AsRef<[u8]> for &ResizingOwner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.lent.get()]
    }
}

macro_rules! check_owner {
    ($name:expr, $stored:expr, $hash:expr, $open:expr) => {{
        let length = $stored.len();
        let bytes = [$stored.to_vec(), vec![0; 70]].concat();
        let fickle = ResizingOwner { bytes, lent: Cell::new(length) };
        let filter = $open(&fickle);
        let looked_up = [keys("a", 300), keys("n", 500)].concat();
        let hashes: Vec<u64> = looked_up.iter().map($hash).collect();
        let answers = |hits: &mut Bitmask| {
            filter.contains_batch(&looked_up, hits);
            hashes.iter().for_each(|&hash| filter.prefetch_hash(hash));
            let singles: Vec<bool> = looked_up.iter().map(|key| filter.contains(key)).collect();
            assert!(hits.iter().eq(singles), "{}", $name);
            let hash_answers: Vec<bool> =
                hashes.iter().map(|&hash| filter.contains_hash(hash)).collect();
            let mut batch_answers = Bitmask::new();
            filter.contains_hashes(&hashes, &mut batch_answers);
            assert!(batch_answers.iter().eq(hash_answers), "{}", $name);
        };
        let (mut before, mut hits) = (Bitmask::new(), Bitmask::new());
        answers(&mut before);
        assert!(before.count_misses() > 400, "{}", $name);
        for lent in [0, 1, 5, 6, length - 64, length - 1, length + 1, length + 70] {
            fickle.lent.set(lent);
            answers(&mut hits);
            assert_eq!(hits.count_misses(), 0, "{}: {lent} of {length} bytes", $name);
        }
        fickle.lent.set(length);
        answers(&mut hits);
        assert_eq!(hits, before, "{}", $name);
    }};
}

#[test]
fn owners_that_lend_other_bytes() {
    let added = keys("a", 300);
    for (name, block, _) in blocks_of(&added) {
        check_owner!(name, block, hash_key, |bytes| FilterBlock::from_bytes(bytes).unwrap());
    }
    for (name, file) in files(&added).into_iter().filter(|(name, _)| *name != "no whole keys") {
        check_owner!(name, file, hash_key, |bytes| SstFilter::open(bytes).unwrap());
    }
    let mut filter = SplitBlockFilter::new(300, 0.01).unwrap();
    added.iter().for_each(|key| _ = filter.insert(key));
    let stored = filter.to_bytes();
    check_owner!("parquet", stored, hash_value, |bytes| SplitBlockFilter::from_bytes(bytes)
        .unwrap());
}

/// Bytes that become one byte shorter after some number of calls.
struct Shrinking {
    bytes: Vec<u8>,
    calls: Cell<usize>,
}

impl AsRef<[u8]> for &Shrinking {
    fn as_ref(&self) -> &[u8] {
        let left = self.calls.get();
        self.calls.set(left.saturating_sub(1));
        &self.bytes[..self.bytes.len() - usize::from(left == 0)]
    }
}

/// The view of a block looks it up after its owner has changed.
#[test]
fn views_of_blocks_whose_owner_lends_other_bytes() {
    let added = keys("a", 300);
    let [(_, bytes, _), ..] = blocks_of(&added);
    let owner = Shrinking { bytes, calls: Cell::new(usize::MAX) };
    let block = FilterBlock::from_bytes(&owner).unwrap();
    owner.calls.set(0);
    let view = block.view().unwrap();
    assert!(added.iter().all(|key| view.contains_hash(hash_key(key))));
}

/// Finds an operation that reads the blocks twice, and takes them for the same.
#[test]
fn owners_that_lend_other_bytes_within_a_call() {
    let added = keys("a", 3_000);
    let mut filter = SplitBlockFilter::new(3_000, 0.01).unwrap();
    added.iter().for_each(|key| _ = filter.insert(key));
    let bytes = filter.to_bytes();
    for calls in 0..8 {
        let owner = Shrinking { bytes: bytes.clone(), calls: Cell::new(usize::MAX) };
        let stored = SplitBlockFilter::from_bytes(&owner).unwrap();
        owner.calls.set(calls);
        let copy = stored.to_filter().unwrap();
        assert!(added.iter().all(|key| copy.contains(key)), "{calls}");
        for values in [1, 3_000] {
            owner.calls.set(calls);
            let mut union = SplitBlockFilter::new(values, 0.01).unwrap();
            if union.union_with(&stored).is_ok() {
                assert!(added.iter().all(|key| union.contains(key)), "{calls}, {values}");
            }
        }
        let owner = Shrinking { bytes: vec![0xff, 0, 6, 0, 0], calls: Cell::new(usize::MAX) };
        let block = FilterBlock::from_bytes_or_no_keys(&owner).unwrap();
        assert!(!block.contains("apple"));
        owner.calls.set(0);
        let (mut hits, keys) = (Bitmask::new(), ["apple"; 70]);
        block.contains_batch(&keys, &mut hits);
        assert!(block.contains("apple") && hits.count_misses() == 0, "{calls}");
    }
}

/// The same of SST files, and of an owner that lends less while the file is opened.
#[test]
fn owners_that_lend_other_bytes_of_files_within_a_call() {
    let added = keys("a", 300);
    for (name, bytes) in files(&added) {
        let owner = Shrinking { bytes, calls: Cell::new(usize::MAX) };
        let (mut hits, mut opened) = (Bitmask::new(), 0);
        for calls in 0..30 {
            owner.calls.set(calls);
            if let Ok(filter) = SstFilter::open(&owner) {
                opened += 1;
                assert!(added.iter().all(|key| filter.contains(key)), "{name}, {calls} calls");
            }
            owner.calls.set(usize::MAX);
            let filter = SstFilter::open(&owner).unwrap();
            owner.calls.set(calls);
            filter.contains_batch(&added, &mut hits);
            assert_eq!(hits.count_misses(), 0, "{name}, {calls} calls");
            owner.calls.set(calls);
            let hashes: Vec<u64> = added.iter().map(hash_key).collect();
            filter.contains_hashes(&hashes, &mut hits);
            assert_eq!(hits.count_misses(), 0, "{name}, {calls} calls");
        }
        assert!(opened > 20, "{name}");
    }
}

/// Bytes whose owner panics when it is told to.
#[derive(Clone)]
struct Panicking<'c>(&'c [u8], &'c Cell<bool>);

impl AsRef<[u8]> for Panicking<'_> {
    fn as_ref(&self) -> &[u8] {
        assert!(!self.1.get(), "boom");
        self.0
    }
}

/// Words that say "absent" of nothing that was not looked up: they are as before, or say "maybe".
#[test]
fn owners_that_panic() {
    let absent = keys("n", 300);
    let hashes: Vec<u64> = absent.iter().map(hash_key).collect();
    for (name, bytes) in &files(&keys("a", 300))[2..4] {
        let panics = Cell::new(false);
        let filter = SstFilter::open(Panicking(bytes, &panics)).unwrap();
        let mut words = vec![0; 5];
        filter.contains_batch_into(&absent, &mut words).unwrap();
        assert!(words.iter().map(|word| word.count_ones()).sum::<u32>() < 50, "{name}");
        panics.set(true);
        let key_answers = catch_unwind(AssertUnwindSafe(|| {
            filter.contains_batch_into(&absent, &mut words).unwrap();
        }));
        assert!(key_answers.is_err(), "{name}");
        let all = [!0, !0, !0, !0, (1 << 44) - 1];
        assert_eq!(words, all, "{name}");
        words.fill(0);
        let batch_answers = catch_unwind(AssertUnwindSafe(|| {
            filter.contains_hashes_into(&hashes, &mut words).unwrap();
        }));
        assert!(batch_answers.is_err() && words == all, "{name}");
    }
}

#[test]
fn damaged_blocks_that_pass_all() {
    let (filter, error) = FilterBlock::open_or_pass_all(vec![1, 2, 3]);
    assert_eq!(error, Some(RocksdbError::NoKeys { found: 3 }));
    assert!(filter.contains("apple") && filter.as_bytes() == [1, 2, 3]);
    let block = blocks_of(&keys("a", 300))[0].1.clone();
    let (filter, error) = FilterBlock::open_or_pass_all(block);
    assert!(error.is_none() && filter.contains("a00001") && !filter.contains("apple"));
}
