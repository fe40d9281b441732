//! Deleted rows match no query, in memory and in files.

use blocked_bloom::Bitmask;
use blocked_bloom_planes::{Planes, PlanesError, PlanesLayout, Query};

use crate::naive::{Random, options, sample};

#[test]
fn deleted_rows_satisfy_no_query_and_the_bytes_are_those_of_the_definition() {
    let options = options((1, 64, 3), 512).with_liveness().with_short_last_group();
    let (rows, mut model, mut planes) = sample(options, 1_300, 1);
    let mut file = planes.as_bytes().to_vec();
    let layout =
        PlanesLayout::from_tail_any_hash(&file[file.len() - 64..], file.len() as u64).unwrap();
    let mut random = Random(2);
    for _ in 0..300 {
        let row = random.next_below(1_300);
        assert_eq!(planes.is_live(row), model.live[row]);
        assert_eq!(planes.delete(row), Ok(model.live[row]));
        model.live[row] = false;
        assert!(!planes.is_live(row));

        let at = layout.locate_liveness(row as u64).unwrap();
        let loaded = &mut file[at.offset as usize..][..at.length as usize];
        layout.delete_in(row as u64, loaded).unwrap();
    }
    assert_eq!(planes.as_bytes(), model.encode());
    assert_eq!(planes.as_bytes(), file);
    let planes = Planes::from_bytes_any_hash(&file).unwrap();
    let mut hits = Bitmask::new();
    for all in [&rows[5], &rows[700], &Vec::new()] {
        planes.query(&Query::all(all.iter().copied()), &mut hits);
        assert!(hits.iter().eq(model.query(all, &[], 0..1_300)));
        planes.query(&Query::any(all.iter().copied()), &mut hits);
        assert!(hits.iter().eq(model.query(&[], std::slice::from_ref(all), 0..1_300)));
    }
}

#[test]
fn a_rejected_deletion_changes_nothing() {
    let (_, _, mut planes) = sample(options((1, 64, 3), 512), 700, 1);
    let before = planes.as_bytes().to_vec();
    assert_eq!(planes.delete(1), Err(PlanesError::NoLiveness));
    assert_eq!(planes.as_bytes(), before);
    assert!(planes.is_live(699) && !planes.is_live(700));

    let (_, _, mut planes) = sample(options((1, 64, 3), 512).with_liveness(), 700, 1);
    let before = planes.as_bytes().to_vec();
    for row in [700, 1_023, usize::MAX] {
        assert_eq!(
            planes.delete(row),
            Err(PlanesError::RowOutOfRange { row: row as u64, rows: 700 })
        );
        assert!(!planes.is_live(row));
    }
    let layout = *planes.layout();
    let at = layout.locate_liveness(600).unwrap();
    let mut loaded = before[at.offset as usize..][..at.length as usize].to_vec();
    loaded[5] ^= 1;
    let damaged = loaded.clone();
    assert!(matches!(
        layout.delete_in(600, &mut loaded),
        Err(PlanesError::PlaneChecksum { group: 1, plane: 64, .. })
    ));
    assert_eq!(loaded, damaged);
    assert!(matches!(
        layout.delete_in(600, &mut []),
        Err(PlanesError::PlaneLength { found: 0, .. })
    ));
    // The liveness plane of another group.
    let at = layout.locate_liveness(1).unwrap();
    let mut loaded = before[at.offset as usize..][..at.length as usize].to_vec();
    assert!(layout.delete_in(600, &mut loaded).is_err());
    assert_eq!(planes.as_bytes(), before);
}
