//! Hashing batches: by the vectors of an instruction set where it has them, else key by key.

use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};
use core::mem::MaybeUninit;

use super::kernel::{Vectors, hash_each, overwritten};
use super::{Key, KeyHasher};
use crate::error::plural;
use crate::kernel::Kernel;

/// Keys whose offsets are read at a time. The array of their slices is cleared at every call, and
/// has less than 2 KiB: to clear 4 KiB glibc took 1.2 us on Zen 4.
const AT_ONCE: usize = 120;

impl KeyHasher {
    /// Hashes every key in order, replacing what `hashes` held. Allocates if it must grow.
    ///
    /// Cost: see [`hash_batch_into`](Self::hash_batch_into).
    pub fn hash_batch<K: Key>(self, keys: &[K], hashes: &mut Vec<u64>) {
        // What is there is overwritten, not cleared first. If a key panics, the list is left empty.
        let mut written = core::mem::take(hashes);
        written.resize(keys.len(), 0);
        self.hash_by(Kernel::default(), keys, &mut written);
        *hashes = written;
    }

    /// Hashes every key in order into a slice.
    ///
    /// Cost: on CPUs with AVX-512, keys of 4 to 16 bytes are hashed eight at a time, on those with
    /// AVX2 keys of 4 to 8 bytes. Other keys are hashed one by one. Arrays of a fixed width (`[u8;
    /// 16]`) are faster than slices of that length.
    ///
    /// # Errors
    ///
    /// [`HashError::Length`] unless there is one hash per key; nothing is written then.
    pub fn hash_batch_into<K: Key>(self, keys: &[K], hashes: &mut [u64]) -> Result<(), HashError> {
        check_length(keys.len(), hashes)?;
        self.hash_by(Kernel::default(), keys, hashes);
        Ok(())
    }

    /// Hashes integers, the fastest way from keys to hashes: `hashes[i]` is the hash of
    /// `keys[i].to_le_bytes()`. An empty `Vec` does not grow: where the lengths differ, it returns
    /// the error of [`hash_batch_into`](Self::hash_batch_into).
    pub fn hash_u64s(self, keys: &[u64], hashes: &mut [u64]) -> Result<(), HashError> {
        check_length(keys.len(), hashes)?;
        self.integers(Kernel::default()).hash_keys(keys, overwritten(hashes));
        Ok(())
    }

    /// Hashes keys of one width that lie one after the other: those of 4 and 8 bytes without a
    /// copy, others as [`hash_batch_into`](Self::hash_batch_into), and with its errors.
    pub fn hash_fixed<const N: usize>(
        self,
        keys: &[[u8; N]],
        hashes: &mut [u64],
    ) -> Result<(), HashError> {
        check_length(keys.len(), hashes)?;
        let kernel = Kernel::default();
        let (bytes, memory) = (keys.as_flattened(), overwritten(hashes));
        if !Vectors::of(kernel).integers(bytes, N, self.seed, memory) {
            self.hash_by(kernel, keys, hashes);
        }
        Ok(())
    }

    /// Hashes keys that lie in one buffer, Arrow's layout of strings and binary values: key `i` is
    /// `bytes[offsets[i]..offsets[i + 1]]`. Offsets are integers of any type, one more than there
    /// are keys, or none for none. The first need not be 0, nor the last the end.
    ///
    /// An entry that is null in Arrow is hashed as the bytes that it has, mostly none.
    ///
    /// # Errors
    ///
    /// [`HashError::Length`] unless there is one hash per key, [`HashError::Offset`] if an offset
    /// is less than the one before it, or beyond the end of the bytes; nothing is written then.
    ///
    /// ```
    /// use blocked_bloom::{HashError, KeyHasher};
    /// let hasher = KeyHasher::default();
    /// let mut hashes = [0; 2];
    /// hasher.hash_offsets(b"applefig", &[0_i32, 5, 8], &mut hashes)?;
    /// assert_eq!(hashes, [hasher.hash("apple"), hasher.hash("fig")]);
    ///
    /// let error = hasher.hash_offsets(b"applefig", &[0_i32, 5, 9], &mut hashes).unwrap_err();
    /// assert_eq!(error, HashError::Offset { index: 2, offset: 9, least: 5, most: 8 });
    /// # Ok::<(), HashError>(())
    /// ```
    pub fn hash_offsets<O: Copy + TryInto<i128>>(
        self,
        bytes: &[u8],
        offsets: &[O],
        hashes: &mut [u64],
    ) -> Result<(), HashError> {
        check_length(offsets.len().saturating_sub(1), hashes)?;
        check_offsets(bytes, offsets)?;
        let (kernel, mut keys) = (Kernel::default(), [[].as_slice(); AT_ONCE]);
        for (i, hashes) in hashes.chunks_mut(AT_ONCE).enumerate() {
            for (key, pair) in keys.iter_mut().zip(offsets[i * AT_ONCE..].windows(2)) {
                // They fit, as checked above.
                *key = &bytes[wide(pair[0]) as usize..wide(pair[1]) as usize];
            }
            self.hash_by(kernel, &keys[..hashes.len()], hashes);
        }
        Ok(())
    }

