//! The stored bytes: golden files, which must stay readable, and every check in its order.

use std::fs;
use std::path::Path;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, Filter, KeyHash};
use blocked_bloom_ribbon::{RibbonError, RibbonFilter};
use xxhash_rust::xxh3::xxh3_64;

use crate::common::kernels;
use crate::naive::Naive;
use crate::sharded::options;

/// Name, rate, keys and hash of the golden files.
fn goldens() -> [(&'static str, f64, u32, KeyHash); 4] {
    let seeded = KeyHash::Xxh3 { seed: 7 };
    [
        ("empty", 0.01, 0, KeyHash::default()),
        ("tenth-n500", 0.1, 500, KeyHash::default()),
        ("hundredth-n9000-seed7", 0.01, 9_000, seeded),
        ("millionth-n300-caller", 1e-6, 300, KeyHash::Caller { tag: 99 }),
    ]
}

fn key(i: u32) -> String {
    format!("golden {i}")
}

fn golden(rate: f64, keys: u32, key_hash: KeyHash) -> Vec<u8> {
    let hasher = key_hash.hasher().unwrap_or_default();
    let mut builder = options(rate, key_hash).builder();
    (0..keys).for_each(|i| builder.insert_hash(hasher.hash(key(i))));
    builder.finish_verified().unwrap().as_bytes().to_vec()
}

/// With `BLESS=1`, missing files are written. Existing files never change.
#[test]
fn golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, rate, keys, key_hash) in goldens() {
        let path = folder.join(name).with_extension("ribbon");
        if !path.exists() && std::env::var_os("BLESS").is_some() {
            fs::write(&path, golden(rate, keys, key_hash)).unwrap();
        }
        let stored = fs::read(&path).unwrap();
        assert_eq!(golden(rate, keys, key_hash), stored, "{name}");
        let filter = RibbonFilter::from_bytes_any_hash(&stored).unwrap();
        assert_eq!((filter.keys_inserted(), filter.key_hash()), (u64::from(keys), key_hash));
        let hasher = key_hash.hasher().unwrap_or_default();
        let hashes: Vec<u64> = (0..keys + 500).map(|i| hasher.hash(key(i))).collect();
        let naive = Naive::open(&stored).unwrap();
        let mut hits = Bitmask::new();
        for kernel in kernels() {
            filter.view().with_kernel(kernel).contains_hashes(&hashes, &mut hits);
            for (i, &hash) in hashes.iter().enumerate() {
                assert_eq!(hits.get(i), Some(naive.contains(hash)), "{name} {kernel} {i}");
                assert!(i >= keys as usize || naive.contains(hash));
            }
        }
    }
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = xxh3_64(&bytes[64..]);
    bytes[48..56].copy_from_slice(&body.to_le_bytes());
    let header = xxh3_64(&bytes[..56]);
    bytes[56..64].copy_from_slice(&header.to_le_bytes());
    bytes
}

#[test]
fn every_check() {
    let stored = golden(0.01, 9_000, KeyHash::default());
    let with = |at: usize, byte: u8| {
        let mut bytes = stored.clone();
        bytes[at] = byte;
        bytes
    };
    let error = |bytes: &[u8]| {
        assert!(Naive::open(bytes).is_none());
        let error = RibbonFilter::from_bytes_any_hash(bytes).unwrap_err();
        assert!(!error.to_string().is_empty() && error.offset().is_some());
        error
    };
    let header = |bytes: &[u8]| match error(bytes) {
        RibbonError::Header(error) => error,
        other => panic!("{other}"),
    };
    assert_eq!(
        RibbonFilter::from_bytes_any_hash(sealed(stored.clone())).unwrap().as_bytes(),
        stored
    );
    assert!(matches!(header(&stored[..63]), HeaderError::TooShort { found: 63 }));
    assert!(matches!(header(&with(0, 0)), HeaderError::Magic { .. }));
    assert!(matches!(header(&sealed(with(8, 2))), HeaderError::Version { found: 2, supported: 1 }));
    assert!(matches!(header(&with(33, 77)), HeaderError::Checksum { .. }));
    for (at, byte) in
        [(10, 0), (10, 2), (11, 2), (12, 0), (12, 33), (13, 1), (15, 1), (28, 1), (31, 9), (44, 1)]
    {
        let error = header(&sealed(with(at, byte)));
        assert!(matches!(error, HeaderError::Field { .. }), "{at}: {error}");
        assert_eq!(error.offset(), if at == 44 { 40 } else { at as u64 });
    }
    assert!(matches!(header(&stored[..stored.len() - 1]), HeaderError::Length { .. }));
    let longer = [stored.as_slice(), &[0]].concat();
    assert!(matches!(header(&longer), HeaderError::Length { .. }));
    assert!(matches!(header(&with(70, 1)), HeaderError::BodyChecksum { offset: 48, .. }));
    // Three shards: offsets, starts and short blocks of the directory.
    for (at, offset) in [(64, 64), (68, 64), (70, 64), (72, 72), (76, 72), (86, 80)] {
        match error(&sealed(with(at, 0xff))) {
            RibbonError::Shard { offset: found, .. } => {
                assert!(found == offset || found == 40 || found == offset + 8, "{at}")
            }
            other => panic!("{at}: {other}"),
        }
    }
}

