//! A set without memory for a filter: the allocator refuses large requests of threads that ask for
//! it.

#![cfg(feature = "std")]
#![expect(unsafe_code, reason = "an allocator that refuses is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use blocked_bloom::{FilterOptions, Sizing};
use blocked_bloom_lsm::{FilterIdentity, TableFilter, TableFilterError};
use blocked_bloom_resident::{FilterPin, FilterSlot, ResidentOptions, ResidentSet, ResidentTable};

struct Refusing;

std::thread_local! {
    /// Allocations of this range of sizes fail.
    static REFUSED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

// SAFETY: `System` does the work; null is what an allocator without memory returns.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (least, end) = REFUSED.get();
        if (least..end).contains(&layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Calls `run` while allocations of these sizes fail.
fn refusing<R>(bytes: Range<u64>, run: impl FnOnce() -> R) -> R {
    REFUSED.set((bytes.start as usize, bytes.end as usize));
    let result = run();
    REFUSED.set((0, 0));
    result
}

const KEYS: u64 = 80_000;

fn filters() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable()
}

fn stored() -> Vec<u8> {
    let mut builder = filters().builder();
    builder.extend((0..KEYS).map(u64::to_le_bytes)).unwrap();
    builder.finish().unwrap().to_bytes()
}

fn is_resident(slot: &FilterSlot) -> bool {
    slot.filter(&FilterPin::new()).is_some()
}

/// A set with two filters in memory, and the bytes of one.
fn full() -> (ResidentSet, [Arc<FilterSlot>; 2], u64) {
    let stored = stored();
    let bytes = stored.len() as u64 - 64;
    let set = ResidentSet::new(ResidentOptions::new(2 * bytes).with_filters(&filters()));
    let checksum = u64::from_le_bytes(stored[56..64].try_into().unwrap());
    let slots = [0, 1].map(|table| {
        let known = ResidentTable::new(table, bytes).with_absent_per_second(1_000.0);
        set.add(known, FilterIdentity::HeaderChecksum(checksum))
    });
    for load in set.tick(Duration::from_secs(1)) {
        assert_eq!(set.complete_load(load, stored.clone()), Ok(true));
    }
    (set, slots, bytes)
}

/// The filter is evicted, and its bytes are released.
#[test]
fn a_fold_without_memory_evicts_the_filter() {
    let (set, slots, bytes) = full();
    refusing(bytes / 4..u64::MAX, || set.set_budget(bytes));
    let snapshot = set.snapshot();
    assert_eq!((snapshot.resident, snapshot.folded, snapshot.resident_bytes), (0, 0, 0));
    assert_eq!((snapshot.folds, snapshot.evictions), (0, 2));
    assert!(!slots.iter().any(|slot| is_resident(slot)));
    // With memory again, they are requested again, and kept at half.
    for load in set.tick(Duration::from_secs(1)) {
        assert_eq!(set.complete_load(load, stored()), Ok(true));
    }
    let snapshot = set.snapshot();
    assert_eq!((snapshot.resident, snapshot.folded, snapshot.resident_bytes), (2, 2, bytes));
}

/// Half of the filter is requested, but cannot be allocated. The whole is kept if it fits, and
/// counted as whole.
#[test]
fn a_load_that_cannot_be_folded_is_kept_whole_or_dropped() {
    let (set, slots, bytes) = full();
    set.set_budget(0);
    set.set_budget(bytes);
    let stored = stored();
    let mut wanted = set.tick(Duration::from_secs(1)).into_iter();
    assert_eq!(wanted.len(), 2);
    for is_kept in [true, false] {
        let (load, stored) = (wanted.next().unwrap(), stored.clone());
        // There is memory for a copy of the whole.
        let loaded = refusing(bytes / 4..bytes, || set.complete_load(load, stored));
        assert_eq!(loaded, Ok(is_kept));
    }
    assert_eq!(set.snapshot().resident_bytes, bytes);
    let pin = FilterPin::new();
    let held: u64 =
        slots.iter().filter_map(|slot| slot.filter(&pin)).map(TableFilter::memory_bytes).sum();
    assert_eq!(held, bytes);
}

/// The copy of a load cannot be allocated: the error says so, and the next request is delayed as
/// after other failures.
#[test]
fn a_load_without_memory_fails() {
    let (set, slots, bytes) = full();
    set.set_budget(0);
    set.set_budget(2 * bytes);
    let stored = stored();
    for load in set.tick(Duration::from_secs(1)) {
        let stored = stored.clone();
        let error = refusing(bytes / 4..u64::MAX, || set.complete_load(load, stored));
        assert!(matches!(error, Err(TableFilterError::Alloc(_))), "{error:?}");
    }
    assert_eq!((set.snapshot().failed_loads, set.snapshot().resident_bytes), (2, 0));
    assert!(set.tick(Duration::from_secs(1)).is_empty());
    let hash = filters().hasher().unwrap().hash(7_u64.to_le_bytes());
    let pin = FilterPin::new();
    assert!(slots.iter().all(|slot| slot.query(&pin, hash).must_read()));
}
