//! Hashing of batches: with the vectors of an instruction set if it has any, otherwise key by key.

// The three calls of `overwritten`.
#![expect(unsafe_code, reason = "hashes are written to memory that need not be initialised")]

use alloc::vec::Vec;
use core::mem::MaybeUninit;

use super::kernel::{Vectors, hash_each, overwritten};
use super::{Key, KeyHasher};
use crate::error::ensure;
use crate::kernel::Kernel;

/// Number of keys whose offsets are read at a time. Each call clears the array of their slices,
/// which is smaller than 2 KiB: clearing 4 KiB took glibc 1.2 us on Zen 4.
const CHUNK_KEYS: usize = 120;

impl KeyHasher {
    /// Hashes every key in order and replaces the contents of `hashes`. Allocates if the vector
    /// must grow.
    ///
    /// Cost: see [`hash_batch_into`](Self::hash_batch_into).
    pub fn hash_batch<K: Key>(self, keys: &[K], hashes: &mut Vec<u64>) {
        // Old contents are overwritten, not cleared first. If a key panics, `hashes` is empty.
        let mut written = core::mem::take(hashes);
        written.resize(keys.len(), 0);
        self.hash_by(Kernel::default(), keys, &mut written);
        *hashes = written;
    }

    /// Hashes every key in order into a slice.
    ///
    /// Cost: with AVX-512, keys of 4 to 16 bytes are hashed eight at a time; with AVX2, keys of 4
    /// to 8 bytes are hashed four at a time. Other keys are hashed one by one. Arrays of a fixed
    /// width (`[u8; 16]`) are faster than slices of that length.
    ///
    /// # Errors
    ///
    /// [`HashError::Length`] if the lengths differ. Nothing is written then.
    pub fn hash_batch_into<K: Key>(self, keys: &[K], hashes: &mut [u64]) -> Result<(), HashError> {
        check_length(keys.len(), hashes).map(|()| self.hash_by(Kernel::default(), keys, hashes))
    }

    /// Hashes integers: `hashes[i]` becomes the hash of `keys[i].to_le_bytes()`.
    ///
    /// # Errors
    ///
    /// [`HashError::Length`] if the lengths differ, as with an empty `Vec`. Nothing is written
    /// then.
    pub fn hash_u64s(self, keys: &[u64], hashes: &mut [u64]) -> Result<(), HashError> {
        check_length(keys.len(), hashes)?;
        // SAFETY: `hash_keys` of integers writes hashes and nothing else.
        HashIntegers::new(self, Kernel::default()).hash_keys(keys, unsafe { overwritten(hashes) });
        Ok(())
    }

    /// Hashes adjacent keys of one width. Keys of 4 and 8 bytes are read without a copy, others as
    /// by [`hash_batch_into`](Self::hash_batch_into).
    ///
    /// # Errors
    ///
    /// [`HashError::Length`] if the lengths differ. Nothing is written then.
    pub fn hash_fixed<const N: usize>(
        self,
        keys: &[[u8; N]],
        hashes: &mut [u64],
    ) -> Result<(), HashError> {
        check_length(keys.len(), hashes)?;
        let (bytes, vectors) = (keys.as_flattened(), Vectors(Kernel::default()));
        // SAFETY: `Vectors` write hashes and nothing else.
        let memory = unsafe { overwritten(hashes) };
        let is_hashed = N == 4 && vectors.integers::<4>(bytes, self.seed, memory)
            || N == 8 && vectors.integers::<8>(bytes, self.seed, memory);
        if !is_hashed {
            self.hash_by(vectors.0, keys, hashes);
        }
        Ok(())
    }

    /// Hashes keys in one buffer, which is Arrow's layout of strings and binary values: key `i` is
    /// `bytes[offsets[i]..offsets[i + 1]]`.
    ///
    /// Offsets are integers of any type. There is one more offset than keys, or none if there are
    /// no keys. The first offset need not be 0, and the last need not be the end of the bytes. An
    /// entry that is null in Arrow is hashed as its bytes, usually none.
    ///
    /// # Errors
    ///
    /// [`HashError::Length`] if the numbers of keys and hashes differ, and [`HashError::Offset`] if
    /// an offset is smaller than its predecessor or past the end of the bytes. Nothing is written
    /// then.
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
        let (kernel, mut keys) = (Kernel::default(), [[].as_slice(); CHUNK_KEYS]);
        for (i, hashes) in hashes.chunks_mut(CHUNK_KEYS).enumerate() {
            for (key, pair) in keys.iter_mut().zip(offsets[i * CHUNK_KEYS..].windows(2)) {
                // `check_offsets` has checked the bounds.
                *key = &bytes[wide(pair[0]) as usize..wide(pair[1]) as usize];
            }
            self.hash_by(kernel, &keys[..hashes.len()], hashes);
        }
        Ok(())
    }

    /// Hashes keys with this kernel's vectors, as many as both slices have.
    pub(crate) fn hash_by<K: Key>(self, kernel: Kernel, keys: &[K], hashes: &mut [u64]) {
        let count = keys.len().min(hashes.len());
        // SAFETY: `hash_keys` of bytes writes hashes and nothing else, even if reading a key
        // panics.
        HashBytes::new(self, kernel)
            .hash_keys(&keys[..count], unsafe { overwritten(&mut hashes[..count]) });
    }
}

