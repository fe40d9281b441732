//! Planes answer alike for every owner of bytes, including one that lends other bytes later.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, FilterOptions, KeyHash};
use blocked_bloom_planes::{Planes, PlanesError, PlanesOptions, Query, Shape};

use crate::naive::{Model, Random, options, rows, sample};

const ROWS: usize = 1_300;

/// An owner of several versions of its bytes. The test selects the version to lend.
struct Owner {
    versions: Vec<Vec<u8>>,
    lent: Rc<Cell<usize>>,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.versions[self.lent.get()]
    }
}

impl AsMut<[u8]> for Owner {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.versions[self.lent.get()]
    }
}

/// Planes of 1,300 rows without items. Two rows are deleted. A row can match only if the bytes
/// change.
fn empty_rows() -> Vec<u8> {
    let empty = vec![Vec::new(); ROWS];
    let mut model = Model::from_rows(options((1, 40, 2), 512).with_liveness(), &empty);
    (model.live[7], model.live[1_299]) = (false, false);
    model.encode()
}

#[test]
fn bytes_of_another_length_answer_maybe() {
    let stored = empty_rows();
    let length = stored.len();
    let mut versions = vec![stored.clone()];
    versions.extend([0, 1, 63, 64, 128, length - 64, length - 1].map(|n| stored[..n].to_vec()));
    versions.extend([1, 64, 5_000].map(|more| [&stored[..], &vec![0; more]].concat()));
    let (count, lent) = (versions.len(), Rc::new(Cell::new(0)));
    let mut planes = Planes::from_bytes_any_hash(Owner { versions, lent: lent.clone() }).unwrap();
    let queries = [Query::all([1]), Query::all([]), Query::any([2, 3]), Query::any([])];
    let mut hits = Bitmask::new();
    for version in 1..count {
        lent.set(version);
        for query in &queries {
            planes.query(query, &mut hits);
            assert_eq!((hits.len(), hits.count_hits()), (ROWS, ROWS), "{version}");
            for range in [0..ROWS, 64..128, 7..8, 100..1_250, 9..9] {
                planes.query_range(query, range.clone(), &mut hits).unwrap();
                assert_eq!((hits.len(), hits.count_hits()), (range.len(), range.len()));
            }
        }
        let mut answered = [0; 4];
        planes.query_batch(&queries, |query, rows, hits| {
            assert_eq!(hits.count_hits(), rows.len());
            answered[query] += rows.len();
        });
        assert_eq!(answered, [ROWS; 4]);
        assert!(planes.is_live(7) && planes.is_live(1_299) && !planes.is_live(ROWS));
        let found = planes.as_bytes().len() as u64;
        let error = PlanesError::Header(HeaderError::Length { found, expected: length as u64 });
        assert_eq!(planes.to_planes().unwrap_err(), error);
        let before = planes.as_bytes().to_vec();
        assert_eq!(planes.delete(5), Err(error));
        assert_eq!(planes.as_bytes(), before);
        // Rows that are copied from such bytes are not known: each matches every query.
        let mut builder = options((1, 40, 2), 512).builder().unwrap();
        let mut copied = builder.append_rows(&planes, 0..ROWS).unwrap();
        copied.extend(builder.finish().unwrap());
        Planes::from_bytes_any_hash(copied).unwrap().query(&queries[0], &mut hits);
        assert_eq!((hits.len(), hits.count_hits()), (ROWS, ROWS));
    }
    // Answers from other bytes are not kept.
    lent.set(0);
    planes.query(&queries[0], &mut hits);
    assert_eq!((hits.len(), hits.count_hits()), (ROWS, 0));
    assert!(planes.delete(5).unwrap() && !planes.is_live(5) && !planes.is_live(7));
}

#[test]
fn arbitrary_bytes_never_panic() {
    let stored = empty_rows();
    let mut random = Random(1);
    let noise = (0..stored.len()).map(|_| random.next() as u8).collect();
    let mut exchanged = stored.clone();
    exchanged.reverse();
    let versions =
        vec![stored.clone(), vec![0; stored.len()], vec![0xff; stored.len()], noise, exchanged];
    let (count, lent) = (versions.len(), Rc::new(Cell::new(0)));
    let mut planes = Planes::from_bytes_any_hash(Owner { versions, lent: lent.clone() }).unwrap();
    let mut hits = Bitmask::new();
    for version in 1..count {
        lent.set(version);
        for query in [Query::all([1, 2]), Query::any([3, 4]), Query::all([])] {
            planes.query(&query, &mut hits);
            assert_eq!(hits.len(), ROWS);
            planes.query_range(&query, 5..ROWS, &mut hits).unwrap();
            planes.query_batch(&[query], |_, _, _| {});
        }
        _ = planes.is_live(7);
        let before = planes.as_bytes().to_vec();
        assert!(matches!(planes.delete(600), Err(PlanesError::PlaneChecksum { group: 1, .. })));
        assert_eq!(planes.as_bytes(), before);
        assert_eq!(planes.to_planes().unwrap().as_bytes(), before);
    }
}

