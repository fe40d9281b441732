//! RocksDB's filters. An SST file has checksums, and nothing in one may be wrong unless they were
//! mended. A filter block by itself has none: damage that cannot be seen is answered as it stands,
//! by the format's probe scheme.

use std::fs;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder, SstFilter, hash_key};

use super::campaign::{Case, Expected, Outcome, Seal};
use super::foreign::numbered;
use super::naive;
use crate::common::kernels;
use crate::fixtures::committed;
use crate::sst::{self, Sst};

/// A filter block of RocksDB, by itself.
fn naive_block(bytes: &[u8], queries: &[Vec<u8>]) -> Expected {
    let Some((bits, trailer)) = bytes.split_last_chunk::<5>() else { return Expected::Refused };
    let lines = &bits[..bits.len() / 64 * 64];
    match *trailer {
        _ if bits.is_empty() => Expected::Refused,
        [0xff, 0, 1..=30, 0, 0] if lines.is_empty() => Expected::Refused,
        [0xff, 0, probes @ 1..=30, 0, 0] => {
            let scheme = |key: &Vec<u8>| naive::probe_scheme_1(lines, probes, hash_key(key));
            Expected::Answers(queries.iter().map(scheme).collect())
        }
        // Filters of the older kind, which has tests of its own.
        [1..=127, ..] => Expected::Unknown,
        // Ribbon blocks, whose tests are in their own package.
        [0xfe, _, blocks @ ..] if blocks != [0; 3] && blocks != [1, 0, 0] => Expected::Unknown,
        _ => Expected::Answers(vec![true; queries.len()]),
    }
}

fn built(keys: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = FilterBlockBuilder::new(10.0).unwrap();
    builder.extend(keys);
    builder.finish().unwrap()
}

#[test]
fn filter_blocks() {
    let kernels = kernels();
    let queries = [numbered("a", 100), numbered("n", 100)].concat();
    let (bytes, other) = (built(&queries[..100]), built(&numbered("b", 100)));
    let trailer = bytes.len() - 5..bytes.len();
    let look_up = |bytes: &[u8]| match FilterBlock::from_bytes(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(block) => {
            let answers: Vec<bool> = queries.iter().map(|key| block.contains(key)).collect();
            let mut hits = Bitmask::new();
            for &kernel in &kernels {
                block.with_kernel(kernel).contains_batch(&queries, &mut hits);
                assert!((0..answers.len()).all(|i| hits.get(i) == Some(answers[i])));
            }
            Outcome::answers(answers)
        }
    };
    let naive = |bytes: &[u8]| naive_block(bytes, &queries);
    let (name, added) = ("RocksDB filter block", 100);
    let report = Case {
        name,
        bytes,
        other,
        added,
        header: trailer,
        seal: None,
        look_up: &look_up,
        naive: &naive,
    }
    .run();
    assert!(report.flipped.wrong > 100 && report.header.harmless > 500);
}

#[test]
fn files() {
    let keys: Vec<Vec<u8>> = (0..300).map(|i| format!("user{:05}", 3 * i).into_bytes()).collect();
    let queries = [keys, numbered("n", 50)].concat();
    let read = |name: &str| fs::read(committed("rocksdb/matrix").join(name)).unwrap();
    let look_up = |bytes: &[u8]| match SstFilter::open(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => Outcome::answers(queries.iter().map(|key| filter.contains(key)).collect()),
    };
    for (name, file, other) in [
        ("SST, full filter", "xxh3_fv6.sst", "xxhash64_fv6.sst"),
        ("SST, partitions", "parts_fv6_ri16.sst", "parts_fv5_ri16.sst"),
        ("SST, version 5, CRC-32C", "crc32c_fv5.sst", "crc32c_fv6.sst"),
    ] {
        let (bytes, other, added) = (read(file), read(other), 300);
        let header = bytes.len() - 53..bytes.len();
        let naive = |_: &[u8]| Expected::Unknown;
        let report = Case {
            name,
            bytes,
            other,
            added,
            header,
            seal: None,
            look_up: &look_up,
            naive: &naive,
        }
        .run();
        assert!(report.has_no_wrong_answer() && report.header.wrong == 0);
        assert_eq!(report.truncated.harmless, 0);
        assert!(report.flipped.refused > 8 * 400 && report.header.refused > 4_000);
    }
}

/// Every damage, under checksums that fit.
const MENDED: &Seal = &|_| {};

