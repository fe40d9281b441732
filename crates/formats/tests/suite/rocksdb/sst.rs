//! Filters inside SST files: RocksDB's own answers for its own files, by every kernel; each layout,
//! version and checksum; and damage, which is an error or "maybe".

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_formats::FileRanges;
use blocked_bloom_formats::rocksdb::{
    ChecksumKind, FilterBlock, FilterBlockBuilder, FilterKind, FilterLayout, RibbonBlockBuilder,
    SstFilter,
};

use crate::common::{Random, kernels};
use crate::fixtures::{committed, unhex};
use crate::sst::{self, Sst, varint};

fn file(name: &str) -> Vec<u8> {
    fs::read(committed("rocksdb").join(name)).unwrap()
}

/// Looks every key up, alone and in batches.
fn look_up<D: AsRef<[u8]>>(
    filter: &SstFilter<D>,
    keys: &[Vec<u8>],
    expected: &[bool],
    what: &str,
) -> usize {
    let (mut checked, mut hits) = (0, Bitmask::new());
    for (key, &expected) in keys.iter().zip(expected) {
        assert_eq!(filter.contains(key), expected, "{what}, key {key:02x?}");
        checked += 1;
    }
    for length in [1, 100, keys.len()] {
        for (keys, expected) in keys.chunks(length).zip(expected.chunks(length)) {
            filter.contains_batch(keys, &mut hits);
            assert!((0..keys.len()).all(|i| hits.get(i) == Some(expected[i])), "{what}");
            let mut words = vec![!0; keys.len().div_ceil(64)];
            filter.contains_batch_into(keys, &mut words).unwrap();
            assert_eq!(words, hits.words());
            checked += keys.len();
        }
    }
    checked
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn files_answer_as_rocksdb_does() {
    let (mut files, mut checked) = (0, 0);
    let (kernels, mut random) = (kernels(), Random(3));
    let no_filter = Sst::default().finish(&[], None);
    for entry in fs::read_dir(committed("rocksdb")).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sst") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        let filter = SstFilter::open(&bytes).unwrap();
        let text = fs::read_to_string(path.with_extension("csv")).unwrap();
        let mut answers: Vec<(Vec<u8>, bool)> = Vec::new();
        for line in text.lines().skip(1) {
            let [key, added, expected] = line.split(',').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            assert!(expected == "1" || added == "0");
            answers.push((unhex(key), expected == "1"));
        }
        // In the order of the file, and in another.
        for shuffled in [false, true] {
            if shuffled {
                answers.sort_by_cached_key(|_| random.next());
            }
            let (keys, expected): (Vec<_>, Vec<_>) = answers.iter().cloned().unzip();
            for &kernel in &kernels {
                checked += look_up(&filter.clone().with_kernel(kernel), &keys, &expected, name);
            }
        }
        assert_eq!(filter.range_deletions(), Some(0));
        // Equal contents are equal with any kernel; a part of them is not equal.
        assert!(kernels.iter().all(|&kernel| filter.clone().with_kernel(kernel) == filter));
        assert!(filter != SstFilter::open(&no_filter).unwrap());
        files += 1;
    }
    assert_eq!(files, 8);
    println!(
        "rocksdb sst: {files} fixtures, {checked} answers, {} kernels together",
        kernels.len()
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn full_filters_are_written_byte_for_byte() {
    let mut same = 0;
    for (name, bits_per_key, prefix) in [
        ("bloom_b10_n3000_whole_and_prefix4", 10.0, Some(4)),
        ("bloom_b10_n5000_str", 10.0, None),
        ("bloom_b10_n602_mixlen", 10.0, None),
        ("bloom_b16_n3000_str", 16.0, None),
        ("legacy_b10_n2000_fv4", 10.0, None),
        ("jni984_fv6_b10_n5000_str", 10.0, None),
    ] {
        let bytes = file(&format!("{name}.sst"));
        let filter = SstFilter::open(&bytes).unwrap();
        let block = filter.filter_blocks().next().unwrap();
        let mut builder = match block.kind() {
            FilterKind::LegacyBloom { .. } => FilterBlockBuilder::legacy(bits_per_key),
            _ => FilterBlockBuilder::new(bits_per_key),
        }
        .unwrap();
        let csv = String::from_utf8(file(&format!("{name}.csv"))).unwrap();
        for line in csv.lines().filter(|line| line.ends_with(",1,1")) {
            let key = unhex(line.split(',').next().unwrap());
            match prefix {
                Some(length) => builder.insert_with_prefix(&key, &key[..length]),
                None => builder.insert(&key),
            }
        }
        assert_eq!(filter.filter_entries(), Some(builder.len() as u64), "{name}");
        assert!(builder.finish().unwrap() == block.as_bytes(), "{name}");
        same += 1;
    }
    println!("rocksdb sst: {same} full filters written byte for byte");
}

#[test]
fn reads_file_metadata() {
    for (name, layout, blocks, version, policy, whole, extractor) in [
        (
            "bloom_b10_n3000_whole_and_prefix4",
            FilterLayout::Full,
            1,
            5,
            "bloomfilter",
            true,
            Some("rocksdb.FixedPrefix.4"),
        ),
        ("bloom_b10_n5000_partitioned", FilterLayout::Partitioned, 6, 5, "bloomfilter", true, None),
        ("jni984_fv6_b10_n5000_str", FilterLayout::Full, 1, 6, "bloomfilter", true, None),
        ("legacy_b10_n2000_fv4", FilterLayout::Full, 1, 4, "bloomfilter", true, None),
        ("ribbon_b10_n2000", FilterLayout::Full, 1, 5, "ribbonfilter", true, None),
    ] {
        let bytes = file(&format!("{name}.sst"));
        let filter = SstFilter::open(&bytes).unwrap();
        assert_eq!(filter.layout(), layout, "{name}");
        assert_eq!(filter.filter_blocks().count(), blocks, "{name}");
        assert_eq!(filter.format_version(), version, "{name}");
        assert_eq!(filter.checksum_kind(), ChecksumKind::Xxh3, "{name}");
        assert_eq!(filter.checksum_kind().to_string().to_lowercase(), "xxh3", "{name}");
        assert_eq!(filter.comparator(), Some("leveldb.BytewiseComparator"), "{name}");
        assert_eq!(filter.filter_policy(), Some(policy), "{name}");
        assert_eq!(filter.whole_keys(), Some(whole), "{name}");
        assert_eq!(filter.prefix_extractor(), extractor, "{name}");
        for block in filter.filter_blocks() {
            assert_eq!(
                matches!(block.kind(), FilterKind::Ribbon { .. }),
                name.starts_with("ribbon")
            );
            assert_eq!(
                matches!(block.kind(), FilterKind::LegacyBloom { .. }),
                name.starts_with("legacy")
            );
        }
    }
}

/// Files of RocksDB 9.8.4 (rocksdict 0.3.29), named after their contents, with 300 numbered keys.
#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn every_checksum_version_and_index_layout_opens() {
    let (mut files, mut partitions, mut passed, mut lookups) = (0, 0, 0, 0);
    for entry in fs::read_dir(committed("rocksdb/matrix")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&path).unwrap();
        let filter = SstFilter::open(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let prefixed =
            ["parts_prefix", "capped", "fixed"].iter().any(|kind| name.starts_with(kind));
        let key = |i: usize| match prefixed {
            true => format!("u{:02}:item{i:04}", i / 10),
            false => format!("user{:05}", 3 * i),
        };
        let added: Vec<Vec<u8>> = (0..300).map(|i| key(i).into_bytes()).collect();
        let absent: Vec<String> = (0..2_000).map(|i| format!("{}x{i}", key(i % 300))).collect();
        let mut hits = Bitmask::new();
        for kernel in kernels() {
            look_up(&filter.clone().with_kernel(kernel), &added, &[true; 300], &name);
        }
        filter.contains_batch(&absent, &mut hits);
        passed += hits.count_hits();
        lookups += absent.len();
        let checksum = match name.split("_fv").next().unwrap() {
            "no_checksum" => Some(ChecksumKind::None),
            "crc32c" => Some(ChecksumKind::Crc32c),
            "xxhash" => Some(ChecksumKind::Xxh32),
            "xxhash64" => Some(ChecksumKind::Xxh64),
            "xxh3" => Some(ChecksumKind::Xxh3),
            _ => None,
        };
        match checksum {
            Some(kind) => assert_eq!(filter.checksum_kind(), kind, "{name}"),
            None => assert!(prefixed || name.starts_with("parts"), "{name}: which checksum?"),
        }
        if name.starts_with("parts") {
            assert_eq!(filter.layout(), FilterLayout::Partitioned, "{name}");
            assert!(filter.filter_blocks().count() > 1, "{name}");
            partitions += filter.filter_blocks().count();
        }
        if prefixed {
            let length = if name.starts_with("capped") { 6 } else { 4 };
            let extractor = filter.prefix_extractor().unwrap();
            for key in &added {
                for end in length..=key.len() {
                    assert!(filter.contains_prefix(&key[..end]), "{name}");
                }
                assert!(filter.contains_extracted(extractor, &key[..length]), "{name}");
            }
            // The capping one is rocksdict's own, which is known by its name only.
            let absent = |i: &usize| match extractor.starts_with("rocksdb.") {
                true => filter.contains_prefix(format!("v{i:03}:{i}")),
                false => filter.contains_extracted(extractor, format!("v{i:03}:")),
            };
            let absent = (0..300).filter(absent).count();
            assert!(absent <= 20, "{name}: {absent} of 300 absent prefixes pass");
        }
        if name == "fixed4_out_of_domain" {
            // Keys without a prefix under the extractor.
            for short in ["bb", "ccc"] {
                assert!(filter.contains(short), "{short}");
            }
            for short in ["", "b", "bb", "ccc", "zzz"] {
                assert!(filter.contains_prefix(short), "{short}");
            }
        }
        files += 1;
    }
    assert_eq!(files, 30);
    assert!(passed * 50 < lookups, "{passed} of {lookups} absent keys pass");
    println!(
        "rocksdb matrix: {files} files, {partitions} partitions, {passed} of {lookups} absent keys pass"
    );
}

#[test]
fn prefixes_are_looked_up_as_the_extractor_makes_them() {
    let bytes = file("bloom_b10_n3000_whole_and_prefix4.sst");
    let filter = SstFilter::open(&bytes).unwrap();
    // Shorter than the extractor's, a longer start of a key, and the key itself.
    for start in ["", "p", "p00", "p000", "p000:k", "p000:k000000"] {
        assert!(filter.contains_prefix(start), "{start}");
    }
    let absent = (0..1_000).filter(|i| filter.contains_prefix(format!("q{i:03}"))).count();
    assert!(absent < 30, "{absent}");
    assert!((0..1_000).all(|i| filter.contains_extracted("other.Extractor", format!("q{i:03}"))));
    // Whole keys only: nothing is known of prefixes.
    let bytes = file("bloom_b10_n5000_str.sst");
    let filter = SstFilter::open(&bytes).unwrap();
    assert!((0..1_000).all(|i| filter.contains_prefix(format!("q{i:03}"))));
    assert!(
        (0..1_000).all(|i| filter.contains_extracted("rocksdb.FixedPrefix.4", format!("q{i:03}")))
    );
}

fn numbered(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("user{:05}", 3 * i).into_bytes()).collect()
}

