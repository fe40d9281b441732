//! Range reads: the located bytes suffice, and other bytes are an error.

use blocked_bloom::{Bitmask, KeyHash};
use blocked_bloom::parts::HeaderError;
use blocked_bloom_planes::{GroupLocation, Planes, PlanesError, PlanesLayout, Query};

use crate::naive::{Model, Random, options, record, rows, sample};

fn layout(file: &[u8]) -> PlanesLayout {
    PlanesLayout::from_tail_any_hash(&file[file.len() - 64..], file.len() as u64).unwrap()
}

fn load<'f>(file: &'f [u8], at: &GroupLocation) -> Vec<&'f [u8]> {
    at.planes.iter().map(|at| &file[at.offset as usize..][..at.length as usize]).collect()
}

#[test]
fn located_bytes_suffice_for_the_query() {
    let options = options((2, 70, 3), 1_024).with_liveness().with_tag(5).with_short_last_group();
    let (rows, model, planes) = sample(options, 2_500, 1);
    let file = planes.as_bytes();
    let layout = layout(file);
    assert_eq!((layout.rows(), layout.groups()), (2_500, 3));
    let mut random = Random(2);
    let mut hits = Bitmask::new();
    for _ in 0..40 {
        let all = &rows[random.next_below(2_500)];
        let any = [rows[random.next_below(2_500)].clone(), random.hashes(2)].concat();
        let query = Query::all(all.iter().copied()).and_any(any.iter().copied());
        for group in 0..layout.groups() {
            let at = layout.locate(&query, group).unwrap();
            assert!(
                at.planes.windows(2).all(|pair| pair[0].offset + pair[0].length <= pair[1].offset)
            );
            layout.open(&at, &load(file, &at)).unwrap().query(&query, &mut hits).unwrap();
            let rows = layout.rows_of(group);
            let rows = rows.start as usize..rows.end as usize;
            assert!(hits.iter().eq(model.query(all, std::slice::from_ref(&any), rows)));
        }
    }
}

#[test]
fn one_column_needs_the_planes_of_its_probes() {
    let (_, _, planes) = sample(options((1, 128, 2), 1 << 14), 40_000, 3);
    let layout = *planes.layout();
    let requested = |query: &Query| -> u64 {
        let groups = (0..layout.groups()).map(|group| layout.locate(query, group).unwrap());
        groups.flat_map(|at| at.planes).map(|at| at.length).sum()
    };
    // 40,000 rows: two groups of 16,384 rows and one of 7,232, padded to 7,680.
    let plane = (2_048 + 8) * 2 + 960 + 8;
    assert_eq!(requested(&Query::all([0x1111_2222_3333_4444])), 2 * plane);
    assert_eq!(requested(&Query::all([0x1111_2222_3333_4444, 0x9999_8888_7777_6666])), 4 * plane);
    assert_eq!(requested(&Query::all([])), 0);
}

#[test]
fn rejects_bytes_of_another_location() {
    let options = options((1, 64, 2), 512);
    let (rows, _, planes) = sample(options, 1_500, 4);
    let file = planes.as_bytes();
    let layout = layout(file);
    let query = Query::all([0x1111_2222_3333_4444, 0x9999_8888_7777_6666]);
    let at = layout.locate(&query, 1).unwrap();
    let loaded = load(file, &at);
    assert!(layout.open(&at, &loaded).is_ok() && loaded.len() == 4);

    let error = |loaded: &[&[u8]]| layout.open(&at, loaded).unwrap_err();
    assert_eq!(error(&loaded[1..]), PlanesError::PlaneCount { found: 3, expected: 4 });
    let exchanged = [loaded[1], loaded[0], loaded[2], loaded[3]];
    assert!(matches!(error(&exchanged), PlanesError::PlaneChecksum { group: 1, .. }));
    let short = [&loaded[0][1..], loaded[1], loaded[2], loaded[3]];
    assert_eq!(error(&short), PlanesError::PlaneLength { found: 71, expected: 72 });
    // The same planes of another group, and planes with another tag or seed.
    let elsewhere = layout.locate(&query, 0).unwrap();
    assert!(matches!(error(&load(file, &elsewhere)), PlanesError::PlaneChecksum { group: 1, .. }));
    let tagged = Model::from_rows(options.with_tag(1), &rows).encode();
    assert!(matches!(error(&load(&tagged, &at)), PlanesError::PlaneChecksum { .. }));
    // Every flipped bit.
    for bit in 0..8 * loaded[0].len() {
        let mut damaged = loaded[0].to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(
            error(&[&damaged, loaded[1], loaded[2], loaded[3]]),
            PlanesError::PlaneChecksum { .. }
        ));
    }

    let group = layout.open(&at, &loaded).unwrap();
    let mut hits = Bitmask::new();
    assert!(group.query(&Query::all([0x1111_2222_3333_4444]), &mut hits).is_ok());
    assert!(matches!(
        group.query(&Query::all([1]), &mut hits),
        Err(PlanesError::PlaneNotLoaded { .. })
    ));
    for group in [3, u64::MAX] {
        let expected = PlanesError::GroupOutOfRange { group, groups: 3 };
        assert_eq!(layout.locate(&query, group).unwrap_err(), expected);
    }
}

