//! The contents that a file states for its filter, and equality of files.

use blocked_bloom::Filter;
use blocked_bloom_formats::rocksdb::{FilterBlockBuilder, SstFilter};

use crate::sst::{self, Sst};

const WHOLE: (&str, &[u8]) = ("rocksdb.block.based.table.whole.key.filtering", b"1");
const PREFIXES: &str = "rocksdb.block.based.table.prefix.filtering";
const EXTRACTOR: (&str, &[u8]) = ("rocksdb.prefix.extractor.name", b"rocksdb.FixedPrefix.4");
const PARTITIONED: &str = "partitionedfilter.rocksdb.BuiltinBloomFilter";

/// The block of a filter of whole keys.
fn block(keys: &[&str]) -> Vec<u8> {
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    builder.extend(keys);
    builder.finish().unwrap()
}

/// A file has an extractor, and also prefixes in its filter only if it says so: otherwise scans are
/// answered "maybe".
#[test]
fn a_file_that_does_not_say_that_it_has_prefixes_has_none() {
    for (said, has_prefixes) in [
        (Some(&b"1"[..]), true),
        (Some(b"0"), false),
        (Some(b"yes"), false),
        (Some(b""), false),
        (None, false),
    ] {
        let mut sst = Sst::default();
        let filter = sst.block(&block(&["key:1", "key:2"]));
        let mut properties = vec![WHOLE, EXTRACTOR];
        properties.extend(said.map(|value| (PREFIXES, value)));
        let name = "fullfilter.rocksdb.BuiltinBloomFilter";
        let bytes = sst.finish(&[(name, filter)], Some(&properties));
        let filter = SstFilter::open(&bytes).unwrap();
        let extractor = has_prefixes.then_some("rocksdb.FixedPrefix.4");
        assert_eq!(filter.prefix_extractor(), extractor, "{said:?}");
        assert_eq!(filter.knows_its_extractor(), has_prefixes, "{said:?}");
        // The prefix is that of both keys, but the filter does not have it.
        assert_eq!(filter.contains_prefix("key:1"), !has_prefixes, "{said:?}");
        let in_extracted = filter.contains_extracted("rocksdb.FixedPrefix.4", "key:");
        assert_eq!(in_extracted, !has_prefixes, "{said:?}");
        assert!(filter.contains("key:1") && !filter.contains("nobody"));
    }
}

/// The same blocks in the same order, divided at other keys.
#[test]
fn files_with_other_separators_differ() {
    let file = |separators: [&str; 2]| {
        let mut sst = Sst::default();
        let blocks = [block(&["a"]), block(&["m"])].map(|block| sst.block(&block));
        let of = |i: usize| ([separators[i].as_bytes(), &[1; 8]].concat(), blocks[i]);
        let index = sst.block(&sst::index(&[of(0), of(1)], 1, false));
        let comparator = ("rocksdb.comparator", &b"leveldb.BytewiseComparator"[..]);
        sst.finish(&[(PARTITIONED, index)], Some(&[WHOLE, comparator]))
    };
    let files = [["b", "n"], ["c", "n"], ["b", "o"]].map(file);
    let filters = files.each_ref().map(|file| SstFilter::open(file).unwrap());
    for (i, filter) in filters.iter().enumerate() {
        assert_eq!(filter.filter_blocks().count(), 2);
        let same: Vec<bool> = filters.iter().map(|other| other == filter).collect();
        assert_eq!(same, [0, 1, 2].map(|other| other == i));
    }
}

/// Only the bytewise comparator says in which partition a key is. Without it, all are looked up.
#[test]
fn a_key_is_in_any_partition_if_the_comparator_is_not_bytewise() {
    let bytewise = &b"leveldb.BytewiseComparator"[..];
    for (comparator, found) in [(None, true), (Some(&b"mine"[..]), true), (Some(bytewise), false)] {
        let mut sst = Sst::default();
        // The partitions are in the reverse order of their keys.
        let blocks = [block(&["m"]), block(&["a"])].map(|block| sst.block(&block));
        let of = |i: usize| ([["b", "n"][i].as_bytes(), &[1; 8]].concat(), blocks[i]);
        let index = sst.block(&sst::index(&[of(0), of(1)], 1, false));
        let mut properties = vec![WHOLE];
        properties.extend(comparator.map(|name| ("rocksdb.comparator", name)));
        let bytes = sst.finish(&[(PARTITIONED, index)], Some(&properties));
        let filter = SstFilter::open(&bytes).unwrap();
        assert_eq!(["a", "m"].map(|key| filter.contains(key)), [found; 2], "{comparator:?}");
    }
}
