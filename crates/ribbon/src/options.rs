//! The settings of a sharded filter. Creates builders.

use blocked_bloom::{FilterOptions, KeyError, KeyHash, KeyHasher, Sizing};

use crate::error::RibbonError;
use crate::sizing;

/// The settings of an engine's Ribbon filters: rate, hash and huge pages. Creates builders.
///
/// If the engine also has Bloom filters, create it from their [`FilterOptions`] with
/// [`for_filters`](Self::for_filters): both kinds then share hash and seed, so that each key is
/// hashed once. The rate is that of the sizing. It is checked when a filter is built.
///
/// ```
/// use blocked_bloom::{Filter, FilterOptions, KeyHash, Sizing};
/// use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};
/// let key_hash = KeyHash::Xxh3 { seed: 7 };
/// let filters = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(key_hash);
/// let options = RibbonOptions::for_filters(&filters);
/// assert!((0.0096..0.0097).contains(&options.false_positive_rate()));
///
/// let mut builder = options.builder();
/// builder.extend(["apple", "banana"])?;
/// let stored = builder.finish()?.as_bytes().to_vec();
///
/// let filter = RibbonFilter::from_bytes(stored, filters.key_hash())?;
/// assert!(filter.contains_hash(filters.hasher()?.hash("apple")));
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RibbonOptions {
    rate: f64,
    key_hash: KeyHash,
    /// Whether large filters are advised to use huge pages.
    pub(crate) huge_pages: bool,
}

impl RibbonOptions {
    /// Creates options for filters that let this fraction of absent keys pass (2^-32 to 0.5). Keys
    /// are hashed with XXH3-64 and seed 0. For another hash, use
    /// [`for_filters`](Self::for_filters).
    pub const fn new(false_positive_rate: f64) -> Self {
        let key_hash = KeyHash::Xxh3 { seed: 0 };
        RibbonOptions { rate: false_positive_rate, key_hash, huge_pages: true }
    }

    /// Creates options with the hash, seed and huge-page setting of other filters.
    ///
    /// The rate follows from the sizing: [`Sizing::FalsePositiveRate`] is used directly, and bits
    /// per key are converted to the rate of a Bloom filter of a million keys. A size in bytes has
    /// no rate that is independent of the number of keys. With such a sizing, or one out of range,
    /// finishing a builder returns [`RibbonError::Rate`]; set another sizing with
    /// [`FilterOptions::with_sizing`].
    ///
    /// Caller-supplied hashes must be well mixed in all 64 bits.
    ///
    /// Prefix rules are ignored: the filters contain whole keys. A Ribbon filter has no lookup for
    /// scans, which must read the table.
    pub fn for_filters(options: &FilterOptions) -> Self {
        let rate = match options.sizing() {
            Sizing::FalsePositiveRate(rate) => rate,
            Sizing::BitsPerKey(_) => {
                options.params(1_000_000).map_or(f64::NAN, |params| params.false_positive_rate())
            }
            _ => f64::NAN,
        };
        RibbonOptions { rate, key_hash: options.key_hash(), huge_pages: options.huge_pages() }
    }

    /// Returns the target rate of the filters.
    pub fn false_positive_rate(&self) -> f64 {
        self.rate
    }

    /// Returns the hash and seed of the keys.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// Returns the hasher of the keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] for caller-supplied hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// Returns the stored size of a filter of this many keys. The estimate is accurate to 0.1 % for
    /// 100,000 keys or more; the exact size depends on how the hashes fall into shards.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Rate`] and [`TooManyKeys`](RibbonError::TooManyKeys).
    ///
    /// ```
    /// # use blocked_bloom_ribbon::RibbonOptions;
    /// let bytes = RibbonOptions::new(0.01).estimated_bytes(1_000_000)?;
    /// assert!((890_000..900_000).contains(&bytes));
    /// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
    /// ```
    pub fn estimated_bytes(&self, keys: u64) -> Result<u64, RibbonError> {
        sizing::estimated_bytes(self.rate, keys)
    }

    /// Returns the lowest rate at which a filter of this many keys takes at most this many bytes,
    /// as estimated by [`estimated_bytes`](Self::estimated_bytes). Returns `None` if the bytes do
    /// not suffice for a rate of 1/2, or if the keys are too many for a filter.
    ///
    /// Cost: about 60 estimates.
    ///
    /// ```
    /// # use blocked_bloom_ribbon::RibbonOptions;
    /// let keys = 1_000_000;
    /// let rate = RibbonOptions::lowest_rate(keys, keys * 10 / 8).unwrap(); // 10 bits per key
    /// assert!((0.001_5..0.001_7).contains(&rate));
    /// assert!(RibbonOptions::new(rate).estimated_bytes(keys)? <= keys * 10 / 8);
    /// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
    /// ```
    pub fn lowest_rate(keys: u64, bytes: u64) -> Option<f64> {
        sizing::lowest_rate(keys, bytes)
    }
}

impl Default for RibbonOptions {
    /// Returns options with a rate of 1 %.
    fn default() -> Self {
        RibbonOptions::new(0.01)
    }
}
