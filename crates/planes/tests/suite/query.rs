//! Every query answers as the definition does, for every range, group size and alignment.

use std::collections::BTreeSet;

use blocked_bloom::Bitmask;
use blocked_bloom_planes::{Planes, PlanesError, Query};

use crate::naive::{Model, Random, SHAPES, options, rows, sample};

/// Queries of each kind: items that rows have, alone and combined, and absent items.
fn queries(rows: &[Vec<u64>], random: &mut Random) -> Vec<(Vec<u64>, Vec<Vec<u64>>)> {
    let mut queries = vec![(vec![], vec![]), (vec![], vec![vec![]]), (vec![random.next()], vec![])];
    for _ in 0..12 {
        let row = &rows[random.next_below(rows.len())];
        let mut all: Vec<u64> = row.iter().copied().filter(|_| random.next_below(2) == 0).collect();
        if random.next_below(4) == 0 {
            all.push(random.next());
        }
        let mut any = Vec::new();
        for _ in 0..random.next_below(3) {
            let length = random.next_below(4);
            let mut list = random.hashes(length);
            list.extend(row.first());
            list.extend(rows[random.next_below(rows.len())].last());
            any.push(list);
        }
        queries.push((all, any));
    }
    queries
}

fn query(all: &[u64], any: &[Vec<u64>]) -> Query {
    any.iter()
        .fold(Query::all(all.iter().copied()), |query, list| query.and_any(list.iter().copied()))
}

#[test]
fn answers_are_those_of_the_definition() {
    let mut random = Random(1);
    let mut hits = Bitmask::new();
    for shape in SHAPES {
        let short = [(512, 1, true), (512, 1_700, true), (1_024, 512, true)];
        let whole = [(512, 1, false), (1_024, 2_048, false), (1_536, 1_537, false)];
        for (group_rows, count, is_short) in short.into_iter().chain(whole) {
            let options = options(shape, group_rows);
            let options = if is_short { options.with_short_last_group() } else { options };
            let (rows, model, planes) = sample(options, count, 3);
            for (all, any) in queries(&rows, &mut random) {
                planes.query(&query(&all, &any), &mut hits);
                let expected = model.query(&all, &any, 0..count);
                assert!(hits.iter().eq(expected), "{shape:?}, {group_rows}: {all:x?} {any:x?}");
            }
        }
    }
}

/// Groups of more rows than a window, including the partial window at the end.
#[test]
fn groups_of_several_windows() {
    let mut random = Random(2);
    let mut hits = Bitmask::new();
    for (group_rows, count) in [(32_768, 70_000), (33_280, 67_000), (1 << 20, 40_001)] {
        let options = options((1, 24, 2), group_rows).with_short_last_group();
        let (rows, model, planes) = sample(options, count, 5);
        for (all, any) in queries(&rows, &mut random) {
            planes.query(&query(&all, &any), &mut hits);
            assert!(hits.iter().eq(model.query(&all, &any, 0..count)), "{group_rows}");
        }
    }
}

#[test]
fn ranges_answer_as_a_part_of_the_whole() {
    let (rows, model, planes) = sample(options((1, 40, 2), 512), 1_300, 7);
    let mut random = Random(3);
    let mut hits = Bitmask::new();
    let mut ranges: Vec<_> = (0..130).map(|start| start..start + 200).collect();
    ranges.extend((1_100..1_300).map(|start| start..1_300));
    ranges.extend([0..0, 1_300..1_300, 0..1_300, 64..64, 500..524, 511..513, 1_023..1_026]);
    ranges.extend((0..100).map(|_| {
        let start = random.next_below(1_301);
        start..start + random.next_below(1_301 - start)
    }));
    for range in ranges {
        let (all, any) = queries(&rows, &mut random).swap_remove(random.next_below(15));
        planes.query_range(&query(&all, &any), range.clone(), &mut hits).unwrap();
        assert!(hits.iter().eq(model.query(&all, &any, range.clone())), "{range:?}");
    }
    for (start, end) in [(0, 1_301), (1_301, 1_301), (9, 8), (usize::MAX, usize::MAX)] {
        let before = hits.clone();
        let result = planes.query_range(&Query::all([1]), start..end, &mut hits);
        let (start, end) = (start as u64, end as u64);
        assert_eq!(result, Err(PlanesError::RangeOutOfRange { start, end, rows: 1_300 }));
        assert_eq!(hits, before);
    }
}