#[test]
fn every_owner_answers_and_deletes_alike() {
    let (rows, mut model, planes) = sample(options((1, 40, 2), 512).with_liveness(), ROWS, 3);
    let stored = planes.as_bytes().to_vec();
    let query = Query::all(rows[700].iter().copied());
    let expected = model.query(&rows[700], &[], 0..ROWS);
    fn check<B: AsRef<[u8]>>(bytes: B, query: &Query, expected: &[bool]) {
        let mut hits = Bitmask::new();
        let planes = Planes::from_bytes_any_hash(bytes).unwrap();
        planes.query(query, &mut hits);
        assert!(hits.iter().eq(expected.iter().copied()));
        let view: Planes<&[u8]> = planes.view();
        view.query(query, &mut hits);
        assert!(hits.iter().eq(expected.iter().copied()));
        let copy = view.to_planes().unwrap();
        assert!(copy.as_bytes() == planes.as_bytes() && copy.layout() == planes.layout());
        copy.query(query, &mut hits);
        assert!(hits.iter().eq(expected.iter().copied()));
    }
    check(stored.clone(), &query, &expected);
    check(Arc::<[u8]>::from(&stored[..]), &query, &expected);
    check(planes.as_bytes(), &query, &expected);

    let mut file = stored.clone();
    let mut opened = Planes::from_bytes_trusted(&mut file, KeyHash::default()).unwrap();
    let mut copy = opened.to_planes().unwrap();
    for row in [0, 511, 512, 1_299, 512] {
        assert_eq!(opened.delete(row), Ok(model.live[row]));
        assert_eq!(copy.delete(row), Ok(model.live[row]));
        model.live[row] = false;
    }
    assert_eq!(copy.as_bytes(), model.encode());
    assert_eq!(file, model.encode());
}

#[test]
fn planes_of_another_hash_are_refused() {
    let [seed, other] = [7, 8].map(|seed| KeyHash::Xxh3 { seed });
    let store = FilterOptions::default().with_key_hash(seed);
    let shape = Shape::new(1, 40, 2).unwrap();
    let options = PlanesOptions::for_filters(&store, shape);
    assert_eq!(options, PlanesOptions::new(shape).with_key_hash(seed));
    let planes = Planes::from_hashes(&options, rows(9, 1)).unwrap();
    assert_eq!(planes.hasher().unwrap().hash("a"), store.hasher().unwrap().hash("a"));
    let stored = planes.as_bytes();
    let found = store.key_hash();
    assert_eq!(Planes::from_bytes_any_hash(stored).unwrap().key_hash(), found);
    for open in [Planes::from_bytes, Planes::from_bytes_trusted] {
        assert_eq!(open(stored, found).unwrap().as_bytes(), stored);
    }
    for expected in [other, KeyHash::default(), KeyHash::Caller { tag: 7 }] {
        let mismatch = HeaderError::HashMismatch { offset: 11, found, expected };
        let error = Planes::from_bytes(stored, expected).map(drop).unwrap_err();
        assert_eq!(error, PlanesError::Header(mismatch));
        assert_eq!(Planes::from_bytes_trusted(stored, expected).map(drop), Err(error));
        let (text, names) = (error.to_string(), [seed.to_string(), expected.to_string()]);
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
    }
}

/// A row of 2^19 planes takes 32 MiB, too large for the allocator to reuse memory.
#[cfg(target_os = "linux")]
#[test]
fn planes_are_not_on_huge_pages_if_the_filters_of_the_store_are_not() {
    let shape = Shape::new(1 << 10, 512, 2).unwrap();
    let make = |huge_pages: bool| {
        let store = FilterOptions::default().with_huge_pages(huge_pages);
        let options = PlanesOptions::for_filters(&store, shape);
        let planes = Planes::from_hashes(&options, [[7]]).unwrap();
        let copies = [planes.to_planes().unwrap(), planes.view().to_planes().unwrap()];
        let [copy, view_copy] = copies;
        [planes.clone(), planes, copy, view_copy]
    };
    let [advised, not_advised] = [true, false].map(make);
    let starts = |planes: &[Planes; 4]| planes.each_ref().map(|planes| planes.as_bytes().as_ptr());
    crate::huge_pages::check_advice(&starts(&advised), &starts(&not_advised));
    // The setting is not stored.
    assert_eq!(advised[0].as_bytes(), not_advised[0].as_bytes());
    assert_eq!(advised[0].layout(), not_advised[0].layout());
}