/// A filter of the keys, as a block.
fn block_of(keys: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    builder.extend(keys);
    builder.finish().unwrap()
}

/// A block of one kind or the other, as databases with RocksDB's Ribbon policy mix them. At one bit
/// per key few keys are Ribbon too.
fn mixed_block_of(keys: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if random.next().is_multiple_of(2) {
        return block_of(keys);
    }
    let mut builder = RibbonBlockBuilder::new(1.0).unwrap();
    builder.extend(keys);
    let block = builder.finish_verified().unwrap();
    assert!(FilterBlock::from_bytes(&block).unwrap().ribbon().is_some());
    block
}

const WHOLE: (&str, &[u8]) = ("rocksdb.block.based.table.whole.key.filtering", b"1");
const BYTEWISE: (&str, &[u8]) = ("rocksdb.comparator", b"leveldb.BytewiseComparator");
const BLOOM: &str = "fullfilter.rocksdb.BuiltinBloomFilter";
const PARTITIONED: &str = "partitionedfilter.rocksdb.BuiltinBloomFilter";

/// A file with one filter block under this name, and these properties.
fn full(name: &str, block: &[u8], properties: &[(&str, &[u8])]) -> Vec<u8> {
    let mut sst = Sst::default();
    let filter = sst.block(block);
    sst.finish(&[(name, filter)], Some(properties))
}

