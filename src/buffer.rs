//! Memory for the blocks of an owned filter, aligned to cache lines. On Linux, large buffers are
//! advised to use huge pages.
//!
//! Outside the kernels, only this file casts bytes to blocks and to atomic words. A failed
//! allocation is an error, never an abort.

#![expect(unsafe_code, reason = "aligned zeroed allocation has no safe form")]

use alloc::alloc::{alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc};
use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
use core::sync::atomic::AtomicU32 as NativeAtomic;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64 as NativeAtomic;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
use core::sync::atomic::Ordering;

use crate::probe::{BLOCK_BYTES, Block};

/// Zeroed blocks of 64 bytes, each aligned to a cache line: the memory of owned filters, also for
/// filters of other packages.
///
/// On Linux, buffers of 2 MiB or more are advised to use huge pages unless the caller opts out,
/// which reduces misses of the translation cache. The system may ignore the advice. Buffers of
/// 64 MiB or more come from `calloc`, which returns zeroed pages where the allocator has them:
/// creation takes microseconds, and each page costs time when it is first used.
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
    /// Start of `allocated` owned blocks, all initialised; the first `len` are in use.
    start: NonNull<Block>,
    len: u32,
    allocated: u32,
    /// Bytes of the allocation before `start`; 0 for buffers smaller than [`LAZY`].
    padding: u32,
    huge_pages: bool,
}

// SAFETY: only the buffer refers to its bytes, and `[u8; 64]` is `Send`.
unsafe impl Send for BlockBuffer {}
// SAFETY: a shared buffer only lends `&[Block]`, and `[u8; 64]` is `Sync`.
unsafe impl Sync for BlockBuffer {}

/// Size and alignment of a huge page on x86-64 and aarch64.
const HUGE_PAGE: usize = 2 << 20;

/// Smallest size of memory that is allocated with `calloc`. One huge page more is allocated, at
/// most 3 %, so that the blocks can start on the boundary of a huge page.
const LAZY: usize = 32 * HUGE_PAGE;

/// Returns the layout for this many blocks.
///
/// Memory of 2 MiB or more is aligned to a huge page, so that its first page is whole. Memory of
/// 64 MiB or more has the alignment of `calloc` and is one huge page longer instead: for larger
/// alignments, Rust's system allocator clears the memory itself, which touches all of it.
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

