//! The stored bytes: golden files, which must stay readable, and every check in its order.

use std::fs;
use std::path::Path;

use blocked_bloom::parts::HeaderError;
use blocked_bloom_range::{RangeError, RangeFilter};
use xxhash_rust::xxh3::xxh3_64;

use crate::damage::seal;
use crate::naive::Naive;
use crate::sets::{built, built_of_bytes, clustered, series, uniform};

/// The golden files. `large` is only a checksum.
fn goldens() -> [(&'static str, RangeFilter); 6] {
    let long: Vec<Vec<u8>> =
        series(4, 200).iter().map(|key| [&[0xff; 13][..], &key.to_be_bytes()].concat()).collect();
    let words = ["", "a", "a\0", "aa", "apple", "apple pie of the day", "b", "\u{10ffff}"];
    [
        ("empty", built(16.0, 0, &[])),
        ("one-key", built(4.0, 0, &[u64::MAX])),
        ("uniform", built(13.7, 0, &uniform(1, 300))),
        ("series-in-seconds", built_of_bytes(16.0, 10, &long)),
        ("words", built_of_bytes(32.0, 0, &words)),
        ("large", built(20.0, 2, &clustered(2, 200_000))),
    ]
}

/// With `BLESS=1`, missing files are written. Existing files never change.
#[test]
fn golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, filter) in goldens() {
        let is_large = name == "large";
        let built = match is_large {
            true => format!("{:016x}\n", xxh3_64(filter.as_bytes())).into_bytes(),
            false => filter.as_bytes().to_vec(),
        };
        let path = folder.join(name).with_extension(if is_large { "xxh3" } else { "range" });
        if !path.exists() && std::env::var_os("BLESS").is_some() {
            fs::write(&path, &built).unwrap();
        }
        let stored = fs::read(&path).unwrap();
        assert_eq!(built, stored, "{name}");
        if !is_large {
            let opened = RangeFilter::from_bytes(&stored).unwrap();
            let naive = Naive::open(&stored).unwrap();
            assert_eq!(opened.keys_inserted(), filter.keys_inserted());
            assert_eq!(naive.codes().len(), opened.codes() as usize, "{name}");
        }
    }
}

#[test]
fn every_check() {
    let stored = built(16.0, 0, &uniform(1, 3_000)).as_bytes().to_vec();
    let with = |at: usize, byte: u8| {
        let mut bytes = stored.clone();
        bytes[at] = byte;
        bytes
    };
    let sealed = |mut bytes: Vec<u8>| {
        seal(&mut bytes);
        bytes
    };
    let error = |bytes: &[u8]| {
        assert!(Naive::open(bytes).is_none());
        match RangeFilter::from_bytes(bytes).unwrap_err() {
            RangeError::Header(error) => error,
            other => panic!("{other}"),
        }
    };
    assert_eq!(RangeFilter::from_bytes(sealed(stored.clone())).unwrap().as_bytes(), stored);
    assert!(matches!(error(&stored[..63]), HeaderError::TooShort { found: 63 }));
    assert!(matches!(error(&with(0, 0)), HeaderError::Magic { .. }));
    assert!(matches!(error(&sealed(with(8, 2))), HeaderError::Version { found: 2, supported: 1 }));
    assert!(matches!(error(&with(33, 77)), HeaderError::Checksum { .. }));
    let offset = |at: usize| if at < 14 { at } else { at & !7 };
    for (at, byte) in
        [(10, 0), (10, 2), (11, 0), (11, 30), (12, 19), (13, 128), (23, 0x41), (40, 1), (47, 9)]
    {
        let error = error(&sealed(with(at, byte)));
        assert!(matches!(error, HeaderError::Field { .. }), "{at}: {error}");
        assert_eq!(error.offset(), if at == 47 { 47 } else { offset(at) as u64 });
    }
    for (at, byte, offset) in [(14, 17, 14), (15, 18, 15), (15, 7, 15), (13, 63, 15), (30, 1, 28)] {
        let error = error(&sealed(with(at, byte)));
        assert!(matches!(error, HeaderError::Field { .. }), "{at}: {error}");
        assert_eq!(error.offset(), offset);
    }
    // No starts, and as many as no filter can have.
    for starts in [0, (1 << 62) + 1, u64::MAX] {
        let mut bytes = stored.clone();
        bytes[16..24].copy_from_slice(&u64::to_le_bytes(starts));
        assert_eq!(error(&sealed(bytes)).offset(), 16);
    }
    // The largest possible lengths neither overflow nor allocate.
    for low_bits in [1, 29] {
        let mut bytes = with(11, low_bits);
        bytes[12] = low_bits + 5;
        bytes[16..24].copy_from_slice(&(1_u64 << 62).to_le_bytes());
        bytes[24..28].fill(0xff);
        assert!(matches!(error(&sealed(bytes)), HeaderError::Length { .. }));
    }
    assert!(matches!(error(&stored[..stored.len() - 1]), HeaderError::Length { .. }));
    let longer = [stored.as_slice(), &[0]].concat();
    assert!(matches!(error(&longer), HeaderError::Length { .. }));
    assert!(matches!(error(&with(70, 1)), HeaderError::BodyChecksum { offset: 48, .. }));
    // The directory, a bucket's unary code, and the padding.
    let mut ranks = (64..1_000).step_by(4);
    let last = ranks.find(|&at| stored[at..at + 4] == 3_000_u32.to_le_bytes());
    let end = last.expect("the last rank") + 4;
    for (at, byte, offset) in [(64, 1, 64), (68, 0xff, 64), (end - 4, 0, end as u64 - 4)] {
        let error = error(&sealed(with(at, byte)));
        assert!(matches!(error, HeaderError::Field { field: "rank", .. }), "{at}: {error}");
        assert!(error.offset() <= offset && offset < error.offset() + 8, "{at}: {error}");
    }
    let flipped = sealed(with(end, !stored[end]));
    assert!(matches!(error(&flipped), HeaderError::Field { field: "rank", offset: 64, .. }));
    for at in [stored.len() - 1, stored.len() - 32] {
        let error = error(&sealed(with(at, 0x10)));
        assert!(matches!(error, HeaderError::Field { field: "padding", .. }), "{error}");
        assert_eq!(error.offset(), at as u64);
    }
}

