//! Memory from the server, so that `used_memory` and `maxmemory` count what filters take.
//!
//! `redis_module::alloc::RedisAlloc` is not used for two reasons: it allocates with
//! `RedisModule_Alloc`, which ends the server on failure, although a filter that is too large has
//! to be an error; and it relies on the server's allocator to align sizes that are multiples of the
//! alignment, as jemalloc does and others do not.

use std::alloc::{GlobalAlloc, Layout, alloc_zeroed, realloc};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use redis_module::raw;

/// What every allocator of a server aligns to.
const SERVER_ALIGN: usize = 8;

/// What blocks are aligned to.
const LINE: usize = 64;

/// Whether the server's allocator aligns multiples of [`LINE`] to it. Decided at the first use and
/// never changed, since memory is given back as it was taken.
static ALIGNS_LINES: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const MISALIGNED: u8 = 1;
const ALIGNED: u8 = 2;

/// Allocations that the server was to move while it defragmented: moved, and left where they were.
pub(crate) static MOVED: AtomicU64 = AtomicU64::new(0);
pub(crate) static UNMOVED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// While the server defragments a key: its context.
    static DEFRAGMENTS: Cell<*mut raw::RedisModuleDefragCtx> = const { Cell::new(null_mut()) };
}

/// The server's allocator, with alignment and with null if there is no memory.
pub(crate) struct ServerMemory;

/// More bytes than this are zeroed by the server's `calloc`, which leaves fresh pages unwritten.
const LAZY: usize = 1 << 20;

/// What other threads may take between a trial and the allocation that it was for.
const MARGIN: usize = 16 << 20;

/// Bytes of the last allocation that failed; 0 if none has failed since the last call of
/// [`failed_bytes`].
static FAILED: AtomicU64 = AtomicU64::new(0);

/// Returns the bytes of the last allocation that failed since the last call, or 0.
pub(crate) fn failed_bytes() -> u64 {
    FAILED.swap(0, Ordering::Relaxed)
}

/// Allocates bytes of the server's memory, zeroed if wanted. Returns null if that fails, also
/// before the module is initialised.
fn take(bytes: usize, zeros: bool) -> *mut u8 {
    let start = try_take(bytes, zeros);
    if start.is_null() {
        FAILED.store(bytes as u64, Ordering::Relaxed);
    }
    start
}

fn try_take(bytes: usize, zeros: bool) -> *mut u8 {
    // SAFETY: the server writes these pointers once, in `RedisModule_OnLoad`, before it calls
    // anything else of the module. All are functions of its interface, which accept any size. The
    // written memory has `bytes` bytes.
    unsafe {
        let Some(alloc) = raw::RedisModule_TryAlloc else { return null_mut() };
        if !zeros {
            return alloc(bytes).cast();
        }
        if let Some(calloc) = raw::RedisModule_TryCalloc {
            return calloc(1, bytes).cast();
        }
        // Redis 7.0 has a `calloc` that ends the server where there is no memory.
        if bytes <= LAZY {
            let block: *mut u8 = alloc(bytes).cast();
            if !block.is_null() {
                block.write_bytes(0, bytes);
            }
            return block;
        }
        match raw::RedisModule_Calloc {
            Some(calloc) if has_memory(bytes.saturating_add(MARGIN)) => calloc(1, bytes).cast(),
            _ => null_mut(),
        }
    }
}

/// Whether the server has memory for so many bytes now.
pub(crate) fn has_memory(bytes: usize) -> bool {
    let block = take(bytes, false);
    // SAFETY: the server sets the pointer once, before it calls the module. The memory was just
    // allocated and is not shared; null is accepted.
    unsafe { raw::RedisModule_Free.inspect(|free| free(block.cast())) };
    !block.is_null()
}

/// Whether `vec!` finds memory for about so many zeros after a reservation of as many. Redis 7.0
/// has no `calloc` that can fail, so [`take`] needs more than the reservation there.
pub(crate) fn has_zeros(bytes: u64) -> bool {
    // SAFETY: the server sets the pointer once, before it calls the module.
    let is_fallible = unsafe { raw::RedisModule_TryCalloc }.is_some();
    is_fallible
        || bytes < LAZY as u64 - 4096
        || has_memory(bytes.saturating_add(2 * MARGIN as u64) as usize)
}

