//! The settings of a filter: number of keys, slack and hash.

use core::ops::RangeInclusive;

use blocked_bloom::parts::HEADER_BYTES;
use blocked_bloom::{Block, FilterOptions, KeyError, KeyHash, KeyHasher};

use crate::error::RemovableError;
use crate::tags::{self, LANES};

/// Default fraction of empty lanes: four of 32.
const SLACK: f64 = 0.125;

/// Maximum fraction of empty lanes. More would only waste memory.
const MAX_SLACK: f64 = 0.9;

/// Filters of this many lines get one more line: lines fill unevenly, and with few lines, keys have
/// few alternatives. Without the extra line, 1 in 120 filters of two lines and 1 in 2,700 of ten
/// lines rejected a key before reaching their number of keys. With it, none of 350,000 did.
const SMALL_LINES: RangeInclusive<u32> = 2..=32;

/// The settings of a filter. [`empty_filter`](Self::empty_filter) creates an empty filter, and
/// [`RemovableFilter::from_hashes`](crate::RemovableFilter::from_hashes) one that contains keys.
///
/// ```
/// use blocked_bloom::{Filter, FilterOptions, KeyHash};
/// use blocked_bloom_removable::RemovableOptions;
/// // The hash of every filter in a store is chosen once.
/// let store = FilterOptions::default().with_key_hash(KeyHash::Xxh3 { seed: 42 });
/// let options = RemovableOptions::for_filters(&store, 1_000_000);
/// let filter = options.empty_filter()?;
/// assert_eq!(filter.key_hash(), store.key_hash());
/// assert_eq!(filter.memory_bytes(), 2_285_760); // 18.29 bits per key
/// # Ok::<(), blocked_bloom_removable::RemovableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemovableOptions {
    keys: u64,
    slack: f64,
    key_hash: KeyHash,
    pub(crate) huge_pages: bool,
}

impl RemovableOptions {
    /// Creates options for filters of up to `keys` keys, including copies (0 counts as 1), at 18.29
    /// bits per key: 1/8 of the lanes stays empty. Keys are hashed with XXH3-64 and seed 0. Large
    /// filters are advised to use huge pages.
    pub fn new(keys: u64) -> Self {
        RemovableOptions::for_filters(&FilterOptions::default(), keys)
    }

    /// Creates options ([`new`](Self::new)) with the hash, seed and huge-page setting of an
    /// engine's filters. Prefix rules are ignored: the filters contain whole keys.
    pub fn for_filters(filters: &FilterOptions, keys: u64) -> Self {
        RemovableOptions {
            keys: keys.max(1),
            slack: SLACK,
            key_hash: filters.key_hash(),
            huge_pages: filters.huge_pages(),
        }
    }

    /// Returns the same options for this many keys, for example for a larger filter.
    #[must_use]
    pub fn with_keys(self, keys: u64) -> Self {
        RemovableOptions { keys: keys.max(1), ..self }
    }

    /// Sets the fraction of lanes that stay empty when all keys are present: 0 to 0.9, by default
    /// 0.125.
    ///
    /// With 0, a filter has exactly as many lines as the keys need. Otherwise filters of 2 to 32
    /// lines get one more.
    ///
    /// Below 0.1, keys are rejected before all are inserted ([`RemovableError::Full`]). More slack
    /// makes rejections rarer and the false-positive rate lower, and costs memory in proportion.
    /// docs/removable.md has the figures.
    #[must_use]
    pub fn with_slack(self, slack: f64) -> Self {
        RemovableOptions { slack, ..self }
    }

    /// Sets the hash, for example the hash of a stored filter. Caller-supplied hashes must be well
    /// mixed in all 64 bits.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        RemovableOptions { key_hash, ..self }
    }

    /// Returns the number of keys that a filter is sized for.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns the fraction of lanes that stay empty when all keys are present.
    pub fn slack(&self) -> f64 {
        self.slack
    }

    /// Returns the hash of the keys.
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

    /// Returns the size of a stored filter: a header of 64 bytes, and the lines.
    ///
    /// # Errors
    ///
    /// [`RemovableError::SlackOutOfRange`]; [`RemovableError::KeysOutOfRange`] if 2^32 - 1 lines
    /// are not enough.
    ///
    /// ```
    /// use blocked_bloom_removable::RemovableOptions;
    /// let options = RemovableOptions::new(1_000_000);
    /// assert_eq!(options.stored_bytes()?, 64 + 2_285_760);
    /// assert_eq!(options.stored_bytes()?, options.empty_filter()?.to_bytes().len() as u64);
    /// # Ok::<(), blocked_bloom_removable::RemovableError>(())
    /// ```
    pub fn stored_bytes(&self) -> Result<u64, RemovableError> {
        Ok(HEADER_BYTES as u64 + size_of::<Block>() as u64 * u64::from(self.lines()?))
    }

    /// Returns the expected fraction of absent keys that pass when all keys are present, 0 to 1.
    /// Equals
    /// [`RemovableFilter::expected_false_positive_rate`](crate::RemovableFilter::expected_false_positive_rate)
    /// of the full filter.
    ///
    /// # Errors
    ///
    /// The errors of [`stored_bytes`](Self::stored_bytes).
    ///
    /// ```
    /// # use blocked_bloom_removable::RemovableOptions;
    /// let rate = RemovableOptions::new(1_000_000).expected_false_positive_rate()?;
    /// assert!((0.000_85..0.000_86).contains(&rate));
    /// # Ok::<(), blocked_bloom_removable::RemovableError>(())
    /// ```
    pub fn expected_false_positive_rate(&self) -> Result<f64, RemovableError> {
        let lanes = LANES as f64 * f64::from(self.lines()?);
        Ok(tags::false_positive_rate(self.keys as f64 / lanes))
    }

    /// Returns the number of lines of a filter: 1 to 2^32 - 1.
    pub(crate) fn lines(&self) -> Result<u32, RemovableError> {
        let RemovableOptions { keys, slack, .. } = *self;
        if !(0.0..=MAX_SLACK).contains(&slack) {
            return Err(RemovableError::SlackOutOfRange { slack });
        }
        let taken = LANES as f64 * (1.0 - slack);
        let most = (f64::from(u32::MAX) * taken) as u64;
        if keys > most {
            return Err(RemovableError::KeysOutOfRange { keys, most });
        }
        // Below 2^38, so exact as a double. The conversion saturates.
        let lines = (libm::ceil(keys as f64 / taken) as u32).max(1);
        Ok(if slack > 0.0 && SMALL_LINES.contains(&lines) { lines + 1 } else { lines })
    }
}
