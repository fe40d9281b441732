//! Cassandra's `Filter.db`: the answers that Cassandra gave, the bytes that it wrote, and what
//! damage does.
//!
//! `naive.rs` reads the format again, independently and slowly. Kernels take no part: a classical
//! filter has no block for them.

pub(crate) mod naive;
mod real;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::ClassicalError;
use blocked_bloom_formats::cassandra::{
    CassandraError, CassandraFilter, Hash128, Layout, Shape, composite_key, diagnose, hash_key,
};

use crate::common::Random;
use crate::fixtures;

fn random_key(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.next() as u8).collect()
}

/// A header and words of these random bytes.
fn file(hash_count: i32, words: i32, random: &mut Random) -> Vec<u8> {
    let mut bytes = [hash_count.to_be_bytes(), words.to_be_bytes()].concat();
    // Three quarters of the bits are set: half of all keys pass two probes.
    bytes.extend((0..words).flat_map(|_| (random.next() | random.next()).to_le_bytes()));
    bytes
}

#[test]
fn the_hash_is_cassandras_for_every_length_of_tail() {
    let mut random = Random(1);
    for length in 0..100 {
        for _ in 0..50 {
            let key = random_key(&mut random, length);
            let Hash128 { h1, h2, .. } = hash_key(&key);
            assert_eq!((h1, h2), naive::murmur3(&key), "{key:02x?}");
        }
        // Only sign bits, and none: the two ends of the quirk.
        for byte in [0x80, 0x7f, 0xff] {
            let key = vec![byte; length];
            let Hash128 { h1, h2, .. } = hash_key(&key);
            assert_eq!((h1, h2), naive::murmur3(&key), "{length} of {byte:02x}");
        }
    }
}

#[test]
fn answers_are_those_of_a_naive_reading() {
    let mut random = Random(2);
    let (mut hits, mut queries) = (0, 0);
    for layout in Layout::ALL {
        for words in [1, 2, 3, 7, 64, 141, 1_000, 40_000] {
            for hash_count in [1, 2, 3, 5, 10, 21] {
                let bytes = file(hash_count, words, &mut random);
                let filter = CassandraFilter::from_bytes(&bytes, layout).unwrap();
                let keys: Vec<_> = (0..200).map(|i| random_key(&mut random, i % 40)).collect();
                let mut answers = Bitmask::new();
                filter.contains_batch(&keys, &mut answers);
                for (i, key) in keys.iter().enumerate() {
                    let expected = naive::contains(&bytes, layout, naive::murmur3(key));
                    assert_eq!(filter.contains(key), expected, "{filter:?}, {key:02x?}");
                    assert_eq!(answers.get(i), Some(expected), "{filter:?}, {key:02x?}");
                    hits += usize::from(expected);
                }
                queries += keys.len();
            }
        }
    }
    assert!((queries / 5..queries * 4 / 5).contains(&hits), "{hits} hits of {queries}");
}

#[test]
fn hashes_at_the_ends_of_the_signed_range() {
    let ends = [0, 1, u64::MAX, i64::MIN as u64, i64::MAX as u64, i64::MIN as u64 + 1];
    let mut random = Random(3);
    for layout in Layout::ALL {
        for words in [1, 3, 1_000] {
            let bytes = file(5, words, &mut random);
            let filter = CassandraFilter::from_bytes(&bytes, layout).unwrap();
            for (h1, h2) in ends.iter().flat_map(|&h1| ends.map(|h2| (h1, h2))) {
                let expected = naive::contains(&bytes, layout, (h1, h2));
                assert_eq!(filter.contains_hash(Hash128::new(h1, h2)), expected, "{h1:x} {h2:x}");
            }
        }
    }
}

