//! RocksDB's filter blocks: its answers for its own blocks with every kernel, the bytes it writes,
//! and blocks with wrong trailers.

use std::collections::HashMap;
use std::fs;

use blocked_bloom::{Bitmask, BloomFilter, Filter, Sizing};
use blocked_bloom_formats::rocksdb::{
    FilterBlock, FilterBlockBuilder, FilterKind, KEY_HASH, RibbonBlockBuilder, RocksdbError,
    hash_key, legacy_hash_key,
};

use crate::common::{Random, kernels};
use crate::fixtures::{committed, external, unhex};

fn text(name: &str) -> String {
    fs::read_to_string(committed("rocksdb").join(name)).unwrap()
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(committed("rocksdb").join(name)).unwrap()
}

/// The lines of a file, each cut at its commas, without the first `skip`.
fn rows(text: &str, skip: usize) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(skip).map(|line| line.split(',').collect())
}

fn keys(name: &str) -> Vec<Vec<u8>> {
    text(name).lines().map(unhex).collect()
}

fn bit(text: &str) -> bool {
    ["0", "1"].iter().position(|&digit| digit == text).unwrap() == 1
}

/// Looks the keys up one by one and in batches of several lengths; counts the answers.
fn look_up(
    filter: &FilterBlock<impl AsRef<[u8]>>,
    keys: &[Vec<u8>],
    expected: &[bool],
    what: &str,
) -> usize {
    let (mut checked, mut hits) = (0, Bitmask::new());
    for (key, &expected) in keys.iter().zip(expected) {
        assert_eq!(filter.contains(key), expected, "{what}, key {key:02x?}");
        checked += 1;
    }
    for length in [1, 63, 64, 65, 300, keys.len()] {
        for (keys, expected) in keys.chunks(length).zip(expected.chunks(length)) {
            filter.contains_batch(keys, &mut hits);
            assert_eq!(hits.len(), keys.len());
            for (i, &expected) in expected.iter().enumerate() {
                assert_eq!(hits.get(i), Some(expected), "{what}, key {:02x?}", keys[i]);
            }
            let mut words = vec![!0; keys.len().div_ceil(64)];
            filter.contains_batch_into(keys, &mut words).unwrap();
            assert_eq!(words, hits.words(), "{what}: bits past the last key are zero");
            checked += keys.len();
        }
    }
    checked
}

/// [`look_up`] by every kernel.
fn look_up_by_all(
    filter: FilterBlock<impl AsRef<[u8]> + Copy>,
    keys: &[Vec<u8>],
    expected: &[bool],
    what: &str,
) -> usize {
    let with_kernel = |kernel| look_up(&filter.with_kernel(kernel), keys, expected, what);
    kernels().into_iter().map(with_kernel).sum()
}

#[test]
fn hashes_are_those_of_rocksdb_at_every_length() {
    let text = text("xxph3_vectors.csv");
    let mut lengths = 0;
    for row in rows(&text, 2) {
        let length: usize = row[0].parse().unwrap();
        let pattern = |byte: fn(usize) -> usize| (0..length).map(|i| byte(i) as u8).collect();
        let a: Vec<u8> = pattern(|i| i * 7 + 3);
        let b: Vec<u8> = pattern(|i| i * i * 31 + i * 17 + 0x9d);
        assert_eq!(format!("{:016x}", hash_key(&a)), row[1], "length {length}");
        assert_eq!(format!("{:016x}", hash_key(&b)), row[2], "length {length}");
        assert_eq!(format!("{:08x}", legacy_hash_key(&a)), row[4], "length {length}");
        lengths += 1;
    }
    assert_eq!(lengths, 318);
}

/// The blocks that RocksDB's builder wrote, and their keys.
struct Raw {
    name: String,
    added: Vec<Vec<u8>>,
    absent: Vec<Vec<u8>>,
    answers: Vec<bool>,
    bits_per_key: f64,
    format_version: u32,
    ribbon: bool,
    optimized: bool,
    block: Vec<u8>,
}

