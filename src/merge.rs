//! Merging: the union and the intersection of filters, of two or of many in one pass.
//!
//! This file owns which filters can be merged and what comes of it: everything is checked before a bit changes. It refuses to bring
//! filters to a common size; that is folding.

use alloc::vec::Vec;
use core::iter;

use crate::buffer::Buffer;
use crate::error::{AllocError, MergeAllError, MergeError};
use crate::filter::BloomFilter;
use crate::prefix::Added;
use crate::probe::Block;
use crate::view::BloomFilterRef;

/// Blocks of the receiving filter that all inputs are merged into before the next: 16 KiB, so that they stay in the first-level
/// cache, in runs long enough for hardware prefetching.
const RANGE: usize = 256;

/// Bytes read and written below which one thread is as fast as several.
#[cfg(feature = "rayon")]
const SEQUENTIAL_BELOW: usize = 32 << 20;

impl BloomFilter {
    /// Adds everything that is in `other`, by OR-ing its bits.
    ///
    /// Both must have the same hash, seed, blocks and probes, and the same must have been added to both: keys, or prefixes by the
    /// same rule. Two exceptions are sound whatever the shape: a filter of keys without a single bit adds nothing, or is replaced by
    /// the other (one of prefixes alone only among its like: it may be of keys that have none); and a pass-all filter makes the union
    /// pass-all. The keys inserted are those of both; keys that are in both count twice.
    ///
    /// Cost: reads both filters; with the feature `rayon`, from 16 MiB each up in the threads of the current pool, which rayon
    /// starts if there is none (and panics if it cannot).
    ///
    /// # Errors
    ///
    /// [`MergeError`] naming both sides; this filter is then unchanged.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let mut fruit = BloomFilter::with_params(params, KeyHash::default())?;
    /// let mut roots = fruit.clone();
    /// fruit.insert("apple");
    /// roots.insert("carrot");
    /// fruit.union_with(&roots)?;
    /// assert!(fruit.contains("carrot"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union_with<'a>(
        &mut self,
        other: impl Into<BloomFilterRef<'a>>,
    ) -> Result<(), MergeError> {
        self.unite(&[other.into()]).map_err(|error| error.error)
    }

    /// Adds everything that is in any of `others`, as [`union_with`](Self::union_with) one by one does, in one pass.
    ///
    /// All are checked first: either all are united, or this filter is unchanged. One pass-all filter, wherever it stands, makes
    /// the union pass-all and excuses every difference of shape. The result does not depend on the order.
    ///
    /// Cost: each range of 16 KiB of this filter receives all others before the next, so that many filters cost one pass over
    /// each of them. With the feature `rayon`, from 32 MiB in all up the ranges are shared by the threads of the current pool
    /// (see [`union_with`](Self::union_with)); the bytes do not depend on their number.
    ///
    /// # Errors
    ///
    /// [`MergeAllError`] naming both sides and where they stand; this filter is then unchanged.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let mut union = BloomFilter::with_params(params, KeyHash::default())?;
    /// let mut tables = vec![union.clone(); 3];
    /// for (table, key) in tables.iter_mut().zip(["apple", "banana", "cherry"]) {
    ///     table.insert(key);
    /// }
    /// union.union_all(&tables)?;
    /// assert!(union.contains("apple") && union.contains("banana") && union.contains("cherry"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union_all<'a, F: Into<BloomFilterRef<'a>>>(
        &mut self,
        others: impl IntoIterator<Item = F>,
    ) -> Result<(), MergeAllError> {
        self.unite(&views(others)?)
    }

    /// Keeps what may also be in `other`, by AND-ing their bits.
    ///
    /// A key that was inserted into both is found; a key that either filter calls absent is absent; so the false-positive rate
    /// is at most that of either. But the result is not the filter that would be built of the keys in both: where
    /// different keys of the two sides share bits, these stay, and more absent keys pass than in a filter built anew.
    /// [`estimated_false_positive_rate`](Self::estimated_false_positive_rate) counts them. The keys inserted are the
    /// smaller number of the two: at most so many can be in both.
    ///
    /// Both must have the same hash, seed, blocks and probes, and the same must have been added to both. Two exceptions are sound
    /// whatever the shape: with a pass-all filter, of which nothing is known, the result is the other; and with a filter of keys
    /// without a single bit it is empty.
    ///
    /// Cost: as [`union_with`](Self::union_with).
    ///
    /// # Errors
    ///
    /// [`MergeError`] naming both sides; this filter is then unchanged.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let mut red = BloomFilter::with_params(params, KeyHash::default())?;
    /// let mut fruit = red.clone();
    /// ["apple", "brick"].map(|key| red.insert(key));
    /// ["apple", "banana"].map(|key| fruit.insert(key));
    /// red.intersect_with(&fruit)?;
    /// assert!(red.contains("apple"));
    /// assert!(!red.contains("brick") && !red.contains("banana"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn intersect_with<'a>(
        &mut self,
        other: impl Into<BloomFilterRef<'a>>,
    ) -> Result<(), MergeError> {
        self.intersect(&[other.into()]).map_err(|error| error.error)
    }

    /// Keeps what may also be in each of `others`, as [`intersect_with`](Self::intersect_with) one by one does, in one pass.
    ///
    /// All are checked first: either all are intersected, or this filter is unchanged. One filter without a bit, wherever it
    /// stands, makes the result empty and excuses every difference of shape. Without others nothing changes.
    ///
    /// Cost: as [`union_all`](Self::union_all).
    ///
    /// # Errors
    ///
    /// [`MergeAllError`] naming both sides and where they stand; this filter is then unchanged.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let mut tables = vec![BloomFilter::with_params(params, KeyHash::default())?; 3];
    /// for (table, key) in tables.iter_mut().zip(["apple", "banana", "cherry"]) {
    ///     table.insert(key);
    ///     table.insert("in all");
    /// }
    /// let mut common = BloomFilter::pass_all(KeyHash::default())?;
    /// common.intersect_all(&tables)?;
    /// assert!(common.contains("in all") && !common.contains("banana"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn intersect_all<'a, F: Into<BloomFilterRef<'a>>>(
        &mut self,
        others: impl IntoIterator<Item = F>,
    ) -> Result<(), MergeAllError> {
        self.intersect(&views(others)?)
    }

    fn unite(&mut self, others: &[BloomFilterRef<'_>]) -> Result<(), MergeAllError> {
        let this = self.view();
        check_hashes(&this, others)?;
        if this.is_pass_all() || others.iter().any(BloomFilterRef::is_pass_all) {
            self.become_pass_all();
        } else {
            // The shape is that of the first with a bit. Looking for bits is for those whose shapes differ.
            let like = match others.iter().all(|other| shape(other) == shape(&this)) {
                false if this.has_no_bit() => others.iter().position(|other| !other.has_no_bit()),
                _ => None,
            };
            check_replaced(&this, others, like)?;
            let added = like.map_or(this, |like| others[like]).added();
            check_shapes(&this, others, like, |other| !adds_nothing(other, added))?;
            let rest = self.adopt(others, like)?;
            self.combine(rest, |mine, theirs| *mine |= theirs);
        }
        for other in others {
            self.count(other.keys_inserted());
        }
        Ok(())
    }

    fn intersect(&mut self, others: &[BloomFilterRef<'_>]) -> Result<(), MergeAllError> {
        let this = self.view();
        check_hashes(&this, others)?;
        let mut like = None;
        if this.is_pass_all() {
            like = others.iter().position(|other| !other.is_pass_all());
            if like.is_none() {
                return Ok(());
            }
        }
        let first = like.map_or(this, |like| others[like]);
        let known = || iter::once(&first).chain(others).filter(|filter| !filter.is_pass_all());
        let agree = check_shapes(&this, others, like, |other| !other.is_pass_all());
        let nothing_in_common = agree.is_err() && known().any(BloomFilterRef::is_empty);
        if !nothing_in_common {
            agree?;
        }
        let keys_inserted = known().map(BloomFilterRef::keys_inserted).min().unwrap_or(0);
        let rest = self.adopt(others, like)?;
        if nothing_in_common {
            self.clear();
        } else {
            self.combine(rest, |mine, theirs| *mine &= theirs);
        }
        let (_, meta) = self.parts_mut();
        meta.keys_inserted = keys_inserted;
        Ok(())
    }

    /// Becomes a copy of the input `like`, whose predecessors have no say, and returns what is left to merge.
    fn adopt<'o, 'a>(
        &mut self,
        others: &'o [BloomFilterRef<'a>],
        like: Option<usize>,
    ) -> Result<&'o [BloomFilterRef<'a>], MergeAllError> {
        let Some(index) = like else { return Ok(others) };
        let other = others[index];
        let copy = Buffer::copy_of(other.blocks()).map_err(|error| no_memory(index, error))?;
        let (blocks, meta) = self.parts_mut();
        *blocks = copy;
        meta.probes = other.meta().probes;
        meta.pass_all = false;
        meta.added = other.added();
        Ok(&others[index + 1..])
    }

    /// Merges all inputs into each range of blocks. An input of another length is one that changes nothing: without a bit in a
    /// union, pass-all in an intersection.
    fn combine(&mut self, others: &[BloomFilterRef<'_>], operation: impl Fn(&mut u8, u8) + Sync) {
        let (blocks, _) = self.parts_mut();
        let total = blocks.len();
        let work = |range: usize, blocks: &mut [Block]| {
            let mine = blocks.as_flattened_mut();
            for other in others.iter().filter(|other| other.blocks().len() == total) {
                let theirs = other.blocks()[range * RANGE..].as_flattened();
                mine.iter_mut().zip(theirs).for_each(|(mine, &theirs)| operation(mine, theirs));
            }
        };
        #[cfg(feature = "rayon")]
        if is_large(blocks, others) && rayon::current_num_threads() > 1 {
            return crate::parallel::for_each_range(blocks, RANGE, work);
        }
        blocks.chunks_mut(RANGE).enumerate().for_each(|(range, blocks)| work(range, blocks));
    }
}

