//! Every allocation is freed and resized with the layout that it was made with. The allocator here
//! records and checks the layouts; the system's allocator ignores them.

#![expect(unsafe_code, reason = "an allocator that compares is an unsafe trait")]
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{FilterOptions, Sizing};

struct LayoutChecker;

/// Size and alignment, stored before each allocation.
type RecordedLayout = [usize; 2];

/// The number of wrong layouts, and the first of them: size and alignment passed by the caller,
/// size and alignment of the allocation.
static DIFFERING: AtomicUsize = AtomicUsize::new(0);
static FIRST: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
static MOVED: AtomicUsize = AtomicUsize::new(0);

/// Returns the layout with space for `RecordedLayout` before it, and the size of that space.
/// Alignments are powers of two.
fn outer(layout: Layout) -> Option<(Layout, usize)> {
    let before = layout.align().max(size_of::<RecordedLayout>());
    let size = layout.size().checked_add(before)?;
    Some((Layout::from_size_align(size, before).ok()?, before))
}

/// Allocates memory for the layout with `take`, and records the layout.
fn remember(layout: Layout, take: unsafe fn(&System, Layout) -> *mut u8) -> *mut u8 {
    let Some((outer, before)) = outer(layout) else { return std::ptr::null_mut() };
    // SAFETY: the size is not zero.
    let memory = unsafe { take(&System, outer) };
    if memory.is_null() {
        return memory;
    }
    let inner = memory.wrapping_add(before);
    let made = inner.cast::<RecordedLayout>().wrapping_sub(1);
    // SAFETY: `before` is a multiple of the size of `RecordedLayout`, and at least that: these
    // bytes are in the allocation, before the pointer that the caller receives, and aligned like
    // `memory`.
    unsafe { made.write([layout.size(), layout.align()]) };
    inner
}

/// Returns the layout that an allocation was made with, and counts it if it differs from the given
/// one.
///
/// # Safety
///
/// The pointer comes from `remember`, and was not freed.
unsafe fn compare(pointer: *mut u8, given: Layout) -> Layout {
    // SAFETY: by the caller's promise `remember` wrote it there.
    let made = unsafe { pointer.cast::<RecordedLayout>().wrapping_sub(1).read() };
    if made != [given.size(), given.align()] && DIFFERING.fetch_add(1, Relaxed) == 0 {
        let all = [given.size(), given.align(), made[0], made[1]];
        FIRST.iter().zip(all).for_each(|(first, number)| first.store(number, Relaxed));
    }
    Layout::from_size_align(made[0], made[1]).unwrap_or(given)
}

// SAFETY: `System` does the work, with the layouts that it was given before.
unsafe impl GlobalAlloc for LayoutChecker {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        remember(layout, System::alloc)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        remember(layout, System::alloc_zeroed)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by the caller's promise the pointer is an allocation of this allocator.
        let made = unsafe { compare(pointer, layout) };
        let Some((outer, before)) = outer(made) else { return };
        // SAFETY: `remember` got it from `System` for this layout.
        unsafe { System.dealloc(pointer.wrapping_sub(before), outer) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        MOVED.fetch_add(1, Relaxed);
        // SAFETY: by the caller's promise the pointer is an allocation of this allocator.
        let made = unsafe { compare(pointer, layout) };
        let Ok(wanted) = Layout::from_size_align(size, made.align()) else {
            return std::ptr::null_mut();
        };
        let moved = remember(wanted, System::alloc);
        if !moved.is_null() {
            // SAFETY: both are allocations of at least so many bytes, and not the same.
            unsafe { std::ptr::copy_nonoverlapping(pointer, moved, made.size().min(size)) };
            // SAFETY: the pointer is an allocation with this layout, and the caller forgets it.
            unsafe { self.dealloc(pointer, made) };
        }
        moved
    }
}

#[global_allocator]
static ALLOCATOR: LayoutChecker = LayoutChecker;

/// Blocks below, at and above the sizes at which the alignment of the memory changes.
const SIZES: [u32; 8] = [1, 2, 9, 1_000, 32_767, 32_768, 70_000, 1_048_576];

/// Panics with the first layout that differed.
fn check(done: &str) {
    let [size, align, made_size, made_align] = FIRST.each_ref().map(|first| first.load(Relaxed));
    assert_eq!(
        DIFFERING.load(Relaxed),
        0,
        "{done}: {size} bytes aligned to {align} were given for an allocation of {made_size} \
         aligned to {made_align}"
    );
}

/// The only test: memory that another test frees at the same time would be counted here.
#[test]
fn memory_is_given_back_by_the_layout_that_it_has() {
    for blocks in SIZES {
        let all = || BlockBuffer::zeroed(blocks, true).unwrap();
        drop(all());
        check(&format!("{blocks} blocks, dropped"));
        // Fewer blocks are used than were allocated: none, some or most are freed.
        for kept in [blocks, blocks - blocks / 3, blocks / 2, 1] {
            let mut buffer = all();
            buffer.keep_first(kept);
            check(&format!("the first {kept} of {blocks} blocks"));
            for (number, block) in buffer.iter_mut().enumerate() {
                block[60..].copy_from_slice(&(number as u32).to_le_bytes());
            }
            let before = buffer.to_vec();
            buffer.reallocate();
            check(&format!("the first {kept} of {blocks} blocks, moved"));
            assert_eq!(*buffer, before);
            drop(buffer.clone());
            drop(buffer);
            check(&format!("the first {kept} of {blocks} blocks, moved and dropped"));
        }
    }
    assert!(MOVED.load(Relaxed) > 0);

    let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable();
    for keys in [10, 100_000, 2_000_000_u32] {
        let mut builder = options.builder();
        builder.extend((0..keys).map(u32::to_le_bytes)).unwrap();
        let mut filter = builder.finish().unwrap();
        filter.reallocate();
        drop((filter.folded(2), filter.clone()));
        let shared = options.atomic_filter(keys.into()).unwrap();
        shared.insert(1_u32.to_le_bytes()).unwrap();
        drop(shared);
        drop(filter);
        check(&format!("filters of {keys} keys"));
    }

    #[cfg(feature = "rayon")]
    {
        let hashes: Vec<u64> =
            (0..3_000_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let mut builder = options.builder();
        hashes.iter().for_each(|&hash| builder.insert_hash(hash).unwrap());
        drop(pool.install(|| builder.par_finish()).unwrap());
        check("a filter of two threads");
    }
}
