//! Ribbon filters in SST files: with prefixes, in full and in partitioned filters, and among files
//! with Bloom filters.

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_formats::rocksdb::{
    FilterBlock, FilterBlockBuilder, FilterKind, FilterLayout, KEY_HASH, RibbonBlockBuilder,
    SstFilter, hash_key,
};

use crate::common::kernels;
use crate::sst::{self, Sst};

const WHOLE: (&str, &[u8]) = ("rocksdb.block.based.table.whole.key.filtering", b"1");
const BYTEWISE: (&str, &[u8]) = ("rocksdb.comparator", b"leveldb.BytewiseComparator");
const USER_KEYS: (&str, &[u8]) = ("rocksdb.index.key.is.user.key", &[1]);
const PREFIXES: (&str, &[u8]) = ("rocksdb.block.based.table.prefix.filtering", b"1");
const EXTRACTOR: (&str, &[u8]) = ("rocksdb.prefix.extractor.name", b"rocksdb.FixedPrefix.4");

#[derive(Clone, Copy, PartialEq)]
enum Contents {
    Keys,
    Prefixes,
    Both,
}

/// A Ribbon block of the keys, their first four bytes, or both.
fn ribbon(keys: &[String], holds: Contents) -> Vec<u8> {
    // At one bit per key few prefixes are not a Bloom filter either.
    let mut builder =
        RibbonBlockBuilder::new(if holds == Contents::Prefixes { 1.0 } else { 10.0 }).unwrap();
    for key in keys {
        match holds {
            Contents::Keys => builder.insert(key),
            Contents::Prefixes => builder.insert(&key[..4]),
            Contents::Both => builder.insert_with_prefix(key, &key[..4]),
        }
    }
    let block = builder.finish_verified().unwrap();
    assert!(matches!(FilterBlock::from_bytes(&block).unwrap().kind(), FilterKind::Ribbon { .. }));
    block
}

fn bloom(keys: &[String]) -> Vec<u8> {
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    builder.extend(keys);
    builder.finish().unwrap()
}

/// A file with this filter block.
fn full(block: &[u8], properties: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = Sst::default();
    let place = file.block(block);
    file.finish(&[("fullfilter.rocksdb.BuiltinBloomFilter", place)], Some(properties))
}

/// A file with a partition for every `each` keys.
fn partitioned(
    keys: &[String],
    each: usize,
    block: impl Fn(&[String]) -> Vec<u8>,
    properties: &[(&str, &[u8])],
) -> Vec<u8> {
    let mut file = Sst::default();
    let mut entry =
        |keys: &[String]| (keys[keys.len() - 1].clone().into(), file.block(&block(keys)));
    let entries: Vec<_> = keys.chunks(each).map(&mut entry).collect();
    let index = file.block(&sst::index(&entries, 4, false));
    file.finish(&[("partitionedfilter.rocksdb.BuiltinBloomFilter", index)], Some(properties))
}

/// Returns keys in byte order. Each prefix of four bytes has ten keys.
fn numbered(letter: char, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{letter}{:03}:{}", i / 10, i % 10)).collect()
}

#[test]
fn prefixes_and_keys() {
    let keys = numbered('u', 6_000);
    let (absent, mut hits) = (numbered('v', 6_000), Bitmask::new());
    for holds in [Contents::Keys, Contents::Prefixes, Contents::Both] {
        let mut properties = vec![BYTEWISE, USER_KEYS];
        if holds != Contents::Prefixes {
            properties.push(WHOLE);
        }
        if holds != Contents::Keys {
            properties.extend([PREFIXES, EXTRACTOR]);
        }
        let files = [
            full(&ribbon(&keys, holds), &properties),
            partitioned(&keys, 1_500, |keys| ribbon(keys, holds), &properties),
        ];
        for (file, blocks) in files.iter().zip([1, 4]) {
            let filter = SstFilter::open(file).unwrap();
            assert_eq!(filter.layout() == FilterLayout::Full, blocks == 1);
            assert_eq!(filter.filter_blocks().count(), blocks);
            assert!(filter.filter_blocks().all(|block| block.ribbon().is_some()));
            for kernel in kernels() {
                let filter = filter.clone().with_kernel(kernel);
                filter.contains_batch(&keys, &mut hits);
                assert_eq!(hits.count_misses(), 0, "{kernel}");
                filter.contains_batch(&absent, &mut hits);
                assert!(hits.iter().zip(&absent).all(|(hit, key)| hit == filter.contains(key)));
                match holds {
                    Contents::Prefixes => {
                        assert_eq!(hits.count_misses(), 0, "nothing is known of keys")
                    }
                    _ => assert!((1..150).contains(&hits.count_hits()), "{}", hits.count_hits()),
                }
            }
            assert!(
                keys.iter()
                    .all(|key| (0..=key.len()).all(|end| filter.contains_prefix(&key[..end])))
            );
            let extracted = |key: &str| filter.contains_extracted("rocksdb.FixedPrefix.4", key);
            assert!(keys.iter().all(|key| extracted(&key[..4])));
            let passed = (0..600).filter(|i| filter.contains_prefix(format!("v{i:03}:x"))).count();
            let passed_any = (0..600).filter(|i| extracted(&format!("v{i:03}"))).count();
            match holds {
                Contents::Keys => {
                    assert_eq!((passed, passed_any), (600, 600), "nothing is known of prefixes")
                }
                // One in two; of four partitions all but one in sixteen.
                Contents::Prefixes => {
                    assert!((200..400).contains(&passed) && (200..595).contains(&passed_any))
                }
                Contents::Both => assert!(passed < 30 && passed_any < 60, "{passed} {passed_any}"),
            }
        }
    }
}

