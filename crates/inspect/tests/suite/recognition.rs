//! Formats are recognised by marks that files of other formats do not have.

use blocked_bloom_inspect::{EVIDENCE_BYTES, Format, Unrecognised, begins_as_filter, recognise};

use crate::stored::{StoredFilter, all_filters, format_of};

pub(crate) fn check_marks(filters: &[StoredFilter]) {
    for stored in filters {
        let found = format_of(&stored.name, &stored.bytes);
        let expected = (!stored.is_unmarked).then_some(stored.format);
        // A generated Cassandra filter has no version in its name; the name is still that of a
        // filter.
        assert_eq!(found, expected, "{}", stored.name);
    }
}

/// Formats that need the end of the file are not recognised without it; the others are.
pub(crate) fn check_heads(filters: &[StoredFilter]) {
    for stored in filters.iter().filter(|stored| !stored.is_unmarked) {
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

pub(crate) fn check_lengths(filters: &[StoredFilter]) {
    for stored in filters {
        let head = &stored.bytes[..stored.bytes.len().min(64)];
        let expected = stored.format.has_length().then_some(stored.bytes.len() as u64);
        assert_eq!(stored.format.length_by_header(head), expected, "{}", stored.name);
        let is_own = stored.bytes.starts_with(b"\x89BB");
        assert_eq!(begins_as_filter(head), is_own, "{}", stored.name);
    }
}

#[test]
fn every_filter_is_recognised_or_has_no_mark() {
    check_marks(&all_filters());
}

#[test]
fn streams_are_recognised_by_their_heads() {
    check_heads(&all_filters());
}

#[test]
fn headers_give_lengths() {
    check_lengths(&all_filters());
}

#[test]
fn suggests_formats_for_unrecognised_files() {
    let guess = |name: &str, bytes: &[u8]| {
        recognise(name, bytes, bytes, Some(bytes.len() as u64)).unwrap_err()
    };
    assert_eq!(guess("f", b""), Unrecognised::Empty);
    assert_eq!(guess("words.txt", "äpfel\n".as_bytes()), Unrecognised::Text);
    // The first bytes may end within a character, but no character is broken before their end.
    for (bytes, expected) in [
        (&b"words \xc3"[..], Unrecognised::Text),
        (b"words \xf0\x9f\x8c", Unrecognised::Text),
        (b"words \xc3 ", Unrecognised::Unknown),
        (b"words \xff", Unrecognised::Unknown),
    ] {
        assert_eq!(guess("words.txt", bytes), expected, "{bytes:x?}");
    }
    assert_eq!(guess("a.SST", b"text"), Unrecognised::Container { extension: "sst" });
    assert_eq!(guess("a.parquet", &[7; 64]), Unrecognised::Container { extension: "parquet" });
    assert_eq!(guess("f", &[7; 64]), Unrecognised::Unknown);
    assert_eq!(recognise("f.sst", &[7; 64], &[], None), Err(Unrecognised::Stream));
    let compact =
        all_filters().into_iter().find(|stored| stored.format == Format::COMPACT).unwrap();
    let tail = &compact.bytes[compact.bytes.len() - 64..];
    let length = Some(compact.bytes.len() as u64);
    assert_eq!(recognise("f", &compact.bytes[..64], tail, length), Err(Unrecognised::LooksCompact));
}

/// Formats that are recognised by their length alone are not recognised with a byte more or less.
#[test]
fn an_unexpected_length_is_not_a_mark() {
    let filters = all_filters();
    for stored in filters.iter().filter(|of| [Format::GUAVA, Format::SPARK].contains(&of.format)) {
        let longer = [&stored.bytes[..], &[0]].concat();
        for bytes in [&longer[..], &stored.bytes[..stored.bytes.len() - 1]] {
            assert_eq!(format_of(&stored.name, bytes), None, "{}", stored.name);
        }
    }
}

/// A Cassandra name alone is not enough: no Cassandra filter has this number of probes.
#[test]
fn a_name_without_a_header_is_no_mark() {
    assert_eq!(format_of("nb-1-big-Filter.db", &[0, 0, 1, 0, 0, 0, 0, 1]), None);
}

/// The surest mark determines the format of a file with several marks.
#[test]
fn the_surest_mark_decides() {
    let trailer = [0xff, 0, 6, 0, 0];
    let sst = 0x88e2_41b7_85f4_cff7_u64.to_le_bytes();
    let file = |head: &[u8], tail: &[u8]| [head, &[0; 64][head.len()..], &[0; 64], tail].concat();
    let of = |name: &str, bytes: &[u8]| format_of(name, bytes);
    assert_eq!(of("f", &file(b"", &trailer)), Some(Format::ROCKSDB_BLOCK));
    assert_eq!(of("f.sst", &file(b"", &trailer)), None); // cut off behind its filter
    assert_eq!(of("f", &file(b"", &sst)), Some(Format::ROCKSDB_SST));
    assert_eq!(of("f.sst", &file(b"PAR1", &sst)), Some(Format::PARQUET));
    let name = "nb-1-big-Filter.db";
    assert_eq!(of(name, &file(b"", &sst)), Some(Format::CASSANDRA));
    assert_eq!(of(name, &file(b"\x89BBRIBN\n", &sst)), Some(Format::RIBBON));
    assert_eq!(of(name, &file(b"\x89BBRANG\n", &sst)), Some(Format::RANGE));
    for magic in [b"\x89BBLOOM\n", b"\x89BBTAGS\n", b"\x89BBGROW\n", b"\x89BBPLNS\n"] {
        let found = of("f", &file(magic, &trailer)).unwrap();
        assert_ne!(found, Format::ROCKSDB_BLOCK);
    }
}

/// Each number at the start of a RedisBloom dump must be one that RedisBloom writes.
#[test]
fn dumps_of_redisbloom_are_known_by_their_first_numbers() {
    let head = |iterator: u64, length: u64, links: u32, options: u32| {
        let mut head = [iterator.to_le_bytes(), length.to_le_bytes(), [0; 8]].concat();
        head.extend([links.to_le_bytes(), options.to_le_bytes()].concat());
        head.resize(64, 0);
        head
    };
    let is_dump = |head: Vec<u8>| recognise("f", &head, &[], None) == Ok(Format::REDISBLOOM);
    for options in 0..16 {
        assert!(is_dump(head(1, 73, 1, options)), "{options}");
        assert!(is_dump(head(1, 20 + 53 * 9, 9, options)), "{options}");
    }
    for options in [16, 17, 1 << 8, 1 << 31, u32::MAX] {
        assert!(!is_dump(head(1, 73, 1, options)), "{options}");
    }
    for (iterator, length, links) in
        [(0, 73, 1), (2, 73, 1), (1, 72, 1), (1, 74, 1), (1, 73, 2), (1, 20, 0)]
    {
        assert!(!is_dump(head(iterator, length, links, 5)), "{iterator} {length} {links}");
    }
}

/// Blocks of 64 bytes and a trailer of eight; every field of it is checked.
#[test]
fn the_compact_form_is_guessed_by_its_trailer_and_length() {
    let guess = |trailer: [u8; 8], length: u64| {
        let tail = [&[0x80; 56][..], &trailer].concat();
        recognise("f", &[0x80; 64], &tail, Some(length)).unwrap_err()
    };
    let of = |probes, flags| [0xbc, 1, probes, flags, 7, 0, 0, 0];
    for (probes, flags) in [(1, 1), (30, 1), (6, 5)] {
        for length in [72, 136, 8 + 64 * 1_000_000] {
            let found = guess(of(probes, flags), length);
            assert_eq!(found, Unrecognised::LooksCompact, "{probes} {flags} {length}");
        }
    }
    for length in [71, 73, 100, 128, 130, 64 * 1_000_000] {
        assert_eq!(guess(of(6, 1), length), Unrecognised::Unknown, "{length}");
    }
    for (probes, flags) in [(0, 1), (31, 1), (6, 0), (6, 2), (6, 4), (6, 7)] {
        assert_eq!(guess(of(probes, flags), 136), Unrecognised::Unknown, "{probes} {flags}");
    }
    assert_eq!(guess([0xbd, 1, 6, 1, 0, 0, 0, 0], 136), Unrecognised::Unknown);
    assert_eq!(guess([0xbc, 2, 6, 1, 0, 0, 0, 0], 136), Unrecognised::Unknown);
    // A trailer without a block.
    let alone = of(6, 1);
    assert_eq!(recognise("f", &alone, &alone, Some(8)), Err(Unrecognised::Unknown));
}