#[test]
fn queries_that_a_filter_cannot_answer_are_maybe() {
    let keys = numbered(50);
    let block = block_of(&keys);
    let maybe = |bytes: &[u8], layout| {
        let filter = SstFilter::open(bytes).unwrap();
        let mut hits = Bitmask::new();
        filter.contains_batch(&["nobody"; 70], &mut hits);
        assert_eq!(filter.layout(), layout);
        hits.count_hits() == 70 && filter.contains("nobody") && filter.contains_prefix("nobody")
    };
    assert!(!maybe(&full(BLOOM, &block, &[WHOLE]), FilterLayout::Full));
    // Without the property, with another value, and for prefixes only.
    assert!(maybe(&full(BLOOM, &block, &[]), FilterLayout::Full));
    for value in [&b"0"[..], b"", b"yes"] {
        assert!(maybe(&full(BLOOM, &block, &[(WHOLE.0, value)]), FilterLayout::Full));
    }
    // No filter, one per data block, another policy, no keys.
    assert!(maybe(&full("rocksdb.other", &block, &[WHOLE]), FilterLayout::None));
    assert!(maybe(
        &full("filter.rocksdb.BuiltinBloomFilter", &block, &[WHOLE]),
        FilterLayout::PerDataBlock
    ));
    assert!(maybe(&full("fullfilter.mine", &block, &[WHOLE]), FilterLayout::OtherPolicy));
    for length in 0..=5 {
        assert!(maybe(&full(BLOOM, &[0xff, 0, 6, 0, 0][..length], &[WHOLE]), FilterLayout::Full));
    }
    let mut sst = Sst::default();
    let filter = sst.block(&block);
    assert!(maybe(&sst.finish(&[(BLOOM, filter)], None), FilterLayout::Full));
}

