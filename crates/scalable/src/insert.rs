//! Insertion: a key is inserted into the last link, and only if no link may contain it. A failed
//! insertion loses nothing.

use alloc::vec::Vec;

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{AllocError, Bitmask, BloomFilter, Filter, HashError, KeyHasher};

use crate::error::ScalableError;
use crate::filter::ScalableBloomFilter;
use crate::query::{CHUNK_HASHES, SHORT_BATCH, Unanswered, look_up};

/// Up to this many hashes are inserted one by one, which takes less time than allocating the
/// answers of a batch.
const MAX_SINGLE_INSERTS: usize = 4;

impl ScalableBloomFilter {
    /// Inserts a key. Returns true if it was certainly absent before, like `HashSet`. Returns false
    /// if it may have been present; nothing changes in that case.
    ///
    /// Cost: one cache line per link. When the last link is full, the next one is allocated and
    /// cleared. It is at most [`growth`](crate::ScalableOptions::with_growth) times as large.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Alloc`] if allocating the next link fails, [`ScalableError::Params`] if no
    /// link can keep the rest of the rate, [`ScalableError::Key`] for caller-supplied hashes. The
    /// key is not inserted, and all others are still present.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, ScalableError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Inserts a key by its hash, like [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
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
        // Exact, since chains are short (one or two links in small filters) and each link is much
        // larger than its entry.
        self.links.try_reserve_exact(1).map_err(|_| error)?;
        let blocks = BlockBuffer::zeroed(params.blocks(), self.huge_pages)?;
        let link = BloomFilter::from_blocks(blocks, params.probes(), self.shape.key_hash)?;
        self.links.push(link.with_kernel(self.kernel));
        self.shape.items = params.expected_items();
        Ok(())
    }

    /// Reallocates the blocks of links below 2 MiB, and the list of links, for programs whose
    /// allocator knows which memory is fragmented
    /// ([`BlockBuffer::reallocate`](blocked_bloom::parts::BlockBuffer::reallocate)).
    pub fn reallocate(&mut self) {
        self.links.iter_mut().for_each(BloomFilter::reallocate);
        let mut links = Vec::new();
        if links.try_reserve_exact(self.links.len()).is_ok() {
            links.append(&mut self.links);
            self.links = links;
        }
    }

    /// Inserts all keys.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert). Keys before the failing one were inserted. The whole
    /// batch may be inserted again.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), ScalableError> {
        self.insert_batch_new(keys, &mut Bitmask::new())
    }

    /// Inserts all keys. Sets one bit of `new` per key, which is 1 if the key was certainly absent
    /// before, including from the batch so far.
    ///
    /// Cost: the batch kernel looks keys up in the links, about 1,000 at a time.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert). Keys before the failing one were inserted, and `new`
    /// is empty. The whole batch may be inserted again, but then `new` no longer reports the first
    /// insertions.
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

    /// Inserts integers, whose keys are their little-endian bytes, like
    /// [`insert_batch_new`](Self::insert_batch_new).
    ///
    /// # Errors
    ///
    /// The errors of [`insert_batch_new`](Self::insert_batch_new).
    pub fn insert_u64s_new(
        &mut self,
        keys: &[u64],
        new: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        self.insert_keys_new(keys, new, KeyHasher::hash_u64s)
    }

    /// Inserts all hashes.
    ///
    /// # Errors
    ///
    /// The errors of [`insert_batch`](Self::insert_batch).
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), ScalableError> {
        self.insert_hashes_new(hashes, &mut Bitmask::new())
    }

    /// Inserts all hashes and reports which were certainly new, like
    /// [`insert_batch_new`](Self::insert_batch_new).
    ///
    /// # Errors
    ///
    /// The errors of [`insert_batch_new`](Self::insert_batch_new).
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

    /// Inserts hashes and reports which were new.
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
            // A single link reports which hashes were new.
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

    /// Inserts the hashes whose bit in `words` is zero, then sets the bits of the new ones. Takes
    /// up to `N` hashes, at most [`CHUNK_HASHES`]. A zero bit means that no link has the hash, or
    /// that there is only one link, which has capacity left and was not looked up.
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
            // A hash that did not fit may equal an earlier one, which is now in the filter.
            look_up(&self.links, hashes, there);
        }
    }
}

/// Writes the words of a mask of `len` bits. Leaves the mask empty if `write` fails.
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
