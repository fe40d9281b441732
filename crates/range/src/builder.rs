//! Collects sorted keys and builds a filter.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use crate::error::RangeError;
use crate::filter::RangeFilter;
use crate::format::Meta;
use crate::key::{RangeKey, VALUE_BYTES, value};
use crate::options::RangeOptions;
use crate::space::Space;

impl RangeOptions {
    /// Creates a builder.
    pub fn builder(&self) -> RangeFilterBuilder {
        RangeFilterBuilder {
            options: *self,
            first: Vec::new(),
            last: Vec::new(),
            lengths: [usize::MAX, 0],
            values: Vec::new(),
            prefixes: Vec::new(),
            keys: 0,
        }
    }
}

/// Collects the keys of a table in byte order, and builds its filter. Takes 16 bytes of memory per
/// key, and 24 while it finishes.
///
/// ```
/// use blocked_bloom_range::RangeOptions;
/// let mut builder = RangeOptions::new(16.0).builder();
/// builder.insert(&b"apple"[..])?;
/// builder.insert(&b"banana"[..])?;
/// assert!(builder.finish()?.contains(&b"apple"[..]));
/// # Ok::<(), blocked_bloom_range::RangeError>(())
/// ```
#[derive(Debug)]
pub struct RangeFilterBuilder {
    options: RangeOptions,
    first: Vec<u8>,
    last: Vec<u8>,
    /// Lengths of the shortest and the longest key.
    lengths: [usize; 2],
    /// The value of each key, without its first bytes.
    values: Vec<u128>,
    /// The number of values up to which keys lack this many bytes, which all of them share.
    prefixes: Vec<(usize, usize)>,
    keys: u64,
}

impl RangeFilterBuilder {
    /// Adds a key, which must not be less than the previous one. Equal keys count once.
    ///
    /// # Errors
    ///
    /// [`RangeError::Unsorted`] and [`Alloc`](RangeError::Alloc). The key is not added.
    pub fn insert(&mut self, key: impl RangeKey) -> Result<(), RangeError> {
        let key = key.to_key();
        let key = key.as_ref();
        if self.keys == 0 {
            copy(&mut self.first, key)?;
        } else if key <= self.last.as_slice() {
            let error = RangeError::Unsorted { position: self.keys };
            return if key == self.last { Ok(()) } else { Err(error) };
        }
        let error = AllocError::new(16 * (self.values.len() as u64 + 1));
        self.values.try_reserve(1).map_err(|_| error)?;
        copy(&mut self.last, key)?;
        let shared = self.prefixes.last().map_or(key.len(), |&(_, length)| length);
        let length = match key.starts_with(&self.first[..shared]) {
            true => shared,
            false => self.first.iter().zip(key).take_while(|(a, b)| a == b).count(),
        };
        self.lengths = [self.lengths[0].min(key.len()), self.lengths[1].max(key.len())];
        self.values.push(value(&key[length..]));
        match self.prefixes.last_mut() {
            Some((end, same)) if *same == length => *end = self.values.len(),
            _ => self.prefixes.push((self.values.len(), length)),
        }
        self.keys += 1;
        Ok(())
    }

    /// Returns the number of distinct keys added so far.
    pub fn keys_inserted(&self) -> u64 {
        self.keys
    }

    /// Builds the filter. Equal options and keys result in equal bytes on every machine.
    ///
    /// # Errors
    ///
    /// [`RangeError::BitsPerKey`], [`Unit`](RangeError::Unit),
    /// [`TooManyKeys`](RangeError::TooManyKeys) and [`Alloc`](RangeError::Alloc).
    pub fn finish(mut self) -> Result<RangeFilter, RangeError> {
        let RangeOptions { bits_per_key, unit } = self.options;
        if !(4.0..=32.0).contains(&bits_per_key) {
            return Err(RangeError::BitsPerKey { bits_per_key });
        }
        if unit > 127 {
            return Err(RangeError::Unit { bits: unit });
        }
        // Keys of 16 bytes or less fit a value with their prefix.
        let prefix = match self.prefixes.last() {
            Some(&(_, length)) if self.lengths[1] > VALUE_BYTES => {
                length.min(usize::from(u16::MAX))
            }
            _ => 0,
        };
        let [shortest, longest] = self.lengths.map(|length| length.saturating_sub(prefix));
        let cut = 8 * longest.saturating_sub(VALUE_BYTES);
        let unused = 128 - 8 * longest.min(VALUE_BYTES) as u32;
        let dropped = unused + unit.saturating_sub(u32::try_from(cut).unwrap_or(u32::MAX));
        let dropped = dropped.min(127);
        let mut start = 0;
        for &(end, length) in &self.prefixes {
            let shared = &self.first[prefix.min(length)..length];
            let shift = 8 * shared.len().min(VALUE_BYTES) as u32;
            for stored in &mut self.values[start..end] {
                *stored = (value(shared) | stored.checked_shr(shift).unwrap_or(0)) >> dropped;
            }
            start = end;
        }
        self.values.dedup();
        let units = self.values.len();
        if u32::try_from(units).is_err() {
            let limit = u64::from(u32::MAX);
            return Err(RangeError::TooManyKeys { units: units as u64, limit });
        }
        let (space, low_bits) = Space::new(units, bits_per_key);
        let mut codes = Vec::new();
        codes.try_reserve_exact(units).map_err(|_| AllocError::new(8 * units as u64))?;
        codes.extend(self.values.iter().map(|&unit| space.code(unit)));
        drop(self.values);
        codes.sort_unstable();
        codes.dedup();
        let meta = Meta {
            space,
            low_bits,
            dropped,
            shortest: shortest.min(longest).min(VALUE_BYTES),
            longest: longest.min(VALUE_BYTES + 1),
            codes: codes.len() as u32,
            prefix: prefix as u32,
            keys: self.keys,
        };
        let mut bytes = Vec::new();
        let length = meta.stored_bytes();
        let error = AllocError::new(length);
        let length = usize::try_from(length).map_err(|_| error)?;
        bytes.try_reserve_exact(length).map_err(|_| error)?;
        bytes.resize(length, 0);
        meta.write(&codes, &self.first[..prefix], &mut bytes);
        Ok(RangeFilter::from_verified(bytes, meta))
    }
}

/// Replaces a string by another one.
fn copy(string: &mut Vec<u8>, bytes: &[u8]) -> Result<(), AllocError> {
    string.clear();
    string.try_reserve(bytes.len()).map_err(|_| AllocError::new(bytes.len() as u64))?;
    string.extend_from_slice(bytes);
    Ok(())
}