#[test]
fn prefixes_of_extractors_by_name() {
    let prefixes: Vec<Vec<u8>> = numbered(50);
    let block = block_of(&prefixes);
    let looked_up = |extractor: &str, start: &str| {
        let on: (&str, &[u8]) = ("rocksdb.block.based.table.prefix.filtering", b"1");
        let name = ("rocksdb.prefix.extractor.name", extractor.as_bytes());
        let bytes = full(BLOOM, &block, &[on, name]);
        let filter = SstFilter::open(&bytes).unwrap();
        assert!(filter.contains("nobody"), "whole keys are not in this filter");
        (filter.contains_prefix(start), filter.knows_its_extractor())
    };
    for kind in ["Fixed", "Capped"] {
        let name = format!("rocksdb.{kind}Prefix.9");
        for (start, maybe) in [
            ("user00003", true),
            ("user00003:more", true),
            ("user0000x", false),
            ("user0000x:more", false),
            ("user0000", true), // longer keys may begin so
        ] {
            assert_eq!(looked_up(&name, start), (maybe, true), "{name}: {start}");
        }
    }
    for unknown in [
        "mine",
        "rocksdb.FixedPrefix.",
        "rocksdb.FixedPrefix.x",
        "rocksdb.FixedPrefix.+9",
        "rocksdb.CappedPrefix.-9",
        "rocksdb.FixedPrefix.9 ",
        "rocksdb.FixedPrefix.٩",
        "rocksdb.FixedPrefix.99999999999999999999",
        "nullptr",
    ] {
        assert_eq!(looked_up(unknown, "user0000x"), (true, false), "{unknown}");
    }
}