#[test]
fn batches_of_every_length_are_answered_as_single_keys_are() {
    let mut random = Random(4);
    // The first fits the cache; the other, of 320 KB, is looked up in stages.
    for words in [1_000, 40_000] {
        for hash_count in [1, 2, 3, 5, 21] {
            for layout in Layout::ALL {
                let bytes = file(hash_count, words, &mut random);
                let filter = CassandraFilter::from_bytes(&bytes, layout).unwrap();
                let keys: Vec<_> = (0..200).map(|_| random_key(&mut random, 9)).collect();
                let hashes: Vec<_> = keys.iter().map(hash_key).collect();
                let mut answers = Bitmask::new();
                for length in 0..200 {
                    let (keys, hashes) = (&keys[..length], &hashes[..length]);
                    let mut expected = vec![0_u64; length.div_ceil(64)];
                    for (i, key) in keys.iter().enumerate() {
                        expected[i / 64] |= u64::from(filter.contains(key)) << (i % 64);
                    }
                    filter.contains_batch(keys, &mut answers);
                    assert_eq!((answers.words(), answers.len()), (&expected[..], length));
                    let mut answers = Bitmask::new();
                    filter.contains_hashes(hashes, &mut answers);
                    assert_eq!((answers.words(), answers.len()), (&expected[..], length));
                    // Previous contents of the words do not matter.
                    answers.write(length, |words| words.fill(u64::MAX));
                    filter.contains_batch(keys, &mut answers);
                    assert_eq!((answers.words(), answers.len()), (&expected[..], length));
                    answers.write(length, |words| words.fill(u64::MAX));
                    filter.contains_hashes(hashes, &mut answers);
                    assert_eq!((answers.words(), answers.len()), (&expected[..], length));
                }
            }
        }
    }
}

#[test]
fn the_writer_writes_what_a_naive_one_does() {
    let mut random = Random(5);
    for layout in Layout::ALL {
        for (hash_count, words) in [(1, 1), (2, 3), (5, 16), (13, 100), (21, 1_000), (5, 40_000)] {
            let keys: Vec<_> = (0..(words as usize * 6).min(6_000))
                .map(|i| random_key(&mut random, i % 40))
                .collect();
            let hashes: Vec<_> = keys.iter().map(|key| naive::murmur3(key)).collect();
            let expected = naive::write(layout, hash_count, words, &hashes);
            let shape = Shape::new(layout, hash_count, words).unwrap();
            let mut written = CassandraFilter::with_shape(shape).unwrap();
            // In another order, half of them twice.
            written.extend(keys.iter().rev());
            written.extend(keys.iter().step_by(2));
            assert!(keys.iter().all(|key| written.view().contains(key)));
            assert_eq!(
                written.into_inner(),
                expected,
                "{layout}, {hash_count} probes, {words} words"
            );

            let mut written = CassandraFilter::with_shape(shape).unwrap();
            let hashes: Vec<_> = keys.iter().map(hash_key).collect();
            let (few, many) = hashes.split_at(3);
            [few, &[], many].into_iter().for_each(|hashes| written.insert_hashes(hashes));
            assert_eq!(written.into_inner(), expected, "hashes: {layout}, {hash_count} probes");
        }
    }
}

#[test]
fn the_committed_file_keeps_its_bytes() {
    let folder = fixtures::committed("cassandra");
    let stored = std::fs::read(folder.join("nb-1-big-Filter.db")).unwrap();
    let keys = std::fs::read_to_string(folder.join("keys.txt")).unwrap();
    assert_eq!(keys.lines().count(), 40);
    let mut written = CassandraFilter::new(Layout::Cassandra4, 40, 0.01).unwrap();
    written.extend(keys.lines());
    assert_eq!(written.into_inner(), stored);

    let hashes: Vec<_> = keys.lines().map(|key| naive::murmur3(key.as_bytes())).collect();
    assert_eq!(naive::write(Layout::Cassandra4, 5, 7, &hashes), stored);
    let keys: Vec<_> = keys.lines().collect();
    let diagnosis = diagnose(&stored, &keys).unwrap();
    assert_eq!((diagnosis.layout(), diagnosis.keys()), (Some(Layout::Cassandra4), 40));
    assert!(diagnosis.found(Layout::Cassandra2) < 10 && diagnosis.found(Layout::Cassandra3) < 10);
}

#[test]
fn diagnosis_tells_every_layout_from_the_others_or_says_nothing() {
    let mut random = Random(6);
    for layout in Layout::ALL {
        let keys: Vec<_> = (0..50).map(|_| random_key(&mut random, 12)).collect();
        let mut written = CassandraFilter::new(layout, 50, 0.01).unwrap();
        written.extend(&keys);
        let bytes = written.into_inner();
        assert_eq!(diagnose(&bytes, &keys).unwrap().layout(), Some(layout));
        assert_eq!(diagnose(&bytes, &keys[..0]).unwrap().layout(), None);
        let mut with_a_stranger = keys.clone();
        with_a_stranger.push(random_key(&mut random, 13));
        let diagnosis = diagnose(&bytes, &with_a_stranger).unwrap();
        assert_eq!((diagnosis.layout(), diagnosis.found(layout)), (None, 50));
        assert!(diagnose(&bytes[..9], &keys).is_err());
    }
}

