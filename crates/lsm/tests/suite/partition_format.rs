//! The stored index of a partitioned filter: it reads back, every damage is rejected,
//! `docs/format.md` describes it, and golden files pin it.

use std::fmt::Write;

use crate::common::Random;
use crate::partitions::{Built, group_by_partition, numbers, options, seal};
use blocked_bloom::parts::HeaderError;
use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, PrefixExtractor, Sizing};
use blocked_bloom_lsm::{PartitionError, PartitionIndex};
use xxhash_rust::xxh3::xxh3_64;

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap())
}

/// Small enough for exhaustive damage: one partition, several, with prefixes, with long separators.
fn specimens() -> Vec<Built> {
    let rule = PrefixExtractor::fixed(3);
    let words = (0..60_u8).map(|number| format!("a long beginning {number:02}"));
    vec![
        Built::new(options(), 4_096, numbers(0)),
        Built::new(options(), 128, numbers(200)),
        Built::new(options().with_prefixes(rule.clone()), 128, numbers(120)),
        Built::new(options().with_only_prefixes(rule), 128, words),
        Built::new(FilterOptions::new(Sizing::BitsPerKey(0.0)), 128, numbers(9)),
    ]
}

#[test]
fn every_truncation_and_extension_is_rejected() {
    for Built { index, .. } in specimens() {
        for length in 0..index.len() {
            let error = PartitionIndex::from_bytes_any_hash(&index[..length]).unwrap_err();
            let found = length as u64;
            let expected = match length {
                0..64 => HeaderError::TooShort { found },
                _ => HeaderError::Length { found, expected: index.len() as u64 },
            };
            assert_eq!(error, PartitionError::Header(expected));
            assert_eq!(error.offset(), found);
        }
        for extra in [1, 24, 64] {
            let longer = [&index[..], &vec![0; extra]].concat();
            let error = PartitionIndex::from_bytes_any_hash(longer).unwrap_err();
            assert_eq!(error.offset(), index.len() as u64);
            assert!(error.to_string().ends_with(": followed by other bytes"), "{error}");
        }
    }
}

#[test]
fn every_flipped_bit_is_rejected() {
    for Built { index, .. } in specimens() {
        for bit in 0..index.len() * 8 {
            let mut damaged = index.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = PartitionIndex::from_bytes_any_hash(&damaged).expect_err("a flipped bit");
            let PartitionError::Header(found) = error else { panic!("bit {bit}: {error}") };
            let expected = match bit / 8 {
                0..8 => matches!(found, HeaderError::Magic { .. }),
                8..10 => matches!(found, HeaderError::Version { .. }),
                10..64 => matches!(found, HeaderError::Checksum { .. }),
                _ => matches!(found, HeaderError::BodyChecksum { offset: 48, .. }),
            };
            assert!(expected, "bit {bit}: {error}");
        }
    }
}

/// Wrong fields with matching checksums are rejected, with name and offset.
#[test]
fn wrong_fields_with_right_checksums_are_named() {
    use PartitionError as Error;
    let Built { index, .. } = &specimens()[1];
    assert_eq!(index.len(), 64 + 4 * 24 + 3 * 4, "four partitions, separators of four bytes");
    let open_with = |at: usize, field: &[u8]| {
        let mut changed = index.clone();
        changed[at..at + field.len()].copy_from_slice(field);
        seal(&mut changed);
        let error = PartitionIndex::from_bytes_any_hash(changed).map(drop).unwrap_err();
        assert_eq!(
            error.to_string().split_once(": ").unwrap().0,
            format!("offset {}", error.offset())
        );
        error
    };
    // The offset and the value of the wrong field.
    let field = |error: Error| match error {
        Error::Header(HeaderError::Field { offset, found, .. }) => (offset, found),
        other => panic!("{other}"),
    };
    let length = |found, expected| Error::Header(HeaderError::Length { found, expected });
    let version = HeaderError::Version { found: 258, supported: 1 };
    assert_eq!(open_with(8, &[2, 1]), Error::Header(version));
    // Filters may use 0, the caller's hash, but indexes may not.
    for hash in [0, 2, 255] {
        assert_eq!(field(open_with(10, &[hash])), (10, hash.into()));
    }
    assert_eq!(open_with(10, &[0]).to_string(), "offset 10: unsupported hash 0 (supported: 1)");
    for flags in [0, 4, 5, 255] {
        assert_eq!(field(open_with(11, &[flags])), (11, flags.into()));
    }
    assert_eq!(field(open_with(11, &[3])), (40, 0), "no extractor");
    assert_eq!(field(open_with(40, &[7])), (40, 7), "an extractor, and no prefixes");
    assert_eq!(field(open_with(12, &[0])), (12, 0), "no partition");
    // Huge counts allocate nothing.
    let expected = 64 + 24 * u64::from(u32::MAX) + 12;
    assert_eq!(open_with(12, &[255; 4]), length(172, expected));
    assert_eq!(open_with(32, &[255; 8]), length(172, u64::MAX));
    assert_eq!(open_with(12, &[5]), length(172, 196));
    // Ends of partitions: 128, 256, 384, 512.
    for end in [0, 64, 127, 129, 192 + 1, u64::MAX, 64 + (1 << 38) + 64] {
        let error = open_with(64 + 8, &end.to_le_bytes());
        assert_eq!(field(error), (72, end));
    }
    for end in [127, 128, 128 + 64] {
        let error = open_with(88 + 8, &u64::to_le_bytes(end));
        assert_eq!(field(error), (96, end));
    }
    // Ends of separators: 0, 4, 8, 12.
    assert_eq!(field(open_with(64 + 16, &[1])), (64 + 16, 1));
    assert_eq!(field(open_with(88 + 16, &[13])), (88 + 16, 13));
    assert_eq!(field(open_with(88 + 16, &[255; 8])), (88 + 16, u64::MAX));
    assert_eq!(field(open_with(112 + 16, &[3])), (112 + 16, 3));
    assert_eq!(field(open_with(136 + 16, &[11])), (136 + 16, 11));
    // An empty separator, a repeated one, and one less than the previous.
    assert_eq!(field(open_with(88 + 16, &[0])), (88 + 16, 0));
    let first: Vec<u8> = index[160..164].to_vec();
    assert_eq!(field(open_with(164, &first)), (112 + 16, 8));
    let error = open_with(168, &[0; 4]);
    assert!(error.to_string().contains("must be greater than the previous one"), "{error}");
    assert_eq!(field(error), (136 + 16, 12));
}

