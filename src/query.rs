//! Batch queries: what every filter type has in common.

use crate::bitmask::{self, Bitmask, check_length};
use crate::error::{KeyError, LengthError};

/// Keys that are hashed at a time: 8 KiB of stack.
const AT_ONCE: usize = 1024;

/// Lookups of whole batches, for every filter type of this crate and for those filters of other systems whose
/// hash has 64 bits.
///
/// A type provides the two required methods. Answers are one bit per key: 1 may be present, 0 is certainly absent.
///
/// ```
/// use blocked_bloom::{BatchQuery, Bitmask, FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(16.0)).builder();
/// builder.insert("apple")?;
/// let filter = builder.finish()?;
///
/// // Hash the batch once, look it up in the filters of many tables.
/// let mut hashes = Vec::new();
/// filter.hasher()?.hash_batch(&["apple", "banana"], &mut hashes);
/// let mut hits = Bitmask::new();
/// filter.contains_hashes(&hashes, &mut hits);
/// assert!(hits.hits().eq([0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait BatchQuery {
    /// Looks up every hash: hash `i` is bit `i % 64` of `words[i / 64]`, bits past the last hash are zero. Batches may have any
    /// length.
    ///
    /// The hashes must be the filter's own: with hashes of another seed, it answers "absent" for keys that are there. Take the
    /// hasher from the filter.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError>;

    /// Writes the hash of each key, as this filter hashes it, to the start of `hashes`, which are at least as many.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes; nothing is written then.
    fn hash_keys<K: AsRef<[u8]>>(&self, keys: &[K], hashes: &mut [u64]) -> Result<(), KeyError>;

    /// [`hash_keys`](Self::hash_keys) for integers, whose keys are their little-endian bytes.
    ///
    /// # Errors
    ///
    /// As `hash_keys`.
    #[inline]
    fn hash_u64s(&self, keys: &[u64], hashes: &mut [u64]) -> Result<(), KeyError> {
        const FEW: usize = 64;
        let keys = &keys[..keys.len().min(hashes.len())];
        for (keys, hashes) in keys.chunks(FEW).zip(hashes.chunks_mut(FEW)) {
            let mut bytes = [[0; 8]; FEW];
            for (bytes, key) in bytes.iter_mut().zip(keys) {
                *bytes = key.to_le_bytes();
            }
            self.hash_keys(&bytes[..keys.len()], &mut hashes[..keys.len()])?;
        }
        Ok(())
    }

    /// Looks up every hash, as [`contains_hashes_into`](Self::contains_hashes_into), into a mask.
    #[inline]
    fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        // The mask has the right length.
        _ = self.contains_hashes_into(hashes, hits.reset(hashes.len()));
    }

    /// Looks up every key, into words of the caller's, as [`contains_hashes_into`](Self::contains_hashes_into) does for hashes. A
    /// filter of the caller's hashes answers "maybe" to each.
    ///
    /// Cost: the hash of every key and about one cache line per key. Some thousand keys are hashed before they are looked up, which
    /// was as fast as overlapping both.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        look_up(self, keys, words, |keys, hashes| self.hash_keys(keys, hashes))
    }

    /// Looks up every key, as [`contains_batch_into`](Self::contains_batch_into), into a mask.
    #[inline]
    fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        _ = self.contains_batch_into(keys, hits.reset(keys.len()));
    }

    /// Looks up integers, whose keys are their little-endian bytes, as [`contains_batch_into`](Self::contains_batch_into) looks up keys:
    /// the fastest way from keys to answers.
    ///
    /// # Errors
    ///
    /// As `contains_batch_into`.
    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        look_up(self, keys, words, |keys, hashes| self.hash_u64s(keys, hashes))
    }

    /// Looks up integers, as [`contains_u64s_into`](Self::contains_u64s_into), into a mask.
    ///
    /// ```
    /// use blocked_bloom::{BatchQuery, Bitmask, FilterOptions, Sizing};
    /// let mut builder = FilterOptions::new(Sizing::BitsPerKey(16.0)).builder();
    /// builder.insert(7_u64.to_le_bytes())?;
    /// let mut hits = Bitmask::new();
    /// builder.finish()?.contains_u64s(&[6, 7, 8], &mut hits);
    /// assert!(hits.hits().eq([1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    fn contains_u64s(&self, keys: &[u64], hits: &mut Bitmask) {
        _ = self.contains_u64s_into(keys, hits.reset(keys.len()));
    }
}

/// Hashes and looks up keys, as many at a time as there is space for hashes. If they cannot be hashed, the answers are "maybe".
#[inline]
fn look_up<F: BatchQuery + ?Sized, K>(
    filter: &F,
    keys: &[K],
    words: &mut [u64],
    hash: impl Fn(&[K], &mut [u64]) -> Result<(), KeyError>,
) -> Result<(), LengthError> {
    check_length(keys.len(), words)?;
    // If a key panics when it is read, what is left says "maybe".
    bitmask::fill_with_hits(words, keys.len());
    let some = |keys: &[K], hashes: &mut [u64], words: &mut [u64]| match hash(keys, hashes) {
        Ok(()) => filter.contains_hashes_into(hashes, words),
        Err(_) => Ok(()),
    };
    if keys.len() <= 64 {
        return some(keys, &mut [0; 64][..keys.len()], words);
    }
    let mut hashes = [0; AT_ONCE];
    for (keys, words) in keys.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
        some(keys, &mut hashes[..keys.len()], words)?;
    }
    Ok(())
}
