//! Copies from memory that another thread may change meanwhile.
//!
//! While the interpreter's lock is released, another thread may write to a NumPy array, or to an
//! Arrow array that shares a NumPy array's memory. So the package never makes a reference to such
//! memory. It copies the bytes by loads that are opaque to the compiler (an assembly instruction on
//! x86-64, atomic loads elsewhere) and examines only the copy. The copy alone decides each key, its
//! length and its end.

/// Copies `out.len()` bytes. If they change meanwhile, `out` mixes old and new bytes.
///
/// Cost: that of `memcpy` with vectors of 16 bytes. Atomic loads, which keys of 8 bytes also used
/// at first, cost 0.3 ns more per word.
///
/// # Safety
///
/// `out.len()` bytes at `from` are allocated and stay allocated during the call.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, out: &mut [u8]) {
    let len = out.len();
    if len >= VECTOR {
        let (vectors, tail) = out.as_chunks_mut::<VECTOR>();
        let rest = tail.len();
        for (i, line) in vectors.chunks_mut(4).enumerate() {
            let from = from.wrapping_add(64 * i);
            if len >= 512 {
                prefetch(from.wrapping_add(len));
            }
            for (i, vector) in line.iter_mut().enumerate() {
                // SAFETY: the vectors are among the bytes that the caller promises.
                *vector = unsafe { load_vector(from.wrapping_add(VECTOR * i)) };
            }
        }
        if rest > 0 {
            // SAFETY: the last of these bytes is the last that the caller promises.
            out[len - VECTOR..]
                .copy_from_slice(&unsafe { load_vector(from.wrapping_add(len - VECTOR)) });
        }
        return;
    }
    let mut done = 0;
    while len - done >= 4 {
        // SAFETY: the four bytes are among those that the caller promises.
        out[done..done + 4].copy_from_slice(&unsafe { load_four(from.wrapping_add(done)) });
        done += 4;
    }
    for (i, byte) in out.iter_mut().enumerate().skip(done) {
        // SAFETY: the byte is among those that the caller promises.
        *byte = unsafe { load_byte(from.wrapping_add(i)) };
    }
}

/// Copies numbers in the machine's byte order; see [`copy`].
///
/// # Safety
///
/// Eight bytes for each number of `out` are allocated at `from`, of any alignment, and stay
/// allocated during the call.
#[inline]
pub(crate) unsafe fn copy_words(from: *const u8, out: &mut [u64]) {
    let (pairs, last) = out.as_chunks_mut::<2>();
    let before = VECTOR * pairs.len();
    for (i, line) in pairs.chunks_mut(4).enumerate() {
        let from = from.wrapping_add(64 * i);
        prefetch(from.wrapping_add(before));
        for (i, pair) in line.iter_mut().enumerate() {
            // SAFETY: the caller promises eight bytes per number, and a pair has 16.
            let vector = unsafe { load_vector(from.wrapping_add(VECTOR * i)) };
            *pair = std::array::from_fn(|i| {
                u64::from_ne_bytes(std::array::from_fn(|byte| vector[8 * i + byte]))
            });
        }
    }
    for word in last {
        let mut bytes = [0; 8];
        // SAFETY: the caller promises the eight bytes of the last number.
        unsafe { copy(from.wrapping_add(before), &mut bytes) };
        *word = u64::from_ne_bytes(bytes);
    }
}

/// Prefetches a cache line of the next copy, which is assumed to follow this one with the same
/// size. Copies are bursts, and memory would be idle between them: with the prefetch, a column of
/// strings takes 0.8x the time without.
#[inline(always)]
pub(crate) fn prefetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch is a hint that reads nothing, and any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Bytes per vector.
const VECTOR: usize = 16;

#[cfg(target_arch = "x86_64")]
use x86_64::{load_byte, load_vector};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{load_eight, load_four};