/// Partitions of random keys in every form of the index, against the first separator that is not
/// below the key.
#[test]
fn partitions_are_found_in_every_form_of_the_index() {
    let mut random = Random(8);
    for round in 0..400 {
        let (user_keys, delta, bytewise) = (round % 2 == 0, round / 2 % 2 == 0, round % 16 != 15);
        let interval = [1, 2, 16, 1_000][random.next() as usize % 4];
        // Few letters, so that keys share much; all lengths, so that some are starts of others.
        let mut keys: Vec<Vec<u8>> = (0..200)
            .map(|_| (0..random.next() % 8).map(|_| b'a' + (random.next() % 3) as u8).collect())
            .collect();
        keys.sort();
        keys.dedup();
        let mut sst = Sst::default();
        let mut parts = Vec::new();
        for keys in keys.chunks(1 + random.next() as usize % 30) {
            let block = mixed_block_of(keys, &mut random);
            parts.push((keys.last().unwrap().clone(), keys, sst.block(&block)));
        }
        let entries: Vec<(Vec<u8>, [u64; 2])> = parts
            .iter()
            .map(|(separator, _, handle)| {
                let mut separator = separator.clone();
                if !user_keys {
                    separator.extend_from_slice(&random.next().to_le_bytes());
                }
                (separator, *handle)
            })
            .collect();
        let index = sst::index(&entries, interval, delta);
        let index = sst.block(&index);
        let (user, delta) = (varint(user_keys.into()), varint(delta.into()));
        let comparator = if bytewise { BYTEWISE } else { ("rocksdb.comparator", &b"mine"[..]) };
        let properties = [
            WHOLE,
            comparator,
            ("rocksdb.index.key.is.user.key", &user[..]),
            ("rocksdb.index.value.is.delta.encoded", &delta),
            ("rocksdb.block.based.table.prefix.filtering", b"1"),
            ("rocksdb.prefix.extractor.name", b"rocksdb.CappedPrefix.0"),
        ];
        let bytes = sst.finish(&[(PARTITIONED, index)], Some(&properties));
        let filter = SstFilter::open(&bytes).unwrap();
        let blocks: Vec<_> = filter.filter_blocks().collect();
        assert_eq!(blocks.len(), parts.len());
        let mut queries = keys.clone();
        queries.extend((0..300).map(|_| {
            let length = random.next() % 9;
            (0..length).map(|_| b'a' + (random.next() % 4) as u8).collect()
        }));
        let expected: Vec<bool> = queries
            .iter()
            .map(|key| {
                let place = parts.iter().position(|(separator, ..)| separator >= key);
                match bytewise {
                    true => blocks[place.unwrap_or(parts.len() - 1)].contains(key),
                    false => blocks.iter().any(|block| block.contains(key)),
                }
            })
            .collect();
        assert!(expected[..keys.len()].iter().all(|&maybe| maybe));
        for kernel in blocked_bloom::Kernel::supported() {
            look_up(&filter.clone().with_kernel(kernel), &queries, &expected, "partitions");
        }
    }
}

/// A prefix is found although its keys begin in the partition after the one that its own bytes fall
/// into.
#[test]
fn prefixes_are_found_in_whatever_partition_their_keys_are() {
    let mut random = Random(9);
    for _ in 0..100 {
        let mut keys: Vec<Vec<u8>> =
            (0..300).map(|_| (0..5).map(|_| b'a' + (random.next() % 4) as u8).collect()).collect();
        keys.sort();
        let mut sst = Sst::default();
        let mut entries = Vec::new();
        for keys in keys.chunk_by(|_, _| !random.next().is_multiple_of(20)) {
            let prefixes: Vec<Vec<u8>> = keys.iter().map(|key| key[..3].to_vec()).collect();
            let mut separator = keys.last().unwrap().clone();
            separator.extend_from_slice(&[1; 8]);
            entries.push((separator, sst.block(&block_of(&prefixes))));
        }
        let index = sst.block(&sst::index(&entries, 4, false));
        let properties = [
            BYTEWISE,
            ("rocksdb.block.based.table.prefix.filtering", &b"1"[..]),
            ("rocksdb.prefix.extractor.name", b"rocksdb.FixedPrefix.3"),
        ];
        let bytes = sst.finish(&[(PARTITIONED, index)], Some(&properties));
        let filter = SstFilter::open(&bytes).unwrap();
        for key in &keys {
            assert!((3..=5).all(|end| filter.contains_prefix(&key[..end])));
            assert!(filter.contains_extracted("rocksdb.FixedPrefix.3", &key[..3]));
        }
        assert!(!filter.contains_prefix("zzz") || !filter.contains_prefix("yyy"));
    }
}

