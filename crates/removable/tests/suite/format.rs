//! The stored form: the table in the document matches the code, every check is made, and a view
//! equals the filter.

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Filter, FormatError, KeyHash, KeyHasher};
use blocked_bloom_removable::{MAGIC, RemovableFilter, RemovableOptions};

use crate::common::Random;

fn stored(keys: u64) -> Vec<u8> {
    let options =
        RemovableOptions::new(100).with_key_hash(KeyHash::Xxh3 { seed: 0x0123_4567_89ab_cdef });
    let mut filter = options.empty_filter().unwrap();
    filter.insert_hashes(&Random(3).hashes(keys as usize)).unwrap();
    filter.to_bytes()
}

/// Recomputes both checksums.
pub(crate) fn seal(bytes: &mut [u8]) {
    let hash = |bytes: &[u8]| KeyHasher::default().hash(bytes).to_le_bytes();
    let sum = hash(&bytes[64..]);
    bytes[48..56].copy_from_slice(&sum);
    let sum = hash(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum);
}

/// The cells of the table below the title.
fn rows<'a>(document: &'a str, title: &str) -> Vec<Vec<&'a str>> {
    let section = document.split(&format!("\n## {title}\n")).nth(1).expect("the section");
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_document_matches_the_code() {
    let rows = rows(include_str!("../../../../docs/format.md"), "Removable filter");
    let fields: Vec<&Vec<&str>> = rows
        .iter()
        .filter(|row| row.len() == 4 && row[..2].iter().all(|cell| cell.parse::<u64>().is_ok()))
        .collect();
    let mut end = 0;
    for field in &fields {
        let [offset, bytes] = [field[0], field[1]].map(|cell| cell.parse::<usize>().unwrap());
        assert_eq!(offset, end, "{field:?}");
        end = offset + bytes;
    }
    assert_eq!(end, 64);
    let bytes = stored(90);
    let field = |name: &str| -> (&str, &[u8]) {
        let row = fields.iter().find(|row| row[2] == name).unwrap_or_else(|| panic!("no {name}"));
        let [offset, length] = [row[0], row[1]].map(|cell| cell.parse::<usize>().unwrap());
        (row[3], &bytes[offset..offset + length])
    };
    let magic: Vec<String> = MAGIC.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(field("magic"), (&*format!("`{}`", magic.join(" ")), &MAGIC[..]));
    assert_eq!(field("version"), ("1", &[1, 0][..]));
    assert_eq!(field("tag scheme"), ("1", &[1][..]));
    assert_eq!(field("hash").1, [1]);
    assert_eq!(field("seed").1, 0x0123_4567_89ab_cdef_u64.to_le_bytes());
    assert_eq!(field("line count").1, 5_u32.to_le_bytes());
    assert_eq!(field("keys").1, 90_u64.to_le_bytes());
    let checksum = |bytes: &[u8]| KeyHasher::default().hash(bytes).to_le_bytes();
    assert_eq!(field("checksum of the lines").1, checksum(&bytes[64..]));
    assert_eq!(field("checksum of the header").1, checksum(&bytes[..56]));
    assert_eq!(bytes.len(), 64 + 64 * 5);
}

/// Each check in the order of the document: the damage, the error and its offset.
#[test]
fn every_check_has_its_error() {
    type Damage = fn(&mut Vec<u8>);
    let field = |error: &FormatError| match error {
        FormatError::Header(HeaderError::Field { offset, .. }) => Some(*offset),
        _ => None,
    };
    let sealed: [(Damage, u64); 10] = [
        (|b| b[10] = 2, 10),
        (|b| b[11] = 2, 11),
        (|b| b[12] = 1, 12),
        (|b| b[15] = 1, 15),
        (|b| b[28] = 1, 28),
        (|b| b[31] = 1, 31),
        (|b| b[40] = 1, 40),
        (|b| b[47] = 1, 47),
        (|b| b[24..28].fill(0), 24),
        (|b| b[32..40].copy_from_slice(&161_u64.to_le_bytes()), 32),
    ];
    for (damage, offset) in sealed {
        let mut bytes = stored(90);
        damage(&mut bytes);
        seal(&mut bytes);
        for error in [
            RemovableFilter::from_bytes_any_hash(&bytes).unwrap_err(),
            RemovableFilter::from_bytes_trusted_any_hash(&bytes).unwrap_err(),
        ] {
            assert_eq!(field(&error), Some(offset), "{error}");
            assert_eq!(error.offset(), offset);
        }
    }
    // A possible but wrong number of keys: only reading the lines detects it.
    for keys in [0, 89, 91, 160_u64] {
        let mut bytes = stored(90);
        bytes[32..40].copy_from_slice(&keys.to_le_bytes());
        seal(&mut bytes);
        assert_eq!(field(&RemovableFilter::from_bytes_any_hash(&bytes).unwrap_err()), Some(32));
        let trusted = RemovableFilter::from_bytes_trusted_any_hash(&bytes).unwrap();
        assert_eq!(trusted.keys_inserted(), keys);
        // A copy counts its own tags, so removals cannot make the count negative.
        let mut copy = trusted.to_filter().unwrap();
        assert_eq!(copy.keys_inserted(), 90);
        Random(3).hashes(90).iter().for_each(|&hash| assert!(copy.remove_hash(hash)));
        assert!(copy.is_empty());
    }
    let header = |bytes: &[u8]| match RemovableFilter::from_bytes_any_hash(bytes) {
        Err(FormatError::Header(error)) => error,
        other => panic!("{other:?}"),
    };
    let (mut bytes, good) = (stored(90), stored(90));
    assert_eq!(header(&[]), HeaderError::TooShort { found: 0 });
    assert_eq!(header(&good[..383]), HeaderError::Length { found: 383, expected: 384 });
    bytes.push(0);
    assert_eq!(header(&bytes), HeaderError::Length { found: 385, expected: 384 });
    bytes.pop();
    bytes[8] = 2;
    assert_eq!(header(&bytes), HeaderError::Version { found: 2, supported: 1 });
    bytes[8] = 1;
    bytes[7] = b'\r';
    assert!(matches!(header(&bytes), HeaderError::Magic { .. }));
    bytes[7] = b'\n';
    bytes[200] ^= 1;
    assert!(matches!(header(&bytes), HeaderError::BodyChecksum { offset: 48, .. }));
}

#[test]
fn round_trips_through_bytes() {
    for key_hash in [KeyHash::default(), KeyHash::Caller { tag: u64::MAX }] {
        let mut filter = RemovableOptions::new(500).with_key_hash(key_hash).empty_filter().unwrap();
        filter.insert_hashes(&Random(8).hashes(450)).unwrap();
        let stored = filter.to_bytes();
        let mut written = Vec::new();
        assert_eq!(filter.write_to(&mut written).unwrap(), stored.len() as u64);
        assert_eq!(filter.view().write_to(std::io::sink()).unwrap(), stored.len() as u64);
        assert_eq!(written, stored);
        for opened in [
            RemovableFilter::from_bytes_any_hash(&stored).unwrap(),
            RemovableFilter::from_bytes_trusted_any_hash(&stored).unwrap(),
        ] {
            assert_eq!(opened, filter.view());
            assert_eq!((opened.keys_inserted(), opened.key_hash()), (450, key_hash));
            assert_eq!(opened.to_bytes(), stored);
            assert_eq!(opened.to_filter().unwrap().to_bytes(), stored);
        }
    }
}