/// Bytes of zero, which the system has not written yet where they are many; none without memory,
/// where `vec!` would end the server.
pub(crate) fn zeros(length: usize) -> Option<Vec<u8>> {
    let layout = Layout::array::<u8>(length).ok().filter(|_| length > 0)?;
    // SAFETY: the layout is not empty. A pointer that is not null is an allocation of this layout
    // by the allocator of all of the module's `Vec`s. Every byte is written, and it is not shared.
    unsafe {
        let start = alloc_zeroed(layout);
        (!start.is_null()).then(|| Vec::from_raw_parts(start, length, length))
    }
}

/// A string of an RDB file in the memory that the server reads it into; none if there is none.
pub(crate) fn load_bytes(rdb: *mut raw::RedisModuleIO) -> Option<Vec<u8>> {
    let mut length = 0;
    // SAFETY: the server sets the pointers once, before it calls the module. `rdb` is the argument
    // of the callback that runs, and the freed memory was just allocated and is not shared.
    let start = unsafe {
        let start: *mut u8 = raw::RedisModule_LoadStringBuffer?(rdb, &raw mut length).cast();
        if start.is_null() || raw::RedisModule_IsIOError?(rdb) != 0 || length == 0 {
            raw::RedisModule_Free?(start.cast());
            return None;
        }
        start
    };
    // SAFETY: the server allocated `length` bytes, wrote them and gave them up. Memory of alignment
    // 1 is what its `free` takes, whatever its size: `dealloc` passes it on (`start_of`).
    Some(unsafe { Vec::from_raw_parts(start, length, length) })
}

/// Whether running out of memory is an error instead of ending the server.
pub(crate) fn can_fail() -> bool {
    // SAFETY: the server sets the pointer once, before it calls the module; later reads do not
    // race.
    unsafe { raw::RedisModule_TryAlloc }.is_some()
}

/// Says which allocator the server has: small filters take 64 bytes less where it aligns.
///
/// jemalloc has classes of sizes, in which a multiple of 64 up to 512 is itself and all larger ones
/// are multiples of 128. Allocations below 16 KiB lie in slabs of whole pages at multiples of
/// their class, so at multiples of 64; larger ones begin at a multiple of 64 within a page.
pub(crate) fn set_allocator(name: &[u8]) {
    let aligns = if name.starts_with(b"jemalloc") { ALIGNED } else { MISALIGNED };
    let _ = ALIGNS_LINES.compare_exchange(UNKNOWN, aligns, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether memory of this alignment begins where the server's allocation does, not within it.
fn is_plain(align: usize) -> bool {
    if align <= SERVER_ALIGN {
        return true;
    }
    let known =
        ALIGNS_LINES.compare_exchange(UNKNOWN, MISALIGNED, Ordering::Relaxed, Ordering::Relaxed);
    align == LINE && known == Err(ALIGNED)
}

/// Bytes that the server counts for an allocation of this size and alignment, which its size
/// classes make more than was requested; 0 if it does not tell.
///
/// They are those of an allocation that is made to measure it and given back: a pointer into what
/// another crate allocated may not be the start of an allocation, and only such a start may be
/// passed to the server.
pub(crate) fn counted_bytes(layout: Layout) -> usize {
    // SAFETY: the server sets the pointer once, before it calls the module; later reads do not
    // race.
    let Some(bytes_of) = (unsafe { raw::RedisModule_MallocSize }) else { return 0 };
    if layout.size() == 0 {
        return 0;
    }
    let block = allocate(layout, false);
    if block.is_null() {
        return layout.size();
    }
    // SAFETY: `allocate` has just returned `block` for this layout, so `start_of` returns the
    // server's pointer. It is freed once, after its size was read; neither pointer is shared.
    unsafe {
        let bytes = bytes_of(start_of(block, layout.align()).cast());
        ServerMemory.dealloc(block, layout);
        bytes
    }
}

/// Runs `work`, which reallocates the memory of a key to the same size, so that the server moves it
/// out of fragmented memory.
pub(crate) fn defragment(context: *mut raw::RedisModuleDefragCtx, work: impl FnOnce()) {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            DEFRAGMENTS.set(null_mut());
        }
    }
    let _reset = Reset;
    DEFRAGMENTS.set(context);
    work();
}

/// Lets the allocator move a box.
pub(crate) fn move_box<T>(value: &mut Box<T>) {
    let layout = Layout::new::<T>();
    const { assert!(size_of::<T>() > 0) };
    let start: *mut T = &raw mut **value;
    // SAFETY: this is the memory of the box, with its layout, which is not empty. Only the box
    // refers to it, and the box is overwritten without being dropped. If there is no memory, the
    // box stays where it is.
    unsafe {
        let moved = realloc(start.cast(), layout, layout.size()).cast::<T>();
        if !moved.is_null() {
            std::ptr::write(value, Box::from_raw(moved));
        }
    }
}

