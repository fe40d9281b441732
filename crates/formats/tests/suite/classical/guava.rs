//! Guava's filters.
#![expect(clippy::print_stdout, reason = "a run shows what it covered")]

use blocked_bloom_formats::ClassicalError;
use blocked_bloom_formats::guava::{GuavaFilter, Shape, Strategy, hash_key};

use super::{check_batches, keys, naive, rows, words};
use crate::common::Random;
use crate::fixtures::{committed, unhex};

const STRATEGIES: [Strategy; 2] = [Strategy::Mitz32, Strategy::Mitz64];

fn file(strategy: Strategy, k: u32, count: u32, random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![strategy as u8, k as u8];
    bytes.extend(count.to_be_bytes());
    bytes.extend(words(random, count as usize));
    bytes
}

#[test]
fn guavas_answers_and_bytes() {
    let mut answers = 0;
    for (name, insertions, fpp) in
        [("guava_mitz64_n1000_fpp0.03", 1_000, 0.03), ("guava_mitz64_n5000_fpp0.001", 5_000, 0.001)]
    {
        let folder = committed("guava");
        let bytes = std::fs::read(folder.join(format!("{name}.bin"))).unwrap();
        let rows = rows(&folder.join(format!("{name}.csv")));
        let filter = GuavaFilter::from_bytes(&bytes).unwrap();
        assert_eq!(filter.shape(), Shape::for_insertions(insertions, fpp).unwrap());
        let keys: Vec<Vec<u8>> = rows.iter().map(|row| unhex(&row[0])).collect();
        let expected: Vec<bool> = rows.iter().map(|row| row[2] == "1").collect();
        for (key, &expected) in keys.iter().zip(&expected) {
            assert_eq!(filter.contains(key), expected, "{name}: {key:02x?}");
        }
        check_batches([keys.len()], &expected, |n, hits| filter.contains_batch(&keys[..n], hits));
        assert_eq!(naive::guava::answers(&bytes, &keys), Some(expected));
        // Of the other filter's keys the answers list a part.
        let added = rows.iter().zip(&keys).filter(|(row, _)| row[1] == "1");
        let mut written = GuavaFilter::new(insertions, fpp).unwrap();
        written.extend(added.map(|(_, key)| key));
        if insertions == 1_000 {
            assert!(written.as_bytes() == bytes, "{name}: the writer's bytes differ");
        }
        let lacking = written.view().words().iter().zip(filter.words()).any(|(a, b)| a & !b != 0);
        assert!(!lacking, "{name}: the writer sets bits that Guava does not");
        answers += keys.len();
    }
    println!("guava: {answers} answers of Guava 33.6 checked");
    assert_eq!(answers, 4_000);
}

#[test]
fn answers_are_those_of_a_naive_reading() {
    let mut random = Random(1);
    let (mut hits, mut queries) = (0, 0);
    for strategy in STRATEGIES {
        for count in [1, 2, 3, 7, 64, 141, 1_000, 40_000] {
            for k in [1, 2, 3, 5, 10, 255] {
                let bytes = file(strategy, k, count, &mut random);
                let filter = GuavaFilter::from_bytes(&bytes).unwrap();
                let keys = keys(&mut random, 200);
                let expected = naive::guava::answers(&bytes, &keys).unwrap();
                for (key, &expected) in keys.iter().zip(&expected) {
                    assert_eq!(filter.contains(key), expected, "{filter:?}, {key:02x?}");
                }
                let hashes: Vec<_> = keys.iter().map(hash_key).collect();
                check_batches(0..=200, &expected, |n, hits| {
                    filter.contains_batch(&keys[..n], hits);
                    let key_hits = hits.clone();
                    filter.contains_hashes(&hashes[..n], hits);
                    assert_eq!(*hits, key_hits);
                });
                hits += expected.iter().filter(|&&hit| hit).count();
                queries += keys.len();
            }
        }
    }
    assert!((queries / 6..queries * 5 / 6).contains(&hits), "{hits} hits of {queries}");
}

#[test]
fn the_writer_sets_the_bits_of_a_naive_one() {
    let mut random = Random(2);
    for strategy in STRATEGIES {
        for (k, count) in [(1, 1), (2, 3), (5, 16), (13, 100), (255, 1_000), (5, 40_000)] {
            let keys = keys(&mut random, (count as usize * 6).min(5_000));
            let shape = Shape::new(strategy, k, count).unwrap();
            let mut expected = vec![0_u8; 8 * count as usize];
            let hashes: Vec<_> = keys.iter().map(hash_key).collect();
            let mut written = GuavaFilter::with_shape(shape).unwrap();
            for key in &keys {
                let hash = naive::guava::murmur3(key);
                let mut is_new = false;
                let all = 64 * u64::from(count);
                for bit in naive::guava::bits(strategy as u8, k, all, hash) {
                    let (byte, mask) = ((bit as usize / 8) ^ 7, 1 << (bit % 8));
                    is_new |= expected[byte] & mask == 0;
                    expected[byte] |= mask;
                }
                assert_eq!(written.insert(key), is_new);
            }
            assert!(written.view().words() == expected);
            let (first, second) = hashes.split_at(hashes.len() / 3);
            let mut parts = [first, second].map(|hashes| {
                let mut part = GuavaFilter::with_shape(shape).unwrap();
                part.insert_hashes(hashes);
                part
            });
            let other = parts[1].clone();
            parts[0].union_with(&other).unwrap();
            assert_eq!(parts[0].as_bytes(), written.as_bytes());
            let copy = GuavaFilter::from_bytes(written.as_bytes()).unwrap();
            assert_eq!(copy.to_filter().unwrap(), written);
        }
    }
}

