//! The settings of filters.

/// The settings of an engine's range filters: bits per key, and the unit. Creates builders.
///
/// Both are checked when a filter is built.
///
/// ```
/// use std::ops::Bound::{Excluded, Included};
/// use blocked_bloom_range::RangeOptions;
/// // Keys are milliseconds. The filter tells spans of 65.5 s apart.
/// let mut builder = RangeOptions::new(16.0).with_unit(16).builder();
/// for time in [1_700_000_000_000, 1_700_000_400_000_u64] {
///     builder.insert(time)?;
/// }
/// let filter = builder.finish()?;
/// let hour = |start: u64| filter.contains_range(Included(start), Excluded(start + 3_600_000));
/// assert!(hour(1_700_000_000_000));
/// assert!(!hour(1_700_100_000_000));
/// # Ok::<(), blocked_bloom_range::RangeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeOptions {
    pub(crate) bits_per_key: f64,
    pub(crate) unit: u32,
}

impl RangeOptions {
    /// Creates options for filters of this size (4 to 32 bits per key), with a unit of one value.
    pub const fn new(bits_per_key: f64) -> Self {
        RangeOptions { bits_per_key, unit: 0 }
    }

    /// Returns the bits per key.
    pub fn bits_per_key(&self) -> f64 {
        self.bits_per_key
    }

    /// Sets the unit: the filter ignores this many low bits of keys and bounds (0 to 127). The keys
    /// of a unit count as one, in the size of the filter too.
    ///
    /// The false-positive rate grows with the length of a range in units, so that this option
    /// decides whether long ranges can be answered. Choose it so that typical ranges have 1 to 64
    /// units. For byte strings, the bits are counted from the end of the longest key, and all keys
    /// should have the same length.
    #[must_use]
    pub const fn with_unit(self, bits: u32) -> Self {
        RangeOptions { unit: bits, ..self }
    }
}
