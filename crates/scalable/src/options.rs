//! The settings of a growing filter: rate, first size, growth and hash.

use blocked_bloom::{FilterOptions, KeyHash, ParamsError, Sizing};

use crate::error::ScalableError;

/// The settings of a growing filter.
///
/// ```
/// use blocked_bloom_scalable::ScalableOptions;
/// let mut filter = ScalableOptions::new(0.01, 100).with_growth(4).build()?;
/// for key in 0..2_000_u32 {
///     filter.insert(key.to_le_bytes())?;
/// }
/// assert_eq!(filter.links().len(), 3); // for 100, 400 and 1600 keys
/// # Ok::<(), blocked_bloom_scalable::ScalableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct ScalableOptions {
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) key_hash: KeyHash,
    /// Above 0, up to 1.
    pub(crate) rate: f64,
    /// 0.05 to 0.95.
    #[cfg_attr(feature = "serde", serde(default = "tightening"))]
    pub(crate) tightening: f64,
    /// 2 to 16.
    #[cfg_attr(feature = "serde", serde(default = "growth"))]
    pub(crate) growth: u32,
    /// Number of keys that the last link is sized for; without links, the first. At least 1.
    pub(crate) items: u64,
}

const fn tightening() -> f64 {
    0.85
}

const fn growth() -> u32 {
    2
}

impl ScalableOptions {
    /// Creates options for filters whose rate never exceeds `false_positive_rate` (above 0, below
    /// 1), and whose first link is sized for `first_items` keys (0 counts as 1). Keys are hashed
    /// with XXH3-64 and seed 0.
    ///
    /// A low estimate of `first_items` costs links and memory, a high one the memory of the first
    /// link.
    pub fn new(false_positive_rate: f64, first_items: u64) -> Self {
        ScalableOptions {
            key_hash: KeyHash::default(),
            rate: false_positive_rate,
            tightening: tightening(),
            growth: growth(),
            items: first_items.max(1),
        }
    }

    /// Creates options with the hash and seed of other filters, so that a key is hashed once for
    /// all of them. The rate is that of [`Sizing::FalsePositiveRate`], or for another sizing the
    /// rate of a filter of `first_items` keys. Probes, prefix rule and memory limit are ignored.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if the sizing is out of range.
    ///
    /// ```
    /// use blocked_bloom::{Filter, FilterOptions, KeyHash, Sizing};
    /// use blocked_bloom_scalable::ScalableOptions;
    /// let key_hash = KeyHash::Xxh3 { seed: 7 };
    /// let options = FilterOptions::new(Sizing::FalsePositiveRate(0.01)).with_key_hash(key_hash);
    /// let filter = ScalableOptions::for_filters(&options, 100)?.build()?;
    /// assert_eq!((filter.key_hash(), filter.false_positive_rate()), (options.key_hash(), 0.01));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_filters(options: &FilterOptions, first_items: u64) -> Result<Self, ParamsError> {
        let rate = match options.sizing() {
            Sizing::FalsePositiveRate(rate) => rate,
            _ => options.params(first_items.max(1))?.false_positive_rate(),
        };
        Ok(Self::new(rate, first_items).with_key_hash(options.key_hash()))
    }

    /// Sets the hash: another seed, or caller-supplied hashes.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        ScalableOptions { key_hash, ..self }
    }

    /// Sets the growth factor, the size of each link relative to the one before: 2 to 16, by
    /// default 2.
    ///
    /// With 4, a lookup reads half as many links, and up to 3/4 of the memory is unused instead of
    /// 1/2.
    #[must_use]
    pub fn with_growth(self, growth: u32) -> Self {
        ScalableOptions { growth, ..self }
    }

    /// Sets the fraction of the remaining rate that each link leaves to later links: 0.05 to 0.95,
    /// by default 0.85.
    ///
    /// A lower ratio makes the first links smaller and later ones larger: 0.5 needs less memory for
    /// up to four links, 0.9 for ten or more.
    #[must_use]
    pub fn with_tightening(self, tightening: f64) -> Self {
        ScalableOptions { tightening, ..self }
    }

    /// Returns the options if every number is in range.
    pub(crate) fn checked(self) -> Result<Self, ScalableError> {
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(ParamsError::RateOutOfRange { rate: self.rate }.into());
        }
        if !(2..=16).contains(&self.growth) {
            return Err(ScalableError::GrowthOutOfRange { growth: self.growth });
        }
        if !(0.05..=0.95).contains(&self.tightening) {
            return Err(ScalableError::TighteningOutOfRange { tightening: self.tightening });
        }
        Ok(ScalableOptions { items: self.items.max(1), ..self })
    }
}
