//! The settings of filters: size, hash and contents. `make.rs` creates builders and empty filters
//! from them.

use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::params::{Params, ParamsError, Sizing, partition_point, stored_bytes};
use crate::prefix::{FilterContents, PrefixExtractor};

/// The settings of an engine's filters. Builders are created from them, and code that opens filters
/// takes the hash from them, so that each setting is written in one place.
///
/// With the feature `serde`, unknown fields and a missing `key_hash` are errors. Other missing
/// fields have the defaults of [`new`](Self::new), and `sizing` has that of `default()`.
///
/// Values are checked when a filter is created:
/// [`finish`](crate::BloomFilterBuilder::finish) returns an error if one is out of range.
///
/// ```
/// use blocked_bloom::{FilterOptions, KeyHash, Sizing};
/// let seeded = KeyHash::Xxh3 { seed: 42 };
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(seeded);
/// let filter = options.builder().finish()?;
/// assert_eq!(filter.key_hash(), options.key_hash());
/// # Ok::<(), blocked_bloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[must_use]
pub struct FilterOptions {
    #[cfg_attr(feature = "serde", serde(default = "default_sizing"))]
    sizing: Sizing,
    probes: Option<u32>,
    #[cfg_attr(feature = "serde", serde(default))]
    foldable: bool,
    /// Has no default: with another hash than the writer's, lookups would return "absent".
    key_hash: KeyHash,
    prefixes: Option<PrefixExtractor>,
    #[cfg_attr(feature = "serde", serde(default = "default_true"))]
    whole_keys: bool,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) expected_items: Option<u64>,
    #[cfg_attr(feature = "serde", serde(default = "default_true"))]
    huge_pages: bool,
}

#[cfg(feature = "serde")]
fn default_sizing() -> Sizing {
    FilterOptions::default().sizing
}

#[cfg(feature = "serde")]
fn default_true() -> bool {
    true
}

impl Default for FilterOptions {
    /// Ten bits per key: a false-positive rate of 1 %.
    fn default() -> Self {
        FilterOptions::new(Sizing::BitsPerKey(10.0))
    }
}

impl FilterOptions {
    /// Creates settings for filters of whole keys, hashed with XXH3-64 and seed 0.
    pub const fn new(sizing: Sizing) -> Self {
        FilterOptions {
            sizing,
            probes: None,
            foldable: false,
            key_hash: KeyHash::Xxh3 { seed: 0 },
            prefixes: None,
            whole_keys: true,
            memory_limit: None,
            expected_items: None,
            huge_pages: true,
        }
    }

    /// Sets the sizing, for engines that size filters by level.
    pub fn with_sizing(self, sizing: Sizing) -> Self {
        FilterOptions { sizing, ..self }
    }