/// Separators may be any bytes between two keys: here all keys that begin with "a" sort after "a2",
/// and none sorts after "a5".
#[test]
fn a_start_is_looked_up_in_each_partition_that_may_have_keys_with_it() {
    let mut sst = Sst::default();
    let partitions = [("a2", "Z"), ("a5", "a"), ("b5", "b"), ("b7", "b")];
    let entries = partitions.map(|(separator, prefix)| {
        (separator.as_bytes().to_vec(), sst.block(&block_of(&[prefix.as_bytes().to_vec()])))
    });
    let index = sst.block(&sst::index(&entries, 2, false));
    let properties = [
        BYTEWISE,
        ("rocksdb.index.key.is.user.key", &[1][..]),
        ("rocksdb.block.based.table.prefix.filtering", b"1"),
        ("rocksdb.prefix.extractor.name", b"rocksdb.FixedPrefix.1"),
    ];
    let bytes = sst.finish(&[(PARTITIONED, index)], Some(&properties));
    let filter = SstFilter::open(&bytes).unwrap();
    for (start, maybe, why) in [
        ("a", true, "in the second of three partitions"),
        ("a2", true, "in the later of two partitions: the first ends with this separator"),
        ("a3", true, "in the second alone"),
        ("a5", true, "in the earlier of two partitions"),
        // Found by their prefix, and not by all of their bytes, these two would be looked up in the
        // second too.
        ("a1", false, "in the first, which ends behind all keys that begin so"),
        ("a6", false, "in the third, since the second ends in front"),
        ("Z", true, "in the first"),
        ("b8", true, "behind all separators: in the last"),
        ("c", false, "behind all separators, and not in the last"),
    ] {
        assert_eq!(filter.contains_prefix(start), maybe, "{start}: {why}");
    }
}

/// A filter that borrows nothing. The properties of the file stay when its owner lends other bytes.
#[test]
fn files_that_the_filter_owns() {
    fn is_static<T: Send + Sync + 'static>(filter: T) -> T {
        filter
    }
    for name in ["bloom_b10_n5000_partitioned", "bloom_b10_n3000_whole_and_prefix4"] {
        let bytes = file(&format!("{name}.sst"));
        let borrowed = SstFilter::open(&bytes).unwrap();
        let shared: Arc<[u8]> = bytes.clone().into();
        let owned = is_static(SstFilter::open(shared.clone()).unwrap());
        // The blocks share the file, and copy none of it.
        assert_eq!(Arc::strong_count(&shared), 1 + owned.filter_blocks().count());
        let places = shared.as_ptr_range();
        for (block, of_borrowed) in owned.filter_blocks().zip(borrowed.filter_blocks()) {
            assert!(places.contains(&block.as_bytes().as_ptr()));
            assert!(block == of_borrowed);
        }
        assert!(owned == borrowed && owned.clone() == owned);
        let mut parts = FileRanges::new(bytes.len() as u64);
        parts.insert(0, &bytes);
        assert!(SstFilter::open_ranges(&parts).unwrap() == owned);
        drop(shared);
        let found = std::thread::spawn(move || owned.contains("user00000000"));
        assert_eq!(found.join().unwrap(), borrowed.contains("user00000000"));
    }
}

/// Bytes whose owner lends as many as the test sets.
struct Owner<'b>(&'b [u8], Cell<usize>);

impl AsRef<[u8]> for &Owner<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1.get()]
    }
}

#[test]
fn prefixes_in_bytes_that_change_their_length() {
    let bytes = file("bloom_b10_n3000_whole_and_prefix4.sst");
    let owner = Owner(&bytes, Cell::new(bytes.len()));
    let filter = SstFilter::open(&owner).unwrap();
    let name = "rocksdb.FixedPrefix.4";
    let prefixes = || [filter.contains_prefix("zzzz"), filter.contains_extracted(name, "zzzz")];
    assert_eq!(prefixes(), [false; 2]);
    let intact = filter.clone();
    for lends in [0, 1, bytes.len() - 1] {
        owner.1.set(lends);
        assert_eq!(prefixes(), [true; 2]);
        assert!(filter.contains("nobody") && filter.knows_its_extractor());
        assert_eq!((filter.prefix_extractor(), filter.whole_keys()), (Some(name), Some(true)));
        assert_eq!(filter.partition("nobody"), Some(0));
        assert!(filter.filter_blocks().all(|block| block.as_bytes().is_empty()));
        assert!(SstFilter::open(&owner).is_err());
    }
    owner.1.set(bytes.len());
    assert!(prefixes() == [false; 2] && filter == intact);
}