/// Whether starting threads pays.
#[cfg(feature = "rayon")]
fn is_large(blocks: &[Block], others: &[BloomFilterRef<'_>]) -> bool {
    size_of_val(blocks).saturating_mul(others.len() + 1) >= SEQUENTIAL_BELOW
}

fn views<'a, F: Into<BloomFilterRef<'a>>>(
    filters: impl IntoIterator<Item = F>,
) -> Result<Vec<BloomFilterRef<'a>>, MergeAllError> {
    let mut views = Vec::new();
    for filter in filters {
        if views.try_reserve(1).is_err() {
            let bytes = (views.len() + 1) * size_of::<BloomFilterRef<'_>>();
            return Err(no_memory(views.len(), AllocError { bytes: bytes as u64 }));
        }
        views.push(filter.into());
    }
    Ok(views)
}

fn no_memory(input: usize, error: AllocError) -> MergeAllError {
    MergeAllError { left: None, right: input, error: error.into() }
}

fn check_hashes(
    this: &BloomFilterRef<'_>,
    others: &[BloomFilterRef<'_>],
) -> Result<(), MergeAllError> {
    let left = this.key_hash();
    match others.iter().position(|other| other.key_hash() != left) {
        None => Ok(()),
        Some(index) => {
            let error = MergeError::HashMismatch { left, right: others[index].key_hash() };
            Err(MergeAllError { left: None, right: index, error })
        }
    }
}

/// Whether a filter can be left out of a union of filters to which `added` was added: it holds no key, or, if it is one of prefixes
/// alone, no key that has one.
fn adds_nothing(filter: &BloomFilterRef<'_>, added: Added) -> bool {
    filter.has_no_bit() && (filter.added().whole_keys() || filter.added() == added)
}

/// Whether `this` can be replaced by the input `like`. A filter of prefixes alone may have no bit and yet be of keys, those without
/// a prefix: it says "maybe" about every key, which another kind of filter would not.
fn check_replaced(
    this: &BloomFilterRef<'_>,
    others: &[BloomFilterRef<'_>],
    like: Option<usize>,
) -> Result<(), MergeAllError> {
    match like {
        Some(right) if !adds_nothing(this, others[right].added()) => {
            let error =
                MergeError::AddedMismatch { left: this.added(), right: others[right].added() };
            Err(MergeAllError { left: None, right, error })
        }
        _ => Ok(()),
    }
}

/// Blocks, probes, and what was added.
fn shape(filter: &BloomFilterRef<'_>) -> (u32, u32, Added) {
    (filter.blocks().len() as u32, u32::from(filter.meta().probes), filter.added())
}

/// Whether those of `others` whose shape `matters` have that of the input `like`, or of `this` if there is none.
fn check_shapes(
    this: &BloomFilterRef<'_>,
    others: &[BloomFilterRef<'_>],
    like: Option<usize>,
    matters: impl Fn(&BloomFilterRef<'_>) -> bool,
) -> Result<(), MergeAllError> {
    let expected = shape(like.map_or(this, |like| &others[like]));
    let differs = |other: &BloomFilterRef<'_>| shape(other) != expected && matters(other);
    let Some(index) = others.iter().position(differs) else { return Ok(()) };
    let error = match (expected, shape(&others[index])) {
        ((.., left), (.., right)) if left != right => MergeError::AddedMismatch { left, right },
        ((left, ..), (right, ..)) if left != right => MergeError::BlocksMismatch { left, right },
        ((_, left, _), (_, right, _)) => MergeError::ProbesMismatch { left, right },
    };
    Err(MergeAllError { left: like, right: index, error })
}
