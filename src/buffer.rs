//! Memory for the blocks of an owned filter, aligned to cache lines, and on Linux advised to be on
//! huge pages where it is large.
//!
//! The only place outside the kernels with casts from bytes to blocks and to atomic words. A size
//! that cannot be had is an error, never an abort.

#![expect(unsafe_code, reason = "aligned zeroed allocation has no safe form")]

use alloc::alloc::{alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc};
use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
use core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
use core::sync::atomic::Ordering;

use crate::probe::{BLOCK_BYTES, Block};

/// Zeroed blocks of 64 bytes on 64-byte boundaries, so that each is one cache line: the memory of
/// owned filters, for packages that make others.
///
/// From 2 MiB on, on Linux, whole huge pages of it are advised to be such, unless told not to: a
/// large filter then misses the translation cache less (`benches/NOTES.md`). It is advice: where it
/// is not taken, nothing else changes. From 64 MiB on memory comes as pages of zeros where the
/// allocator has them (`calloc`): making it takes microseconds, and a page costs when first used.
///
/// ```
/// use blocked_bloom::parts::BlockBuffer;
/// let mut buffer = BlockBuffer::zeroed(3, true)?;
/// buffer[2][63] = 1;
/// assert_eq!(buffer.len(), 3);
/// assert!(buffer.as_ptr().addr().is_multiple_of(64));
/// # Ok::<(), blocked_bloom::AllocError>(())
/// ```
pub struct BlockBuffer {
    /// Start of `allocated` blocks, all initialised, of which the first `len` are in use. Owned.
    start: NonNull<Block>,
    len: u32,
    allocated: u32,
    /// Bytes of the allocation before `start`: 0 below [`LAZY`].
    before: u32,
    huge_pages: bool,
}

// SAFETY: the buffer alone refers to its bytes; `[u8; 64]` may go to another thread.
unsafe impl Send for BlockBuffer {}
// SAFETY: a shared buffer only lends `&[Block]`, which threads may share.
unsafe impl Sync for BlockBuffer {}

/// Size and alignment of a huge page on x86-64 and aarch64.
const HUGE_PAGE: usize = 2 << 20;

/// From this size on memory comes from `calloc`. One huge page more is allocated, at most a 32nd,
/// so that the blocks can start on the boundary of one.
const LAZY: usize = 32 * HUGE_PAGE;

/// The memory for this many blocks. From 2 MiB on it is aligned to a huge page, so that its first
/// page is whole. From 64 MiB on it is a huge page longer instead and aligned as `calloc` does it:
/// for larger alignments Rust's system allocator clears the memory, which touches all of it.
fn layout(blocks: u32) -> Result<Layout, AllocError> {
    let bytes = u64::from(blocks) * BLOCK_BYTES as u64;
    let error = AllocError { bytes };
    let bytes = usize::try_from(bytes).map_err(|_| error)?;
    let (size, align) = match bytes {
        LAZY.. if cfg!(target_os = "linux") => (bytes.saturating_add(HUGE_PAGE), 8),
        HUGE_PAGE.. if cfg!(target_os = "linux") => (bytes, HUGE_PAGE),
        _ => (bytes, BLOCK_BYTES),
    };
    Layout::from_size_align(size, align).map_err(|_| error)
}

