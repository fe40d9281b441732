//! Allocation of a group fails: the allocator refuses large requests of one thread.

#![expect(unsafe_code, reason = "an allocator that refuses is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use blocked_bloom_planes::{PlanesBuilder, PlanesError, PlanesOptions, Shape};

struct Bounded;

std::thread_local! {
    /// Largest size that is granted.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

// SAFETY: `System` does the work, or nothing is allocated and the result is null.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the promises of this method, which are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of this method, which are those of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

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
                LIMIT.set(1_000);
                let error = append(&mut builder);
                LIMIT.set(usize::MAX);
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
