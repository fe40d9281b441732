//! Bytes and answers that never change. A line is never updated: bytes that change break everybody's files.

use blocked_bloom::{Bitmask, KeyHash, KeyHasher};
use blocked_bloom_planes::{Planes, Query};

use crate::naive::{Random, SHAPES, options, sample};

const GOLDENS: &str = include_str!("../golden/goldens.txt");
const WHOLE: &[u8] = include_bytes!("../golden/small.planes");

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
    let planes = Planes::from_bytes(WHOLE).unwrap();
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
