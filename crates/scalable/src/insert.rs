//! Adding: a key goes into the newest link, and only if no link may have it. Whatever fails loses nothing.

use blocked_bloom::{AllocError, Bitmask, BloomFilter, HashError, KeyHasher};

use crate::error::ScalableError;
use crate::filter::ScalableBloomFilter;
use crate::query::{AT_ONCE, FEW, look_up};

impl ScalableBloomFilter {
    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does; false if it may have been: then
    /// nothing changes.
    ///
    /// Cost: a cache line for each link. When a link is full, the next is allocated and cleared, at most
    /// [`growth`](crate::ScalableOptions::with_growth) times as large.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Alloc`] if there is no memory for the next link, [`ScalableError::Params`] if none can keep what is
    /// left of the rate, [`ScalableError::Key`] if the filter is of the caller's hashes. The key was not added
    /// then, and all others still are.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, ScalableError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash, as [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, ScalableError> {
        self.insert_unless(0, hash)
    }

    /// Adds the hash, unless a link from number `first` on may have it; those before it do not.
    fn insert_unless(&mut self, first: usize, hash: u64) -> Result<bool, ScalableError> {
        if self.links[first..].iter().rev().any(|link| link.contains_hash(hash)) {
            return Ok(false);
        }
        if self.links.is_empty() || self.capacity_left() == 0 {
            self.grow()?;
        }
        let Some(link) = self.links.last_mut() else { return Ok(false) };
        link.insert_hashes(&[hash])?;
        Ok(true)
    }

    fn grow(&mut self) -> Result<(), ScalableError> {
        let params = self.next_link()?;
        let error = AllocError::new(size_of::<BloomFilter>() as u64);
        self.links.try_reserve(1).map_err(|_| error)?;
        let link = BloomFilter::new(params, self.shape.key_hash)?;
        self.links.push(link.with_kernel(self.kernel));
        self.shape.items = params.expected_items();
        Ok(())
    }

    /// Adds every key.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Keys before the one that failed were added; adding them all again does no harm.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), ScalableError> {
        self.insert_batch_new(keys, &mut Bitmask::new())
    }

    /// Adds every key. `new` then has one bit per key, 1 if it was certainly not there before, nor earlier in the batch.
    ///
    /// Cost: keys are looked up in the links by the batch kernel, some thousand at a time.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Keys before the one that failed were added, `new` is empty; adding them all again
    /// does no harm, but tells no more which were new.
    ///
    /// ```
    /// use blocked_bloom::Bitmask;
    /// use blocked_bloom_scalable::ScalableOptions;
    /// let mut seen = ScalableOptions::new(0.001, 100).build()?;
    /// seen.insert("apple")?;
    /// let mut new = Bitmask::new();
    /// seen.insert_batch_new(&["apple", "banana", "banana"], &mut new)?;
    /// assert!(new.hits().eq([1]));
    /// # Ok::<(), blocked_bloom_scalable::ScalableError>(())
    /// ```
    pub fn insert_batch_new<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        self.insert_keys_new(keys, new, KeyHasher::hash_batch_into)
    }

    /// Adds integers, whose keys are their little-endian bytes, as [`insert_batch_new`](Self::insert_batch_new).
    ///
    /// # Errors
    ///
    /// As [`insert_batch_new`](Self::insert_batch_new).
    pub fn insert_u64s_new(
        &mut self,
        keys: &[u64],
        new: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        self.insert_keys_new(keys, new, KeyHasher::hash_u64s)
    }

    /// Adds every hash.
    ///
    /// # Errors
    ///
    /// As [`insert_batch`](Self::insert_batch).
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), ScalableError> {
        self.insert_hashes_new(hashes, &mut Bitmask::new())
    }

    /// Adds every hash, and says which were certainly new, as [`insert_batch_new`](Self::insert_batch_new).
    ///
    /// # Errors
    ///
    /// As [`insert_batch_new`](Self::insert_batch_new).
    pub fn insert_hashes_new(
        &mut self,
        hashes: &[u64],
        new: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        write_new(new, hashes.len(), |words| self.add(hashes, words))
    }

    fn insert_keys_new<K>(
        &mut self,
        keys: &[K],
        new: &mut Bitmask,
        hash: fn(KeyHasher, &[K], &mut [u64]) -> Result<(), HashError>,
    ) -> Result<(), ScalableError> {
        write_new(new, keys.len(), |words| {
            let hasher = self.hasher()?;
            let (mut few, mut many);
            let space: &mut [u64] = if keys.len() <= FEW {
                few = [0; FEW];
                &mut few
            } else {
                many = [0; AT_ONCE];
                &mut many
            };
            for (keys, new) in keys.chunks(space.len()).zip(words.chunks_mut(space.len() / 64)) {
                let hashes = &mut space[..keys.len()];
                hash(hasher, keys, hashes).expect("a hash per key");
                self.add(hashes, new)?;
            }
            Ok(())
        })
    }

    /// Adds hashes; bits past the last one are arbitrary.
    fn add(&mut self, hashes: &[u64], new: &mut [u64]) -> Result<(), ScalableError> {
        for (hashes, new) in hashes.chunks(AT_ONCE).zip(new.chunks_mut(AT_ONCE / 64)) {
            look_up(&self.links, hashes, new);
            // The answers are of before these hashes; one may have come twice, and is then in the link that was last or a later one.
            let first = self.links.len().saturating_sub(1);
            for (i, &hash) in hashes.iter().enumerate() {
                let bit = 1 << (i % 64);
                if new[i / 64] & bit == 0 && !self.insert_unless(first, hash)? {
                    new[i / 64] |= bit;
                }
            }
            new.iter_mut().for_each(|word| *word = !*word);
        }
        Ok(())
    }
}

/// Has the words of a mask of `len` bits written, which is left empty if that fails.
fn write_new(
    mask: &mut Bitmask,
    len: usize,
    write: impl FnOnce(&mut [u64]) -> Result<(), ScalableError>,
) -> Result<(), ScalableError> {
    let mut result = Ok(());
    mask.write(len, |words| result = write(words));
    if result.is_err() {
        mask.write(0, |_| ());
    }
    result
}
