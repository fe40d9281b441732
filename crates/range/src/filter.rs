//! A filter and its lookups.

use alloc::vec::Vec;
use core::ops::Bound::{self, Excluded, Included, Unbounded};

use blocked_bloom::Bitmask;

use crate::error::RangeError;
use crate::format::{Meta, Parts};
use crate::key::{RangeKey, VALUE_BYTES, value};

/// Pieces of ranges that a batch prefetches before it looks the first of them up.
const PIECES: usize = 128;

/// A static range filter with its bytes: built, or opened from any owner of bytes, such as a mapped
/// file, a `Vec<u8>`, an `Arc<[u8]>` or a `&[u8]`.
///
/// Lookups take integers, or byte strings in byte order. Keys cannot be inserted later, and filters
/// cannot be merged.
///
/// The owner need not return the same slice every time. If the length differs from the verified
/// length, every answer is "maybe". No contents make a lookup panic.
///
/// ```
/// use std::ops::Bound::{Excluded, Included, Unbounded};
/// use blocked_bloom_range::{RangeFilter, RangeOptions};
/// let mut builder = RangeOptions::new(20.0).builder();
/// for key in (0..1_000_u64).map(|i| i * 1_000_000) {
///     builder.insert(key)?;
/// }
/// let stored: Vec<u8> = builder.finish()?.as_bytes().to_vec();
///
/// let filter = RangeFilter::from_bytes(stored)?;
/// assert!(filter.contains_range(Included(5_000_000_u64), Excluded(5_000_001)));
/// assert!(!filter.contains_range(Excluded(5_000_000_u64), Included(5_000_020)));
/// assert!(filter.contains_range(Unbounded, Included(5_u64)), "0 is a key");
/// # Ok::<(), blocked_bloom_range::RangeError>(())
/// ```
#[derive(Clone, Copy)]
pub struct RangeFilter<B = Vec<u8>> {
    bytes: B,
    /// `None` answers "maybe" to everything.
    meta: Option<Meta>,
}

impl<B: AsRef<[u8]>> RangeFilter<B> {
    /// Opens a stored filter and verifies it completely: header, length, checksum, directory, and
    /// the order of the codes. Cost: a few nanoseconds per key.
    ///
    /// # Errors
    ///
    /// [`RangeError::Header`] for the first fault. Rejected bytes must not be used to answer
    /// "absent".
    pub fn from_bytes(bytes: B) -> Result<Self, RangeError> {
        let meta = Meta::verify(bytes.as_ref())?;
        Ok(RangeFilter::from_verified(bytes, meta))
    }

    /// Opens a stored filter like [`from_bytes`](Self::from_bytes), and never fails: for unusable
    /// bytes it returns a filter that answers "maybe" to every lookup, plus the error to log.
    /// Either filter keeps the bytes.
    ///
    /// ```
    /// use blocked_bloom_range::RangeFilter;
    /// let (filter, error) = RangeFilter::open_or_pass_all(&[0; 64]);
    /// assert!(error.is_some() && filter.contains(7_u64));
    /// ```
    pub fn open_or_pass_all(bytes: B) -> (Self, Option<RangeError>) {
        match Meta::verify(bytes.as_ref()) {
            Ok(meta) => (RangeFilter::from_verified(bytes, meta), None),
            Err(error) => (RangeFilter { bytes, meta: None }, Some(error.into())),
        }
    }

    /// Returns the stored filter, which is also its form in memory. A pass-all filter returns the
    /// rejected bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the number of distinct inserted keys.
    pub fn keys_inserted(&self) -> u64 {
        self.meta.map_or(0, |meta| meta.keys)
    }

    /// Returns the number of stored codes: distinct units that contain a key, less collisions.
    pub fn codes(&self) -> u32 {
        self.meta.map_or(0, |meta| meta.codes)
    }

    /// Returns the longest range, in units, that is looked up wherever it starts. Longer ranges are
    /// answered "maybe" if they touch more than eight blocks of units.
    pub fn max_units(&self) -> u64 {
        self.meta.map_or(0, |meta| (7 << meta.space.block_bits) + 1)
    }

    /// Returns the number of low bits that the filter ignores of the value of a key, the first 16
    /// bytes after the common prefix of all keys.
    pub fn dropped_bits(&self) -> u32 {
        self.meta.map_or(128, |meta| meta.dropped)
    }

    /// Returns the size of the filter in bytes, in memory and stored, including the header.
    pub fn memory_bytes(&self) -> u64 {
        self.as_bytes().len() as u64
    }

    /// Returns the bound of the false-positive rate for ranges of this many units: the probability
    /// that a range without a key is answered "maybe", for all keys and ranges that were chosen
    /// without knowledge of the hash.
    pub fn max_false_positive_rate(&self, units: u64) -> f64 {
        match self.meta {
            Some(meta) if units <= self.max_units() => {
                let rate = f64::from(meta.codes) * units as f64 / meta.space.starts as f64;
                rate.min(1.0)
            }
            _ => 1.0,
        }
    }

    /// Whether the key may be present.
    #[inline]
    pub fn contains(&self, key: impl RangeKey) -> bool {
        let key = key.to_key();
        self.contains_range(Included(key.as_ref()), Included(key.as_ref()))
    }

    /// Whether a key between two bounds may be present. If not, a scan of the range finds nothing.
    /// Empty and reversed ranges contain no key.
    ///
    /// Cost: a hash and two or three cache lines per block of units that the range touches.
    #[inline]
    pub fn contains_range<K: RangeKey>(&self, lower: Bound<K>, upper: Bound<K>) -> bool {
        let Some((meta, parts)) = self.parts() else { return true };
        let Some((first, last)) = units(&meta, parts.prefix, lower, upper) else { return false };
        let Some(mut pieces) = meta.space.pieces(first, last) else { return true };
        pieces.any(|(first, last)| parts.packed.contains(first, last).unwrap_or(true))
    }