    /// Sets the hash: another seed, or caller-supplied hashes.
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        FilterOptions { key_hash, ..self }
    }

    /// Sets the number of probes, 1 to 30. By default, the sizing determines it.
    pub fn with_probes(self, probes: u32) -> Self {
        FilterOptions { probes: Some(probes), ..self }
    }

    /// Rounds the number of blocks to one with many divisors, for at most 1.6 % more memory; see
    /// [`Sizing::foldable_params`].
    ///
    /// Also uses fewer probes if that lowers the rate of the filter folded by two. The rate of the
    /// whole filter then rises by at most a quarter of itself and at most 0.0002, and never above a
    /// rate given as the sizing. With 16 bits per key there are 7 probes instead of 9: the rate is
    /// 0.100 % instead of 0.084 %, and 2.55 % instead of 3.33 % after a fold by two. The guide on
    /// resident filters (`docs/resident.md`) has a table.
    pub fn foldable(self) -> Self {
        FilterOptions { foldable: true, ..self }
    }

    /// Also inserts the prefix of every key by this rule, so that the filter can rule out scans
    /// ([`BloomFilter::contains_prefix`](crate::BloomFilter::contains_prefix)). A prefix that
    /// equals its predecessor is dropped, so each prefix of a sorted run is inserted once.
    ///
    /// The filter is sized for the keys and prefixes together.
    pub fn with_prefixes(self, extractor: PrefixExtractor) -> Self {
        FilterOptions { prefixes: Some(extractor), whole_keys: true, ..self }
    }

    /// Inserts only the prefixes of keys; see [`with_prefixes`](Self::with_prefixes). The filter is
    /// smaller and answers "maybe" for every key.
    pub fn with_only_prefixes(self, extractor: PrefixExtractor) -> Self {
        FilterOptions { prefixes: Some(extractor), whole_keys: false, ..self }
    }

    /// Limits the memory of a builder's list of hashes, in bytes. There is no limit by default.
    ///
    /// If the number of [expected items](Self::with_expected_items) is set, a builder that reaches
    /// the limit creates the filter for that number, or for the number of keys so far if that is
    /// larger. Later keys are inserted into the filter directly. With more keys than expected,
    /// the rate is higher than the sizing says; `params()` of the finished filter has the rate. If
    /// more than half of the absent keys pass, and a quarter more than with the expected number,
    /// [`finish`](crate::BloomFilterBuilder::finish) returns
    /// [`BuildError::MemoryLimit`](crate::BuildError::MemoryLimit) and the number of keys. Without
    /// expected items the list is freed, keys are only counted, and `finish` fails in the same way.
    ///
    /// The limit is checked at each insertion. `par_extend` checks it after it has collected all
    /// keys of its iterator, so pass the keys in several parts.
    pub fn with_memory_limit(self, bytes: u64) -> Self {
        FilterOptions { memory_limit: Some(bytes), ..self }
    }

    /// Sets the expected number of keys and prefixes. It is used only if the [memory
    /// limit](Self::with_memory_limit) is reached: the filter is then sized for it.
    pub fn with_expected_items(self, keys: u64) -> Self {
        FilterOptions { expected_items: Some(keys), ..self }
    }

    /// Sets whether filters of 2 MiB or more are advised to use huge pages on Linux, which is the
    /// default. Opt out if the memory of the process is limited in small pages.
    pub fn with_huge_pages(self, huge_pages: bool) -> Self {
        FilterOptions { huge_pages, ..self }
    }

    /// Returns the sizing.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    /// Returns the shape of a filter for this many keys, including prefixes if those are inserted.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if the sizing or the number of probes is out of range.
    pub fn params(&self, keys: u64) -> Result<Params, ParamsError> {
        let params = match self.foldable {
            true => self.probes_for_half(self.sizing.foldable_params(keys)?),
            false => self.sizing.params(keys)?,
        };
        match self.probes {
            Some(probes) => params.with_probes(probes),
            None => Ok(params),
        }
    }

    /// Chooses the probes of a [foldable](Self::foldable) filter. With fewer than 128 blocks, their
    /// number may be odd.
    fn probes_for_half(&self, mut params: Params) -> Params {
        let rate = params.false_positive_rate();
        let most = match self.sizing {
            Sizing::FalsePositiveRate(most) => most,
            _ => (rate * 1.25).min(rate + 2e-4),
        };
        // After a fold by two, each block has the keys of two blocks.
        let twice = params.expected_items().saturating_mul(2);
        while params.blocks() >= 128
            && let Ok(fewer) = params.with_probes(params.probes() - 1)
            && fewer.false_positive_rate() <= most
            && fewer.false_positive_rate_at(twice) < params.false_positive_rate_at(twice)
        {
            params = fewer;
        }
        params
    }

    /// Returns the hash and seed of the keys.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// Returns the hasher of the keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller supplies the hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// Returns the contents of the filters: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        match &self.prefixes {
            None => FilterContents::WholeKeys,
            Some(rule) if self.whole_keys => {
                FilterContents::WholeKeysAndPrefixes { extractor: rule.id() }
            }
            Some(rule) => FilterContents::Prefixes { extractor: rule.id() },
        }
    }

    /// Returns the prefix rule, if prefixes are inserted.
    pub fn extractor(&self) -> Option<&PrefixExtractor> {
        self.prefixes.as_ref()
    }

    /// Whether large filters are advised to use huge pages. For the options of other packages.
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// Returns the largest number of keys and prefixes whose stored filter takes at most this many
    /// bytes: 0 if every filter is larger, 2^64 - 1 if the sizing means "no filter".
    ///
    /// Cost: the time of sizing 64 filters for a rate, otherwise that of sizing one.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if the sizing or the number of probes is out of range.
    pub fn max_additions(&self, bytes: u64) -> Result<u64, ParamsError> {
        if self.params(1)?.stored_bytes() > bytes {
            return Ok(0);
        }
        if self.sizing.is_pass_all() {
            return Ok(u64::MAX);
        }
        // Computes only the number of blocks, since most of the time of sizing is spent on the
        // probes.
        let blocks = |keys| self.sizing.blocks_for(keys, self.foldable);
        let fits = |keys| blocks(keys).is_ok_and(|blocks| stored_bytes(blocks) <= bytes);
        Ok(partition_point(1, u64::MAX - 1, |keys| fits(keys + 1)))
    }
}