fn raw() -> Vec<Raw> {
    let (index, answers) = (text("raw/raw_index.csv"), text("raw/raw_answers.csv"));
    let answers: HashMap<_, _> = rows(&answers, 1).map(|row| (row[0], row[4].to_owned())).collect();
    let raw = rows(&index, 1).map(|row| {
        let added = match row[1] {
            "be8" => {
                (0..row[2].parse().unwrap()).map(|i: u64| (2 * i).to_be_bytes().to_vec()).collect()
            }
            _ => keys("raw/keys_mix_added.hex")[..row[2].parse().unwrap()].to_vec(),
        };
        let answers: Vec<bool> = answers[row[0]].chars().map(|digit| digit == '1').collect();
        let mut absent = keys(&format!("raw/keys_{}_absent.hex", row[1]));
        assert!(answers.len() <= absent.len() && answers.len() > 500, "{}", row[0]);
        absent.truncate(answers.len());
        let block = bytes(&format!("raw/{}.filter", row[0]));
        assert_eq!(block.len(), row[7].parse().unwrap());
        assert_eq!(block[block.len() - 5..], unhex(row[8]));
        let (name, bits_per_key) = (row[0].to_owned(), row[3].parse().unwrap());
        let format_version = row[5].parse().unwrap();
        let (ribbon, optimized) = (bit(row[4]), bit(row[6]));
        Raw { name, added, absent, answers, bits_per_key, format_version, ribbon, optimized, block }
    });
    raw.collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn raw_blocks_answer_as_rocksdb_does() {
    let mut checked = 0;
    for Raw { name, added, absent, answers, block, .. } in raw() {
        let Ok(filter) = FilterBlock::from_bytes(&block) else {
            assert_eq!(name, "raw_n0_b10");
            let no_keys = FilterBlock::from_bytes_or_no_keys(&block).unwrap();
            assert_eq!(no_keys.kind(), FilterKind::NoKeys);
            checked += look_up_by_all(no_keys, &absent, &answers, &name);
            continue;
        };
        checked += look_up_by_all(filter, &added, &vec![true; added.len()], &name);
        checked += look_up_by_all(filter, &absent, &answers, &name);
        // At any alignment.
        let mut moved = vec![0; block.len() + 64];
        for shift in [1, 7, 33] {
            moved[shift..][..block.len()].copy_from_slice(&block);
            let filter = FilterBlock::from_bytes(&moved[shift..][..block.len()]).unwrap();
            checked += look_up_by_all(filter, &absent, &answers, &name);
        }
    }
    println!("rocksdb raw: {} fixtures, {checked} answers, kernels together", raw().len());
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn written_blocks_are_those_of_rocksdb() {
    let mut same = 0;
    for raw in raw().into_iter().filter(|raw| !raw.optimized) {
        if raw.ribbon {
            let mut builder = RibbonBlockBuilder::new(raw.bits_per_key).unwrap();
            builder.extend(raw.added.iter().flat_map(|key| [key, key]));
            assert!(builder.finish_verified().unwrap() == raw.block, "{}", raw.name);
            same += 1;
            continue;
        }
        let mut builder = match raw.format_version {
            5.. => FilterBlockBuilder::new(raw.bits_per_key),
            _ => FilterBlockBuilder::legacy(raw.bits_per_key),
        }
        .unwrap();
        for key in &raw.added {
            builder.insert(key);
            builder.insert(key);
        }
        assert!(builder.finish().unwrap() == raw.block, "{}", raw.name);
        same += 1;
    }
    assert_eq!(same, 12);
    println!("rocksdb raw: {same} blocks written byte for byte");
}

#[test]
fn sizing_is_that_of_rocksdb() {
    // The steps of `ChooseNumProbes`, and the clamps.
    for (bits_per_key, probes) in [
        (0.5, 1),
        (1.0, 1),
        (2.08, 1),
        (2.081, 2),
        (3.58, 2),
        (5.1, 3),
        (6.64, 4),
        (8.3, 5),
        (10.07, 6),
        (10.071, 7),
        (11.72, 7),
        (14.001, 8),
        (16.05, 9),
        (18.3, 10),
        (22.001, 11),
        (25.501, 12),
        (25.502, 11),
        (30.0, 13),
        (49.0, 23),
        (50.0, 23),
        (50.001, 24),
        (100.0, 24),
        (1e300, 24),
        (f64::INFINITY, 24),
    ] {
        let mut builder = FilterBlockBuilder::new(bits_per_key).unwrap();
        builder.extend((0..1_000_u32).map(u32::to_le_bytes));
        let block = builder.finish().unwrap();
        let kind = FilterBlock::from_bytes(&block).unwrap().kind();
        let blocks = (1_000.0 * bits_per_key.clamp(1.0, 100.0) / 512.0).ceil() as u32;
        assert_eq!(kind, FilterKind::FastLocalBloom { probes, blocks }, "{bits_per_key} bits");
    }
    for too_few in [0.499, 0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        for new in [FilterBlockBuilder::new, FilterBlockBuilder::legacy] {
            let error = new(too_few).unwrap_err();
            assert!(matches!(error, RocksdbError::BitsPerKey { .. }), "{error}");
        }
    }
}

#[test]
fn keys_and_prefixes_are_dropped_against_their_own_predecessors() {
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    // a, p | p known | b | c without prefix | b again is not next to b, but the last that came with
    // a prefix | q
    for (key, prefix, entries) in [("a", "p", 2), ("b", "p", 3), ("b", "p", 3), ("b", "q", 4)] {
        builder.insert_with_prefix(key, prefix);
        assert_eq!(builder.len(), entries, "{key} {prefix}");
    }
    builder.insert("c");
    builder.insert_with_prefix("b", "q");
    assert_eq!(builder.len(), 5);
    builder.insert("c");
    assert_eq!(builder.len(), 5);
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn crafted_blocks_are_decoded_in_the_order_of_rocksdb() {
    let (text, keys) = (text("crafted/answers.csv"), keys("crafted/keys.hex"));
    let (mut fixtures, mut checked) = (0, 0);
    for row in rows(&text, 1) {
        let (name, block) = (row[0], bytes(&format!("crafted/{}.filter", row[0])));
        let answers: Vec<bool> = row[2].chars().map(|digit| digit == '1').collect();
        assert_eq!(answers.len(), keys.len());
        fixtures += 1;
        if row[1] == "always_false" {
            let found = block.len() as u64;
            assert_eq!(FilterBlock::from_bytes(&block), Err(RocksdbError::NoKeys { found }));
            if name == "len0" {
                // The answers are those of RocksDB's innermost reader, to which no file leads: for
                // a block of no bytes a table makes no reader and answers "maybe".
                let opened = FilterBlock::from_bytes_or_no_keys(&block);
                assert_eq!(opened, Err(RocksdbError::NoKeys { found: 0 }));
                continue;
            }
            let no_keys = FilterBlock::from_bytes_or_no_keys(&block).unwrap();
            checked += look_up_by_all(no_keys, &keys, &answers, name);
            continue;
        }
        let filter = FilterBlock::from_bytes(&block).unwrap();
        let agrees = match filter.kind() {
            FilterKind::FastLocalBloom { .. } => row[1] == "fastlocal",
            FilterKind::LegacyBloom { .. } => row[1] == "legacy",
            _ => row[1] == "always_true",
        };
        assert!(agrees, "{name}: {:?}", filter.kind());
        assert_eq!(FilterBlock::from_bytes_or_no_keys(&block), Ok(filter));
        checked += look_up_by_all(filter, &keys, &answers, name);
    }
    println!("rocksdb crafted: {fixtures} fixtures, {checked} answers, kernels together");
    assert_eq!(fixtures, 20);
}

/// A Ribbon block, slot by slot.
fn naive_ribbon(block: &[u8], key: &[u8]) -> bool {
    let (data, trailer) = block.split_last_chunk::<5>().unwrap();
    let blocks = u64::from(u32::from_le_bytes([trailer[2], trailer[3], trailer[4], 0]));
    let segments = data.len() as u64 / 16;
    if blocks < 2 || segments == 0 {
        return true;
    }
    let columns = segments.div_ceil(blocks);
    let (columns, short) =
        if columns > 32 { (32, 0) } else { (columns, columns * blocks - segments) };
    let product = u64::from(trailer[1]).wrapping_mul(0xc782_19a2_3eea_dd03);
    let raw = (product ^ ((product & 0xf0f0_f0f0_f0f0_f0f0) >> 4)) % (1 << 32);
    let seeded = (hash_key(key) ^ raw).wrapping_mul(0x6193_d459_236a_3a0d);
    let start = ((u128::from(seeded) * u128::from(128 * blocks - 127)) >> 64) as u64;
    let a = seeded.wrapping_mul(0xc28f_8282_2b65_0bed);
    let coefficients = (u128::from(a) << 64 | u128::from(a ^ 0xc367_844a_6e52_731d)) | 1;
    let columns_of = |block: u64| if block < short { columns - 1 } else { columns };
    (0..columns_of(start / 128)).all(|column| {
        let sum = (0..128).filter(|i| coefficients >> i & 1 == 1).fold(false, |sum, i| {
            let (block, bit) = ((start + i) / 128, (start + i) % 128);
            let segment = block * columns - block.min(short) + column;
            sum ^ (data[(16 * segment + bit / 8) as usize] >> (bit % 8) & 1 == 1)
        });
        sum == (a.swap_bytes() >> column & 1 == 1)
    })
}

/// Section by section what RocksDB's reader does, written a second time and one bit at a time;
/// `None` where it would read past the block.
fn naive(block: &[u8], key: &[u8]) -> Option<bool> {
    let n = block.len();
    assert!(n > 5);
    let bit = |byte: u64, bit: u64| block[byte as usize] >> bit & 1 == 1;
    let marker = block[n - 5];
    if marker == 0xfe {
        return Some(naive_ribbon(block, key));
    }
    if marker == 0xff {
        let probes = u64::from(block[n - 3]);
        if block[n - 4] != 0
            || block[n - 2] != 0
            || block[n - 1] != 0
            || !(1..=30).contains(&probes)
        {
            return Some(true);
        }
        let lines = (n as u64 - 5) / 64;
        if lines == 0 {
            return None;
        }
        let hash = hash_key(key);
        let line = ((hash % (1 << 32)) * lines) >> 32;
        let mut rest = hash >> 32;
        for _ in 0..probes {
            let at = rest >> 23;
            if !bit(line * 64 + at / 8, at % 8) {
                return Some(false);
            }
            rest = rest * 0x9e37_79b9 % (1 << 32);
        }
        return Some(true);
    }
    if marker == 0 || marker >= 0x80 {
        return Some(true);
    }
    let lines = (0..4).map(|i| u64::from(block[n - 4 + i]) << (8 * i)).sum::<u64>();
    let bytes = n as u64 - 5;
    if lines == 0 || !bytes.is_multiple_of(lines) || !(bytes / lines).is_power_of_two() {
        return Some(true);
    }
    let mut hash = u64::from(legacy_hash_key(key));
    let delta = (hash >> 17) | ((hash << 15) % (1 << 32));
    let start = hash % lines * (bytes / lines);
    for _ in 0..marker {
        let at = hash % (bytes / lines * 8);
        if !bit(start + at / 8, at % 8) {
            return Some(false);
        }
        hash = (hash + delta) % (1 << 32);
    }
    Some(true)
}

/// Whatever the bytes are: an error, or by every kernel the answers of `naive`.
fn check(block: &[u8], keys: &[Vec<u8>]) {
    let filter = match FilterBlock::from_bytes(block) {
        Ok(filter) => filter,
        Err(RocksdbError::NoKeys { found }) => {
            assert!(found <= 5 && found == block.len() as u64);
            return;
        }
        Err(RocksdbError::NoLine { found }) => {
            assert!(found < 64 && naive(block, b"").is_none());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(filter.as_bytes(), block);
    let expected: Vec<bool> = keys.iter().map(|key| naive(block, key).unwrap()).collect();
    let mut hits = Bitmask::new();
    let hashes: Vec<u64> = keys.iter().map(hash_key).collect();
    let takes_hashes = !matches!(filter.kind(), FilterKind::LegacyBloom { .. });
    for kernel in blocked_bloom::Kernel::supported() {
        let filter = filter.with_kernel(kernel);
        filter.contains_batch(keys, &mut hits);
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(hits.get(i), Some(expected[i]), "{kernel:?} {:?}", filter.kind());
            assert_eq!(filter.contains(key), expected[i]);
        }
        assert!(filter.view().is_none_or(|view| view.kernel() == kernel));
        let mut hits = Bitmask::new();
        filter.contains_hashes(&hashes, &mut hits);
        let mut words = vec![0x55; hashes.len().div_ceil(64)];
        filter.contains_hashes_into(&hashes, &mut words).unwrap();
        assert_eq!(words, hits.words());
        for (i, &hash) in hashes.iter().enumerate() {
            assert_eq!(hits.get(i), Some(expected[i] || !takes_hashes));
            assert_eq!(filter.contains_hash(hash), expected[i] || !takes_hashes);
        }
    }
}

#[test]
fn blocks_are_equal_if_their_bytes_are() {
    let block = bytes("raw/raw_n1_b10.filter");
    let mut other = block.clone();
    other[0] ^= 1;
    let (filter, other) = (FilterBlock::from_bytes(&block), FilterBlock::from_bytes(&other));
    assert_eq!(filter, FilterBlock::from_bytes(&block.clone()));
    assert_eq!(filter.as_ref().unwrap().kind(), other.as_ref().unwrap().kind());
    assert_ne!(filter, other);
    let legacy = bytes("raw/raw_legacy_n1000_b10.filter");
    let kind = FilterBlock::from_bytes(&legacy).unwrap().kind();
    assert!(matches!(kind, FilterKind::LegacyBloom { line_bytes: 64, .. }), "{kind:?}");
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    assert!(builder.is_empty());
    builder.insert("a key");
    assert!(!builder.is_empty());
}

#[test]
fn damaged_blocks_are_read_as_rocksdb_would_read_them_or_errors() {
    // A LegacyBloom block with more lines than bytes, on which RocksDB 7.8.3 crashes.
    let mut lines_of_no_length = [0; 64];
    lines_of_no_length[59..].copy_from_slice(&[6, 1, 0, 0, 0x60]);
    let opened = FilterBlock::from_bytes(&lines_of_no_length).unwrap();
    assert!(opened.contains("apple") && opened.contains(""));
    let keys = &keys("raw/keys_mix_absent.hex")[..100];
    for name in
        ["raw/raw_n1000mix_b5.5.filter", "raw/raw_legacy_n1000_b10.filter", "raw/raw_n1_b10.filter"]
    {
        let block = bytes(name);
        for length in 0..block.len() {
            check(&block[..length], keys);
            check(&block[length..], keys);
        }
        let mut changed = block.clone();
        for at in 0..block.len() {
            let values: &[u8] = if at + 5 < block.len() {
                &[0, 0xff]
            } else {
                &std::array::from_fn::<u8, 256, _>(|i| i as u8)
            };
            for &value in values {
                changed[at] = value;
                check(&changed, keys);
            }
            changed[at] = block[at];
        }
    }
}

#[test]
fn arbitrary_trailers_and_bits() {
    let keys = &keys("raw/keys_mix_absent.hex")[..70];
    let mut random = Random(6);
    for round in 0..3_000 {
        let length = random.next() as usize % [8, 64, 130, 700][round % 4];
        // Mostly ones, so that answers differ.
        let mut block: Vec<u8> =
            (0..length).map(|_| (random.next() | random.next() | random.next()) as u8).collect();
        let word = random.next();
        let trailer = match round % 6 {
            0 => [0xff, 0, (word % 33) as u8, 0, 0],
            1 => [0xfe, word as u8, (word >> 8) as u8 % 3, 0, 0],
            2 => [(word % 31) as u8, (word >> 8) as u8 % 9, 0, 0, 0],
            3 => [(word % 128) as u8, (length >> (word % 8 + 8)) as u8, 0, 0, 0],
            4 => [127, 1, 0, 0, 0],
            _ => word.to_le_bytes()[..5].try_into().unwrap(),
        };
        block.extend_from_slice(&trailer);
        check(&block, keys);
    }
    // Odd lines: one byte, and one line of 2 KiB; absurd numbers of lines.
    for (bytes, lines) in [(1, 1), (7, 7), (2_048, 1), (2_048, 2), (64, u32::MAX), (64, 65), (1, 2)]
    {
        let mut block = vec![0x7f; bytes];
        block.push(6);
        block.extend_from_slice(&u32::to_le_bytes(lines));
        check(&block, keys);
    }
}

#[test]
fn one_hash_serves_both_formats() {
    let keys = keys("raw/keys_mix_added.hex");
    let hashes: Vec<u64> = keys.iter().map(hash_key).collect();
    let block = bytes("raw/raw_n1000mix_b12.filter");
    let block = FilterBlock::from_bytes(&block).unwrap();
    let view = block.view().unwrap();
    let params = Sizing::MaxBytes(64 + 64 * view.params().blocks() as u64).params(1_000).unwrap();
    let params = params.with_probes(view.params().probes()).unwrap();
    let mut filter = BloomFilter::with_params(params, KEY_HASH).unwrap();
    filter.insert_hashes(&hashes[..1_000]).unwrap();
    assert_eq!(filter.view().blocks(), view.blocks());
    assert_eq!(view.key_hash(), KEY_HASH);
    assert!(view.contains("a key, which this view cannot hash"));
    assert_eq!(filter.estimated_keys(), view.estimated_keys());
    assert!((900..1_100).contains(&view.estimated_keys().unwrap()));
}

/// 400 blocks by `NewRibbonFilterPolicy`: those that are Bloom's fall-back too, byte for byte, and
/// their answers.
#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn blocks_of_the_ribbon_policy() {
    let folder = external("rocksdb/ribbon").expect("the folder of fixtures");
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let (blocks, answers) = (read("blocks.bin"), read("answers.bin"));
    let index = String::from_utf8(read("index.csv")).unwrap();
    let key = |i: u64, salt: u64| Random(i + (salt << 40)).next().to_le_bytes();
    let absent: Vec<[u8; 8]> = (0..4_000).map(|i| key(i, 1_001)).collect();
    let (mut ribbon, mut bloom, mut hits) = (0, 0, Bitmask::new());
    for (row, answers) in rows(&index, 1).zip(answers.chunks(500)) {
        let number = |cell: usize| row[cell].parse::<usize>().unwrap();
        let block = &blocks[number(4)..][..number(5)];
        let filter = FilterBlock::from_bytes(block).unwrap();
        let added: Vec<[u8; 8]> = (0..number(0) as u64).map(|i| key(i, 1)).collect();
        filter.contains_batch(&added, &mut hits);
        assert_eq!(hits.count_misses(), 0, "{row:?}");
        filter.contains_batch(&absent, &mut hits);
        let expected = |i: usize| answers[i / 8] >> (i % 8) & 1 == 1;
        assert!(hits.iter().enumerate().all(|(i, hit)| hit == expected(i)), "{row:?}");
        match filter.kind() {
            FilterKind::Ribbon { .. } => ribbon += 1,
            _ => bloom += 1,
        }
        assert_eq!(filter.ribbon().is_some(), row[6] == "ribbon");
        if !bit(row[3]) {
            let mut builder = RibbonBlockBuilder::new(row[2].parse().unwrap()).unwrap();
            builder.extend(&added);
            assert_eq!(builder.finish_verified().unwrap(), block, "{row:?}");
        }
    }
    assert_eq!((ribbon, bloom), (314, 86));
}

#[test]
fn a_ribbon_block_without_keys_or_segments() {
    let builder = RibbonBlockBuilder::new(10.0).unwrap();
    assert!(builder.is_empty() && builder.finish_verified().unwrap().is_empty());
    // Two blocks of slots, and bytes for less than a column of one: "maybe".
    let block = [[0; 15].as_slice(), &[0xfe, 0, 2, 0, 0]].concat();
    let filter = FilterBlock::from_bytes(&block).unwrap();
    assert_eq!(filter.kind(), FilterKind::Ribbon { seed: 0, blocks: 2 });
    assert!(filter.ribbon().is_none() && filter.contains("apple"));
    for too_few in [0.499, f64::NAN] {
        let error = RibbonBlockBuilder::new(too_few).unwrap_err();
        assert!(matches!(error, RocksdbError::BitsPerKey { .. }), "{error}");
    }
}