/// First, in between and last: the partitions after it start above 2^38.
#[test]
fn the_largest_partition_opens_and_a_larger_one_does_not() {
    const MAX_LENGTH: u64 = 64 + 64 * u32::MAX as u64;
    let Built { index, .. } = &specimens()[1];
    for partition in 0..4 {
        // The index with another length for this partition, which had 128 bytes like the others.
        let open_with = |length: u64| {
            let mut changed = index.clone();
            for at in (partition..4).map(|behind| 64 + 24 * behind + 8) {
                let end = u64_at(index, at) - 128 + length;
                changed[at..at + 8].copy_from_slice(&end.to_le_bytes());
            }
            seal(&mut changed);
            PartitionIndex::from_bytes_any_hash(changed)
        };
        let offset = 128 * partition as u64;
        let opened = open_with(MAX_LENGTH).unwrap();
        let at = opened.location(partition).unwrap();
        assert_eq!((at.offset, at.length), (offset, MAX_LENGTH));
        assert_eq!(opened.stored_bytes(), 3 * 128 + MAX_LENGTH);
        let error = open_with(MAX_LENGTH + 64).unwrap_err();
        assert_eq!(error.offset(), 64 + 24 * partition as u64 + 8);
        assert!(error.to_string().contains(&(offset + MAX_LENGTH + 64).to_string()), "{error}");
    }
}

/// Every index that opens is queried: no panic, and a partition or an error for each key.
#[test]
fn mutations_with_right_checksums_never_panic() {
    let mut random = Random(5);
    let mut opened = 0;
    let specimens = specimens();
    for _ in 0..20_000 {
        let built = &specimens[random.next() as usize % specimens.len()];
        let mut index = built.index.clone();
        for _ in 0..=random.next() % 3 {
            let at = random.next() as usize % index.len();
            index[at] = match random.next() % 2 {
                0 => random.next() as u8,
                _ => index[at] ^ 1,
            };
        }
        seal(&mut index);
        let Ok(index) = PartitionIndex::from_bytes_any_hash(&index) else { continue };
        opened += 1;
        let keys = numbers(5);
        let mut answered = 0;
        for (at, positions) in group_by_partition(&index, &keys) {
            assert!(at.length >= 128 && at.length % 64 == 0 && at.partition < index.partitions());
            answered += positions.len();
            let Some(bytes) = built.partitions.get(at.partition) else { continue };
            let Ok(filter) = index.open(&at, bytes) else { continue };
            positions.iter().for_each(|&i| _ = filter.contains(keys[i]));
        }
        assert_eq!(answered, keys.len());
    }
    assert!(opened > 2_000, "{opened} mutations opened");
}

#[test]
fn arbitrary_bytes_are_rejected() {
    let mut random = Random(10);
    for length in (0..200).chain([4_096]) {
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        assert!(PartitionIndex::from_bytes_any_hash(&bytes).is_err());
        assert!(PartitionIndex::from_bytes_any_hash(vec![0; length]).is_err());
    }
    // A filter is not an index, and an index is not a filter.
    let built = &specimens()[1];
    assert!(matches!(
        PartitionIndex::from_bytes_any_hash(&built.partitions[0]),
        Err(PartitionError::Header(HeaderError::Magic { .. }))
    ));
    assert!(BloomFilter::from_bytes_any_hash(&built.index).is_err());
}