/// Hashes that are computed once serve the filters of all files, of either kind.
#[test]
fn a_batch_over_files_of_both_kinds() {
    let properties = [WHOLE, BYTEWISE, USER_KEYS];
    let tables: Vec<Vec<String>> = ('a'..='l').map(|letter| numbered(letter, 900)).collect();
    let file = |(i, keys): (usize, &Vec<String>)| match i % 4 {
        0 => full(&ribbon(keys, Contents::Keys), &properties),
        1 => full(&bloom(keys), &properties),
        2 => partitioned(keys, 450, |keys| ribbon(keys, Contents::Keys), &properties),
        // A partition of so few keys is a Bloom filter under the Ribbon policy too.
        _ => {
            let block = |keys: &[String]| match keys.len() {
                500 => ribbon(keys, Contents::Keys),
                _ => bloom(keys),
            };
            partitioned(keys, 500, block, &properties)
        }
    };
    let files: Vec<Vec<u8>> = tables.iter().enumerate().map(file).collect();
    let filters: Vec<SstFilter<&Vec<u8>>> =
        files.iter().map(|file| SstFilter::open(file).unwrap()).collect();
    let blocks = || filters.iter().flat_map(SstFilter::filter_blocks);
    let ribbons = blocks().filter(|block| block.ribbon().is_some()).count();
    // One hash serves blocks of both kinds.
    let hashes_of_blocks = blocks().filter_map(|block| Some(block.ribbon()?.key_hash()));
    assert!(hashes_of_blocks.eq([KEY_HASH; 12]) && filters[0].key_hash() == KEY_HASH);
    assert_eq!((ribbons, blocks().filter(|block| block.view().is_some()).count()), (12, 6));

    // Keys of all tables among each other.
    let queries: Vec<&String> =
        (0..900).flat_map(|i| tables.iter().map(move |keys| &keys[i * 7 % 900])).collect();
    let hashes: Vec<u64> = queries.iter().map(hash_key).collect();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        for (table, filter) in filters.iter().enumerate() {
            let filter = filter.clone().with_kernel(kernel);
            filter.contains_hashes(&hashes, &mut hits);
            for (i, (hit, &hash)) in hits.iter().zip(&hashes).enumerate() {
                let expected = filter.filter_blocks().any(|block| block.contains_hash(hash));
                assert_eq!(hit, expected, "{kernel}, table {table}");
                assert!(hit || i % tables.len() != table, "a key of table {table} is lost");
            }
            // Two partitions have the false positives of both.
            assert!(hits.count_hits() < 900 + 300, "{}", hits.count_hits());
            filter.contains_batch(&queries, &mut hits);
            assert!(hits.iter().zip(&queries).all(|(hit, key)| hit == filter.contains(key)));
        }
    }
}

/// The builder writes a Bloom filter if that is smaller.
#[test]
fn few_keys_are_a_bloom_filter() {
    for count in [1, 50, 150] {
        let keys = numbered('u', count);
        let mut builder = RibbonBlockBuilder::new(10.0).unwrap();
        builder.extend(&keys);
        assert_eq!(builder.clone().finish().unwrap(), bloom(&keys));
        assert_eq!(builder.clone().finish_verified().unwrap(), bloom(&keys));
        #[cfg(feature = "rayon")]
        assert_eq!(builder.par_finish().unwrap(), bloom(&keys));
    }
}

/// RocksDB's reader treats a block with fewer than two blocks of slots as a filter of a later
/// release.
#[test]
fn blocks_of_slots_that_no_writer_makes() {
    for (blocks, bytes) in [(0, 64), (1, 64), (2, 0), (2, 15), (2, 16), (3, 64), (0xff_ffff, 64)] {
        let [low, middle, high, _] = u32::to_le_bytes(blocks);
        let trailer = [0xfe, 9, low, middle, high];
        let block = [&vec![0x5a; bytes][..], &trailer].concat();
        let Ok(filter) = FilterBlock::from_bytes(&block) else {
            assert_eq!(bytes, 0);
            continue;
        };
        let kind = if blocks < 2 {
            FilterKind::Reserved { trailer }
        } else {
            FilterKind::Ribbon { seed: 9, blocks }
        };
        assert_eq!(filter.kind(), kind);
        assert_eq!(filter.ribbon().is_some(), blocks >= 2 && bytes >= 16);
        let maybe = (0..100).all(|i| filter.contains(format!("nobody {i}")));
        assert!(maybe || filter.ribbon().is_some());
    }
}
