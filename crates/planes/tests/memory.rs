//! Allocation of a group fails: the allocator refuses large requests of one thread.

use blocked_bloom_planes::{PlanesBuilder, PlanesError, PlanesOptions, Shape};

#[path = "../../../tests/suite/common/bounded.rs"]
mod bounded;

use bounded::with_limit;

type Append<'r> = &'r dyn Fn(&mut PlanesBuilder) -> Option<PlanesError>;

/// A row that would complete a group is not appended when the allocation fails. It can be appended
/// later, and the bytes are the same as without the failure.
#[test]
fn reports_a_failed_group_allocation() {
    let options = PlanesOptions::new(Shape::new(1, 64, 2).unwrap()).with_group_rows(512).unwrap();
    let rows: Vec<[u64; 2]> = (0..1_500_u64).map(|row| [row << 40, row << 51]).collect();
    let mut expected = options.builder().unwrap();
    let mut stored = expected.append_all(&rows).unwrap();
    stored.extend(expected.finish().unwrap());

    let mut builder = options.builder().unwrap();
    let mut found = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        if i % 512 == 511 {
            let appends: [Append<'_>; 3] = [
                &|builder| builder.append(*row).err(),
                &|builder| builder.append_pass_all().err(),
                &|builder| builder.append_all(&[*row]).err(),
            ];
            for append in appends.into_iter().cycle().take(6) {
                let error = with_limit(1_000, || append(&mut builder));
                assert!(matches!(error, Some(PlanesError::Alloc(_))), "{error:?}");
                assert_eq!(builder.rows(), i as u64);
            }
        }
        found.extend(builder.append(*row).unwrap().unwrap_or_default());
        assert_eq!(builder.rows(), i as u64 + 1);
    }
    found.extend(builder.finish().unwrap());
    assert!(found == stored);
}
