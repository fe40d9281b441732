//! Spark's filters.
#![expect(clippy::print_stdout, reason = "a run shows what it covered")]

use blocked_bloom_formats::ClassicalError;
use blocked_bloom_formats::spark::{Shape, SparkFilter, SparkHash, Version};

use super::naive::spark::{Key, answers, bits};
use super::{check_batches, keys, rows, words};
use crate::common::Random;
use crate::fixtures::{committed, unhex};

const VERSIONS: [Version; 3] = [Version::V1, Version::V2 { seed: 0 }, Version::V2 { seed: -77 }];

fn file(version: Version, k: u32, count: u32, random: &mut Random) -> Vec<u8> {
    let shape = Shape::new(version, k, count).unwrap();
    let mut bytes = SparkFilter::with_shape(shape).unwrap().into_inner();
    let start = bytes.len() - 8 * count as usize;
    bytes[start..].copy_from_slice(&words(random, count as usize));
    bytes
}

fn hash(version: Version, key: &Key) -> SparkHash {
    match key {
        Key::Bytes(bytes) => version.hash_bytes(bytes),
        Key::Long(number) => version.hash_long(*number),
    }
}

/// Bytes of every short length, and numbers of every magnitude.
fn mixed(random: &mut Random, count: usize) -> Vec<Key> {
    let bytes = keys(random, count).into_iter();
    let key = |(i, bytes)| match i % 2 {
        0 => Key::Bytes(bytes),
        _ => Key::Long(random.next() as i64 >> (i / 2 % 64)),
    };
    bytes.enumerate().map(key).collect()
}

#[test]
fn sparks_answers_and_bytes() {
    let mut checked = 0;
    for (name, version, items, fpp) in [
        ("spark_V1_n1000_fpp0.03", Version::V1, 1_000, 0.03),
        ("spark_V2_n5000_fpp0.001", Version::V2 { seed: 12_345 }, 5_000, 0.001),
    ] {
        let folder = committed("spark");
        let bytes = std::fs::read(folder.join(format!("{name}.bin"))).unwrap();
        let rows = rows(&folder.join(format!("{name}.csv")));
        let filter = SparkFilter::from_bytes(&bytes).unwrap();
        assert_eq!(filter.shape(), Shape::for_items(version, items, fpp).unwrap());
        let key = |row: &Vec<String>| match &row[0][..] {
            "bin" => Key::Bytes(unhex(&row[1])),
            _ => Key::Long(row[1].parse().unwrap()),
        };
        let keys: Vec<Key> = rows.iter().map(key).collect();
        let expected: Vec<bool> = rows.iter().map(|row| row[3] == "1").collect();
        let mut written = SparkFilter::new(version, items, fpp).unwrap();
        for ((key, row), &expected) in keys.iter().zip(&rows).zip(&expected) {
            let added = row[2] == "1";
            let found = match key {
                Key::Bytes(bytes) => filter.contains(bytes),
                Key::Long(number) => filter.contains_long(*number),
            };
            assert_eq!(found, expected, "{name}: {key:02x?}");
            match key {
                Key::Bytes(bytes) if added => _ = written.insert(bytes),
                Key::Long(number) if added => _ = written.insert_long(*number),
                _ => {}
            }
        }
        assert_eq!(answers(&bytes, &keys), Some(expected));
        if items == 1_000 {
            assert!(written.as_bytes() == bytes, "{name}: the writer's bytes differ");
        }
        let lacking = written.view().words().iter().zip(filter.words()).any(|(a, b)| a & !b != 0);
        assert!(!lacking, "{name}: the writer sets bits that Spark does not");
        checked += keys.len();
    }
    println!("spark: {checked} answers of Spark 4.3 checked");
    assert_eq!(checked, 4_000);
}

