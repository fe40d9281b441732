//! Memory for the blocks of an owned filter, aligned to cache lines, and on Linux to huge pages where it is large.
//!
//! This file owns allocation and the only casts from bytes to blocks and to atomic words. It refuses sizes it cannot have with
//! an error, never an abort, and hands out nothing but slices.

#![expect(unsafe_code, reason = "aligned zeroed allocation has no safe form")]

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
use core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;

use crate::error::AllocError;
use crate::probe::{BLOCK_BYTES, Block};

/// Blocks on 64-byte boundaries, so that each is one cache line.
pub(crate) struct Buffer {
    /// Start of `allocated` blocks, all initialised, of which the first `len` are in use. Owned.
    start: NonNull<Block>,
    len: usize,
    allocated: usize,
}

// SAFETY: the buffer owns its bytes and nothing else refers to them; `[u8; 64]` may go to another thread.
unsafe impl Send for Buffer {}
// SAFETY: a shared buffer only lends `&[Block]`, which threads may share.
unsafe impl Sync for Buffer {}

fn layout(blocks: usize) -> Result<Layout, AllocError> {
    let error = AllocError { bytes: blocks as u64 * BLOCK_BYTES as u64 };
    let bytes = blocks.checked_mul(BLOCK_BYTES).ok_or(error)?;
    let align = if wants_huge_pages(bytes) { HUGE_PAGE } else { BLOCK_BYTES };
    Layout::from_size_align(bytes, align).map_err(|_| error)
}

/// Size and alignment of a huge page on x86-64 and aarch64.
const HUGE_PAGE: usize = 2 << 20;

/// Large filters on huge pages miss the translation cache less: 10 M keys, see `benches/NOTES.md`.
fn wants_huge_pages(bytes: usize) -> bool {
    cfg!(target_os = "linux") && bytes >= HUGE_PAGE
}

/// Asks for huge pages before the memory is first touched. Advice: where it is refused, nothing else changes.
fn advise(start: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    if wants_huge_pages(bytes) {
        // SAFETY: `start` begins `bytes` bytes that this buffer has just allocated, on a page boundary; the advice changes no
        // contents.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

impl Buffer {
    /// `blocks` blocks of zeros, at least one.
    pub(crate) fn zeroed(blocks: u32) -> Result<Self, AllocError> {
        let error = AllocError { bytes: u64::from(blocks) * BLOCK_BYTES as u64 };
        let len = usize::try_from(blocks.max(1)).map_err(|_| error)?;
        let layout = layout(len)?;
        // SAFETY: the layout is of at least one block: its size is not zero.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).ok_or(error)?;
        advise(start, layout.size());
        // SAFETY: `start` begins as many bytes, just allocated.
        unsafe { start.as_ptr().write_bytes(0, layout.size()) };
        Ok(Buffer { start: start.cast(), len, allocated: len })
    }

    /// A copy of `blocks`, at least one and at most 2^32 - 1.
    pub(crate) fn copy_of(blocks: &[Block]) -> Result<Self, AllocError> {
        let mut copy = Buffer::zeroed(blocks.len() as u32)?;
        copy.copy_from_slice(blocks);
        Ok(copy)
    }

    /// Keeps the first `blocks` blocks, at least one, and gives the memory of the rest back if that is half of it or more.
    ///
    /// Giving back means copying what is left, beside the old memory for a moment: `realloc` of aligned memory would do the
    /// same, and the alignment may have to change. Without memory for the copy the blocks stay where they are.
    pub(crate) fn keep_first(&mut self, blocks: u32) {
        self.len = (blocks as usize).clamp(1, self.len);
        if self.len <= self.allocated / 2
            && let Ok(copy) = Buffer::copy_of(self)
        {
            *self = copy;
        }
    }
}

impl Deref for Buffer {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        // SAFETY: `start` points at `allocated >= len` initialised blocks that live as long as `self`; `&self` keeps them
        // from being written.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [Block] {
        // SAFETY: as in `deref`; `&mut self` makes this the only slice.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(layout) = layout(self.allocated) {
            // SAFETY: `zeroed` allocated `start` with the layout of `allocated` blocks, which never changes.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) }
        }
    }
}

impl Clone for Buffer {
    /// Aborts as `Vec` does if memory runs out; [`Buffer::copy_of`] returns an error instead.
    fn clone(&self) -> Self {
        Buffer::copy_of(self).unwrap_or_else(|_| match layout(self.len) {
            Ok(layout) => handle_alloc_error(layout),
            Err(_) => unreachable!("the original has this layout"),
        })
    }
}

/// The widest atomic word of the machine; without one of 32 bits at least, there is no [`AtomicBuffer`].
#[cfg(target_has_atomic = "64")]
pub(crate) type AtomicWord = AtomicU64;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
pub(crate) type AtomicWord = AtomicU32;

/// A block that threads write at the same time.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub(crate) type AtomicBlock = [AtomicWord; BLOCK_BYTES / size_of::<AtomicWord>()];

/// A buffer that, shared, lends atomic words and nothing else: the wrapped buffer's `&[Block]` is out of reach until the atomic
/// one is given up, so plain and atomic accesses never meet. `Send` and `Sync` because the buffer and atomic words are.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub(crate) struct AtomicBuffer(Buffer);

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
impl AtomicBuffer {
    pub(crate) fn new(buffer: Buffer) -> Self {
        AtomicBuffer(buffer)
    }

    pub(crate) fn into_inner(self) -> Buffer {
        self.0
    }

    #[inline]
    pub(crate) fn blocks(&self) -> &[AtomicBlock] {
        const {
            assert!(size_of::<AtomicBlock>() == BLOCK_BYTES);
            assert!(BLOCK_BYTES.is_multiple_of(align_of::<AtomicBlock>()));
        }
        let start = self.0.start.as_ptr().cast::<AtomicBlock>();
        // `start` is the allocator's own pointer, through which writing is allowed. While `self` is borrowed nothing but this
        // function reaches the blocks: the field is private to this file, which lends a `Buffer` in an `AtomicBuffer` to nobody.
        //
        // SAFETY: `start` begins `allocated >= len` initialised blocks that live as long as `self` and are written only as atomic
        // words (above); an `AtomicBlock` is as large as a block (first assertion), any bytes are one, and `layout` asked for an
        // alignment that is a multiple of 64 and so of an `AtomicBlock`'s (second assertion).
        unsafe { core::slice::from_raw_parts(start, self.0.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn keeping_few_blocks_gives_memory_back() {
        // From 32,768 blocks on, Linux has another alignment: crossing it must free with the layout it was allocated with.
        for (blocks, kept, allocated) in [
            (1, 1, 1),
            (2, 1, 1),
            (3, 2, 3),
            (8, 5, 8),
            (8, 4, 4),
            (8, 0, 1),
            (8, 9, 8),
            (70_000, 35_000, 35_000),
            (70_000, 7, 7),
        ] {
            let mut buffer = Buffer::zeroed(blocks).unwrap();
            for (number, block) in buffer.iter_mut().enumerate() {
                block[..8].copy_from_slice(&(number as u64).to_le_bytes());
            }
            let expected = buffer[..(kept as usize).clamp(1, blocks as usize)].to_vec();
            buffer.keep_first(kept);
            assert_eq!(*buffer, expected, "{kept} of {blocks} blocks");
            assert_eq!(buffer.allocated, allocated, "{kept} of {blocks} blocks");
        }
    }
}
