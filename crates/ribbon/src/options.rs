//! What a sharded filter is to be: a plain value that makes builders.

use blocked_bloom::{FilterOptions, KeyError, KeyHash, KeyHasher, Sizing};

use crate::error::RibbonError;
use crate::sizing;

/// What an engine decides once about its Ribbon filters. Every builder is made of one, and whoever
/// opens the filters takes the hash from it.
///
/// An engine that has filters of both kinds makes it from the [`FilterOptions`] of the others, by
/// [`for_filters`](Self::for_filters): of the same hash and seed, so that hashes serve both, with
/// the rate of their sizing. The rate is checked when a filter is made.
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
    huge_pages: bool,
}

impl RibbonOptions {
    /// Filters that let this fraction of absent keys pass, 2^-32 to 0.5, of keys hashed with
    /// XXH3-64 and seed 0. For any other hash, make the options from [`FilterOptions`].
    pub const fn new(false_positive_rate: f64) -> Self {
        let key_hash = KeyHash::Xxh3 { seed: 0 };
        RibbonOptions { rate: false_positive_rate, key_hash, huge_pages: true }
    }

    /// Filters of whole keys beside those of `options`: of the same hash and seed, and on huge
    /// pages if those are.
    ///
    /// The rate follows from the sizing: [`Sizing::FalsePositiveRate`] is taken as it is, and bits
    /// per key give the rate of a Bloom filter of a million keys. A size in bytes gives no rate
    /// that is independent of the keys, nor does a sizing out of range: then finishing a builder is
    /// [`RibbonError::Rate`], and [`FilterOptions::with_sizing`] sets another sizing.
    ///
    /// All 64 bits of a caller's hashes must be well mixed.
    ///
    /// Prefixes are not taken: the filters hold whole keys, also if `options` add prefixes, or
    /// prefixes alone. A Ribbon filter has no lookup for a scan, which must read the table.
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

    /// The rate that filters are made for.
    pub fn false_positive_rate(&self) -> f64 {
        self.rate
    }

    /// The hash and seed of the keys.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The hasher of the keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// Whether large filters are advised to be on huge pages.
    pub(crate) fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// Bytes of a stored filter of this many keys, to within one in a thousand from 100,000 keys
    /// on: hashes fall into shards by chance, so that the shards' rounding differs.
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

    /// The lowest rate of a filter of this many keys in at most this many bytes, as
    /// [`estimated_bytes`](Self::estimated_bytes) counts them. `None` if they are too few for a
    /// rate of one half, and for more keys than a filter can hold.
    ///
    /// Cost: some 60 estimates.
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
    /// One absent key in a hundred passes.
    fn default() -> Self {
        RibbonOptions::new(0.01)
    }
}