#[test]
fn answers_are_those_of_a_naive_reading() {
    let mut random = Random(1);
    let (mut hits, mut queries) = (0, 0);
    for version in VERSIONS {
        for count in [1, 2, 3, 7, 64, 141, 1_000, 40_000] {
            for k in [1, 2, 3, 5, 10, 300] {
                let bytes = file(version, k, count, &mut random);
                let filter = SparkFilter::from_bytes(&bytes).unwrap();
                let keys = mixed(&mut random, 200);
                let expected = answers(&bytes, &keys).unwrap();
                let hashes: Vec<_> = keys.iter().map(|key| hash(version, key)).collect();
                for ((key, &hash), &expected) in keys.iter().zip(&hashes).zip(&expected) {
                    assert_eq!(filter.contains_hash(hash), expected, "{filter:?}, {key:02x?}");
                }
                check_batches(0..=200, &expected, |n, hits| {
                    filter.contains_hashes(&hashes[..n], hits);
                });
                hits += expected.iter().filter(|&&hit| hit).count();
                queries += keys.len();
            }
        }
    }
    assert!((queries / 6..queries * 5 / 6).contains(&hits), "{hits} hits of {queries}");
}

#[test]
fn batches_of_numbers_and_of_bytes_are_answered_as_single_keys_are() {
    let mut random = Random(4);
    for version in VERSIONS {
        for count in [100, 40_000] {
            let bytes = file(version, 3, count, &mut random);
            let filter = SparkFilter::from_bytes(&bytes).unwrap();
            let numbers: Vec<i64> = (0..150).map(|i| random.next() as i64 >> (i % 64)).collect();
            let expected: Vec<bool> =
                numbers.iter().map(|&key| filter.contains_long(key)).collect();
            check_batches(0..150, &expected, |n, hits| filter.contains_longs(&numbers[..n], hits));
            let keys = keys(&mut random, 150);
            let expected: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
            check_batches(0..150, &expected, |n, hits| filter.contains_batch(&keys[..n], hits));
        }
    }
}

#[test]
fn the_writer_sets_the_bits_of_a_naive_one() {
    let mut random = Random(2);
    for version in VERSIONS {
        for (k, count) in [(1, 1), (2, 3), (5, 16), (13, 100), (300, 1_000), (5, 40_000)] {
            let keys = mixed(&mut random, (count as usize * 6).min(5_000));
            let shape = Shape::new(version, k, count).unwrap();
            let mut expected = vec![0_u8; 8 * count as usize];
            let hashes: Vec<_> = keys.iter().map(|key| hash(version, key)).collect();
            let mut written = SparkFilter::with_shape(shape).unwrap();
            for (key, &hash) in keys.iter().zip(&hashes) {
                let mut is_new = false;
                let (all, number) = (64 * u64::from(count), version.number());
                for bit in bits(number, version.seed(), k, all, key) {
                    let (byte, mask) = ((bit as usize / 8) ^ 7, 1 << (bit % 8));
                    is_new |= expected[byte] & mask == 0;
                    expected[byte] |= mask;
                }
                assert_eq!(written.insert_hash(hash), is_new);
            }
            assert!(written.view().words() == expected);
            let (first, second) = hashes.split_at(hashes.len() / 3);
            let mut parts = [first, second].map(|hashes| {
                let mut part = SparkFilter::with_shape(shape).unwrap();
                part.insert_hashes(hashes);
                part
            });
            let other = parts[1].clone();
            parts[0].union_with(&other).unwrap();
            assert_eq!(parts[0].as_bytes(), written.as_bytes());
            let copy = SparkFilter::from_bytes(written.as_bytes()).unwrap();
            assert_eq!(copy.to_filter().unwrap(), written);
        }
    }
}