/// Hashing of keys, one by one or several at a time: with a [`KeyHasher`], or with a function that
/// computes the hash of another system.
pub(crate) trait HashKeys<K> {
    fn hash_one(&self, key: &K) -> u64;

    /// Writes the hash of each key to uninitialised memory, and returns the hashes.
    ///
    /// # Panics
    ///
    /// If there are more keys than places for hashes, which only a bug in this crate can cause.
    #[inline]
    fn hash_keys<'h>(&self, keys: &[K], memory: &'h mut [MaybeUninit<u64>]) -> &'h [u64] {
        hash_each(keys, memory, |key| self.hash_one(key))
    }
}

/// A hash of keys that uses a kernel's vectors. It is a type, so that lookups that are generic over
/// it need no argument for it.
pub(crate) trait KernelHash {
    fn new(hasher: KeyHasher, kernel: Kernel) -> Self;
}

/// Hashes the bytes of keys.
pub(crate) struct HashBytes(KeyHasher, Kernel);

impl KernelHash for HashBytes {
    #[inline]
    fn new(hasher: KeyHasher, kernel: Kernel) -> Self {
        HashBytes(hasher, kernel)
    }
}

impl<K: Key> HashKeys<K> for HashBytes {
    #[inline]
    fn hash_one(&self, key: &K) -> u64 {
        self.0.hash(key)
    }

    #[inline(always)]
    fn hash_keys<'h>(&self, keys: &[K], memory: &'h mut [MaybeUninit<u64>]) -> &'h [u64] {
        Vectors(self.1).keys(keys, self.0.seed, &mut memory[..keys.len()])
    }
}

/// Hashes the little-endian bytes of integers.
pub(crate) struct HashIntegers(KeyHasher, Kernel);

impl KernelHash for HashIntegers {
    #[inline]
    fn new(hasher: KeyHasher, kernel: Kernel) -> Self {
        HashIntegers(hasher, kernel)
    }
}

impl HashKeys<u64> for HashIntegers {
    #[inline]
    fn hash_one(&self, key: &u64) -> u64 {
        self.0.hash(key.to_le_bytes())
    }

    // Always inlined: as a call, it makes three keys in the cache 10 % slower.
    #[inline(always)]
    fn hash_keys<'h>(&self, keys: &[u64], memory: &'h mut [MaybeUninit<u64>]) -> &'h [u64] {
        Vectors(self.1).integer_keys(keys, self.0.seed, &mut memory[..keys.len()])
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
    ensure(hashes.len() == keys, HashError::Length { hashes: hashes.len(), keys })
}

/// Widens an offset. A value that does not fit a signed 128-bit integer is past every end.
#[inline]
fn wide(offset: impl TryInto<i128>) -> i128 {
    offset.try_into().unwrap_or(i128::MAX)
}

fn check_offsets<O: Copy + TryInto<i128>>(bytes: &[u8], offsets: &[O]) -> Result<(), HashError> {
    let (mut least, most) = (0, bytes.len());
    for (index, offset) in offsets.iter().copied().map(wide).enumerate() {
        least = match usize::try_from(offset) {
            Ok(next) if (least..=most).contains(&next) => next,
            _ => return Err(HashError::Offset { index, offset, least, most }),
        };
    }
    Ok(())
}

/// Error of hashing a batch of keys into a slice. Nothing was written to the slice.
///
/// ```
/// use blocked_bloom::{HashError, KeyHasher};
/// let error = KeyHasher::default().hash_u64s(&[1, 2, 3], &mut [0; 2]).unwrap_err();
/// assert_eq!(error, HashError::Length { hashes: 2, keys: 3 });
/// assert_eq!(
///     error.to_string(),
///     "the slice for hashes has length 2, expected 3: pass one element per key"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashError {
    /// The numbers of keys and hashes differ.
    Length {
        /// Length of the slice for hashes.
        hashes: usize,
        /// Number of keys.
        keys: usize,
    },
    /// An offset of a key is smaller than its predecessor, or past the end of the buffer.
    Offset {
        /// Index of the offset, from 0.
        index: usize,
        /// Value of the offset.
        offset: i128,
        /// Value of its predecessor; 0 for the first offset.
        least: usize,
        /// Length of the buffer in bytes.
        most: usize,
    },
}

impl_error!(HashError;
    Self::Length { hashes, keys } => (
        "the slice for hashes has length {hashes}, expected {keys}: pass one element per key"
    ),
    Self::Offset { index, offset, least, most } => (
        "offset {index} is {offset}, expected {least} to {most}"
    ),
);

#[cfg(all(test, feature = "std"))]
#[path = "../../tests/unit/hash.rs"]
mod tests;