#[test]
fn every_truncation_and_extension_is_an_error() {
    for (hash_count, words) in [(5, 1), (1, 2), (21, 40)] {
        let bytes = file(hash_count, words, &mut Random(7));
        for layout in Layout::ALL {
            assert!(!CassandraFilter::from_bytes(&bytes, layout).unwrap().is_pass_all());
            for length in 1..bytes.len() {
                let error = CassandraFilter::from_bytes(&bytes[..length], layout).unwrap_err();
                let (found, expected) = (length as u64, bytes.len() as u64);
                if length < 8 {
                    assert_eq!(error, ClassicalError::Truncated { offset: found });
                } else {
                    assert_eq!(error, ClassicalError::Length { found, expected });
                    assert!(error.to_string().contains("truncated"), "{error}");
                }
            }
            for extra in [1, 7, 8, 64] {
                let mut longer = bytes.clone();
                longer.resize(bytes.len() + extra, 0);
                let error = CassandraFilter::from_bytes(&longer, layout).unwrap_err();
                assert!(error.to_string().contains("followed by other bytes"), "{error}");
            }
        }
    }
    // What is left of a file cut to nothing rules out nothing.
    let empty = CassandraFilter::from_bytes(&[], Layout::Cassandra2).unwrap();
    assert!(empty.is_pass_all() && empty.contains("") && empty.contains("anything"));
    let mut hits = Bitmask::new();
    empty.contains_batch(&[[0]; 70], &mut hits);
    assert_eq!(hits.words(), [u64::MAX, 0x3f]);
    assert_eq!((empty.fill_ratio(), empty.estimated_false_positive_rate()), (1.0, 1.0));
    assert_eq!((empty.shape().probes(), empty.shape().bits()), (0, 0));
    assert_eq!((empty.shape().stored_bytes(), empty.estimated_keys()), (0, None));
}

/// Within the words every bit pattern is a filter: such damage is answered from, as Cassandra
/// would, and by no panic.
#[test]
fn every_flipped_byte_is_an_error_or_answered_as_it_stands() {
    let bytes = file(5, 16, &mut Random(8));
    let keys: Vec<_> = (0..20_u32).map(u32::to_be_bytes).collect();
    for layout in Layout::ALL {
        for at in 0..bytes.len() {
            for flip in 1..=255 {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                match CassandraFilter::from_bytes(&damaged, layout) {
                    Ok(filter) => {
                        assert!(at == 3 || at >= 8, "byte {at}");
                        for key in &keys {
                            let expected = naive::contains(&damaged, layout, naive::murmur3(key));
                            assert_eq!(filter.contains(key), expected);
                        }
                    }
                    Err(ClassicalError::OutOfRange { offset, field, .. }) => match field {
                        "probes" => assert!(at < 4 && offset == Some(0)),
                        _ => assert!((4..8).contains(&at) && offset == Some(4)),
                    },
                    Err(ClassicalError::Length { .. }) => assert!((4..8).contains(&at)),
                    Err(other) => panic!("byte {at}: {other}"),
                }
            }
        }
    }
}

#[test]
fn absurd_headers_are_errors() {
    let open = |hash_count: i32, words: i32, rest: usize| {
        let mut bytes = [hash_count.to_be_bytes(), words.to_be_bytes()].concat();
        bytes.resize(8 + rest, 0xff);
        CassandraFilter::from_bytes(&bytes, Layout::Cassandra4).map(|filter| filter.contains("key"))
    };
    let out_of_range = |offset, field, found: i32, most| {
        let found = found.into();
        Err(ClassicalError::OutOfRange { offset: Some(offset), field, found, least: 1, most })
    };
    for found in [0, -1, 22, 0x100, i32::MIN, i32::MAX] {
        assert_eq!(open(found, 1, 8), out_of_range(0, "probes", found, 21));
    }
    for found in [0, -1, i32::MIN] {
        assert_eq!(open(5, found, 0), out_of_range(4, "words", found, 0x7fff_ffff));
    }
    for (words, expected) in
        [(i32::MAX, 8 + (u64::from(u32::MAX) >> 1) * 8), (1 << 29, 8 + (1 << 32))]
    {
        assert_eq!(open(5, words, 0), Err(ClassicalError::Length { found: 8, expected }));
        assert_eq!(open(5, words, 64), Err(ClassicalError::Length { found: 72, expected }));
    }
    assert_eq!((open(1, 1, 8), open(21, 1, 8)), (Ok(true), Ok(true)));
}