/// Advises huge pages before the memory is first touched. Only whole pages are advised, since the
/// rest of the last page may belong to other allocations.
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
    /// Allocates `blocks` zeroed blocks, at least one. `huge_pages` asks the system for huge pages.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation fails.
    pub fn zeroed(blocks: u32, huge_pages: bool) -> Result<Self, AllocError> {
        let writes = huge_pages && layout(blocks.max(1))?.align() == HUGE_PAGE;
        let take = if writes { alloc } else { alloc_zeroed };
        let buffer = Self::allocate(blocks, huge_pages, take)?;
        // An allocator that writes zeros itself would do so before the advice, which does not
        // change pages in use.
        if writes {
            // SAFETY: `start` is the start of `len` new blocks that nothing else refers to; any
            // bytes are valid blocks.
            unsafe { buffer.start.write_bytes(0, buffer.len as usize) };
        }
        Ok(buffer)
    }

    /// [`zeroed`](Self::zeroed) with the threads of the current rayon pool. A page is placed near
    /// the thread that first touches it, here one of the threads that will fill it.
    #[cfg(feature = "rayon")]
    pub(crate) fn par_zeroed(blocks: u32, huge_pages: bool) -> Result<Self, AllocError> {
        use core::mem::MaybeUninit;

        use rayon::prelude::*;

        let buffer = Self::allocate(blocks, huge_pages, alloc)?;
        // SAFETY: `start` is the start of `len` new blocks that nothing else refers to, and
        // `MaybeUninit` allows them to be uninitialised.
        let fresh: &mut [MaybeUninit<Block>] = unsafe {
            core::slice::from_raw_parts_mut(buffer.start.as_ptr().cast(), buffer.len as usize)
        };
        fresh.par_chunks_mut(HUGE_PAGE / BLOCK_BYTES).for_each(|page| {
            watch!(arrive("zero"));
            page.fill(MaybeUninit::new([0; BLOCK_BYTES]));
        });
        Ok(buffer)
    }

    /// Allocates at least one block with `take`. If that is `alloc`, the caller must write the
    /// blocks before anything reads them.
    fn allocate(
        blocks: u32,
        huge_pages: bool,
        take: unsafe fn(Layout) -> *mut u8,
    ) -> Result<Self, AllocError> {
        let len = blocks.max(1);
        let layout = layout(len)?;
        // SAFETY: `take` is an allocator's function, and the layout of at least one block has a
        // non-zero size.
        let memory = NonNull::new(unsafe { take(layout) });
        let memory = memory.ok_or(AllocError { bytes: u64::from(len) * BLOCK_BYTES as u64 })?;
        let (mut start, mut padding) = (memory, 0);
        if layout.align() < BLOCK_BYTES {
            padding = memory.as_ptr().addr().wrapping_neg() % HUGE_PAGE;
            // SAFETY: `padding < HUGE_PAGE`, and the layout has `HUGE_PAGE` bytes more than the
            // blocks take.
            start = unsafe { memory.add(padding) };
        }
        if huge_pages {
            advise(start, len as usize * BLOCK_BYTES);
        }
        let start = start.cast();
        Ok(BlockBuffer { start, len, allocated: len, padding: padding as u32, huge_pages })
    }

    /// Copies the blocks; the copy of an empty slice is one zeroed block. `huge_pages` asks the
    /// system for huge pages.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation fails or there are more than 2^32 - 1 blocks.
    pub fn copy_of(blocks: &[Block], huge_pages: bool) -> Result<Self, AllocError> {
        let error = AllocError { bytes: size_of_val(blocks) as u64 };
        let len = u32::try_from(blocks.len()).map_err(|_| error)?;
        let mut copy = BlockBuffer::zeroed(len, huge_pages)?;
        copy[..blocks.len()].copy_from_slice(blocks);
        Ok(copy)
    }

    /// Keeps the first `blocks` blocks, at least one. Frees the rest if that is half or more of the
    /// buffer.
    ///
    /// To free memory, the remaining blocks are copied, so both copies exist for a moment:
    /// `realloc` of aligned memory would do the same, and the alignment may have to change. If the
    /// copy cannot be allocated, the blocks stay where they are.
    pub fn keep_first(&mut self, blocks: u32) {
        self.len = blocks.clamp(1, self.len);
        if self.len <= self.allocated / 2
            && let Ok(copy) = BlockBuffer::copy_of(self, self.huge_pages)
        {
            *self = copy;
        }
    }

    /// Lets the allocator move a buffer smaller than 2 MiB, with `realloc` to the same size. This
    /// is for programs whose allocator tracks fragmentation. Larger buffers stay where they are, as
    /// do all buffers if the allocation fails.
    pub fn reallocate(&mut self) {
        if let Ok(layout) = layout(self.allocated)
            && layout.align() == BLOCK_BYTES
        {
            // SAFETY: `start` was allocated with this layout, since `padding` is 0 for this
            // alignment; the size is unchanged and not zero.
            let moved = unsafe { realloc(self.start.as_ptr().cast(), layout, layout.size()) };
            self.start = NonNull::new(moved).map_or(self.start, NonNull::cast);
        }
    }
}

impl Deref for BlockBuffer {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        // SAFETY: `start` points to `allocated >= len` initialised blocks that live as long as
        // `self`, and `&self` prevents writes to them.
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
        // SAFETY: `start` points to `allocated >= len` initialised blocks that live as long as
        // `self`, and `&mut self` makes this the only slice of them.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len as usize) }
    }
}

impl Drop for BlockBuffer {
    fn drop(&mut self) {
        if let Ok(layout) = layout(self.allocated) {
            let memory = self.start.as_ptr().cast::<u8>().wrapping_sub(self.padding as usize);
            // SAFETY: `allocate` allocated the memory, which starts `padding` bytes before `start`,
            // with the layout of `allocated` blocks. Only `reallocate` replaces it; it keeps the
            // layout, and `padding` is 0 there.
            unsafe { dealloc(memory, layout) }
        }
    }
}