/// Reads both tables of the document and compares each row with an index.
#[test]
fn the_document_matches_the_code() {
    let document = include_str!("../../../../docs/format.md");
    let (_, section) = document.split_once("### Index of a partitioned filter").unwrap();
    let section = section.split("\n### ").next().unwrap();
    let mut rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [offset, bytes, field, value] = cells[..] else { return None };
        Some((offset.parse::<usize>().ok()?, bytes.parse::<usize>().ok()?, field, value))
    });

    let rule = PrefixExtractor::fixed(2);
    let seed = 0x0102_0304_0506_0708;
    let options = options().with_key_hash(KeyHash::Xxh3 { seed }).with_prefixes(rule.clone());
    let built = Built::new(options, 256, numbers(700));
    let (index, partitions) = (&built.index, built.partitions.len());
    let separators = 64 + 24 * partitions;
    let mut end = 0;
    for (offset, length, field, value) in rows.by_ref().take(11) {
        assert_eq!(offset, end, "{field} begins where the field before it ends");
        end = offset + length;
        let mut found = [0; 8];
        found[..length].copy_from_slice(&index[offset..end]);
        let found = u64::from_le_bytes(found);
        match field {
            "magic" => {
                let hex: Vec<String> =
                    index[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(value, format!("`{}`", hex.join(" ")));
            }
            "version" => assert_eq!(found.to_string(), value),
            "hash" => assert!(found == 1 && value == "1 = XXH3-64"),
            "flags" => assert_eq!(found, 3),
            "partition count" => assert_eq!(found, partitions as u64),
            "seed" => assert_eq!(found, seed),
            "keys inserted" => assert_eq!(found, 700),
            "bytes of separators" => assert_eq!(found, (index.len() - separators) as u64),
            "extractor" => assert_eq!(found, rule.id()),
            "checksum of the body" => assert_eq!(found, xxh3_64(&index[64..])),
            "checksum of the header" => assert_eq!(found, xxh3_64(&index[..56])),
            other => panic!("unknown field {other}"),
        }
    }
    assert_eq!(end, 64);
    let entry: Vec<_> = rows.collect();
    let fields: Vec<&str> = entry.iter().map(|(_, _, field, _)| *field).collect();
    assert_eq!(fields, ["header checksum", "partition end", "separator end"]);
    assert!(entry.iter().enumerate().all(|(i, row)| (row.0, row.1) == (8 * i, 8)));
    let (mut end, mut begin) = (0, 0);
    let opened = built.open();
    for (i, partition) in built.partitions.iter().enumerate() {
        let entry = 64 + 24 * i;
        end += partition.len() as u64;
        assert_eq!(u64_at(index, entry), u64_at(partition, 56));
        assert_eq!(u64_at(index, entry + 8), end);
        let separator_end = u64_at(index, entry + 16) as usize;
        assert_eq!(opened.separator(i), Some(&index[separators..][begin..separator_end]));
        begin = separator_end;
    }
}

/// Never update these files: a change breaks the stored partitioned filters of all users.
#[test]
fn golden_files_are_reproduced_and_answer() {
    let rule = PrefixExtractor::fixed(3);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    for (name, built) in [
        ("partitions", Built::new(options(), 192, numbers(300))),
        (
            "partitions-prefixes",
            Built::new(options().with_prefixes(rule.clone()), 256, numbers(300)),
        ),
    ] {
        let new = concat!(env!("CARGO_TARGET_TMPDIR"), "/golden");
        std::fs::create_dir_all(new).unwrap();
        std::fs::write(format!("{new}/{name}.index"), &built.index).unwrap();
        std::fs::write(format!("{new}/{name}.blooms"), &built.file).unwrap();
        let read = |ending: &str| std::fs::read(format!("{folder}/{name}.{ending}")).unwrap();
        let (index, partitions) = (read("index"), read("blooms"));
        assert!(index == built.index && partitions == built.file, "compare {new} with {folder}");
        let index = PartitionIndex::from_bytes_any_hash(index).unwrap();
        assert_eq!(index.stored_bytes(), partitions.len() as u64);
        let mut maybe = String::new();
        for number in 0_u32..2_300 {
            let key = number.to_be_bytes();
            let at = index.locate(key);
            let bytes = &partitions[at.offset as usize..(at.offset + at.length) as usize];
            let filter = index.open(&at, bytes).unwrap();
            let found = filter.contains(key);
            assert!(found || number % 7 != 0 || number >= 2_100);
            if found && (number % 7 != 0 || number >= 2_100) {
                write!(maybe, "{number} ").unwrap();
            }
            if name == "partitions-prefixes" && number < 2_100 {
                assert!(filter.contains_prefix(&rule, key));
            }
        }
        let expected = match name {
            "partitions" => {
                "23 44 495 755 1014 1070 1135 1138 1221 1266 1290 1314 1347 1376 1399 1784 1856 "
            }
            _ => "23 64 85 229 269 296 312 501 598 995 1002 1395 1464 1571 1585 ",
        };
        assert_eq!(maybe, expected, "false positives of {name}");
    }
}
