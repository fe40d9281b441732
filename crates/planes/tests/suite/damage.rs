//! Damaged planes are an error, and never rule out a row that has the queried item.

use std::num::NonZeroU32;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, KeyHash, KeyHasher};
use blocked_bloom_planes::{
    Planes, PlanesError, PlanesLayout, PlanesOptions, Query, TextRows, TextState,
};

use crate::naive::{Model, Random, options, record, rows};

/// Counts of damaged copies: rejected, opened without harm, and opened with a lost row.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    refused: usize,
    harmless: usize,
    wrong: usize,
}

fn with_text(options: PlanesOptions) -> PlanesOptions {
    options.with_text(TextRows::new(NonZeroU32::new(50).unwrap()))
}

struct Case {
    rows: Vec<Vec<u64>>,
    bytes: Vec<u8>,
    other: Vec<u8>,
}

impl Case {
    fn new(options: PlanesOptions) -> Self {
        let rows = rows(700, 1);
        let bytes = Model::from_rows(options, &rows).encode();
        let mut other = rows.clone();
        other.reverse();
        let other = Model::from_rows(options, &other).encode();
        Case { rows, bytes, other }
    }

    #[expect(clippy::print_stdout, reason = "figures to be quoted")]
    fn run(&self, damage: &str, copies: impl Iterator<Item = Vec<u8>>) -> Counts {
        let mut counts = Counts::default();
        for bytes in copies.filter(|bytes| *bytes != self.bytes && *bytes != self.other) {
            *match Planes::from_bytes_any_hash(&bytes[..]) {
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    &mut counts.refused
                }
                Ok(planes) if self.loses_a_row(planes) => &mut counts.wrong,
                Ok(_) => &mut counts.harmless,
            } += 1;
            // Without verification any answer is allowed, but no panic.
            if let Ok(planes) = Planes::from_bytes_trusted(&bytes[..], KeyHash::default()) {
                self.loses_a_row(planes);
            }
        }
        let Counts { refused, harmless, wrong } = counts;
        println!(
            "| {damage} | {} | {refused} | {harmless} | {wrong} |",
            refused + harmless + wrong
        );
        counts
    }

    fn loses_a_row(&self, planes: Planes<&[u8]>) -> bool {
        let mut hits = Bitmask::new();
        [3, 400, 699].into_iter().any(|row: usize| {
            planes.query(&Query::all(self.rows[row].iter().copied()), &mut hits);
            hits.get(row) != Some(true)
        })
    }
}

fn truncated(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len()).map(|length| bytes[..length].to_vec())
}

fn mutate(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..=random.next_below(4) {
        let at = random.next_below(bytes.len());
        let length = (1 + random.next_below(16)).min(bytes.len() - at);
        match random.next_below(4) {
            0 => bytes[at..at + length].fill(0),
            1 => bytes[at..at + length].fill(0xff),
            2 => {
                let from = random.next_below(bytes.len() - length + 1);
                bytes.copy_within(from..from + length, at);
            }
            _ => bytes[at] ^= 1 << random.next_below(8),
        }
    }
}

#[test]
fn every_change_is_an_error() {
    check_every_change(Case::new(options((1, 40, 2), 512).with_liveness()), 4_000);
}

#[test]
fn every_change_of_planes_with_a_short_last_group_is_an_error() {
    check_every_change(Case::new(options((1, 40, 2), 512).with_short_last_group()), 4_000);
}

#[test]
fn every_change_of_planes_of_a_text_is_an_error() {
    check_every_change(Case::new(with_text(options((1, 40, 2), 512))), 4_000);
}

/// Planes of these rows with the state of their text.
fn with_state(rows: &[Vec<u64>], tag: u64) -> Vec<u8> {
    let options = with_text(options((1, 40, 2), 512)).with_tag(tag);
    let mut builder = options.builder().unwrap();
    let mut bytes = builder.append_all(rows).unwrap();
    let state = TextState::new(5_000, 35_000, 42).with_modified(7).with_terminator(0);
    bytes.extend(builder.finish_with_text_state(&state).unwrap());
    let layout =
        PlanesLayout::from_tail_any_hash(&bytes[bytes.len() - 64..], bytes.len() as u64).unwrap();
    let at = layout.locate_text_state().unwrap();
    let record = &bytes[at.start as usize..at.end as usize];
    assert_eq!((at.end, layout.text_state(record)), (bytes.len() as u64 - 64, Ok(state)));
    assert_eq!(layout.rows(), rows.len() as u64);
    bytes
}

