//! Copies from memory that somebody else may change meanwhile.
//!
//! A NumPy array, or an Arrow array that shares a NumPy array's memory, may be written to by another thread while the interpreter's
//! lock is released. So no reference to such memory is ever made: its bytes are copied, each loaded once, by loads that are atomic,
//! and only the copy is looked at. What a key is, how long it is and where it ends are decided by the copy alone.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Copies `out.len()` bytes. If somebody changes them meanwhile, `out` has some of before and some of after.
///
/// # Safety
///
/// As many bytes from `from` on are allocated, and stay so during the call.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, out: &mut [u8]) {
    let (head, rest) = out.split_at_mut(from.align_offset(8).min(out.len()));
    let (words, tail) = rest.as_chunks_mut::<8>();
    // SAFETY: the first `head.len()` bytes of what the caller promises.
    unsafe { copy_bytes(from, head) };
    let aligned = from.wrapping_add(head.len()).cast::<u64>();
    for (i, word) in words.iter_mut().enumerate() {
        // SAFETY: as the caller promises; behind the head, addresses are multiples of 8.
        *word = unsafe { load(aligned.wrapping_add(i)) }.to_ne_bytes();
    }
    // SAFETY: the last `tail.len()` bytes of what the caller promises.
    unsafe { copy_bytes(aligned.wrapping_add(words.len()).cast(), tail) };
}

/// Copies numbers in the machine's byte order, as [`copy`].
///
/// # Safety
///
/// Eight bytes for each number of `out` are allocated from `from` on, of any alignment, and stay so during the call.
#[inline]
pub(crate) unsafe fn copy_words(from: *const u8, out: &mut [u64]) {
    if from.cast::<u64>().is_aligned() {
        for (i, word) in out.iter_mut().enumerate() {
            // SAFETY: as the caller promises, and aligned.
            *word = unsafe { load(from.cast::<u64>().wrapping_add(i)) };
        }
    } else {
        for (i, word) in out.iter_mut().enumerate() {
            let mut bytes = [0; 8];
            // SAFETY: as the caller promises.
            unsafe { copy(from.wrapping_add(8 * i), &mut bytes) };
            *word = u64::from_ne_bytes(bytes);
        }
    }
}

/// # Safety
///
/// Eight bytes are allocated here, at a multiple of 8.
#[inline(always)]
unsafe fn load(from: *const u64) -> u64 {
    // SAFETY: as the caller promises; the memory may be read-only, of which relaxed loads of a word are allowed.
    let word = unsafe { AtomicU64::from_ptr(from.cast_mut()) };
    word.load(Ordering::Relaxed)
}

/// # Safety
///
/// As [`copy`].
#[inline]
unsafe fn copy_bytes(from: *const u8, out: &mut [u8]) {
    for (i, byte) in out.iter_mut().enumerate() {
        // SAFETY: as the caller promises; a byte has no alignment.
        let shared = unsafe { AtomicU8::from_ptr(from.wrapping_add(i).cast_mut()) };
        *byte = shared.load(Ordering::Relaxed);
    }
}