/// Advises huge pages before the memory is first touched: for whole pages only, since others may
/// own the rest of the last one.
fn advise(start: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= HUGE_PAGE {
        let whole = bytes - bytes % HUGE_PAGE;
        // SAFETY: `start` begins `bytes >= whole` bytes that this buffer has just allocated, on the
        // boundary of a huge page; the advice changes no contents.
        unsafe { libc::madvise(start.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

impl BlockBuffer {
    /// `blocks` blocks of zeros, at least one; on huge pages if that is wanted and can be had.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory.
    pub fn zeroed(blocks: u32, huge_pages: bool) -> Result<Self, AllocError> {
        let writes = huge_pages && layout(blocks.max(1))?.align() == HUGE_PAGE;
        let take = if writes { alloc } else { alloc_zeroed };
        let buffer = Self::allocate(blocks, huge_pages, take)?;
        // The allocator may write zeros itself, before the advice: too late for pages in use.
        if writes {
            // SAFETY: `start` begins `len` new blocks that nothing refers to; zeros are blocks.
            unsafe { buffer.start.write_bytes(0, buffer.len as usize) };
        }
        Ok(buffer)
    }

    /// [`zeroed`](Self::zeroed) by the threads of the current rayon pool: each page is first
    /// touched, and so made, by one of those that will fill it.
    #[cfg(feature = "rayon")]
    pub(crate) fn par_zeroed(blocks: u32, huge_pages: bool) -> Result<Self, AllocError> {
        use core::mem::MaybeUninit;

        use rayon::prelude::*;

        let buffer = Self::allocate(blocks, huge_pages, alloc)?;
        // SAFETY: `start` begins `len` blocks, just allocated, which nothing else refers to; that
        // they are not initialised is what `MaybeUninit` says.
        let fresh: &mut [MaybeUninit<Block>] = unsafe {
            core::slice::from_raw_parts_mut(buffer.start.as_ptr().cast(), buffer.len as usize)
        };
        fresh.par_chunks_mut(HUGE_PAGE / BLOCK_BYTES).for_each(|page| {
            watch!(arrive("zero"));
            page.fill(MaybeUninit::new([0; BLOCK_BYTES]));
        });
        Ok(buffer)
    }

    /// At least one block, in what `take` allocates: the caller of this writes what `alloc` gives
    /// before anything reads it.
    fn allocate(
        blocks: u32,
        huge_pages: bool,
        take: unsafe fn(Layout) -> *mut u8,
    ) -> Result<Self, AllocError> {
        let len = blocks.max(1);
        let layout = layout(len)?;
        // SAFETY: an allocator's function, for a layout of at least a block: its size is not zero.
        let memory = NonNull::new(unsafe { take(layout) });
        let memory = memory.ok_or(AllocError { bytes: u64::from(len) * BLOCK_BYTES as u64 })?;
        let (mut start, mut before) = (memory, 0);
        if layout.align() < BLOCK_BYTES {
            before = memory.as_ptr().addr().wrapping_neg() % HUGE_PAGE;
            // SAFETY: `before < HUGE_PAGE`, and `layout` has this many bytes more than the blocks.
            start = unsafe { memory.add(before) };
        }
        if huge_pages {
            advise(start, len as usize * BLOCK_BYTES);
        }
        let start = start.cast();
        Ok(BlockBuffer { start, len, allocated: len, before: before as u32, huge_pages })
    }

    /// A copy of the blocks, on huge pages if wanted and to be had; a block of zeros if none.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory, or there are more than 2^32 - 1 blocks.
    pub fn copy_of(blocks: &[Block], huge_pages: bool) -> Result<Self, AllocError> {
        let error = AllocError { bytes: size_of_val(blocks) as u64 };
        let len = u32::try_from(blocks.len()).map_err(|_| error)?;
        let mut copy = BlockBuffer::zeroed(len, huge_pages)?;
        copy[..blocks.len()].copy_from_slice(blocks);
        Ok(copy)
    }

    /// Keeps the first `blocks` blocks, at least one; frees the rest if that is half or more.
    ///
    /// Giving back means copying what is left, beside the old memory for a moment: `realloc` of
    /// aligned memory would do the same, and the alignment may have to change. Without memory for
    /// the copy the blocks stay where they are.
    pub fn keep_first(&mut self, blocks: u32) {
        self.len = blocks.clamp(1, self.len);
        if self.len <= self.allocated / 2
            && let Ok(copy) = BlockBuffer::copy_of(self, self.huge_pages)
        {
            *self = copy;
        }
    }

    /// Has the allocator move blocks of less than 2 MiB, by `realloc` to the same size: for
    /// programs whose allocator knows which memory is fragmented. Larger ones stay where they are,
    /// as do all without memory for the move.
    pub fn reallocate(&mut self) {
        if let Ok(layout) = layout(self.allocated)
            && layout.align() == BLOCK_BYTES
        {
            // SAFETY: `start` was allocated with this layout, as `before` is 0 then, and the size,
            // which is not zero, remains.
            let moved = unsafe { realloc(self.start.as_ptr().cast(), layout, layout.size()) };
            self.start = NonNull::new(moved).map_or(self.start, NonNull::cast);
        }
    }
}

impl Deref for BlockBuffer {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        // SAFETY: `start` points at `allocated >= len` initialised blocks that live as long as
        // `self`; `&self` keeps them from being written.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len as usize) }
    }
}

impl AsRef<[Block]> for BlockBuffer {
    #[inline]
    fn as_ref(&self) -> &[Block] {
        self
    }
}

impl AsMut<[Block]> for BlockBuffer {
    #[inline]
    fn as_mut(&mut self) -> &mut [Block] {
        self
    }
}

impl DerefMut for BlockBuffer {
    fn deref_mut(&mut self) -> &mut [Block] {
        // SAFETY: as in `deref`; `&mut self` makes this the only slice.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len as usize) }
    }
}

impl Drop for BlockBuffer {
    fn drop(&mut self) {
        if let Ok(layout) = layout(self.allocated) {
            let memory = self.start.as_ptr().cast::<u8>().wrapping_sub(self.before as usize);
            // SAFETY: `allocate` got the memory that begins `before` bytes ahead of `start` for the
            // layout of `allocated` blocks, and neither changes but for `reallocate`, which keeps
            // the layout and has `before` 0.
            unsafe { dealloc(memory, layout) }
        }
    }
}

/// The number of blocks, without the bits.
impl core::fmt::Debug for BlockBuffer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BlockBuffer")
            .field("blocks", &self.len)
            .field("huge_pages", &self.huge_pages)
            .finish()
    }
}

impl Clone for BlockBuffer {
    /// Aborts as `Vec` does if memory runs out; [`BlockBuffer::copy_of`] returns an error instead.
    fn clone(&self) -> Self {
        BlockBuffer::copy_of(self, self.huge_pages).unwrap_or_else(|_| match layout(self.len) {
            Ok(layout) => handle_alloc_error(layout),
            Err(_) => unreachable!("the original has this layout"),
        })
    }
}

/// The machine's widest atomic word, of 8 bytes or 4: without either there is no [`AtomicBuffer`].
///
/// Its value is the little-endian number that its bytes are, so that bit `i` of it is the same bit
/// of the same byte on every machine.
///
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
/// use blocked_bloom::parts::{AtomicBuffer, BlockBuffer};
/// let buffer = AtomicBuffer::new(BlockBuffer::zeroed(1, true)?);
/// let word = &buffer.blocks()[0][0];
/// assert_eq!(word.fetch_or(5, Relaxed), 0);
/// assert_eq!(word.load(Relaxed), 5);
/// word.store(2, Relaxed);
/// assert_eq!(buffer.into_inner()[0][0], 2);
/// # Ok::<(), blocked_bloom::AllocError>(())
/// ```
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicWord(Widest);

#[cfg(target_has_atomic = "64")]
type Widest = AtomicU64;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
type Widest = AtomicU32;
#[cfg(target_has_atomic = "64")]
type Number = u64;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
type Number = u32;

#[allow(clippy::useless_conversion, reason = "useful where words have 32 bits")]
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
impl AtomicWord {
    /// The word.
    #[inline]
    pub fn load(&self, order: Ordering) -> u64 {
        Number::from_le(self.0.load(order)).into()
    }

    /// Replaces the word. Bits beyond it are ignored.
    #[inline]
    pub fn store(&self, word: u64, order: Ordering) {
        self.0.store((word as Number).to_le(), order);
    }

    /// Sets bits, and returns the word before. Bits beyond the word are ignored.
    #[inline]
    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        Number::from_le(self.0.fetch_or((bits as Number).to_le(), order)).into()
    }
}