#[test]
fn every_change_of_planes_with_the_state_of_their_text_is_an_error() {
    let rows = rows(700, 1);
    let (bytes, other) = (with_state(&rows, 0), with_state(&rows[..600], 0));
    // There are fewer planes to take from, since only the second text has the last rows.
    check_every_change(Case { rows, bytes, other }, 2_500);
}

#[test]
fn the_state_of_the_text_of_other_planes_is_an_error() {
    let rows = rows(700, 1);
    let [mut bytes, other] = [1, 2].map(|tag| with_state(&rows, tag));
    let at = bytes.len() - 128..bytes.len() - 64;
    bytes[at.clone()].copy_from_slice(&other[at]);
    let error = Planes::from_bytes_any_hash(&bytes).map(drop).unwrap_err();
    assert!(error.to_string().contains("identity of the planes"), "{error}");
    // Rows that are not lines of a text have none.
    let builder = options((1, 40, 2), 512).builder().unwrap();
    let error = builder.finish_with_text_state(&TextState::new(1, 1, 1)).unwrap_err();
    assert_eq!(error, PlanesError::NoText);
    assert!(error.to_string().starts_with("the rows are not lines of a text"));
}

/// More than `least_spliced` files that begin with one of two files and end with the other are
/// errors.
fn check_every_change(case: Case, least_spliced: usize) {
    let bytes = &case.bytes;
    let all_refused = |counts: Counts| counts.refused > 0 && counts.harmless + counts.wrong == 0;
    assert!(all_refused(case.run("truncated at every byte", truncated(bytes))));
    let extended = (1..200).map(|more| [&bytes[..], &vec![0; more]].concat());
    assert!(all_refused(case.run("extended", extended)));
    let flipped = (0..8 * bytes.len()).map(|bit| {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    });
    assert!(all_refused(case.run("every bit flipped", flipped)));
    let mut random = Random(1);
    let mutated = (0..10_000).map(|_| {
        let mut bytes = bytes.clone();
        mutate(&mut bytes, &mut random);
        bytes
    });
    assert!(all_refused(case.run("several bytes at random", mutated)));
    // Planes are verified one by one, so files with the same options, rows and tag are
    // interchangeable between two planes. The next test shows that tags prevent it.
    let spliced = (1..bytes.len()).map(|at| [&bytes[..at], &case.other[at..]].concat());
    let counts = case.run("spliced with one of the same tag", spliced);
    assert!(counts.refused > least_spliced);
}

/// Planes with different tags cannot be exchanged.
#[test]
fn spliced_planes_with_tags_are_errors() {
    let (one, other) = (options((1, 40, 2), 512).with_tag(1), options((1, 40, 2), 512).with_tag(2));
    let rows = rows(700, 1);
    let [one, other] = [one, other].map(|options| Model::from_rows(options, &rows).encode());
    for at in 1..one.len() {
        let spliced = [&one[..at], &other[at..]].concat();
        assert!(
            spliced == one || spliced == other || Planes::from_bytes_any_hash(&spliced).is_err(),
            "{at}"
        );
    }
}

/// Changed records with valid checksums are an error, or open without a panic.
#[test]
fn mended_records_never_panic() {
    let without = options((1, 40, 2), 512).with_liveness();
    [without, with_text(without)].into_iter().for_each(mended_records_of);
}

