//! Memory from the server, so that `used_memory` and `maxmemory` count what filters take.
//!
//! `redis_module::alloc::RedisAlloc` is not used for two reasons: it takes memory by `RedisModule_Alloc`, which ends the server when there is none,
//! where a filter that is too large has to be an error; and it relies on the server's allocator to align what is a multiple of the alignment, as
//! jemalloc mostly does and others do not.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;

use redis_module::raw;

/// What every allocator of a server aligns to.
const SERVER_ALIGN: usize = 8;

/// The server's allocator, with alignment and with null if there is no memory.
pub(crate) struct ServerMemory;

/// Bytes from the server, or null; also before the module is initialised.
fn take(bytes: usize) -> *mut u8 {
    // SAFETY: the server writes these pointers once, in `RedisModule_OnLoad`, before it calls anything else of the module.
    let alloc = unsafe { raw::RedisModule_TryAlloc.or(raw::RedisModule_Alloc) };
    // SAFETY: functions of the server's interface, of which nothing is required but a size.
    alloc.map_or(null_mut(), |alloc| unsafe { alloc(bytes) }.cast())
}

/// Whether want of memory is an error, and not the end of the server.
pub(crate) fn can_fail() -> bool {
    // SAFETY: as in `take`.
    unsafe { raw::RedisModule_TryAlloc }.is_some()
}

/// Gives back what [`take`] gave.
///
/// # Safety
///
/// `pointer` came from [`take`] and is not used any more.
unsafe fn give_back(pointer: *mut u8) {
    // SAFETY: as in `take`.
    if let Some(free) = unsafe { raw::RedisModule_Free } {
        // SAFETY: the caller's promise: memory of the server, given back once.
        unsafe { free(pointer.cast()) }
    }
}

// SAFETY: memory comes from the server's allocator, which any thread may use. Where the layout is of a greater alignment than the server's, there
// are `align` more bytes: the block begins at the next multiple of `align` behind the start, at least 8 bytes from it since both are multiples of
// 8, and the 8 bytes before the block have the start. `dealloc` gets the same layout and so takes the same branch.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        if align <= SERVER_ALIGN {
            return take(size.next_multiple_of(SERVER_ALIGN));
        }
        // Cannot overflow: a layout is at most `isize::MAX`, alignment included.
        let start = take(size + align);
        if start.is_null() {
            return start;
        }
        let before = align - start.addr() % align;
        // SAFETY: `SERVER_ALIGN <= before <= align`, so the block and the pointer before it lie in the `size + align` bytes; the pointer's place is
        // a multiple of 8.
        unsafe {
            let block = start.add(before);
            block.cast::<*mut u8>().sub(1).write(start);
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() <= SERVER_ALIGN {
            // SAFETY: the caller's promise, and `alloc` gave what `take` gave.
            return unsafe { give_back(block) };
        }
        // SAFETY: `alloc` wrote the start before the block.
        unsafe { give_back(block.cast::<*mut u8>().sub(1).read()) }
    }
}