#[test]
fn a_rejected_merge_changes_nothing() {
    let shape = Shape::new(Strategy::Mitz64, 5, 10).unwrap();
    let mut filter = GuavaFilter::with_shape(shape).unwrap();
    let others = [
        (Shape::new(Strategy::Mitz32, 5, 10).unwrap(), "strategy", 0, 1),
        (Shape::new(Strategy::Mitz64, 6, 10).unwrap(), "probes", 6, 5),
        (Shape::new(Strategy::Mitz64, 5, 11).unwrap(), "words", 11, 10),
    ];
    for (other, field, found, expected) in others {
        let mut other = GuavaFilter::with_shape(other).unwrap();
        other.insert("apple");
        let error = ClassicalError::Mismatch { field, found, expected };
        assert_eq!(filter.union_with(&other), Err(error));
        assert_eq!(filter.view().fill_ratio(), 0.0);
    }
}

#[test]
fn truncations_extensions_and_absurd_headers_are_errors() {
    let bytes = file(Strategy::Mitz64, 5, 4, &mut Random(3));
    for length in 0..bytes.len() {
        let error = GuavaFilter::from_bytes(&bytes[..length]).unwrap_err();
        let (found, expected) = (length as u64, bytes.len() as u64);
        assert_eq!(
            error,
            match length {
                ..6 => ClassicalError::Truncated { offset: found },
                _ => ClassicalError::Length { found, expected },
            }
        );
    }
    let longer = [&bytes[..], &[0]].concat();
    let error = GuavaFilter::from_bytes(&longer).unwrap_err();
    assert!(error.to_string().ends_with("followed by other bytes"));
    let open = |header: [u8; 6]| {
        let bytes = [&header[..], &[0; 64]].concat();
        GuavaFilter::from_bytes(&bytes).unwrap_err().to_string()
    };
    assert_eq!(open([2, 5, 0, 0, 0, 8]), "byte 0: strategy 2, expected 0 to 1");
    assert_eq!(open([255, 5, 0, 0, 0, 8]), "byte 0: strategy -1, expected 0 to 1");
    assert_eq!(open([1, 0, 0, 0, 0, 8]), "byte 1: probes 0, expected 1 to 255");
    assert_eq!(open([1, 5, 0, 0, 0, 0]), "byte 2: words 0, expected 1 to 2147483647");
    assert_eq!(open([1, 5, 255, 0, 0, 0]), "byte 2: words -16777216, expected 1 to 2147483647");
    assert!(open([1, 5, 0x7f, 255, 255, 255]).starts_with("70 bytes in all, expected 17179869182"));
}

#[test]
fn sizes_are_guavas() {
    let size = |n, fpp| {
        let shape = Shape::for_insertions(n, fpp).unwrap();
        (shape.probes(), shape.words())
    };
    // -n ln(p) / ln(2)^2 bits by hand; -log2(p) rounded.
    assert_eq!(size(1_000, 0.03), (5, 115));
    assert_eq!(size(5_000, 0.001), (10, 1_124));
    assert_eq!((size(0, 0.03), size(1, 0.03)), ((5, 1), (5, 1)));
    assert_eq!(size(1, 0.01), (7, 1));
    assert_eq!(size(1_000_000, 0.5), (1, 22_543));
    assert_eq!(size(100, 0.9), (1, 1));
    assert_eq!(size(10, 1e-70), (233, 53));
    for rate in [0.0, 1.0, -0.1, 2.0, f64::NAN] {
        let error = Shape::for_insertions(10, rate).unwrap_err();
        assert!(matches!(error, ClassicalError::RateOutOfRange { .. }), "{rate}");
    }
    let error = |n, fpp| Shape::for_insertions(n, fpp).unwrap_err().to_string();
    assert_eq!(error(10, 1e-100), "probes 332, expected 1 to 255");
    assert_eq!(error(1, 0.7), "words 0, expected 1 to 2147483647");
    assert!(error(u64::MAX, 0.5).starts_with("words "));
    let most = Shape::new(Strategy::Mitz64, 1, i32::MAX as u32).unwrap();
    assert_eq!(most.stored_bytes(), 6 + 8 * 2_147_483_647);
}

#[test]
fn statistics_are_near_what_was_added() {
    let mut filter = GuavaFilter::new(20_000, 0.01).unwrap();
    (0..20_000_u32).for_each(|key| _ = filter.insert(key.to_le_bytes()));
    let view = filter.view();
    let keys = view.estimated_keys().unwrap();
    assert!((19_800..20_200).contains(&keys), "{keys}");
    let false_positives =
        (20_000..120_000_u32).filter(|key| view.contains(key.to_le_bytes())).count() as f64 / 1e5;
    for rate in [view.estimated_false_positive_rate(), view.shape().false_positive_rate(20_000)] {
        assert!((false_positives / rate - 1.0).abs() < 0.15, "{false_positives} {rate}");
    }
}
