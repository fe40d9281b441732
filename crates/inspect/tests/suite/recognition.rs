//! Formats are recognised by what files of other formats do not have.

use blocked_bloom_inspect::{
    EVIDENCE_BYTES, Format, Unrecognised, begins_as_filter, length_by_header, recognise,
};

use crate::stored::{StoredFilter, all, format_of};

pub(crate) fn check_marks(filters: &[StoredFilter]) {
    for stored in filters {
        let found = format_of(&stored.name, &stored.bytes);
        let expected = (!stored.is_unmarked).then_some(stored.format);
        // The name of a generated filter of Cassandra has no version, and is one of a filter all the same.
        assert_eq!(found, expected, "{}", stored.name);
    }
}

/// What needs the end of the file is not recognised without it, and the rest is.
pub(crate) fn check_heads(filters: &[StoredFilter]) {
    for stored in filters.iter().filter(|stored| !stored.is_unmarked) {
        let head = &stored.bytes[..stored.bytes.len().min(EVIDENCE_BYTES as usize)];
        let found = recognise(&stored.name, head, &[], None);
        let needs_end = matches!(
            stored.format,
            Format::RocksdbSst | Format::RocksdbBlock | Format::Guava | Format::Spark
        );
        match needs_end {
            true => assert!(found.is_err(), "{}: {found:?}", stored.name),
            false => assert_eq!(found, Ok(stored.format), "{}", stored.name),
        }
    }
}

pub(crate) fn check_lengths(filters: &[StoredFilter]) {
    for stored in filters {
        let head = &stored.bytes[..stored.bytes.len().min(64)];
        let expected = stored.format.has_length().then_some(stored.bytes.len() as u64);
        assert_eq!(length_by_header(stored.format, head), expected, "{}", stored.name);
        let is_own = stored.bytes.starts_with(b"\x89BB");
        assert_eq!(begins_as_filter(head), is_own, "{}", stored.name);
    }
}

#[test]
fn every_filter_is_recognised_or_has_no_mark() {
    check_marks(&all());
}

#[test]
fn streams_are_recognised_by_their_heads() {
    check_heads(&all());
}

#[test]
fn headers_give_lengths() {
    check_lengths(&all());
}

#[test]
fn what_is_not_recognised_is_guessed_at() {
    let guess = |name: &str, bytes: &[u8]| {
        recognise(name, bytes, bytes, Some(bytes.len() as u64)).unwrap_err()
    };
    assert_eq!(guess("f", b""), Unrecognised::Empty);
    assert_eq!(guess("words.txt", "äpfel\n".as_bytes()), Unrecognised::Text);
    assert_eq!(guess("a.SST", b"text"), Unrecognised::Container { extension: "sst" });
    assert_eq!(guess("a.parquet", &[7; 64]), Unrecognised::Container { extension: "parquet" });
    assert_eq!(guess("f", &[7; 64]), Unrecognised::Unknown);
    assert_eq!(recognise("f.sst", &[7; 64], &[], None), Err(Unrecognised::Stream));
    let compact = all().into_iter().find(|stored| stored.format == Format::Compact).unwrap();
    let tail = &compact.bytes[compact.bytes.len() - 64..];
    let length = Some(compact.bytes.len() as u64);
    assert_eq!(recognise("f", &compact.bytes[..64], tail, length), Err(Unrecognised::LooksCompact));
}