/// Prints the number of blocks, not their contents.
impl core::fmt::Debug for BlockBuffer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BlockBuffer")
            .field("blocks", &self.len)
            .field("huge_pages", &self.huge_pages)
            .finish()
    }
}

impl Clone for BlockBuffer {
    /// Copies the blocks. Aborts, as `Vec` does, if the allocation fails;
    /// [`BlockBuffer::copy_of`] returns an error instead.
    fn clone(&self) -> Self {
        let copy = BlockBuffer::copy_of(self, self.huge_pages);
        copy.unwrap_or_else(|_| handle_alloc_error(Layout::for_value(&**self)))
    }
}

/// The widest atomic word of the machine, 8 or 4 bytes. Machines with neither have no
/// [`AtomicBuffer`].
///
/// Its value is the little-endian number of its bytes, so that bit `i` is the same bit of the same
/// byte on every machine.
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
pub struct AtomicWord(NativeAtomic);

#[cfg(target_has_atomic = "64")]
type NativeWord = u64;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
type NativeWord = u32;

#[allow(clippy::useless_conversion, reason = "useful where words have 32 bits")]
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
impl AtomicWord {
    /// Returns the word.
    #[inline]
    pub fn load(&self, order: Ordering) -> u64 {
        NativeWord::from_le(self.0.load(order)).into()
    }

    /// Replaces the word. Bits that do not fit the word are ignored.
    #[inline]
    pub fn store(&self, word: u64, order: Ordering) {
        self.0.store((word as NativeWord).to_le(), order);
    }

    /// Sets bits and returns the previous word. Bits that do not fit the word are ignored.
    #[inline]
    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        NativeWord::from_le(self.0.fetch_or((bits as NativeWord).to_le(), order)).into()
    }
}

/// A block that several threads write at the same time, as words in memory order.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub(crate) type AtomicBlock = [AtomicWord; BLOCK_BYTES / size_of::<AtomicWord>()];

/// Blocks that several threads write at the same time, for filters of other packages.
///
/// A shared buffer lends only atomic words. The `&[Block]` of the wrapped buffer is out of reach
/// until [`into_inner`](Self::into_inner), so plain and atomic accesses never overlap. The type
/// requires atomic words of 64 or 32 bits.
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
    /// Wraps a buffer, without copying it.
    pub fn new(buffer: BlockBuffer) -> Self {
        AtomicBuffer(buffer)
    }

    /// Returns the wrapped buffer, without copying it.
    pub fn into_inner(self) -> BlockBuffer {
        self.0
    }

    /// Returns the blocks; each has 64 bytes of words in memory order.
    #[inline]
    pub fn blocks(&self) -> &[AtomicBlock] {
        const {
            assert!(size_of::<AtomicBlock>() == BLOCK_BYTES);
            assert!(BLOCK_BYTES.is_multiple_of(align_of::<AtomicBlock>()));
        }
        let start = self.0.start.as_ptr().cast::<AtomicBlock>();
        // `start` is the allocator's own pointer, through which writes are allowed. While `self` is
        // borrowed, only this function reaches the blocks: the field is private to this file, and
        // nothing here lends the `BlockBuffer` of an `AtomicBuffer`. `start` is aligned to 64
        // bytes, by `layout` or as the start of a huge page.
        //
        // SAFETY: `start` points to at least `len` initialised blocks that live as long as `self`
        // and are written only as atomic words. An `AtomicBlock` has the size of a block, needs at
        // most its alignment (both asserted), and allows any bytes.
        unsafe { core::slice::from_raw_parts(start, self.0.len as usize) }
    }
}

/// Error of a failed allocation, for a filter's blocks or a builder's hashes.
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
    /// Creates an error for this number of bytes, for packages that allocate in the same way.
    pub const fn new(bytes: u64) -> Self {
        AllocError { bytes }
    }
}

impl_error!(AllocError; Self { bytes } => ("no memory for {bytes} bytes"),);

#[cfg(test)]
#[path = "../tests/unit/buffer.rs"]
mod tests;