fn mended_records_of(options: PlanesOptions) {
    let case = Case::new(options);
    let ends = [0, case.bytes.len() - 64];
    let mended = (8..56).flat_map(|at| (0..=255).map(move |value| (at, value)));
    let mended = mended.map(|(at, value)| {
        let mut bytes = case.bytes.clone();
        for start in ends {
            bytes[start + at] = value;
            let sum = KeyHasher::default().hash(&bytes[start..start + 56]);
            bytes[start + 56..start + 64].copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    });
    let counts = case.run("every value of record bytes, mended", mended);
    assert!(counts.refused > 10_000 && counts.wrong == 0, "{counts:?}");
}

/// An out-of-range field in a record with a valid checksum is an error that names field and offset.
#[test]
fn records_with_a_field_out_of_range_are_errors_that_name_it() {
    let without = options((1, 40, 2), 512);
    let [one, two] = [without, with_text(without)].map(|options| record(&options, 0, true));
    let cases: [(usize, &[u8], &str, u64, &str); 11] = [
        (10, &[2], "unsupported probe scheme", 2, "supported: 1"),
        (11, &[2], "unsupported hash", 2, "supported: 0 and 1"),
        (12, &[0], "probes", 0, "1 to 30"),
        (12, &[31], "probes", 31, "1 to 30"),
        (13, &[18], "unsupported flags", 18, "supported: 0 to 15"),
        (14, &[15, 0], "bits in a block", 15, "16 to 512"),
        (14, &[1, 2], "bits in a block", 513, "16 to 512"),
        (24, &[0; 4], "blocks", 0, "1 to 2^26 planes in all"),
        (28, &[1, 2, 0, 0], "rows in a group", 513, "a multiple of 512 up to 2^24"),
        (48, &[1], "reserved byte", 1, "must be 0"),
        (55, &[9], "reserved byte", 9, "must be 0"),
    ];
    let state = "the state of a text only in the last record of version 2";
    let cases_of_text: [(usize, &[u8], &str, u64, &str); 6] = [
        (13, &[8], "flags", 8, state),
        (48, &[0; 4], "lines of a row", 0, "1 to 2^32 - 1"),
        (52, &[0], "unsupported tokenizer", 0, "supported: 1"),
        (52, &[2], "unsupported tokenizer", 2, "supported: 1"),
        (53, &[1], "reserved byte", 1, "must be 0"),
        (55, &[9], "reserved byte", 9, "must be 0"),
    ];
    let cases = cases.iter().flat_map(|case| {
        [(one, case), (two, case)].into_iter().take(if case.0 < 48 { 2 } else { 1 })
    });
    let cases = cases.chain(cases_of_text.iter().map(|case| (two, case)));
    for (mut damaged, &(offset, field, name, found, expected)) in cases {
        damaged[offset..][..field.len()].copy_from_slice(field);
        let sum = KeyHasher::default().hash(&damaged[..56]);
        damaged[56..].copy_from_slice(&sum.to_le_bytes());
        let error = PlanesLayout::from_tail_any_hash(&damaged, 128).unwrap_err();
        let expected = HeaderError::field(offset, name, found, expected);
        assert_eq!(error, PlanesError::Header(expected));
    }
}

/// A later version is an error that names the supported versions.
#[test]
fn records_of_a_later_version_are_errors() {
    let record = record(&with_text(options((1, 40, 2), 512)), 0, true);
    for version in [0, 3, 0x102, u16::MAX] {
        let mut later = record;
        later[8..10].copy_from_slice(&version.to_le_bytes());
        let error = PlanesLayout::from_tail_any_hash(&later, 128).unwrap_err();
        let expected = HeaderError::Version { found: version, supported: 2 };
        assert_eq!(error, PlanesError::Header(expected));
    }
}

#[test]
fn records_of_other_rows_are_errors() {
    let options = options((1, 40, 2), 512);
    let rows = rows(1_300, 1);
    let bytes = Model::from_rows(options, &rows).encode();
    let group = 40 * (64 + 8) + 64;
    for (offset, rows) in [(0, 5), (group, 511), (2 * group, 512), (3 * group, 1_024)] {
        let mut damaged = bytes.clone();
        damaged[offset..offset + 64].copy_from_slice(&record(&options, rows, false));
        let error = Planes::from_bytes_any_hash(&damaged).unwrap_err();
        assert_eq!(error, PlanesError::OtherRecord { offset: offset as u64 });
    }
}