    /// Writes the hash of each key to `hashes`, as far as they go, by this kernel's vectors.
    pub(crate) fn hash_by<K: Key>(self, kernel: Kernel, keys: &[K], hashes: &mut [u64]) {
        let count = keys.len().min(hashes.len());
        self.bytes(kernel).hash_keys(&keys[..count], overwritten(&mut hashes[..count]));
    }

    /// Hashes keys of bytes, many at a time by the vectors of this kernel.
    #[inline]
    pub(crate) fn bytes(self, kernel: Kernel) -> HashBytes {
        HashBytes { hasher: self, kernel }
    }

    /// Hashes the little-endian bytes of integers.
    #[inline]
    pub(crate) fn integers(self, kernel: Kernel) -> HashIntegers {
        HashIntegers { hasher: self, kernel }
    }
}

/// How keys become hashes, one by one or many at a time: by a [`KeyHasher`], or by a function that
/// gives the hash of another system.
pub(crate) trait HashKeys<K> {
    fn hash_one(&self, key: &K) -> u64;

    /// Writes the hash of each key to memory that is not initialised, and returns them.
    ///
    /// # Panics
    ///
    /// If there is less memory than keys: a bug of this crate, not an input.
    #[inline]
    fn hash_keys<'h>(&self, keys: &[K], memory: &'h mut [MaybeUninit<u64>]) -> &'h [u64] {
        hash_each(keys, memory, |key| self.hash_one(key))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct HashBytes {
    hasher: KeyHasher,
    kernel: Kernel,
}

impl<K: Key> HashKeys<K> for HashBytes {
    #[inline]
    fn hash_one(&self, key: &K) -> u64 {
        self.hasher.hash(key)
    }

    #[inline(always)]
    fn hash_keys<'h>(&self, keys: &[K], memory: &'h mut [MaybeUninit<u64>]) -> &'h [u64] {
        Vectors::of(self.kernel).keys(keys, self.hasher.seed, &mut memory[..keys.len()])
    }
}

#[derive(Clone, Copy)]
pub(crate) struct HashIntegers {
    hasher: KeyHasher,
    kernel: Kernel,
}

impl HashKeys<u64> for HashIntegers {
    #[inline]
    fn hash_one(&self, key: &u64) -> u64 {
        self.hasher.hash(key.to_le_bytes())
    }

    // Always: as a call it costs three keys in the cache a tenth.
    #[inline(always)]
    fn hash_keys<'h>(&self, keys: &[u64], memory: &'h mut [MaybeUninit<u64>]) -> &'h [u64] {
        Vectors::of(self.kernel).of_integers(keys, self.hasher.seed, &mut memory[..keys.len()])
    }
}

impl<K, F: Fn(&K) -> u64> HashKeys<K> for F {
    #[inline]
    fn hash_one(&self, key: &K) -> u64 {
        self(key)
    }
}

#[inline]
fn check_length(keys: usize, hashes: &[u64]) -> Result<(), HashError> {
    let hashes = hashes.len();
    if hashes == keys { Ok(()) } else { Err(HashError::Length { hashes, keys }) }
}

/// The offset. What does not fit a signed 128-bit integer is beyond every end.
#[inline]
fn wide(offset: impl TryInto<i128>) -> i128 {
    offset.try_into().unwrap_or(i128::MAX)
}

fn check_offsets<O: Copy + TryInto<i128>>(bytes: &[u8], offsets: &[O]) -> Result<(), HashError> {
    let (mut least, most) = (0, bytes.len());
    for (index, &offset) in offsets.iter().enumerate() {
        let offset = wide(offset);
        least = match usize::try_from(offset) {
            Ok(next) if (least..=most).contains(&next) => next,
            _ => return Err(HashError::Offset { index, offset, least, most }),
        };
    }
    Ok(())
}

/// Why a batch of keys cannot be hashed into a slice. Nothing was written to it.
///
/// ```
/// use blocked_bloom::{HashError, KeyHasher};
/// let error = KeyHasher::default().hash_u64s(&[1, 2, 3], &mut [0; 2]).unwrap_err();
/// assert_eq!(error, HashError::Length { hashes: 2, keys: 3 });
/// assert_eq!(error.to_string(), "2 hashes for 3 keys: give a slice of 3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashError {
    /// The slice for the hashes is not as long as there are keys.
    Length {
        /// Hashes of the slice.
        hashes: usize,
        /// Keys given.
        keys: usize,
    },
    /// An offset of a key in a buffer is less than the one before it, or beyond the end.
    Offset {
        /// Which offset, from 0.
        index: usize,
        /// What was given.
        offset: i128,
        /// The offset before it; 0 for the first.
        least: usize,
        /// Bytes of the buffer.
        most: usize,
    },
}

impl Display for HashError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { hashes, keys } => {
                let (is, are) = (if hashes == 1 { "" } else { "es" }, plural(keys as u64));
                write!(f, "{hashes} hash{is} for {keys} key{are}: give a slice of {keys}")
            }
            Self::Offset { index, offset, least, most } => {
                write!(f, "offset {index} is {offset}, expected {least} to {most}")
            }
        }
    }
}

impl_error!(HashError);

#[cfg(all(test, feature = "std"))]
#[path = "../../tests/unit/hash.rs"]
mod tests;
