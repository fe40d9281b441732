//! Formats are recognised by what files of other formats do not have.

use blocked_bloom_inspect::{EVIDENCE_BYTES, Format, Unrecognised, begins_as_filter, recognise};

use crate::stored::{all, format_of};

#[test]
fn every_filter_is_recognised_or_has_no_mark() {
    for stored in &all() {
        let found = format_of(&stored.name, &stored.bytes);
        let expected = (!stored.is_unmarked).then_some(stored.format);
        // The name of a generated filter of Cassandra has no version, and is one of a filter all
        // the same.
        assert_eq!(found, expected, "{}", stored.name);
    }
}

/// What needs the end of the file is not recognised without it, and the rest is.
#[test]
fn streams_are_recognised_by_their_heads() {
    for stored in all().iter().filter(|stored| !stored.is_unmarked) {
        let head = &stored.bytes[..stored.bytes.len().min(EVIDENCE_BYTES as usize)];
        let found = recognise(&stored.name, head, &[], None);
        let needs_end = [Format::ROCKSDB_SST, Format::ROCKSDB_BLOCK, Format::GUAVA, Format::SPARK]
            .contains(&stored.format);
        match needs_end {
            true => assert!(found.is_err(), "{}: {found:?}", stored.name),
            false => assert_eq!(found, Ok(stored.format), "{}", stored.name),
        }
    }
}

#[test]
fn headers_give_lengths() {
    for stored in &all() {
        let head = &stored.bytes[..stored.bytes.len().min(64)];
        let expected = stored.format.has_length().then_some(stored.bytes.len() as u64);
        assert_eq!(stored.format.length_by_header(head), expected, "{}", stored.name);
        let is_own = stored.bytes.starts_with(b"\x89BB");
        assert_eq!(begins_as_filter(head), is_own, "{}", stored.name);
    }
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
    let compact = all().into_iter().find(|stored| stored.format == Format::COMPACT).unwrap();
    let tail = &compact.bytes[compact.bytes.len() - 64..];
    let length = Some(compact.bytes.len() as u64);
    assert_eq!(recognise("f", &compact.bytes[..64], tail, length), Err(Unrecognised::LooksCompact));
}
