//! Bytes and answers that never change. Never update a line: changed bytes break existing files.

use std::num::NonZeroU32;

use blocked_bloom::{Bitmask, KeyHash, KeyHasher};
use blocked_bloom_planes::{Planes, Query, TextRows};

use crate::naive::{Random, SHAPES, options, sample};

const GOLDENS: &str = include_str!("../golden/goldens.txt");
const WHOLE: &[u8] = include_bytes!("../golden/small.planes");
/// With a short last group.
const SHORT: &[u8] = include_bytes!("../golden/short.planes");
/// Of version 2.
const TEXT: &[u8] = include_bytes!("../golden/text.planes");

/// Shape, bytes, their hash, and the first rows that three queries find.
fn line(case: usize) -> (String, Planes) {
    let shape = SHAPES[case];
    let mut options = options(shape, [512, 1_024][case % 2]).with_tag(case as u64);
    if case % 2 == 1 {
        options = options.with_liveness().with_key_hash(KeyHash::Xxh3 { seed: 9 });
    }
    let (rows, _, mut planes) = sample(options, 600 + 300 * case, case as u64);
    if case % 2 == 1 {
        (0..500).step_by(7).for_each(|row| _ = planes.delete(row).unwrap());
    }
    let (mut random, mut hits) = (Random(7), Bitmask::new());
    let mut found = Vec::new();
    let queries = [
        Query::all([random.next()]),
        Query::all(rows[300].iter().copied()),
        Query::any(rows[301].iter().copied().chain([random.next()])),
    ];
    for query in &queries {
        planes.query(query, &mut hits);
        found.push(hits.hits().take(5).map(|row| row.to_string()).collect::<Vec<_>>().join(","));
    }
    let bytes = planes.as_bytes();
    let sum = KeyHasher::default().hash(bytes);
    let line = format!("{shape:?} {} {sum:016x} {}", bytes.len(), found.join(" "));
    (line, planes)
}

#[test]
fn bytes_and_answers_are_those_of_the_first_release() {
    let expected: Vec<&str> = GOLDENS.lines().collect();
    let lines: Vec<String> = (0..SHAPES.len()).map(|case| line(case).0).collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

#[test]
fn a_file_of_the_first_release_opens() {
    let planes = Planes::from_bytes_any_hash(WHOLE).unwrap();
    assert_eq!(planes.rows(), 40);
    let hasher = planes.hasher().unwrap();
    let mut hits = Bitmask::new();
    for row in 0..40_usize {
        planes.query(&Query::all([hasher.hash(format!("item {row}"))]), &mut hits);
        assert_eq!(hits.get(row), Some(row % 10 != 3), "{row}");
    }
}

#[test]
fn the_same_items_give_the_same_file() {
    let options = options((1, 64, 4), 512).with_liveness().with_tag(0x5eed);
    let hasher = options.hasher().unwrap();
    let items = (0..40).map(|row| [hasher.hash(format!("item {row}")), hasher.hash("all")]);
    let mut planes = Planes::from_hashes(&options, items).unwrap();
    (3..40).step_by(10).for_each(|row| assert!(planes.delete(row).unwrap()));
    assert!(planes.as_bytes() == WHOLE);
}

/// 552 rows: a group of 512 rows with planes of 64 bytes, and one of 40 rows with planes of 8.
#[test]
fn a_file_with_a_short_last_group_opens_and_is_written_again() {
    let options = options((1, 64, 4), 512).with_short_last_group().with_tag(0x50);
    let hasher = options.hasher().unwrap();
    let rows = (0..552).map(|row| [hasher.hash(format!("item {row}"))]);
    let planes = Planes::from_hashes(&options, rows).unwrap();
    assert_eq!(planes.as_bytes().len(), 64 * (64 + 8) + 64 * (8 + 8) + 4 * 64);
    assert!(planes.as_bytes() == SHORT);
    let planes = Planes::from_bytes_any_hash(SHORT).unwrap();
    assert_eq!((planes.rows(), planes.layout().options().has_short_last_group()), (552, true));
    let mut hits = Bitmask::new();
    for row in 0..552_usize {
        planes.query(&Query::all([hasher.hash(format!("item {row}"))]), &mut hits);
        assert_eq!(hits.get(row), Some(true), "{row}");
    }
}

/// Three lines a row. The last row has one line.
const LOG: [&str; 10] = [
    "GET /api/v1 node-1",
    "GET /api/v2 node-2",
    "user=alice@example.com",
    "err-code=17",
    "POST /api/v1 node-3",
    "idle",
    "disk_full /dev/sd\u{fc}",
    "idle",
    "idle",
    "shutdown node-3",
];

#[test]
fn a_file_of_a_text_opens_and_is_divided_as_it_was() {
    let planes = Planes::from_bytes_any_hash(TEXT).unwrap();
    let options = planes.layout().options();
    let text = options.text().unwrap();
    assert_eq!((planes.rows(), text.lines().get(), options.tag()), (4, 3, 0x7e47));
    let hasher = planes.hasher().unwrap();
    let mut hits = Bitmask::new();
    for (phrase, rows) in [
        ("node-3", &[1, 3][..]),
        ("/api/v1", &[0, 1]),
        ("alice@example.com", &[0]),
        ("err-code=17", &[1]),
        ("sd\u{fc}", &[2]),
        ("node-4", &[]),
    ] {
        let words = text.words(phrase.as_bytes()).map(|word| hasher.hash(word));
        planes.query(&Query::all(words), &mut hits);
        assert!(hits.hits().eq(rows.iter().copied()), "{phrase}");
    }
}

#[test]
fn the_same_text_gives_the_same_file() {
    let text = TextRows::new(NonZeroU32::new(3).unwrap());
    let options = options((1, 128, 4), 512).with_tag(0x7e47).with_text(text);
    let hasher = options.hasher().unwrap();
    let rows = LOG.chunks(3).map(|lines| {
        let words = lines.iter().flat_map(|line| text.words(line.as_bytes()));
        words.map(|word| hasher.hash(word)).collect::<Vec<u64>>()
    });
    let planes = Planes::from_hashes(&options, rows).unwrap();
    assert!(planes.as_bytes() == TEXT);
}
