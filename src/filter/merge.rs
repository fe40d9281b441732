//! Merging: the union and the intersection of filters, of two or of many in one pass. Everything is checked before a bit changes.
//! Filters of different sizes are not brought to a common one; that is folding.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::owned::BloomFilter;
use super::view::BloomFilterRef;
use crate::buffer::BlockBuffer;
use crate::error::{AllocError, MergeError};
use crate::prefix::FilterContents;
use crate::probe::Block;

/// Blocks of the receiving filter that all inputs are merged into before the next: 16 KiB, so that they stay in the first-level
/// cache, in runs long enough for hardware prefetching.
const RANGE: usize = 256;

/// How ranges of blocks are merged: calls the function with the number of each range and its blocks.
pub(crate) type ForEachRange = fn(&mut [Block], usize, &(dyn Fn(usize, &mut [Block]) + Sync));

pub(crate) fn one_by_one(
    blocks: &mut [Block],
    len: usize,
    work: &(dyn Fn(usize, &mut [Block]) + Sync),
) {
    blocks.chunks_mut(len).enumerate().for_each(|(range, blocks)| work(range, blocks));
}

impl BloomFilter {
    /// Adds everything that is in `other`, by OR-ing its bits.
    ///
    /// Both must have the same hash, seed, blocks and probes, and hold the same: keys, or prefixes by the same rule. Give both the same
    /// [`Params`](crate::Params) when they are made; filters that a builder sizes for the keys it got rarely have equal shapes. Two
    /// exceptions are sound whatever the shape: a filter of keys without a single bit adds nothing, or is replaced by the other (one
    /// of prefixes alone only among its like: it may be of keys that have none); and a pass-all filter makes the union pass-all. The
    /// keys inserted are those of both; keys that are in both count twice.
    ///
    /// Cost: reads both filters.
    ///
    /// # Errors
    ///
    /// [`MergeError`] naming both sides; this filter is then unchanged.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let mut fruit = BloomFilter::new(params, KeyHash::default())?;
    /// let mut roots = fruit.clone();
    /// fruit.insert("apple")?;
    /// roots.insert("carrot")?;
    /// fruit.union_with(&roots)?;
    /// assert!(fruit.contains("carrot"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union_with<'a>(
        &mut self,
        other: impl Into<BloomFilterRef<'a>>,
    ) -> Result<(), MergeError> {
        self.or_all(&[other.into()], one_by_one).map_err(without_input)
    }

    /// Adds everything that is in any of `others`, as [`union_with`](Self::union_with) one by one does, in one pass.
    ///
    /// All are checked first: either all are merged, or this filter is unchanged. One pass-all filter, wherever it stands, makes
    /// the union pass-all and excuses every difference of shape. The result does not depend on the order.
    ///
    /// Cost: each range of 16 KiB of this filter receives all others before the next, so that many filters cost one pass over
    /// each of them.
    ///
    /// # Errors
    ///
    /// [`MergeError::Input`] naming both sides and where they stand; this filter is then unchanged.
    pub fn union_all<'a, F: Into<BloomFilterRef<'a>>>(
        &mut self,
        others: impl IntoIterator<Item = F>,
    ) -> Result<(), MergeError> {
        self.or_all(&views(others)?, one_by_one)
    }

    /// Keeps what may also be in `other`, by AND-ing their bits.
    ///
    /// A key that was inserted into both is found; a key that either filter calls absent is absent; so the false-positive rate
    /// is at most that of either. But the result is not the filter that would be built of the keys in both: where
    /// different keys of the two sides share bits, these stay, and more absent keys pass than in a filter built anew.
    /// [`estimated_false_positive_rate`](Self::estimated_false_positive_rate) counts them. The keys inserted are the
    /// smaller number of the two: at most so many can be in both.
    ///
    /// Both must have the same hash, seed, blocks and probes, and hold the same. Two exceptions are sound whatever the shape: with a
    /// pass-all filter, of which nothing is known, the result is the other; and with a filter of keys without a single bit it is
    /// empty.
    ///
    /// Cost: as [`union_with`](Self::union_with).
    ///
    /// # Errors
    ///
    /// [`MergeError`] naming both sides; this filter is then unchanged.
    pub fn intersect_with<'a>(
        &mut self,
        other: impl Into<BloomFilterRef<'a>>,
    ) -> Result<(), MergeError> {
        let (this, others) = (self.view(), [other.into()]);
        let [other] = others;
        check_hashes(&this, &others).map_err(without_input)?;
        if other.is_pass_all() {
            return Ok(());
        }
        if this.is_pass_all() {
            self.adopt(&others, Some(0)).map_err(without_input)?;
            self.parts_mut().1.keys_inserted = other.keys_inserted();
            return Ok(());
        }
        let keys_inserted = this.keys_inserted().min(other.keys_inserted());
        let one_is_empty = this.is_empty() || other.is_empty();
        match check_shapes(&this, &others, None, |_| true) {
            Ok(()) => self.combine(&others, one_by_one, |mine, theirs| *mine &= theirs),
            Err(_) if one_is_empty => self.clear(),
            Err(error) => return Err(without_input(error)),
        }
        self.parts_mut().1.keys_inserted = keys_inserted;
        Ok(())
    }

    /// The union; `each` decides about threads.
    pub(crate) fn or_all(
        &mut self,
        others: &[BloomFilterRef<'_>],
        each: ForEachRange,
    ) -> Result<(), MergeError> {
        let this = self.view();
        check_hashes(&this, others)?;
        if this.is_pass_all() || others.iter().any(BloomFilterRef::is_pass_all) {
            self.become_pass_all();
        } else {
            // The shape is that of the first with a bit. Bits are looked for only where shapes differ.
            let like = match others.iter().all(|other| shape(other) == shape(&this)) {
                false if this.has_no_bit() => others.iter().position(|other| !other.has_no_bit()),
                _ => None,
            };
            check_replaced(&this, others, like)?;
            let contents = like.map_or(this, |like| others[like]).contents();
            check_shapes(&this, others, like, |other| !adds_nothing(other, contents))?;
            let rest = self.adopt(others, like)?;
            self.combine(rest, each, |mine, theirs| *mine |= theirs);
        }
        for other in others {
            self.count(other.keys_inserted());
        }
        Ok(())
    }

    /// Becomes a copy of the input `like`, whose predecessors have no say, and returns what is left to merge.
    fn adopt<'o, 'a>(
        &mut self,
        others: &'o [BloomFilterRef<'a>],
        like: Option<usize>,
    ) -> Result<&'o [BloomFilterRef<'a>], MergeError> {
        let Some(index) = like else { return Ok(others) };
        let other = others[index];
        let copy =
            BlockBuffer::copy_of(other.blocks(), true).map_err(|error| no_memory(index, error))?;
        let (blocks, meta) = self.parts_mut();
        *blocks = copy;
        meta.probes = other.meta().probes;
        meta.pass_all = false;
        meta.contents = other.contents();
        Ok(&others[index + 1..])
    }

    /// Merges all inputs into each range of blocks. An input of another length is one without a bit in a union.
    fn combine(
        &mut self,
        others: &[BloomFilterRef<'_>],
        each: ForEachRange,
        operation: impl Fn(&mut u8, u8) + Sync,
    ) {
        let (blocks, _) = self.parts_mut();
        let total = blocks.len();
        each(blocks, RANGE, &|range, blocks| {
            let mine = blocks.as_flattened_mut();
            for other in others.iter().filter(|other| other.blocks().len() == total) {
                let theirs = other.blocks()[range * RANGE..].as_flattened();
                mine.iter_mut().zip(theirs).for_each(|(mine, &theirs)| operation(mine, theirs));
            }
        });
    }
}

