//! Truncated and changed bytes: an error or an answer, and never "absent" where the damage can be
//! seen.

use blocked_bloom::Filter;
use std::fs;

use blocked_bloom_formats::parquet::{ParquetError, ParquetFile, filter_at};
use blocked_bloom_split::thrift::ThriftError;
use blocked_bloom_split::{SplitBlockError, SplitBlockFilter, hash_value};

use crate::fixtures::{committed, unhex};

fn raw() -> (Vec<u8>, Vec<u64>) {
    let folder = committed("parquet/raw");
    let keys = fs::read_to_string(folder.join("keys_added.hex")).unwrap();
    let hashes = keys.lines().map(|key| hash_value(unhex(key))).collect();
    (fs::read(folder.join("arrowrs_ndv100_fpp0.5.sbbf")).unwrap(), hashes)
}

#[test]
fn every_truncation_and_extension_of_a_filter_is_an_error() {
    let (bytes, _) = raw();
    let header = bytes.len() - 64;
    for length in 0..bytes.len() {
        let error = SplitBlockFilter::from_bytes(&bytes[..length]).unwrap_err();
        let within = filter_at(&bytes[..length], 0, None).unwrap_err();
        if length < header {
            let offset = length as u64;
            assert_eq!(error, ThriftError::Truncated { offset }.into());
            assert!(error.to_string().contains("truncated"));
        } else {
            let expected = bytes.len() as u64;
            assert_eq!(error, SplitBlockError::Length { found: length as u64, expected });
            let end = length as u64;
            assert_eq!(within, ParquetError::OutsideFile { offset: 0, length: expected, end });
        }
    }
    for extra in [1, 31, 32, 64, 1_000] {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + extra, 0);
        let error = SplitBlockFilter::from_bytes(&longer).unwrap_err();
        let (found, expected) = (longer.len() as u64, bytes.len() as u64);
        assert_eq!(error, SplitBlockError::Length { found, expected });
        assert!(error.to_string().contains("followed by other bytes"));
    }
    for length in [0, 1, 31, 33, 65] {
        let error = SplitBlockFilter::from_bitset(&bytes[..length]).unwrap_err();
        assert_eq!(error, SplitBlockError::BitsetLength { found: length as i64 });
    }
}

/// With the length known, no change of the header can make a value absent.
#[test]
fn every_changed_byte_of_a_filter_is_an_error_or_an_answer() {
    let (bytes, hashes) = raw();
    let header = bytes.len() - 64;
    let mut failed = 0;
    for position in 0..bytes.len() {
        for flip in 1..=255 {
            let mut damaged = bytes.clone();
            damaged[position] ^= flip;
            let exact = SplitBlockFilter::from_bytes(&damaged);
            let declared = filter_at(&damaged, 0, Some(bytes.len() as i32));
            assert_eq!(exact.is_ok(), declared.is_ok(), "{position} ^ {flip}");
            match exact {
                Ok(filter) if position < header => {
                    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
                }
                Ok(filter) => assert_eq!(filter.blocks().len(), 2),
                Err(error) => {
                    assert!(position < header, "{error}");
                    assert!(!error.to_string().is_empty());
                    failed += 1;
                }
            }
            let _ = filter_at(&damaged, 0, None);
        }
    }
    // The remaining changes are unknown fields instead of ends of structures, and other encodings
    // of zigzag numbers.
    assert!(failed > 255 * header * 9 / 10, "{failed} of {}", 255 * header);
}

/// Opens a file, and looks up a value in each of its filters.
fn look_up_in_all(bytes: &[u8]) -> (usize, usize) {
    let (mut filters, mut errors) = (0, 0);
    match ParquetFile::open(bytes) {
        Ok(file) => {
            for (row_group, columns) in file.row_groups().iter().enumerate() {
                for column in 0..columns.columns().len() {
                    match file.filter(row_group, column) {
                        Ok(Some(filter)) => {
                            filter.contains_hash(0x0123_4567_89ab_cdef);
                            filters += 1;
                        }
                        Ok(None) => {}
                        Err(error) => {
                            assert!(!error.to_string().is_empty());
                            errors += 1;
                        }
                    }
                }
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            errors += 1;
        }
    }
    (filters, errors)
}

#[test]
fn every_truncation_and_changed_byte_of_a_file_is_an_error_or_an_answer() {
    let bytes = fs::read(committed("parquet").join("pyarrow_special.parquet")).unwrap();
    assert_eq!(look_up_in_all(&bytes), (10, 0));
    for length in 0..bytes.len() {
        assert!(ParquetFile::open(&bytes[..length]).is_err(), "{length} bytes");
    }
    let tail: [u8; 4] = bytes[bytes.len() - 8..][..4].try_into().unwrap();
    let footer = bytes.len() - 8 - u32::from_le_bytes(tail) as usize;
    let mut damaged = bytes.clone();
    for position in footer..bytes.len() {
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 0xff] {
            damaged[position] = bytes[position] ^ flip;
            look_up_in_all(&damaged);
        }
        damaged[position] = bytes[position];
    }
    for position in 0..4 {
        damaged[position] ^= 1;
        assert!(matches!(
            ParquetFile::open(&damaged),
            Err(ParquetError::NotParquet { offset: 0, .. })
        ));
        damaged[position] ^= 1;
    }
}

/// Parts of real footers in a different order.
#[test]
fn shuffled_footers_are_an_error_or_an_answer() {
    let bytes = fs::read(committed("parquet").join("mr_n100_ndv100.parquet")).unwrap();
    let mut random = crate::common::Random(12);
    let start = bytes.len() - 8 - 952;
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.next() % 4 {
            let mut pick = || start + random.next() as usize % 952;
            let (from, to) = (pick(), pick());
            let length = (random.next() as usize % 24).min(start + 952 - from.max(to));
            damaged.copy_within(from..from + length, to);
        }
        look_up_in_all(&damaged);
    }
}