#[test]
fn sizes_that_are_errors() {
    let size =
        |partitions, fp_chance| Shape::for_partitions(Layout::Cassandra4, partitions, fp_chance);
    for fp_chance in [0.0, -0.01, 1.000_000_1, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(size(1, fp_chance), Err(ClassicalError::RateOutOfRange { rate: fp_chance }));
    }
    assert!(matches!(size(1, f64::NAN), Err(ClassicalError::RateOutOfRange { .. })));
    let below = 6.71e-5_f64.next_down();
    assert_eq!(size(1, below), Err(ClassicalError::RateTooLow { rate: below, least: 6.71e-5 }));
    assert!(size(1, 6.71e-5).is_ok());
    // 2^31 - 1 words hold 13,743,895,338 partitions of ten bits and the twenty bits on top, not one
    // more.
    assert_eq!(size(13_743_895_338, 0.01).unwrap().words(), i32::MAX as u32);
    let most = i32::MAX.into();
    let words =
        |found| ClassicalError::OutOfRange { offset: None, field: "words", found, least: 1, most };
    assert_eq!(size(13_743_895_339, 0.01), Err(words(1 << 31)));
    assert_eq!(size(u64::MAX, 0.01), Err(words(1 << 58)));
    assert_eq!(size(u64::MAX, 1.0).unwrap().stored_bytes(), 0);
}

/// Around entries of the table: the chance itself still gets its row, the next smaller number the
/// row after it.
#[test]
fn sizes_at_the_edges_of_the_table() {
    for (fp_chance, at, below) in [
        (0.393, (2, 16), (1, 48)),
        (0.237, (2, 48), (1, 63)),
        // Listed as 0.092, where the formula has 0.0918.
        (0.092, (3, 79), (2, 95)),
        (0.00819, (7, 157), (5, 173)),
    ] {
        let size = |fp_chance| {
            let shape = Shape::for_partitions(Layout::Cassandra2, 1_000, fp_chance).unwrap();
            (shape.probes(), shape.words())
        };
        assert_eq!((size(fp_chance), size(f64::next_down(fp_chance))), (at, below), "{fp_chance}");
    }
}

#[test]
fn statistics_are_those_of_a_classical_filter() {
    let mut written = CassandraFilter::new(Layout::Cassandra3, 20_000, 0.01).unwrap();
    written.extend((0..20_000_u32).map(u32::to_be_bytes));
    written.extend((0..20_000_u32).map(u32::to_be_bytes));
    let filter = written.view();
    let shape = filter.shape();
    assert!((19_600..20_400).contains(&filter.estimated_keys().unwrap()));
    let estimated = filter.estimated_false_positive_rate();
    assert!((estimated / shape.false_positive_rate(20_000) - 1.0).abs() < 0.05);
    let absent = 200_000;
    let passed = (0..absent).filter(|i: &u32| filter.contains((i + 20_000).to_be_bytes())).count();
    let rate = passed as f64 / f64::from(absent);
    assert!((rate / estimated - 1.0).abs() < 0.1, "{rate} measured, {estimated} estimated");
    // At a chance of 1 there is nothing to write to.
    let mut none = CassandraFilter::new(Layout::Cassandra3, 20_000, 1.0).unwrap();
    assert!(!none.insert("apple") && !none.insert_hash(hash_key("apple")));
    none.insert_hashes(&[hash_key("banana"); 40]);
    assert!(none.view().is_pass_all() && none.into_inner().is_empty());
}

