//! Parquet's and Cassandra's filters. They have no checksums: damage that cannot be seen is
//! answered as it stands, by the format's probe scheme.

use std::fs;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_formats::cassandra::{CassandraFilter, Layout};
use blocked_bloom_formats::parquet::ParquetFile;
use blocked_bloom_split::{SplitBlockFilter, hash_value};

use super::campaign::{Case, Expected, Outcome};
use super::naive;
use crate::cassandra::naive as naive_cassandra;
use crate::common::kernels;
use crate::fixtures::{committed, unhex};

pub(crate) fn numbered(name: &str, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("{name}{i:04}").into_bytes()).collect()
}

#[test]
fn parquet_filters() {
    let keys = |name: &str| -> Vec<Vec<u8>> {
        let keys = fs::read_to_string(committed("parquet/raw").join(name)).unwrap();
        keys.lines().take(100).map(unhex).collect()
    };
    let stored = |keys: &[Vec<u8>]| {
        let mut filter = SplitBlockFilter::with_blocks(4).unwrap();
        for key in keys {
            filter.insert(key);
        }
        filter.to_bytes()
    };
    let (added, absent) = (keys("keys_added.hex"), keys("keys_absent.hex"));
    let (bytes, other, queries) = (stored(&added), stored(&absent), [added, absent].concat());
    let kernels = kernels();
    let look_up = |bytes: &[u8]| match SplitBlockFilter::from_bytes(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => {
            let answers: Vec<bool> = queries.iter().map(|key| filter.contains(key)).collect();
            let mut hits = Bitmask::new();
            for &kernel in &kernels {
                filter.with_kernel(kernel).contains_batch(&queries, &mut hits);
                assert!((0..answers.len()).all(|i| hits.get(i) == Some(answers[i])));
            }
            Outcome::answers(answers)
        }
    };
    let header = bytes.len() - 128;
    let whole = bytes.clone();
    let naive = |bytes: &[u8]| match bytes.get(..header) {
        Some(start) if start == &whole[..header] && bytes.len() == whole.len() => {
            let scheme = |key: &Vec<u8>| naive::split_block(&bytes[header..], hash_value(key));
            Expected::Answers(queries.iter().map(scheme).collect())
        }
        Some(start) if start == &whole[..header] => Expected::Refused,
        _ => Expected::Unknown,
    };
    let (name, added) = ("Parquet filter", 100);
    let report = Case {
        name,
        bytes,
        other,
        added,
        header: 0..header,
        seal: None,
        look_up: &look_up,
        naive: &naive,
    }
    .run();
    assert_eq!(report.truncated.harmless + report.truncated.wrong, 0);
    // With the length known, no header hides a key.
    assert!(report.header.wrong == 0 && report.header.refused > 3_000);
    assert!(report.flipped.wrong > 50);
}

/// Every column that has a filter, with values that are there and values that are not.
#[test]
fn parquet_files() {
    let csv = fs::read_to_string(committed("parquet").join("mr_n100_ndv100.csv")).unwrap();
    let mut queries: Vec<(usize, u64, bool, bool)> = csv
        .lines()
        .skip(1)
        .step_by(7)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let hash = hash_value(unhex(cells[3]));
            (cells[0].parse().unwrap(), hash, cells[4] == "1", cells[5] == "1")
        })
        .collect();
    queries.sort_by_key(|&(_, _, present, _)| !present);
    let added = queries.iter().filter(|(_, _, present, _)| *present).count();
    assert!(added > 80);
    let read = |name: &str| fs::read(committed("parquet").join(name)).unwrap();
    let look_up = |bytes: &[u8]| {
        let Ok(file) = ParquetFile::open(bytes) else { return Outcome::refused() };
        let columns: Vec<_> = (0..7).map(|column| file.filter(0, column)).collect();
        let answers = queries.iter().map(|&(column, hash, ..)| match columns[column] {
            Ok(Some(filter)) => filter.contains_hash(hash),
            // Without a filter, or with one that is an error, the answer is "maybe".
            _ => true,
        });
        let error = columns.iter().any(Result::is_err);
        Outcome { error, answers: Some(answers.collect()) }
    };
    let (bytes, other) = (read("mr_n100_ndv100.parquet"), read("pyarrow_special.parquet"));
    let expected: Vec<bool> = queries.iter().map(|&(.., expected)| expected).collect();
    assert_eq!(look_up(&bytes).answers, Some(expected));
    // The end of the footer, its length and the magic: every value of all of it would take longer
    // than the rest of the campaign.
    let header = bytes.len() - 128..bytes.len();
    let naive = |_: &[u8]| Expected::Unknown;
    let name = "Parquet file";
    let report =
        Case { name, bytes, other, added, header, seal: None, look_up: &look_up, naive: &naive }
            .run();
    assert_eq!(report.truncated.harmless + report.truncated.wrong, 0);
    assert!(report.header.refused > 5_000 && report.flipped.refused > 1_000);
}

#[test]
fn cassandra_filters() {
    let folder = committed("cassandra");
    let bytes = fs::read(folder.join("nb-1-big-Filter.db")).unwrap();
    let keys = fs::read_to_string(folder.join("keys.txt")).unwrap();
    let keys: Vec<Vec<u8>> = keys.lines().map(|key| key.as_bytes().to_vec()).collect();
    let mut filter = CassandraFilter::new(Layout::Cassandra4, 40, 0.01).unwrap();
    numbered("b", 40).iter().for_each(|key| _ = filter.insert(key));
    let other = filter.into_inner();
    assert_eq!((bytes.len(), keys.len()), (other.len(), 40));
    let queries = [keys, numbered("n", 100)].concat();
    let look_up = |bytes: &[u8]| match CassandraFilter::from_bytes(bytes, Layout::Cassandra4) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => {
            let answers: Vec<bool> = queries.iter().map(|key| filter.contains(key)).collect();
            let mut hits = Bitmask::new();
            filter.contains_batch(&queries, &mut hits);
            assert!((0..answers.len()).all(|i| hits.get(i) == Some(answers[i])));
            Outcome::answers(answers)
        }
    };
    let naive = |bytes: &[u8]| {
        let number = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        match bytes.len() {
            0 => Expected::Answers(vec![true; queries.len()]),
            1..8 => Expected::Refused,
            length => {
                let (hash_count, words) = (number(0), number(4));
                let fits = (1..=21).contains(&hash_count)
                    && words > 0
                    && length as u64 == 8 + 8 * words as u64;
                let scheme = |key: &Vec<u8>| {
                    naive_cassandra::contains(
                        bytes,
                        Layout::Cassandra4,
                        naive_cassandra::murmur3(key),
                    )
                };
                Expected::from_answers(fits.then(|| queries.iter().map(scheme).collect()))
            }
        }
    };
    let (name, added, header) = ("Cassandra Filter.db", 40, 0..8);
    let report =
        Case { name, bytes, other, added, header, seal: None, look_up: &look_up, naive: &naive }
            .run();
    // A file of no bytes is a filter that every key passes.
    assert_eq!((report.truncated.harmless, report.truncated.wrong), (1, 0));
    assert!(report.header.refused > 1_900 && report.flipped.wrong > 50);
}
