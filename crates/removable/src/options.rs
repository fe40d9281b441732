//! What a filter is to be: for how many keys, with how much slack, of which hash.

use core::ops::RangeInclusive;

use blocked_bloom::KeyHash;

use crate::error::RemovableError;
use crate::filter::RemovableFilter;
use crate::tags::LANES;

/// Lanes left empty by default: four of 32.
const SLACK: f64 = 0.125;

/// The most lanes that may be left empty: beyond, bits are only wasted.
const MOST_SLACK: f64 = 0.9;

/// So few lines get one more: lines differ by chance, and with few of them keys have little choice. Without it, one in 120 filters of two
/// lines and one in 2,700 of ten rejected a key before all for which they were made were in; with it, none of 350,000.
const FEW_LINES: RangeInclusive<u32> = 2..=32;

/// What a filter is to be. A plain value; [`empty_filter`](Self::empty_filter) makes a filter of it, and
/// [`RemovableFilter::from_hashes`] one that holds keys.
///
/// ```
/// use blocked_bloom::KeyHash;
/// use blocked_bloom_removable::RemovableOptions;
/// let options = RemovableOptions::new(1_000_000).with_key_hash(KeyHash::Xxh3 { seed: 7 });
/// let filter = options.empty_filter()?;
/// assert_eq!(filter.memory_bytes(), 2_285_760); // 18.29 bits per key
/// # Ok::<(), blocked_bloom_removable::RemovableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemovableOptions {
    keys: u64,
    slack: f64,
    key_hash: KeyHash,
    huge_pages: bool,
}

impl RemovableOptions {
    /// Filters that hold up to `keys` keys at a time (0 counts as 1), copies included, at 18.29 bits per key: an eighth of the lanes stays
    /// empty. Keys are hashed with XXH3-64 and seed 0.
    pub fn new(keys: u64) -> Self {
        RemovableOptions {
            keys: keys.max(1),
            slack: SLACK,
            key_hash: KeyHash::default(),
            huge_pages: true,
        }
    }

    /// For so many keys instead; the rest stays. For the next larger filter.
    #[must_use]
    pub fn with_keys(self, keys: u64) -> Self {
        RemovableOptions { keys: keys.max(1), ..self }
    }

    /// Sets the fraction of lanes that stay empty with all keys in: 0.125 by default, 0 to 0.9.
    ///
    /// With 0 a filter has exactly as many lines as hold the keys; otherwise filters of 2 to 32 lines get one more.
    ///
    /// With less than 0.1 keys are rejected before all are in ([`RemovableError::Full`]); more makes that rarer still and the
    /// false-positive rate lower, and costs memory in proportion. docs/removable.md has the figures.
    #[must_use]
    pub fn with_slack(self, slack: f64) -> Self {
        RemovableOptions { slack, ..self }
    }

    /// Hashes keys with another seed, or leaves hashing to the caller, whose hashes must be well mixed in all of their 64 bits.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        RemovableOptions { key_hash, ..self }
    }

    /// Whether the memory of large filters is advised to be on huge pages, as it is by default.
    #[must_use]
    pub fn with_huge_pages(self, huge_pages: bool) -> Self {
        RemovableOptions { huge_pages, ..self }
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

    pub(crate) fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// An empty filter.
    ///
    /// # Errors
    ///
    /// [`RemovableError::SlackOutOfRange`]; [`RemovableError::KeysOutOfRange`] for more than 2^32 - 1 lines; [`RemovableError::Alloc`].
    pub fn empty_filter(&self) -> Result<RemovableFilter, RemovableError> {
        RemovableFilter::empty(self)
    }

    /// Lines of a filter: 1 to 2^32 - 1.
    pub(crate) fn lines(&self) -> Result<u32, RemovableError> {
        let RemovableOptions { keys, slack, .. } = *self;
        if !(0.0..=MOST_SLACK).contains(&slack) {
            return Err(RemovableError::SlackOutOfRange { slack });
        }
        let taken = LANES as f64 * (1.0 - slack);
        let most = (f64::from(u32::MAX) * taken) as u64;
        if keys > most {
            return Err(RemovableError::KeysOutOfRange { keys, most });
        }
        // Below 2^38: exact as a double. Conversion saturates.
        let lines = (libm::ceil(keys as f64 / taken) as u32).max(1);
        Ok(if slack > 0.0 && FEW_LINES.contains(&lines) { lines + 1 } else { lines })
    }
}