/// Two faults that every other check accepts: a code in a part after the last of its bucket, and a
/// first rank above 0.
#[test]
fn buckets_begin_and_end_where_they_should() {
    let refused = |bytes: &mut [u8]| {
        seal(bytes);
        assert!(Naive::open(bytes).is_none());
        match RangeFilter::from_bytes(&*bytes).unwrap_err() {
            RangeError::Header(HeaderError::Field { field: "rank", offset, .. }) => offset,
            other => panic!("{other}"),
        }
    };
    // The only bucket of a filter of one key. A code in the last part is moved past the end.
    let mut moved = 0;
    for key in 0..4_000 {
        let mut stored = built(4.0, 0, &[key]).as_bytes().to_vec();
        assert_eq!(stored[64..72], [0, 0, 0, 0, 1, 0, 0, 0], "one bucket");
        let unary = u64::from_le_bytes(stored[72..80].try_into().unwrap());
        if unary << 31 == 1 << 62 {
            stored[72..80].copy_from_slice(&(unary ^ 3 << 31).to_le_bytes());
            assert_eq!(refused(&mut stored), 64);
            moved += 1;
        }
    }
    assert!(moved > 0);
    // No key, but a rank of 1 and space for a code before the bucket.
    let mut stored = built(16.0, 0, &[]).as_bytes().to_vec();
    assert_eq!(stored[64..72], [0; 8]);
    stored[24] = 1;
    [stored[64], stored[68]] = [1, 1];
    let bits = |codes: usize| (codes * (usize::from(stored[11]) + 1) + 32).div_ceil(8);
    stored.resize(stored.len() + bits(1) - bits(0), 0);
    assert_eq!(refused(&mut stored), 64);
}

/// Reads the header's table in the document and checks each row against a stored filter.
#[test]
fn the_document_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let document = fs::read_to_string(path).unwrap();
    let (_, section) = document.split_once("## Range filter").unwrap();
    let rows = section.lines().take_while(|line| !line.starts_with("## ")).filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [offset, bytes, field, value] = cells[..] else { return None };
        Some((offset.parse::<usize>().ok()?, bytes.parse::<usize>().ok()?, field, value))
    });
    let keys: Vec<Vec<u8>> =
        uniform(3, 3_000).iter().map(|key| [&[7; 20][..], &key.to_be_bytes()].concat()).collect();
    let filter = built_of_bytes(16.0, 3, &keys);
    let stored = filter.as_bytes();
    let number = |at: usize, length: usize| {
        stored[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let (mut end, mut fields) = (0, Vec::new());
    for (offset, length, field, value) in rows {
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
            "version" | "range scheme" => assert_eq!(found.to_string(), value),
            "low bits" => assert!(found == 13 && value == "`l`, 1 to 29"),
            "block bits" => assert!(found == 18 && value == "`w`, at most `l + 5`"),
            "dropped bits" => assert_eq!(found, 128 - 64 + 3),
            "shortest key" | "longest key" => assert_eq!(found, 8),
            "starts" => assert_eq!(found, 3_000 * 8_192 - (1 << 18)),
            "code count" => assert_eq!(found, u64::from(filter.codes())),
            "prefix length" => assert_eq!(found, 20),
            "keys inserted" => assert_eq!(found, 3_000),
            "zero" => assert!(found == 0 && value == "0"),
            "checksum of the body" => assert_eq!(found, xxh3_64(&stored[64..])),
            "checksum of the header" => assert_eq!(found, xxh3_64(&stored[..56])),
            other => panic!("{other}"),
        }
    }
    assert_eq!((fields.len(), end), (15, 64));
}