#[test]
fn a_file_that_grows_is_read_up_to_its_last_whole_group() {
    let options = options((1, 64, 2), 512);
    let rows = rows(2_000, 5);
    let complete = Model::from_rows(options, &rows).encode();
    let group = 64 * (64 + 8) + 64;
    let grown = 64 + 3 * group;
    for available in 64..grown + group {
        let record = PlanesLayout::last_record(&complete[..64], available as u64).unwrap();
        let end = record.end as usize;
        assert!(end <= available && available < end + group);
        let layout = PlanesLayout::from_last_record(
            &complete[record.start as usize..end],
            end as u64,
            options.key_hash(),
        )
        .unwrap();
        let cut =
            PlanesLayout::from_tail_any_hash(&complete[record.start as usize..end], end as u64);
        assert_eq!(cut.unwrap_err(), PlanesError::Incomplete { rows: layout.rows() });
        assert_eq!(layout.rows(), ((end - 64) / group * 512) as u64);
        assert!(!layout.is_complete());
        let error = Planes::from_bytes_any_hash(&complete[..end]).unwrap_err();
        assert_eq!(error, PlanesError::Incomplete { rows: layout.rows() });
    }
    let short = PlanesLayout::last_record(&complete[..64], 63).unwrap_err();
    assert_eq!(short, PlanesError::Header(HeaderError::TooShort { found: 63 }));
}

#[test]
fn a_layout_needs_its_length() {
    let (_, _, planes) = sample(options((1, 64, 2), 512), 1_500, 6);
    let file = planes.as_bytes();
    let tail = &file[file.len() - 64..];
    for length in [0, 64, file.len() as u64 - 1, file.len() as u64 + 1, u64::MAX] {
        let error = PlanesLayout::from_tail_any_hash(tail, length).unwrap_err();
        let expected = file.len() as u64;
        assert_eq!(error, PlanesError::Header(HeaderError::Length { found: length, expected }));
    }
    let whole = Planes::from_bytes_any_hash(file).unwrap();
    assert_eq!(whole.layout(), &layout(file));
}

/// A query with hashes of another seed would miss every row.
#[test]
fn a_layout_needs_its_hash() {
    let (_, _, planes) = sample(options((1, 64, 2), 512), 1_500, 6);
    let (file, found) = (planes.as_bytes(), KeyHash::default());
    let (tail, length) = (&file[file.len() - 64..], file.len() as u64);
    assert_eq!(PlanesLayout::from_tail(tail, length, found), Ok(layout(file)));
    let expected = KeyHash::Xxh3 { seed: 7 };
    let error = HeaderError::HashMismatch { offset: 11, found, expected };
    let read = [PlanesLayout::from_tail, PlanesLayout::from_last_record];
    for read in read {
        assert_eq!(read(tail, length, expected), Err(PlanesError::Header(error)));
    }
}

/// An impossible number of rows does not make an offset overflow.
#[test]
fn rejects_more_rows_than_can_be_counted() {
    let options = options((3, 500, 6), 512);
    for rows in [u64::MAX, u64::MAX / 2, 1 << 57] {
        for length in [0, u64::MAX] {
            let error = PlanesLayout::from_tail_any_hash(&record(&options, rows, true), length)
                .unwrap_err();
            assert_eq!(
                error,
                PlanesError::Header(HeaderError::field(40, "rows", rows, "2^64 bytes in all"))
            );
        }
    }
    let tail = record(&options, 1 << 50, true);
    let Err(PlanesError::Header(HeaderError::Length { expected, .. })) =
        PlanesLayout::from_tail_any_hash(&tail, 0)
    else {
        panic!("another error");
    };
    let layout = PlanesLayout::from_tail_any_hash(&tail, expected).unwrap();
    let last = layout.locate(&Query::all([u64::MAX]), layout.groups() - 1).unwrap();
    assert!(last.planes.iter().all(|at| at.offset + at.length < expected));
}