/// A block that threads write at the same time, as words in the order of memory.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
type AtomicBlock = [AtomicWord; BLOCK_BYTES / size_of::<AtomicWord>()];

/// Blocks that threads write at the same time: for filters of other packages.
///
/// A buffer that, shared, lends atomic words and nothing else: the wrapped buffer's `&[Block]`
/// cannot be reached until the atomic one is given up, so plain and atomic accesses never meet.
/// `Send` and `Sync` because the buffer and atomic words are. Needs atomic words of 64 or 32 bits.
///
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
/// use blocked_bloom::parts::{AtomicBuffer, BlockBuffer};
/// let buffer = AtomicBuffer::new(BlockBuffer::zeroed(1, true)?);
/// std::thread::scope(|threads| {
///     for word in &buffer.blocks()[0] {
///         threads.spawn(|| word.fetch_or(1, Relaxed));
///     }
/// });
/// assert_eq!(buffer.into_inner()[0].iter().map(|byte| byte.count_ones()).sum::<u32>(), 8);
/// # Ok::<(), blocked_bloom::AllocError>(())
/// ```
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[derive(Debug)]
pub struct AtomicBuffer(BlockBuffer);

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
impl AtomicBuffer {
    /// Nothing is copied.
    pub fn new(buffer: BlockBuffer) -> Self {
        AtomicBuffer(buffer)
    }