/// Puts a filter of this kind into a file.
fn look_up_in_file(mut file: Sst, kind: &str, block: &[u8], queries: &[Vec<u8>]) -> Outcome {
    const PROPERTIES: [(&str, &[u8]); 3] = [
        ("rocksdb.block.based.table.whole.key.filtering", b"1"),
        ("rocksdb.comparator", b"leveldb.BytewiseComparator"),
        ("rocksdb.index.key.is.user.key", &[1]),
    ];
    let name = format!("{kind}.rocksdb.BuiltinBloomFilter");
    let place = file.block(block);
    match SstFilter::open(&file.finish(&[(&name, place)], Some(&PROPERTIES))) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => {
            let answers: Vec<bool> = queries.iter().map(|key| filter.contains(key)).collect();
            let mut hits = Bitmask::new();
            filter.contains_batch(queries, &mut hits);
            assert!((0..answers.len()).all(|i| hits.get(i) == Some(answers[i])));
            Outcome::answers(answers)
        }
    }
}

#[test]
fn filter_blocks_in_mended_files() {
    let queries = [numbered("a", 100), numbered("n", 100)].concat();
    let (bytes, other) = (built(&queries[..100]), built(&numbered("b", 100)));
    let look_up = |block: &[u8]| look_up_in_file(Sst::default(), "fullfilter", block, &queries);
    let naive = |bytes: &[u8]| match bytes.len() {
        // RocksDB's "no keys"; in a file that may have keys for other reasons.
        ..=5 => Expected::Answers(vec![true; queries.len()]),
        _ => naive_block(bytes, &queries),
    };
    let (name, added, header) = ("SST, mended full filter", 100, bytes.len() - 5..bytes.len());
    let report = Case {
        name,
        bytes,
        other,
        added,
        header,
        seal: Some(MENDED),
        look_up: &look_up,
        naive: &naive,
    }
    .run();
    assert!(report.header.harmless > 500 && report.flipped.wrong > 100);
}

/// Varints of one byte, keys that share nothing and ascend, handles of partitions in their order;
/// the separator of each and which partition it is. Of any other index nothing is said.
fn naive_index(mut index: &[u8], places: &[[u64; 2]]) -> Option<Vec<(Vec<u8>, usize)>> {
    let count = index.split_off(index.len().checked_sub(4)?..)?;
    let restarts = u32::from_le_bytes(count.try_into().ok()?) as usize;
    index = index.get(..index.len().checked_sub(restarts.checked_mul(4)?)?)?;
    let mut entries: Vec<(Vec<u8>, usize)> = Vec::new();
    while !index.is_empty() {
        let [0, key, value] = *index.split_off(..3)? else { return None };
        let key = index.split_off(..usize::from(key))?.to_vec();
        let value = index.split_off(..usize::from(value))?;
        let which = places.iter().position(|&place| sst::handle(place) == value)?;
        let ascends = entries.last().is_none_or(|last| last.0 <= key && last.1 < which);
        ascends.then(|| entries.push((key, which)))?;
    }
    (!entries.is_empty()).then_some(entries)
}

#[test]
fn partition_indexes_in_mended_files() {
    let queries = [numbered("a", 100), numbered("n", 50)].concat();
    let (mut file, mut partitions, mut entries, mut other) =
        (Sst::default(), vec![], vec![], vec![]);
    for keys in queries[..100].chunks(20) {
        let block = built(keys);
        let place = file.block(&block);
        partitions.push(block);
        entries.push((keys[19].clone(), place));
        other.push((keys[9].clone(), place));
    }
    let places: Vec<[u64; 2]> = entries.iter().map(|entry| entry.1).collect();
    let look_up =
        |index: &[u8]| look_up_in_file(Sst(file.0.clone()), "partitionedfilter", index, &queries);
    let naive = |index: &[u8]| {
        let Some(entries) = naive_index(index, &places) else { return Expected::Unknown };
        let answer = |key: &Vec<u8>| {
            let found = entries.iter().find(|(separator, _)| separator >= key);
            let (_, which) = found.unwrap_or(&entries[entries.len() - 1]);
            let block = &partitions[*which];
            let (bits, trailer) = block.split_last_chunk::<5>().unwrap();
            naive::probe_scheme_1(bits, trailer[2], hash_key(key))
        };
        Expected::Answers(queries.iter().map(answer).collect())
    };
    let (bytes, other) = (sst::index(&entries, 1, false), sst::index(&other, 1, false));
    assert!(naive_index(&bytes, &places).is_some_and(|entries| entries.len() == 5));
    let (name, added, header) = ("SST, mended index", 100, 0..12);
    let report = Case {
        name,
        bytes,
        other,
        added,
        header,
        seal: Some(MENDED),
        look_up: &look_up,
        naive: &naive,
    }
    .run();
    assert!(report.header.refused > 1_000 && report.header.wrong > 10);
    assert!(report.sealed.refused > 1_000);
}