/// One instruction per load. The compiler treats the assembly as opaque, so any result is possible.
#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::asm;
    use std::arch::x86_64::__m128i;

    /// # Safety
    ///
    /// 16 bytes at `from` are allocated.
    #[inline(always)]
    pub(super) unsafe fn load_vector(from: *const u8) -> [u8; 16] {
        let vector: __m128i;
        // SAFETY: the caller promises the bytes; no alignment is needed, and SSE2 is part of
        // x86-64.
        unsafe {
            asm!(
                "movdqu {}, [{}]",
                out(xmm_reg) vector,
                in(reg) from,
                options(nostack, preserves_flags, readonly),
            )
        };
        // SAFETY: both types are 16 plain bytes.
        unsafe { std::mem::transmute::<__m128i, [u8; 16]>(vector) }
    }

    /// # Safety
    ///
    /// Four bytes at `from` are allocated.
    #[inline(always)]
    pub(crate) unsafe fn load_four(from: *const u8) -> [u8; 4] {
        let word: u32;
        // SAFETY: the caller promises the bytes; no alignment is needed.
        unsafe {
            asm!(
                "mov {:e}, dword ptr [{}]",
                out(reg) word,
                in(reg) from,
                options(nostack, preserves_flags, readonly),
            )
        };
        word.to_ne_bytes()
    }

    /// # Safety
    ///
    /// Eight bytes at `from` are allocated.
    #[inline(always)]
    pub(crate) unsafe fn load_eight(from: *const u8) -> [u8; 8] {
        let word: u64;
        // SAFETY: the caller promises the bytes; no alignment is needed.
        unsafe {
            asm!(
                "mov {}, qword ptr [{}]",
                out(reg) word,
                in(reg) from,
                options(nostack, preserves_flags, readonly),
            )
        };
        word.to_ne_bytes()
    }

    /// # Safety
    ///
    /// The byte is allocated.
    #[inline(always)]
    pub(super) unsafe fn load_byte(from: *const u8) -> u8 {
        let byte: u32;
        // SAFETY: the caller promises the byte.
        unsafe {
            asm!(
                "movzx {:e}, byte ptr [{}]",
                out(reg) byte,
                in(reg) from,
                options(nostack, preserves_flags, readonly),
            )
        };
        byte as u8
    }
}

#[cfg(not(target_arch = "x86_64"))]
use atomic::{load_byte, load_vector};
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use atomic::{load_eight, load_four};

/// Loads words if they are aligned, else bytes.
#[cfg(not(target_arch = "x86_64"))]
mod atomic {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

    /// # Safety
    ///
    /// 16 bytes at `from` are allocated.
    #[inline(always)]
    pub(super) unsafe fn load_vector(from: *const u8) -> [u8; 16] {
        let mut vector = [0; 16];
        if from.cast::<u64>().is_aligned() {
            for (i, word) in vector.as_chunks_mut().0.iter_mut().enumerate() {
                let shared = from.cast::<u64>().wrapping_add(i).cast_mut();
                // SAFETY: the caller promises the bytes, and they are aligned; relaxed loads from
                // read-only memory are allowed.
                *word =
                    unsafe { AtomicU64::from_ptr(shared) }.load(Ordering::Relaxed).to_ne_bytes();
            }
            return vector;
        }
        // SAFETY: the caller promises the bytes.
        std::array::from_fn(|i| unsafe { load_byte(from.wrapping_add(i)) })
    }

    /// # Safety
    ///
    /// Four bytes at `from` are allocated.
    #[inline(always)]
    pub(crate) unsafe fn load_four(from: *const u8) -> [u8; 4] {
        // SAFETY: the caller promises the bytes.
        std::array::from_fn(|i| unsafe { load_byte(from.wrapping_add(i)) })
    }

    /// # Safety
    ///
    /// Eight bytes at `from` are allocated.
    #[inline(always)]
    pub(crate) unsafe fn load_eight(from: *const u8) -> [u8; 8] {
        // SAFETY: the caller promises the bytes.
        std::array::from_fn(|i| unsafe { load_byte(from.wrapping_add(i)) })
    }

    /// # Safety
    ///
    /// The byte is allocated.
    #[inline(always)]
    pub(super) unsafe fn load_byte(from: *const u8) -> u8 {
        // SAFETY: the caller promises the byte, which needs no alignment; relaxed loads from
        // read-only memory are allowed.
        unsafe { AtomicU8::from_ptr(from.cast_mut()) }.load(Ordering::Relaxed)
    }
}