    /// The blocks for one owner. Nothing is copied.
    pub fn into_inner(self) -> BlockBuffer {
        self.0
    }

    /// The blocks, as many as the buffer has: each is 64 bytes of words, in the order of memory.
    #[inline]
    pub fn blocks(&self) -> &[AtomicBlock] {
        const {
            assert!(size_of::<AtomicBlock>() == BLOCK_BYTES);
            assert!(BLOCK_BYTES.is_multiple_of(align_of::<AtomicBlock>()));
        }
        let start = self.0.start.as_ptr().cast::<AtomicBlock>();
        // `start` is the allocator's own pointer, through which writing is allowed. While `self` is
        // borrowed nothing but this function reaches the blocks: the field is private to this file,
        // which lends a `BlockBuffer` in an `AtomicBuffer` to nobody.
        //
        // SAFETY: `start` begins `allocated >= len` initialised blocks that live as long as `self`
        // and are written only as atomic words (above); an `AtomicBlock` is as large as a block
        // (first assertion), any bytes are one, and `start` is on a boundary of 64 bytes,
        // `layout`'s or a huge page's, and so on an `AtomicBlock`'s (second assertion).
        unsafe { core::slice::from_raw_parts(start, self.0.len as usize) }
    }
}

/// Memory for a filter's blocks or a builder's hashes could not be had.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, Sizing};
/// # if cfg!(not(any(miri, target_family = "wasm"))) {
/// let params = Sizing::BitsPerKey(10.0).params(200_000_000_000)?;
/// if let Err(error) = BloomFilter::with_params(params, KeyHash::default()) {
///     assert_eq!(error.bytes, 250_000_000_000);
/// }
/// # }
/// # Ok::<(), blocked_bloom::ParamsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocError {
    /// Bytes requested.
    pub bytes: u64,
}

impl AllocError {
    /// No memory for this many bytes: for packages that allocate as this one does.
    pub const fn new(bytes: u64) -> Self {
        AllocError { bytes }
    }
}

impl core::fmt::Display for AllocError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "no memory for {} bytes", self.bytes)
    }
}

impl core::error::Error for AllocError {}

#[cfg(test)]
#[path = "../tests/unit/buffer.rs"]
mod tests;
