//! An allocator that refuses large requests of one thread, for programs that test failed
//! allocations. It is the allocator of the whole program.

#![expect(unsafe_code, reason = "an allocator that refuses is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

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

/// Runs with memory for allocations of at most `limit` bytes in this thread.
pub(crate) fn with_limit<R>(limit: usize, run: impl FnOnce() -> R) -> R {
    LIMIT.set(limit);
    let result = run();
    LIMIT.set(usize::MAX);
    result
}