/// A key is new if it was certainly absent before, and filters with equal contents are equal.
#[test]
fn insertions_say_what_was_new() {
    for layout in [Layout::Cassandra2, Layout::Cassandra3, Layout::Cassandra4] {
        // Few enough bits that some keys are there before they are added.
        let mut written = CassandraFilter::new(layout, 300, 0.1).unwrap();
        let mut present = 0;
        for key in (0..400_u32).map(u32::to_be_bytes) {
            let (before, was_there) = (written.clone(), written.view().contains(key));
            assert_eq!(written.insert(key), !was_there);
            assert_eq!(written == before, was_there);
            assert_eq!(written.view() == before.view(), was_there);
            assert!(!written.insert_hash(hash_key(key)));
            present += usize::from(was_there);
        }
        assert!((1..100).contains(&present), "{present}");
        let file = written.clone().into_inner();
        assert_eq!(CassandraFilter::from_bytes(&file[..], layout), Ok(written.view()));
        let other =
            if layout == Layout::Cassandra4 { Layout::Cassandra3 } else { Layout::Cassandra4 };
        assert_ne!(CassandraFilter::from_bytes(&file[..], other), Ok(written.view()));
    }
}

#[test]
fn layouts_by_version_and_file_name() {
    use Layout::{Cassandra2, Cassandra3, Cassandra4};
    assert_eq!(Cassandra4.to_string(), "Cassandra 4 and later");
    let versions = [
        (Cassandra2, "ic ja jb ka la lb"),
        (Cassandra3, "ma mb mc md me"),
        (Cassandra4, "na nb nc oa da"),
    ];
    for (layout, versions) in versions {
        for version in versions.split(' ') {
            assert_eq!(Layout::from_version(version), Ok(layout), "{version}");
            let format = if version == "da" { "bti" } else { "big" };
            for name in [
                format!("{version}-1-{format}-Filter.db"),
                format!(
                    "/data/ks/table-0f1e/snapshots/a-b-c/{version}-3g1m_0nuf-{format}-Filter.db"
                ),
                format!("C:\\data\\ks\\{version}-17-{format}-Filter.db"),
                format!("tmp-{version}-17-{format}-Filter.db"),
            ] {
                assert_eq!(Layout::from_file_name(&name), Ok(layout), "{name}");
            }
            let other = if format == "bti" { "big" } else { "bti" };
            let error =
                Layout::from_file_name(&format!("{version}-1-{other}-Filter.db")).unwrap_err();
            assert!(matches!(error, CassandraError::Version { .. }), "{error}");
            if format == "big" {
                for name in [
                    format!("Ks-Cf-{version}-0-Filter.db"),
                    format!("x/Ks-Cf.index-tmp-{version}-12-Filter.db"),
                ] {
                    assert_eq!(Layout::from_file_name(&name), Ok(layout), "{name}");
                }
            }
        }
    }
    for version in ["", "a", "hf", "ia", "ib", "pa", "zz", "nbb", "NB", "n1", "n", "é", "aa"] {
        let expected = CassandraError::Version { found: version.into() };
        assert_eq!(Layout::from_version(version), Err(expected));
    }
    for name in [
        "",
        "-",
        "Filter.db",
        "nb-1-big-Data.db",
        "nb-1-Filter.db",
        "Ks-jb-1-Filter.db",
        "nb-big-Filter.db",
        "-1-big-Filter.db",
        "nb--big-Filter.db",
        "Ks-Cf-jb-x-Filter.db",
        "Ks-Cf-jb--Filter.db",
        "nb-1-big-Filter.db/",
        "nb-1-big-filter.db",
        "Ks-Cf--1-Filter.db",
    ] {
        let error = Layout::from_file_name(name).unwrap_err();
        assert!(matches!(error, CassandraError::FileName { .. }), "{name}: {error}");
    }
    for name in
        ["pa-1-big-Filter.db", "aa-1-bti-Filter.db", "Ks-Cf-hf-3-Filter.db", "Ks-Cf-da-3-Filter.db"]
    {
        let error = Layout::from_file_name(name).unwrap_err();
        assert!(matches!(error, CassandraError::Version { .. }), "{name}: {error}");
    }
}

#[test]
fn composite_keys() {
    assert!(composite_key([""; 0]).unwrap().is_empty());
    assert_eq!(composite_key([""]).unwrap(), [0, 0, 0]);
    let longest = vec![7; 0xffff];
    let key = composite_key([&[1, 2][..], &longest]).unwrap();
    assert_eq!(&key[..8], [0, 2, 1, 2, 0, 0xff, 0xff, 7]);
    assert_eq!((key.len(), key.last()), (5 + 3 + 0xffff, Some(&0)));
    let too_long = vec![7; 0x1_0000];
    let error = composite_key([&[1][..], &too_long]).unwrap_err();
    assert_eq!(error, CassandraError::ComponentTooLong { index: 1, bytes: 0x1_0000 });
}