/// Reads the header's table in the document and checks each row against a stored filter.
#[test]
fn the_document_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let document = fs::read_to_string(path).unwrap();
    let (_, section) = document.split_once("## Ribbon filter").unwrap();
    let rows = section.lines().take_while(|line| !line.starts_with("## ")).filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [offset, bytes, field, value] = cells[..] else { return None };
        Some((offset.parse::<usize>().ok()?, bytes.parse::<usize>().ok()?, field, value))
    });
    let seed = 0x0102_0304_0506_0708;
    let stored = golden(0.01, 9_000, KeyHash::Xxh3 { seed });
    let number = |at: usize, length: usize| {
        stored[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let (shards, words) = (number(24, 4), number(40, 8));
    let (mut end, mut fields) = (0, Vec::new());
    for (offset, length, field, value) in rows {
        if offset == 0 && end == 64 {
            // The directory's entries. The first has no words before it.
            end = 0;
        }
        assert_eq!(offset, end, "{field} begins where the field before it ends");
        end = offset + length;
        fields.push(field);
        let found = number(offset, length);
        match field {
            "magic" => {
                let hex: Vec<String> =
                    stored[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(value, format!("`{}`", hex.join(" ")));
            }
            "version" | "Ribbon scheme" => assert_eq!(found.to_string(), value),
            "hash" => assert!(found == 1 && value.ends_with("1 = XXH3-64")),
            "columns" => assert!(found == 7 && value == "`c`, 1 to 32"),
            "zero" => assert!(found == 0 && value == "0"),
            "seed" if length == 8 => assert_eq!(found, seed),
            "shard count" => assert_eq!(found, 3),
            "keys inserted" => assert_eq!(found, 9_000),
            "word count" => assert_eq!(stored.len() as u64, 64 + 8 * (shards + found)),
            "checksum of the body" => assert_eq!(found, xxh3_64(&stored[64..])),
            "checksum of the header" => assert_eq!(found, xxh3_64(&stored[..56])),
            "offset" => assert_eq!(number(64 + offset, length), 0),
            "starts" => assert_eq!(number(64 + offset, length) % 64, 1),
            "short blocks" => assert!((1..60).contains(&number(64 + offset, length))),
            "seed" => assert!(number(64 + offset, length) < 10),
            other => panic!("{other}"),
        }
    }
    assert_eq!((fields.len(), end), (17, 8));
    assert!(words > 900);
}

/// The same filter with one more column in the header, which every block lacks; and with more short
/// blocks than there are blocks.
#[test]
fn as_many_short_blocks_as_there_are() {
    let stored = golden(0.5_f64.powi(6), 9_000, KeyHash::default());
    let with_short_blocks = |more: u8| {
        let mut bytes = stored.clone();
        bytes[12] += 1;
        for entry in bytes[64..].chunks_exact_mut(8).take(3) {
            assert_eq!(entry[6], 0);
            entry[6] = u16::from_le_bytes([entry[4], entry[5]]).div_ceil(64) as u8 + more;
        }
        sealed(bytes)
    };
    let (filter, bytes) =
        (RibbonFilter::from_bytes_any_hash(&stored).unwrap(), with_short_blocks(0));
    assert!(Naive::open(&bytes).is_some());
    let equal = RibbonFilter::from_bytes_any_hash(&bytes).unwrap();
    assert_eq!((filter.columns(), filter.shards(), equal.columns()), (6, 3, 7));
    let hashes: Vec<u64> =
        (0..10_000).map(|i| KeyHash::default().hasher().unwrap().hash(key(i))).collect();
    let (mut hits, mut others) = (Bitmask::new(), Bitmask::new());
    for kernel in kernels() {
        filter.view().with_kernel(kernel).contains_hashes(&hashes, &mut hits);
        equal.view().with_kernel(kernel).contains_hashes(&hashes, &mut others);
        assert_eq!(hits, others, "{kernel}");
    }
    let error = RibbonFilter::from_bytes_any_hash(&with_short_blocks(1)).unwrap_err();
    assert!(matches!(error, RibbonError::Shard { offset: 64, .. }), "{error}");
}