#[test]
fn batches_answer_as_single_queries_do() {
    let small = (1, 30, 2);
    // The third has more than one step: queries of many planes, and 40,000 rows.
    let cases = [(small, 512, 1_700), (small, 1 << 20, 90_000), ((1, 256, 2), 1 << 20, 40_000)];
    for (shape, group_rows, count) in cases {
        let (rows, model, planes) = sample(options(shape, group_rows), count, 9);
        let mut lists = queries(&rows, &mut Random(4));
        if shape != small {
            lists.push((vec![], vec![Random(7).hashes(100)]));
        }
        let batch: Vec<Query> = lists.iter().map(|(all, any)| query(all, any)).collect();
        let (mut found, mut steps) = (vec![Vec::new(); batch.len()], BTreeSet::new());
        planes.query_batch(&batch, |number, rows, hits| {
            assert_eq!((rows.start, rows.len()), (found[number].len(), hits.len()));
            found[number].extend(hits.iter());
            steps.insert(rows.start);
        });
        assert_eq!(steps.len() > 1, shape != small, "{steps:?}");
        for ((all, any), found) in lists.iter().zip(found) {
            assert!(found == model.query(all, any, 0..count), "{group_rows}");
        }
        planes.query_batch(&[], |_, _, _| panic!("no query"));
    }
}

#[test]
fn accepts_any_alignment() {
    let (rows, model, planes) = sample(options((1, 80, 3), 512), 800, 11);
    let mut hits = Bitmask::new();
    for offset in 0..64 {
        let mut bytes = vec![0xff; offset];
        bytes.extend_from_slice(planes.as_bytes());
        let view = Planes::from_bytes_any_hash(&bytes[offset..]).unwrap();
        for row in [0, 100, 799] {
            view.query(&Query::all(rows[row].iter().copied()), &mut hits);
            assert!(hits.iter().eq(model.query(&rows[row], &[], 0..800)));
            assert_eq!(hits.get(row), Some(true));
        }
    }
}

/// Equal rows keep all lines alive, so planes are read to the end. Rows without items end at once.
#[test]
fn planes_are_read_as_long_as_rows_are_left() {
    let items: Vec<u64> = Random(5).hashes(12);
    let options = options((1, 128, 2), 4_096);
    for every in [1, 100, 600, 3_000] {
        let rows: Vec<Vec<u64>> = (0..9_000)
            .map(|row| match row % every {
                0 => items.clone(),
                _ => items[..row % 11].to_vec(),
            })
            .collect();
        let model = Model::from_rows(options, &rows);
        let planes =
            Planes::from_hashes(&options, rows.iter().map(|row| row.iter().copied())).unwrap();
        let mut hits = Bitmask::new();
        for length in 0..=12 {
            planes.query(&Query::all(items[..length].iter().copied()), &mut hits);
            assert!(
                hits.iter().eq(model.query(&items[..length], &[], 0..9_000)),
                "{every}, {length}"
            );
        }
    }
}

/// A few rows among many empty rows have the first items of the query, each one item more than the
/// row before. When few lines have rows left, they are evaluated line by line.
#[test]
fn few_lines_are_followed_to_the_last_plane() {
    let items: Vec<u64> = Random(6).hashes(12);
    for distance in [600, 3_000] {
        let mut rows = vec![Vec::new(); 40_000];
        (1..=12).for_each(|length| rows[length * distance] = items[..length].to_vec());
        let options = options((1, 256, 2), 1 << 16);
        let model = Model::from_rows(options, &rows);
        let planes =
            Planes::from_hashes(&options, rows.iter().map(|row| row.iter().copied())).unwrap();
        let mut hits = Bitmask::new();
        for length in 1..=12 {
            planes.query(&Query::all(items[..length].iter().copied()), &mut hits);
            assert!(hits.iter().eq(model.query(&items[..length], &[], 0..40_000)), "{length}");
            assert!(hits.hits().eq((length..=12).map(|length| length * distance)), "{length}");
        }
    }
}

#[test]
fn planes_without_rows_answer_nothing() {
    let planes = Planes::from_hashes(&options((1, 80, 3), 512), rows(0, 0)).unwrap();
    let mut hits = Bitmask::new();
    planes.query(&Query::all([1, 2]), &mut hits);
    assert!(hits.is_empty());
    planes.query_batch(&[Query::all([])], |_, _, _| panic!("no group"));
    assert_eq!(planes.as_bytes().len(), 128);
    assert_eq!(planes.layout().groups(), 0);
}
