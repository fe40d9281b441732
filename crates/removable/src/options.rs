//! What a filter is to be: for how many keys, with how much slack, of which hash.

use core::ops::RangeInclusive;

use blocked_bloom::parts::HEADER_BYTES;
use blocked_bloom::{Block, FilterOptions, KeyError, KeyHash, KeyHasher};

use crate::error::RemovableError;
use crate::tags::{self, LANES};

/// Lanes left empty by default: four of 32.
const SLACK: f64 = 0.125;

/// The most lanes that may be left empty: beyond, bits are only wasted.
const MAX_SLACK: f64 = 0.9;

/// Filters of this many lines get one more: lines fill unevenly, and with few of them keys have
/// little choice. Without it, one in 120 filters of two lines and one in 2,700 of ten rejected a
/// key before they held as many as they were made for; with it, none of 350,000.
const SMALL_LINES: RangeInclusive<u32> = 2..=32;

/// What a filter is to be. A plain value; [`empty_filter`](Self::empty_filter) makes a filter of
/// it, and [`RemovableFilter::from_hashes`](crate::RemovableFilter::from_hashes) one that holds
/// keys.
///
/// ```
/// use blocked_bloom::{Filter, FilterOptions, KeyHash};
/// use blocked_bloom_removable::RemovableOptions;
/// // The hash of everything in a store is decided in one place.
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
    /// Filters that hold up to `keys` keys at a time (0 counts as 1), copies included, at 18.29
    /// bits per key: an eighth of the lanes stays empty. Keys are hashed with XXH3-64 and seed 0;
    /// the memory of large filters is advised to be on huge pages.
    pub fn new(keys: u64) -> Self {
        RemovableOptions::for_filters(&FilterOptions::default(), keys)
    }

    /// [`new`](Self::new), with the hash and seed that an engine's filters have, and huge pages if
    /// these are advised to be on them: so that both are decided once. Prefixes are not taken: the
    /// filters hold whole keys.
    pub fn for_filters(filters: &FilterOptions, keys: u64) -> Self {
        RemovableOptions {
            keys: keys.max(1),
            slack: SLACK,
            key_hash: filters.key_hash(),
            huge_pages: filters.huge_pages(),
        }
    }

    /// The same options for this many keys, such as those of the next larger filter.
    #[must_use]
    pub fn with_keys(self, keys: u64) -> Self {
        RemovableOptions { keys: keys.max(1), ..self }
    }

    /// Sets the fraction of lanes that stay empty with all keys in: 0.125 by default, 0 to 0.9.
    ///
    /// With 0 a filter has exactly as many lines as hold the keys; otherwise filters of 2 to 32
    /// lines get one more.
    ///
    /// With less than 0.1 keys are rejected before all are in ([`RemovableError::Full`]); more
    /// slack makes that rarer and the false-positive rate lower, and costs memory in proportion.
    /// docs/removable.md has the figures.
    #[must_use]
    pub fn with_slack(self, slack: f64) -> Self {
        RemovableOptions { slack, ..self }
    }

    /// Sets the hash, such as that of a stored filter. A caller's hashes must be well mixed in all
    /// of their 64 bits.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        RemovableOptions { key_hash, ..self }
    }

    /// The keys that a filter is for.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The fraction of lanes that stay empty with all keys in.
    pub fn slack(&self) -> f64 {
        self.slack
    }

    /// The hash of the keys.
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

    /// Bytes of a stored filter: 64 of header and the lines.
    ///
    /// # Errors
    ///
    /// [`RemovableError::SlackOutOfRange`], and [`RemovableError::KeysOutOfRange`] for more keys
    /// than 2^32 - 1 lines hold.
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

    /// The fraction of absent keys that pass with all keys in, 0 to 1: what
    /// [`RemovableFilter::expected_false_positive_rate`](crate::RemovableFilter::expected_false_positive_rate)
    /// then gives.
    ///
    /// # Errors
    ///
    /// As [`stored_bytes`](Self::stored_bytes).
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

    /// Lines of a filter: 1 to 2^32 - 1.
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
        // Below 2^38: exact as a double. Conversion saturates.
        let lines = (libm::ceil(keys as f64 / taken) as u32).max(1);
        Ok(if slack > 0.0 && SMALL_LINES.contains(&lines) { lines + 1 } else { lines })
    }
}
