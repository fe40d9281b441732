//! Damaged and absurd SST files cause an error that names the place, or the answer "maybe", but
//! never a wrong "absent", a panic or a large allocation.

use blocked_bloom::Filter;
use std::fs;

use blocked_bloom_formats::rocksdb::{FilterBlockBuilder, RocksdbError, SstFilter};

use crate::common::Random;
use crate::fixtures::committed;
use crate::sst::{self, Sst, checksum, handle, varint};

fn file(name: &str) -> Vec<u8> {
    fs::read(committed("rocksdb").join(name)).unwrap()
}

fn numbered(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("user{:05}", 3 * i).into_bytes()).collect()
}

/// Either an error, or no key of the file is absent.
fn is_safe(bytes: &[u8], keys: &[Vec<u8>]) -> bool {
    match SstFilter::open(bytes) {
        Err(error) => !error.to_string().is_empty(),
        Ok(filter) => keys.iter().all(|key| filter.contains(key) && filter.contains_prefix(key)),
    }
}

#[test]
fn every_truncation_is_an_error() {
    for name in ["legacy_b10_n2000_fv4", "matrix/parts_fv6_ri16", "matrix/xxh3_fv5"] {
        let bytes = file(&format!("{name}.sst"));
        for length in 0..bytes.len() {
            let error = SstFilter::open(&bytes[..length]).unwrap_err();
            assert!(
                matches!(error, RocksdbError::FileTooShort { .. } | RocksdbError::Magic { .. }),
                "{name}: {error}"
            );
        }
        for start in 1..bytes.len() {
            assert!(is_safe(&bytes[start..], &[]));
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn no_damaged_byte_hides_a_key() {
    let keys = numbered(300);
    let others: Vec<_> = (0..100).map(|i| format!("user{:08}", 20 * i).into_bytes()).collect();
    for (name, keys, masks) in [
        ("matrix/parts_fv6_ri16", &keys[..], &[1, 2, 4, 8, 16, 32, 64, 128, 255][..]),
        ("matrix/xxh3_fv5", &keys, &[1, 2, 4, 8, 16, 32, 64, 128, 255]),
        ("matrix/crc32c_fv2", &keys, &[1, 128]),
        ("matrix/xxhash_fv5", &keys, &[1, 128]),
        ("matrix/xxhash64_fv6", &keys, &[1, 128]),
        ("legacy_b10_n2000_fv4", &others, &[1, 255]),
    ] {
        let mut bytes = file(&format!("{name}.sst"));
        let opened = SstFilter::open(&bytes).unwrap();
        let filters: Vec<(usize, usize)> = opened
            .filter_blocks()
            .map(|block| {
                (
                    block.as_bytes().as_ptr().addr() - bytes.as_ptr().addr(),
                    block.as_bytes().len() + 5,
                )
            })
            .collect();
        let mut errors = 0;
        for at in 0..bytes.len() {
            for &mask in masks {
                bytes[at] ^= mask;
                assert!(is_safe(&bytes, keys), "{name}: byte {at} ^ {mask}");
                let error = SstFilter::open(&bytes).err();
                errors += usize::from(error.is_some());
                if filters.iter().any(|&(start, length)| (start..start + length).contains(&at)) {
                    assert!(
                        matches!(error, Some(RocksdbError::BlockChecksum { .. })),
                        "{name}: byte {at}: {error:?}"
                    );
                }
                bytes[at] ^= mask;
            }
        }
        println!(
            "rocksdb {name}: {errors} of {} damaged files are errors, no key hidden",
            bytes.len() * masks.len()
        );
    }
}

/// RocksDB writes the sequence number of an ingested file into its properties without mending their
/// checksum.
#[test]
fn a_sequence_number_that_was_written_later_is_no_damage() {
    let mut bytes = file("bloom_b10_n5000_str.sst");
    let name = b"external_sst_file.global_seqno";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len();
    assert_eq!(bytes[at..at + 8], [0; 8]);
    bytes[at..at + 8].copy_from_slice(&77_u64.to_le_bytes());
    assert!(SstFilter::open(&bytes).unwrap().contains("user00000000"));
    bytes[at + 20] ^= 1;
    let error = SstFilter::open(&bytes).unwrap_err();
    assert!(
        matches!(error, RocksdbError::BlockChecksum { block: "properties block", .. }),
        "{error}"
    );
}

const WHOLE: (&str, &[u8]) = ("rocksdb.block.based.table.whole.key.filtering", b"1");
const BYTEWISE: (&str, &[u8]) = ("rocksdb.comparator", b"leveldb.BytewiseComparator");
const BLOOM: &str = "fullfilter.rocksdb.BuiltinBloomFilter";
const PARTITIONED: &str = "partitionedfilter.rocksdb.BuiltinBloomFilter";

fn block_of(keys: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    builder.extend(keys);
    builder.finish().unwrap()
}

fn error_of(bytes: &[u8]) -> RocksdbError {
    SstFilter::open(bytes).map(|filter| panic!("{filter:?}")).unwrap_err()
}

#[test]
fn footers_that_point_anywhere() {
    let bytes = file("bloom_b16_n3000_str.sst");
    let footer = bytes.len() - 53;
    let places = [
        0,
        1,
        5,
        footer as u64 - 5,
        footer as u64,
        bytes.len() as u64,
        u32::MAX.into(),
        1 << 63,
        u64::MAX,
    ];
    for offset in places {
        for size in places {
            let mut changed = bytes.clone();
            let metaindex = handle([offset, size]);
            changed[footer + 1..footer + 1 + metaindex.len()].copy_from_slice(&metaindex);
            let error = error_of(&changed);
            let within = offset.checked_add(size).is_some_and(|end| end <= footer as u64 - 5);
            match error {
                RocksdbError::Handle {
                    block: "metaindex",
                    offset: at,
                    size: length,
                    end,
                    first: 0,
                } => {
                    assert_eq!((at, length, end), (offset, size, footer as u64));
                    assert!(!within);
                }
                RocksdbError::BlockChecksum { block: "metaindex", .. } => assert!(within),
                other => panic!("{other}"),
            }
        }
    }
    // Unending numbers, other kinds of files, unknown checksums and versions.
    let with = |at: usize, values: &[u8]| {
        let mut changed = bytes.clone();
        changed[footer + at..footer + at + values.len()].copy_from_slice(values);
        error_of(&changed)
    };
    let malformed = with(1, &[0xff; 40]);
    assert!(matches!(malformed, RocksdbError::Malformed { block: "footer", .. }), "{malformed}");
    let offset = footer as u64;
    assert_eq!(with(0, &[5]), RocksdbError::ChecksumKind { offset, found: 5 });
    for found in [0, 1, 8, u32::MAX] {
        let error = with(41, &found.to_le_bytes());
        assert_eq!(error, RocksdbError::FormatVersion { offset: offset + 41, found });
    }
    let old = with(45, &0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    assert_eq!(old, RocksdbError::FormatVersion { offset: offset + 45, found: 0 });
    for found in [6_u32, 7] {
        let error = with(41, &found.to_le_bytes());
        assert!(matches!(error, RocksdbError::Footer { .. }), "{error}");
    }
}

/// Makes the checksum of a footer of version 6 fit again.
fn seal_footer(bytes: &mut [u8]) {
    let footer = bytes.len() - 53;
    bytes[footer + 5..footer + 9].fill(0);
    let base = u32::from_le_bytes(bytes[footer + 9..footer + 13].try_into().unwrap());
    let context = if base == 0 { 0 } else { base ^ footer as u32 };
    let sum =
        checksum(&bytes[footer..bytes.len() - 1], bytes[bytes.len() - 1]).wrapping_add(context);
    bytes[footer + 5..footer + 9].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn footers_of_version_6_and_7() {
    let bytes = file("jni984_fv6_b10_n5000_str.sst");
    let footer = bytes.len() - 53;
    let mut same = bytes.clone();
    seal_footer(&mut same);
    assert!(same == bytes);
    let with = |at: usize, values: &[u8]| {
        let mut changed = bytes.clone();
        changed[footer + at..footer + at + values.len()].copy_from_slice(values);
        seal_footer(&mut changed);
        changed
    };
    // Version 7 differs from 6 only in the names of compressions.
    let seven = with(41, &[7]);
    let filter = SstFilter::open(&seven).unwrap();
    assert!(
        filter.format_version() == 7
            && filter.contains("user00000000")
            && !filter.contains("nobody")
    );
    let offset = footer as u64;
    let error = error_of(&with(1, &[0x3f]));
    assert_eq!(
        error,
        RocksdbError::Footer { offset: offset + 1, found: 0x7a_003f, expected: 0x7a_003e }
    );
    let error = error_of(&with(40, &[1]));
    assert_eq!(error, RocksdbError::Footer { offset: offset + 33, found: 1 << 56, expected: 0 });
    let error = error_of(&with(13, &u32::MAX.to_le_bytes()));
    assert!(matches!(error, RocksdbError::Handle { block: "metaindex", .. }), "{error}");
    // Without a base no checksum would tell where its block belongs.
    let expected = "a base context checksum other than 0";
    let error = error_of(&with(9, &[0; 4]));
    assert_eq!(error, RocksdbError::Malformed { block: "footer", offset: offset + 9, expected });
    // Another base changes every checksum.
    let error = error_of(&with(9, &[0xff]));
    assert!(matches!(error, RocksdbError::BlockChecksum { block: "metaindex", .. }), "{error}");
    // A block that was moved within the file: its bytes are whole, its place is not.
    let mut moved = bytes[..footer].to_vec();
    moved.insert(0, 0);
    moved.extend_from_slice(&bytes[footer..]);
    seal_footer(&mut moved);
    let error = error_of(&moved);
    assert!(matches!(error, RocksdbError::BlockChecksum { block: "metaindex", .. }), "{error}");
}

#[test]
fn blocks_that_are_not_what_they_say() {
    let block = block_of(&numbered(20));
    // Compressed, out of the file, over another block's place, without a line.
    let mut sst = Sst::default();
    let place = sst.block_of_type(&block, 7);
    let error = error_of(&sst.finish(&[(BLOOM, place)], Some(&[WHOLE])));
    assert_eq!(
        error,
        RocksdbError::Compressed { block: "filter block", offset: place[1], found: 7 }
    );
    for place in [[0, 1 << 40], [u64::MAX, 1], [u64::MAX, u64::MAX], [1 << 40, 0]] {
        let error = error_of(&Sst::default().finish(&[(BLOOM, place)], Some(&[WHOLE])));
        assert!(matches!(error, RocksdbError::Handle { block: "filter block", .. }), "{error}");
    }
    let mut sst = Sst::default();
    let place = sst.block(&[1, 2, 3, 0xff, 0, 6, 0, 0]);
    let error = error_of(&sst.finish(&[(BLOOM, place)], Some(&[WHOLE])));
    assert_eq!(error, RocksdbError::NoLine { found: 3 });
    // A metaindex too short for its restart points, with a hash index, with keys and values that
    // reach too far.
    for bytes in [
        &[][..],
        &[0, 0, 1],
        &[0xff; 4],
        &[0, 0, 0, 0, 1, 0, 0, 0x80],
        &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0x3f],
        &[1, 0, 0, 0, 0, 0, 0],
        &[0, 200, 1, 0, 0, 0, 0, 0],
        &[0, 1, 200, 1, b'k', 0, 0, 0, 0],
        &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0, 0],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0],
    ] {
        let mut sst = Sst::default();
        let metaindex = sst.block(bytes);
        let error = error_of(&sst.footer(metaindex));
        assert!(
            matches!(error, RocksdbError::Malformed { block: "metaindex", .. }),
            "{bytes:02x?}: {error}"
        );
    }
    // A number that is none, in the properties.
    let mut sst = Sst::default();
    let place = sst.block(&block);
    let error =
        error_of(&sst.finish(&[(BLOOM, place)], Some(&[("rocksdb.num.filter_entries", &[0x80])])));
    assert!(matches!(error, RocksdbError::Malformed { block: "properties block", .. }), "{error}");
}

#[test]
fn partition_indexes_that_cannot_be() {
    let keys = numbered(40);
    let error = |entries: &[(Vec<u8>, [u64; 2])], delta: bool, user: bool| {
        let mut sst = Sst::default();
        let places: Vec<[u64; 2]> =
            keys.chunks(20).map(|keys| sst.block(&block_of(keys))).collect();
        let entries: Vec<_> = entries
            .iter()
            .map(|(key, place)| {
                (key.clone(), if place[1] < 2 { places[place[1] as usize] } else { *place })
            })
            .collect();
        let index = sst.block(&sst::index(&entries, 16, delta));
        let (user, delta) = (varint(user.into()), varint(delta.into()));
        let properties = [
            WHOLE,
            BYTEWISE,
            ("rocksdb.index.key.is.user.key", &user[..]),
            ("rocksdb.index.value.is.delta.encoded", &delta[..]),
        ];
        SstFilter::open(&sst.finish(&[(PARTITIONED, index)], Some(&properties))).map(|_| ()).err()
    };
    let separator = |i: usize| keys[20 * i + 19].clone();
    let internal = |i: usize| [&keys[20 * i + 19][..], &[0; 8]].concat();
    for delta in [false, true] {
        assert_eq!(error(&[(separator(0), [0, 0]), (separator(1), [0, 1])], delta, true), None);
        assert_eq!(error(&[(internal(0), [0, 0]), (internal(1), [0, 1])], delta, false), None);
        let malformed = |error: Option<RocksdbError>| {
            assert!(
                matches!(error, Some(RocksdbError::Malformed { block: "partition index", .. })),
                "{error:?}"
            );
        };
        malformed(error(&[], delta, true));
        malformed(error(&[(separator(1), [0, 0]), (separator(0), [0, 1])], delta, true));
        malformed(error(&[(internal(1), [0, 0]), (internal(0), [0, 1])], delta, false));
        malformed(error(&[(b"short".to_vec(), [0, 0]), (internal(1), [0, 1])], delta, false));
        // The user keys are "a" and "abc". Both end within the eight bytes that they share with
        // what follows them.
        let [short, long] = ["abcdefghi", "abcdefgh9ij"].map(|key| key.as_bytes().to_vec());
        let entries = [(short, [0, 0]), (long, [0, 1])];
        assert_eq!(error(&entries, delta, false), None);
        let [(short, _), (long, _)] = entries;
        malformed(error(&[(long, [0, 0]), (short, [0, 1])], delta, false));
    }
    // In another order than their keys, twice the same, past the end.
    for places in [[[0, 1], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [90, 1 << 50]]] {
        let error = error(&[(separator(0), places[0]), (separator(1), places[1])], false, true);
        assert!(
            matches!(error, Some(RocksdbError::Handle { block: "filter partition", .. })),
            "{error:?}"
        );
    }
    // Equal user keys whose versions fill more than one partition are in order.
    let version = |i: u8| [&keys[19][..], &[i; 8]].concat();
    assert_eq!(error(&[(version(9), [0, 0]), (version(3), [0, 1])], false, false), None);
}

/// Handles in any order, and beyond the file, when the bytes are loaded as they are needed: the
/// same error as of the whole file.
#[test]
fn partitions_that_lie_anywhere_are_loaded_as_far_as_they_can_be() {
    let keys = numbered(60);
    let mut outcomes = [0; 2];
    for round in 0..8_u64.pow(3) {
        let mut sst = Sst::default();
        sst.0.resize(74, 0);
        let [first, second, third] = [0, 1, 2].map(|i| sst.block(&block_of(&keys[20 * i..][..20])));
        let odd =
            [[0, 0], [first[0] + 1, 1], [1 << 40, 1 << 40], [u64::MAX, u64::MAX], [0, 1 << 30]];
        let place = |i: u64| [&[first, second, third][..], &odd[..]].concat()[i as usize];
        let entries: Vec<_> = [round % 8, round / 8 % 8, round / 64]
            .into_iter()
            .enumerate()
            .map(|(i, at)| (keys[20 * i + 19].clone(), place(at)))
            .collect();
        let index = sst.block(&sst::index(&entries, 1, false));
        let properties = [WHOLE, BYTEWISE, ("rocksdb.index.key.is.user.key", &[1][..])];
        let bytes = sst.finish(&[(PARTITIONED, index)], Some(&properties));
        let (whole, ranged) = (SstFilter::open(&bytes[..]), sst::open_by_ranges(&bytes));
        outcomes[usize::from(whole.is_ok())] += 1;
        assert!(ranged == whole, "{entries:?}: {ranged:?}, of the whole file {whole:?}");
    }
    assert!(outcomes[0] > 300 && outcomes[1] > 0, "{outcomes:?}");
}

/// For any contents of the blocks, opening ends soon and in little memory, and every kind of query
/// has an answer.
#[test]
fn sealed_nonsense_opens_or_not() {
    let keys = numbered(60);
    let mut random = Random(12);
    let mut opened = 0;
    for round in 0..10_000 {
        let mut sst = Sst::default();
        let entries: Vec<_> = keys
            .chunks(15)
            .map(|keys| ([&keys[14][..], &[7; 8]].concat(), sst.block(&block_of(keys))))
            .collect();
        let delta = round % 2 == 0;
        let mut index = sst::index(&entries, 4, delta);
        let properties: Vec<(&str, Vec<u8>)> = vec![
            (WHOLE.0, WHOLE.1.to_vec()),
            (BYTEWISE.0, BYTEWISE.1.to_vec()),
            ("rocksdb.block.based.table.prefix.filtering", b"1".to_vec()),
            ("rocksdb.index.value.is.delta.encoded", varint(delta.into())),
            ("rocksdb.prefix.extractor.name", b"rocksdb.FixedPrefix.9".to_vec()),
        ];
        let mut properties = sst::entries(&properties);
        for block in [&mut index, &mut properties] {
            for _ in 0..random.next() % 3 {
                let at = random.next() as usize % block.len();
                block[at] = if random.next().is_multiple_of(2) {
                    random.next() as u8
                } else {
                    block[at] ^ 1 << (random.next() % 8)
                };
            }
        }
        let mut names = vec![(PARTITIONED, handle(sst.block(&index)))];
        names.push(("rocksdb.properties", handle(sst.block(&properties))));
        let mut metaindex = sst::entries(&names);
        if random.next().is_multiple_of(4) {
            let at = random.next() as usize % metaindex.len();
            metaindex[at] = random.next() as u8;
        }
        let metaindex = sst.block(&metaindex);
        let bytes = sst.footer(metaindex);
        let Ok(filter) = SstFilter::open(&bytes) else { continue };
        opened += 1;
        let mut words = [0; 1];
        filter.contains_batch_into(&keys, &mut words).unwrap();
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(filter.contains(key), words[0] >> i & 1 == 1);
            filter.contains_prefix(key);
            filter.contains_extracted("rocksdb.FixedPrefix.9", key);
        }
        for block in filter.filter_blocks() {
            block.kind();
        }
    }
    assert!(opened > 1_000, "{opened} opened");
}

/// Separators that share nearly all their bytes would be as long as the square of the index, were
/// they decoded.
#[test]
fn an_index_of_shared_bytes_stays_small() {
    let mut sst = Sst::default();
    let mut key = vec![b'k'; 20_000];
    let entries: Vec<_> = (0..2_000_u32)
        .map(|i| {
            key.truncate(20_000);
            key.extend_from_slice(&i.to_be_bytes());
            (key.clone(), sst.block(&[0; 6]))
        })
        .collect();
    let index = sst::index(&entries, usize::MAX, true);
    assert!(index.len() < 50_000);
    let index = sst.block(&index);
    let properties = [
        WHOLE,
        BYTEWISE,
        ("rocksdb.index.key.is.user.key", &[1][..]),
        ("rocksdb.index.value.is.delta.encoded", &[1]),
    ];
    let bytes = sst.finish(&[(PARTITIONED, index)], Some(&properties));
    let filter = SstFilter::open(&bytes).unwrap();
    assert_eq!(filter.filter_blocks().count(), 2_000);
    assert!(filter.contains(&key) && filter.contains("a") && filter.contains("z"));
}

/// A query reads the separators from one that shares nothing to the next: at most 4,096.
#[test]
fn a_run_of_shared_bytes_is_limited() {
    let open = |count: u32, interval: usize, comparator: &'static [u8]| {
        let mut sst = Sst::default();
        let mut entries = Vec::new();
        for i in 0..count {
            let key = [b"k".as_slice(), &i.to_be_bytes()].concat();
            let place = sst.block(&block_of(std::slice::from_ref(&key)));
            entries.push((key, place));
        }
        let index = sst.block(&sst::index(&entries, interval, false));
        let (user, delta) = (("rocksdb.index.key.is.user.key", &[1][..]), &[0][..]);
        let delta = ("rocksdb.index.value.is.delta.encoded", delta);
        let properties = [WHOLE, ("rocksdb.comparator", comparator), user, delta];
        let bytes = sst.finish(&[(PARTITIONED, index)], Some(&properties));
        SstFilter::open(&bytes).map(|filter| {
            assert!(entries.iter().all(|(key, _)| filter.contains(key)));
            filter.filter_blocks().count()
        })
    };
    assert_eq!(open(4_096, usize::MAX, BYTEWISE.1), Ok(4_096));
    let error = open(4_097, usize::MAX, BYTEWISE.1).unwrap_err();
    let what = "a separator that shares no bytes, after 4,096 that do";
    assert!(matches!(error, RocksdbError::Malformed { expected, .. } if expected == what));
    assert_eq!(open(4_097, 4_096, BYTEWISE.1), Ok(4_097));
    // Nothing is searched under another comparator.
    assert_eq!(open(4_097, usize::MAX, b"mine"), Ok(4_097));
}