#[test]
fn a_rejected_merge_changes_nothing() {
    let seeded = |seed| Version::V2 { seed };
    let mut filter = SparkFilter::with_shape(Shape::new(seeded(3), 5, 10).unwrap()).unwrap();
    let others = [
        ((Version::V1, 5, 10), "version", 1, 2),
        ((seeded(-4), 5, 10), "seed", -4, 3),
        ((seeded(3), 6, 10), "probes", 6, 5),
        ((seeded(3), 5, 11), "words", 11, 10),
    ];
    for ((version, k, count), field, found, expected) in others {
        let mut other = SparkFilter::with_shape(Shape::new(version, k, count).unwrap()).unwrap();
        other.extend(["apple"]);
        let error = ClassicalError::Mismatch { field, found, expected };
        assert_eq!(filter.union_with(&other), Err(error));
        assert_eq!(filter.view().fill_ratio(), 0.0);
    }
}

#[test]
fn truncations_extensions_and_absurd_headers_are_errors() {
    for version in VERSIONS {
        let bytes = file(version, 5, 4, &mut Random(3));
        let header = bytes.len() - 32;
        for length in 0..bytes.len() {
            let error = SparkFilter::from_bytes(&bytes[..length]).unwrap_err();
            let (found, expected) = (length as u64, bytes.len() as u64);
            if length < header {
                assert_eq!(error, ClassicalError::Truncated { offset: found });
            } else {
                assert_eq!(error, ClassicalError::Length { found, expected });
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        let error = SparkFilter::from_bytes(&longer).unwrap_err();
        assert!(error.to_string().ends_with("followed by other bytes"));
    }
    let open = |header: &[i32]| {
        let header: Vec<u8> = header.iter().flat_map(|number| number.to_be_bytes()).collect();
        let bytes = [&header[..], &[0; 64]].concat();
        SparkFilter::from_bytes(&bytes).unwrap_err().to_string()
    };
    assert_eq!(open(&[0, 5, 8]), "byte 0: version 0, expected 1 to 2");
    assert_eq!(open(&[3, 5, 8]), "byte 0: version 3, expected 1 to 2");
    assert_eq!(open(&[1, 0, 8]), "byte 4: probes 0, expected 1 to 1074");
    assert_eq!(open(&[1, i32::MAX, 8]), "byte 4: probes 2147483647, expected 1 to 1074");
    assert_eq!(open(&[1, -1, 8]), "byte 4: probes -1, expected 1 to 1074");
    assert_eq!(open(&[1, 5, 0]), "byte 8: words 0, expected 1 to 2147483647");
    assert_eq!(open(&[2, 5, 0, -8]), "byte 12: words -8, expected 1 to 2147483647");
    assert!(open(&[2, 5, 0, i32::MAX]).starts_with("80 bytes in all, expected 17179869192"));
}

#[test]
fn sizes_are_sparks() {
    let size = |n, fpp| {
        let shape = Shape::for_items(Version::V1, n, fpp).unwrap();
        (shape.probes(), shape.words())
    };
    assert_eq!(size(1_000, 0.03), (5, 115));
    assert_eq!(size(5_000, 0.001), (10, 1_124));
    // 9 bits, cut, for one key make 6 hash functions, where Guava has 7.
    assert_eq!(size(1, 0.01), (6, 1));
    assert_eq!(size(1_000_000, 0.5), (1, 22_543));
    let sized = |n, bits| {
        let shape = Shape::for_bits(Version::V1, n, bits).unwrap();
        (shape.probes(), shape.words())
    };
    assert_eq!((sized(1_000, 1), sized(10, 640)), ((1, 1), (44, 10)));
    for rate in [0.0, 1.0, -0.1, 2.0, f64::NAN] {
        let error = Shape::for_items(Version::V1, 10, rate).unwrap_err();
        assert!(matches!(error, ClassicalError::RateOutOfRange { .. }), "{rate}");
    }
    let error = |n, bits| Shape::for_bits(Version::V1, n, bits).unwrap_err().to_string();
    assert!(error(0, 10).starts_with("items 0, expected 1 to "));
    assert!(error(10, 0).starts_with("bits 0, expected 1 to 137438953408"));
    assert!(error(10, 137_438_953_409).starts_with("bits 137438953409, "));
    assert_eq!(error(1, 10_000), "probes 6931, expected 1 to 1074");
}
