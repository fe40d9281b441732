//! Adding: a key goes into the newest link, and only if no link may have it. Whatever fails loses
//! nothing.

use alloc::vec::Vec;

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{AllocError, Bitmask, BloomFilter, Filter, HashError, KeyHasher};

use crate::error::ScalableError;
use crate::filter::ScalableBloomFilter;
use crate::query::{CHUNK_HASHES, SHORT_BATCH, Unanswered, look_up};

/// Up to this many hashes of a call are added one by one, which takes less time than allocating the
/// answers.
const MAX_SINGLE_INSERTS: usize = 4;

impl ScalableBloomFilter {
    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does; false if
    /// it may have been: then nothing changes.
    ///
    /// Cost: a cache line for each link. When a link is full, the next is allocated and cleared, at
    /// most [`growth`](crate::ScalableOptions::with_growth) times as large.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Alloc`] if there is no memory for the next link, [`ScalableError::Params`]
    /// if none can keep what is left of the rate, [`ScalableError::Key`] if the filter is of the
    /// caller's hashes. The key was not added then, and all others still are.
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
        if self.contains_hash(hash) {
            return Ok(false);
        }
        if self.links.is_empty() || self.capacity_left() == 0 {
            self.grow()?;
        }
        let Some(link) = self.links.last_mut() else { return Ok(false) };
        link.insert_hash(hash)?;
        Ok(true)
    }

    fn grow(&mut self) -> Result<(), ScalableError> {
        let params = self.next_link()?;
        let error = AllocError::new(size_of::<BloomFilter>() as u64);
        // Exact, since there are few links, one or two in small filters, and each is much larger
        // than its entry.
        self.links.try_reserve_exact(1).map_err(|_| error)?;
        let blocks = BlockBuffer::zeroed(params.blocks(), self.huge_pages)?;
        let link = BloomFilter::from_blocks(blocks, params.probes(), self.shape.key_hash)?;
        self.links.push(link.with_kernel(self.kernel));
        self.shape.items = params.expected_items();
        Ok(())
    }

    /// Has the allocator move the blocks of links of less than 2 MiB, and moves the list of links:
    /// for programs whose allocator knows which memory is fragmented
    /// ([`BlockBuffer::reallocate`](blocked_bloom::parts::BlockBuffer::reallocate)).
    pub fn reallocate(&mut self) {
        self.links.iter_mut().for_each(BloomFilter::reallocate);
        let mut links = Vec::new();
        if links.try_reserve_exact(self.links.len()).is_ok() {
            links.append(&mut self.links);
            self.links = links;
        }
    }

    /// Adds every key.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Keys before the one that failed were added; adding them all
    /// again does no harm.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), ScalableError> {
        self.insert_batch_new(keys, &mut Bitmask::new())
    }

    /// Adds every key. `new` then has one bit per key, 1 if it was certainly not there before, nor
    /// earlier in the batch.
    ///
    /// Cost: keys are looked up in the links by the batch kernel, some thousand at a time.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Keys before the one that failed were added, `new` is empty;
    /// adding them all again does no harm, but no longer tells which were new.
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

    /// Adds integers, whose keys are their little-endian bytes, as
    /// [`insert_batch_new`](Self::insert_batch_new).
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

    /// Adds every hash, and says which were certainly new, as
    /// [`insert_batch_new`](Self::insert_batch_new).
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
        hash: impl Fn(KeyHasher, &[K], &mut [u64]) -> Result<(), HashError>,
    ) -> Result<(), ScalableError> {
        write_new(new, keys.len(), |words| {
            let hasher = self.hasher()?;
            let (mut few, mut many);
            let space: &mut [u64] = if keys.len() <= SHORT_BATCH {
                few = [0; SHORT_BATCH];
                &mut few
            } else {
                many = [0; CHUNK_HASHES];
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

    /// Adds hashes, and says which were new.
    fn add(&mut self, hashes: &[u64], new: &mut [u64]) -> Result<(), ScalableError> {
        if let ([word], ..=MAX_SINGLE_INSERTS) = (&mut *new, hashes.len()) {
            *word = 0;
            for (i, &hash) in hashes.iter().enumerate() {
                *word |= u64::from(self.insert_hash(hash)?) << i;
            }
            return Ok(());
        }
        let mut in_link = Bitmask::new();
        for (hashes, new) in hashes.chunks(CHUNK_HASHES).zip(new.chunks_mut(CHUNK_HASHES / 64)) {
            // A single link says itself which of the hashes were new.
            if self.links.len() == 1 && self.capacity_left() > 0 {
                new.fill(0);
            } else {
                look_up(&self.links, hashes, new);
            }
            let capacity = self.capacity_left();
            match self.links.last_mut() {
                Some(link)
                    if capacity >= hashes.len() as u64 && new.iter().all(|&word| word == 0) =>
                {
                    link.insert_hashes_counting_new(hashes, &mut in_link)?;
                    new.copy_from_slice(in_link.words());
                }
                _ if hashes.len() <= SHORT_BATCH => {
                    self.add_missing::<SHORT_BATCH>(hashes, new, &mut in_link)?
                }
                _ => self.add_missing::<CHUNK_HASHES>(hashes, new, &mut in_link)?,
            }
        }
        Ok(())
    }

    /// Adds those of up to `N` hashes, at most [`CHUNK_HASHES`], whose bit in `words` is zero: no
    /// link has them, or none was looked up since there is one link, with capacity left. The words
    /// then say which were new.
    fn add_missing<const N: usize>(
        &mut self,
        hashes: &[u64],
        words: &mut [u64],
        in_link: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        let (mut left, mut there) = (Unanswered::<N>::new(), [0; CHUNK_HASHES / 64]);
        let there = &mut there[..words.len()];
        there.copy_from_slice(words);
        words.fill(0);
        loop {
            let count = left.gather(hashes, there);
            if count == 0 {
                return Ok(());
            }
            if self.links.is_empty() || self.capacity_left() == 0 {
                self.grow()?;
            }
            let fit = usize::try_from(self.capacity_left()).map_or(count, |fit| fit.min(count));
            let Some(link) = self.links.last_mut() else { return Ok(()) };
            link.insert_hashes_counting_new(&left.hashes[..fit], in_link)?;
            for place in in_link.hits().map(|i| usize::from(left.places[i])) {
                words[place / 64] |= 1 << (place % 64);
            }
            if fit == count {
                return Ok(());
            }
            // A hash that did not fit may equal an earlier one, and so be in the filter by now.
            look_up(&self.links, hashes, there);
        }
    }
}

/// Writes the words of a mask of `len` bits, which is left empty if that fails.
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