pub(crate) fn views<'a, F: Into<BloomFilterRef<'a>>>(
    filters: impl IntoIterator<Item = F>,
) -> Result<Vec<BloomFilterRef<'a>>, MergeError> {
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

/// The error of the only input by itself.
pub(crate) fn without_input(error: MergeError) -> MergeError {
    match error {
        MergeError::Input { error, .. } => *error,
        error => error,
    }
}

fn no_memory(input: usize, error: AllocError) -> MergeError {
    MergeError::Input { left: None, right: input, error: Box::new(error.into()) }
}

fn check_hashes(
    this: &BloomFilterRef<'_>,
    others: &[BloomFilterRef<'_>],
) -> Result<(), MergeError> {
    let left = this.key_hash();
    match others.iter().position(|other| other.key_hash() != left) {
        None => Ok(()),
        Some(index) => {
            let error = MergeError::HashMismatch { left, right: others[index].key_hash() };
            Err(MergeError::Input { left: None, right: index, error: Box::new(error) })
        }
    }
}

/// Whether a filter can be left out of a union of filters that hold `contents`: it holds no key, or, if it is one of prefixes
/// alone, no key that has one.
fn adds_nothing(filter: &BloomFilterRef<'_>, contents: FilterContents) -> bool {
    filter.has_no_bit() && (filter.contents().whole_keys() || filter.contents() == contents)
}

/// Whether `this` can be replaced by the input `like`. A filter of prefixes alone may have no bit and yet be of keys, those without
/// a prefix: it says "maybe" about every key, which another kind of filter would not.
fn check_replaced(
    this: &BloomFilterRef<'_>,
    others: &[BloomFilterRef<'_>],
    like: Option<usize>,
) -> Result<(), MergeError> {
    match like {
        Some(right) if !adds_nothing(this, others[right].contents()) => {
            let error = MergeError::ContentsMismatch {
                left: this.contents(),
                right: others[right].contents(),
            };
            Err(MergeError::Input { left: None, right, error: Box::new(error) })
        }
        _ => Ok(()),
    }
}

/// Blocks, probes, and what the filter holds.
fn shape(filter: &BloomFilterRef<'_>) -> (u32, u32, FilterContents) {
    (filter.blocks().len() as u32, u32::from(filter.meta().probes), filter.contents())
}

/// Whether those of `others` whose shape `matters` have that of the input `like`, or of `this` if there is none.
fn check_shapes(
    this: &BloomFilterRef<'_>,
    others: &[BloomFilterRef<'_>],
    like: Option<usize>,
    matters: impl Fn(&BloomFilterRef<'_>) -> bool,
) -> Result<(), MergeError> {
    let expected = shape(like.map_or(this, |like| &others[like]));
    let differs = |other: &BloomFilterRef<'_>| shape(other) != expected && matters(other);
    let Some(index) = others.iter().position(differs) else { return Ok(()) };
    let error = match (expected, shape(&others[index])) {
        ((.., left), (.., right)) if left != right => MergeError::ContentsMismatch { left, right },
        ((left, ..), (right, ..)) if left != right => MergeError::BlocksMismatch { left, right },
        ((_, left, _), (_, right, _)) => MergeError::ProbesMismatch { left, right },
    };
    Err(MergeError::Input { left: like, right: index, error: Box::new(error) })
}