/// Lets the allocator move bytes.
pub(crate) fn move_bytes(value: &mut Box<[u8]>) {
    let (layout, length) = (Layout::for_value(&**value), value.len());
    if length == 0 {
        return;
    }
    // SAFETY: this is the memory of the box, with its layout, which is not empty. Only the box
    // refers to it, and the box is overwritten without being dropped. A `Vec` of this length and
    // capacity has the same layout.
    unsafe {
        let moved = realloc(value.as_mut_ptr(), layout, length);
        if !moved.is_null() {
            std::ptr::write(value, Vec::from_raw_parts(moved, length, length).into_boxed_slice());
        }
    }
}

/// Has the server move the block out of fragmented memory while it defragments a key. Returns where
/// the block is then.
///
/// # Safety
///
/// The server allocated `block`, and the caller uses the returned pointer instead of it.
unsafe fn moved(block: *mut u8) -> *mut u8 {
    let context = DEFRAGMENTS.get();
    if context.is_null() {
        return block;
    }
    // SAFETY: the server's context of the callback that runs, and the caller's promise. The new
    // memory has the same size class, and so the same alignment.
    let moved = unsafe {
        raw::RedisModule_DefragAlloc.map_or(null_mut(), |move_to| move_to(context, block.cast()))
    };
    let count = if moved.is_null() { &UNMOVED } else { &MOVED };
    count.fetch_add(1, Ordering::Relaxed);
    if moved.is_null() { block } else { moved.cast() }
}

/// The server's start of an allocation of this alignment.
///
/// # Safety
///
/// This allocator gave `block` for a layout of this alignment, and it was not given back.
unsafe fn start_of(block: *mut u8, align: usize) -> *mut u8 {
    if is_plain(align) {
        return block;
    }
    // SAFETY: `allocate` wrote the start before the block.
    unsafe { block.cast::<*mut u8>().sub(1).read() }
}

/// Memory for the layout, of zeros if wanted, or null.
fn allocate(layout: Layout, zeros: bool) -> *mut u8 {
    let (size, align) = (layout.size(), layout.align());
    if is_plain(align) {
        return take(size.next_multiple_of(align.max(SERVER_ALIGN)), zeros);
    }
    // Cannot overflow: a layout is at most `isize::MAX`, alignment included.
    let start = take(size + align, zeros);
    if start.is_null() {
        return start;
    }
    let before = align - start.addr() % align;
    // SAFETY: `SERVER_ALIGN <= before <= align`, so the block and the pointer before it lie in the
    // `size + align` bytes; the pointer's place is a multiple of 8.
    unsafe {
        let block = start.add(before);
        block.cast::<*mut u8>().sub(1).write(start);
        block
    }
}

// If the layout has a greater alignment than the server's, there are `align` more bytes: the block
// begins at the next multiple of `align` after the start, at least 8 bytes from it since both are
// multiples of 8, and the 8 bytes before the block have the start.
//
// SAFETY: memory comes from the server's allocator, which any thread may use, in the layout above.
// `dealloc` gets the same layout as `alloc`, for which `is_plain` has the same result.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = allocate(layout, false);
        // Moved too: copies that are made while a key is defragmented, such as the list of a
        // chain's links, would otherwise take the fragmented memory that the last copy freed.
        if block.is_null() || !is_plain(layout.align()) {
            return block;
        }
        // SAFETY: just allocated, and not shared.
        unsafe { moved(block) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocate(layout, true)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the server sets the pointer once, before it calls the module.
        if let Some(free) = unsafe { raw::RedisModule_Free } {
            // SAFETY: the caller's promise: memory of the server, given back once.
            unsafe { free(start_of(block, layout.align()).cast()) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !DEFRAGMENTS.get().is_null() && size == layout.size() {
            if !is_plain(layout.align()) {
                return block;
            }
            // SAFETY: memory of the server; the caller keeps no other pointer to it.
            return unsafe { moved(block) };
        }
        let Ok(new) = Layout::from_size_align(size, layout.align()) else { return null_mut() };
        let moved = allocate(new, false);
        if !moved.is_null() {
            // SAFETY: two allocations, each of at least as many bytes; the old one is given back
            // once, with its layout.
            unsafe {
                moved.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}