    /// Looks up every range like [`contains_range`](Self::contains_range), and prefetches. `hits`
    /// has one bit per range afterwards. Batches may have any length.
    ///
    /// ```
    /// use std::ops::Bound::Included;
    /// use blocked_bloom::Bitmask;
    /// use blocked_bloom_range::RangeOptions;
    /// let mut builder = RangeOptions::new(20.0).builder();
    /// builder.insert(1_000_u64)?;
    /// let filter = builder.finish()?;
    /// let ranges = [(1, 3_u64), (999, 1_001)].map(|(a, b)| (Included(a), Included(b)));
    /// let mut hits = Bitmask::new();
    /// filter.contains_ranges(&ranges, &mut hits);
    /// assert!(hits.hits().eq([1]));
    /// # Ok::<(), blocked_bloom_range::RangeError>(())
    /// ```
    pub fn contains_ranges<K: RangeKey>(
        &self,
        ranges: &[(Bound<K>, Bound<K>)],
        hits: &mut Bitmask,
    ) {
        hits.write(ranges.len(), |words| {
            let Some((meta, parts)) = self.parts() else { return words.fill(u64::MAX) };
            let mut pieces = [(0, 0, 0); PIECES];
            for (ranges, word) in ranges.chunks(64).zip(words) {
                let mut count = 0;
                *word = 0;
                for (i, &(lower, upper)) in ranges.iter().enumerate() {
                    let range = units(&meta, parts.prefix, lower, upper);
                    let Some((first, last)) = range else { continue };
                    let Some(of_range) = meta.space.pieces(first, last) else {
                        *word |= 1 << i;
                        continue;
                    };
                    for (first, last) in of_range {
                        match pieces.get_mut(count) {
                            Some(piece) => {
                                *piece = (first, last, i);
                                count += 1;
                                parts.packed.prefetch_rank(first);
                            }
                            None => {
                                let hit = parts.packed.contains(first, last).unwrap_or(true);
                                *word |= u64::from(hit) << i;
                            }
                        }
                    }
                }
                let pieces = &pieces[..count];
                pieces.iter().for_each(|&(first, ..)| parts.packed.prefetch_bits(first));
                for &(first, last, i) in pieces {
                    let hit = parts.packed.contains(first, last).unwrap_or(true);
                    *word |= u64::from(hit) << i;
                }
            }
        });
    }

    /// Returns `None` for a pass-all filter, or if the length of the bytes changed.
    #[inline]
    fn parts(&self) -> Option<(Meta, Parts<'_>)> {
        let meta = self.meta?;
        Some((meta, meta.parts(self.bytes.as_ref())?))
    }
}

impl<B> RangeFilter<B> {
    /// Creates a filter of bytes that were verified.
    pub(crate) fn from_verified(bytes: B, meta: Meta) -> Self {
        RangeFilter { bytes, meta: Some(meta) }
    }
}

/// Shows the shape, without the bits.
impl<B> core::fmt::Debug for RangeFilter<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RangeFilter").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// Returns the first and the last unit that a key of the range can have, or `None` if the filter
/// has no key in it.
#[inline]
fn units<K: RangeKey>(
    meta: &Meta,
    prefix: &[u8],
    lower: Bound<K>,
    upper: Bound<K>,
) -> Option<(u128, u128)> {
    let (lower, upper) = (lower.map(K::to_key), upper.map(K::to_key));
    let (lower, upper) = (lower.as_ref().map(AsRef::as_ref), upper.as_ref().map(AsRef::as_ref));
    // A second copy for keys of at most 16 bytes, which have no prefix: without one, the compiler
    // turns the comparisons and copies of integers into a few instructions.
    match prefix {
        [] => units_of_bytes(meta, &[], lower, upper),
        _ => units_of_bytes(meta, prefix, lower, upper),
    }
}

#[inline(always)]
fn units_of_bytes(
    meta: &Meta,
    prefix: &[u8],
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
) -> Option<(u128, u128)> {
    // All keys start with the prefix, so that they are above, below or in a range as a whole.
    let first = match lower {
        Included(bound) | Excluded(bound) if bound > prefix => {
            let rest = bound.strip_prefix(prefix)?;
            // No key continues a bound of the length of the longest.
            let is_last = rest.len() >= meta.longest && meta.longest <= VALUE_BYTES;
            match lower {
                Excluded(_) if is_last => {
                    let step = 1_u128.checked_shl(128 - 8 * meta.longest as u32)?;
                    value(&rest[..meta.longest]).checked_add(step)?
                }
                _ => value(rest),
            }
        }
        _ => 0,
    };
    let last = match upper {
        Included(bound) if bound < prefix => return None,
        Excluded(bound) if bound <= prefix => return None,
        Included(bound) | Excluded(bound) => match bound.strip_prefix(prefix) {
            None => u128::MAX,
            Some(rest) => {
                // Less than the bound, and with its value, is only the bound without zeros at its
                // end, and a longer string than a value.
                let is_first = rest.len() <= meta.shortest
                    || rest.len() <= VALUE_BYTES && rest.last() != Some(&0);
                let is_excluded = matches!(upper, Excluded(_)) && is_first;
                value(rest).checked_sub(u128::from(is_excluded))?
            }
        },
        Unbounded => u128::MAX,
    };
    let is_empty = match (lower, upper) {
        _ if meta.codes == 0 || first > last => true,
        (Included(lower), Included(upper)) => lower > upper,
        (Included(lower) | Excluded(lower), Included(upper) | Excluded(upper)) => lower >= upper,
        _ => false,
    };
    (!is_empty).then_some((first >> meta.dropped, last >> meta.dropped))
}
