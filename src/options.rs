//! What a filter is to be: its size, its hash, what it holds. A plain value; `make.rs` makes
//! builders and empty filters from it.

use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::params::{Params, ParamsError, Sizing, stored_bytes};
use crate::prefix::{FilterContents, PrefixExtractor};

/// What an engine decides once about its filters. Every builder is made of one, and whoever opens
/// the filters takes the hash from it, so that it is stated in one place.
///
/// With the feature `serde`, unknown fields and a missing `key_hash` are errors; all other fields
/// have the defaults of [`new`](Self::new), and `sizing` that of `default()`.
///
/// Sizes are checked when a filter is made: a number out of range is an error of
/// [`finish`](crate::BloomFilterBuilder::finish).
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct FilterOptions {
    #[cfg_attr(feature = "serde", serde(default = "default_sizing"))]
    sizing: Sizing,
    probes: Option<u32>,
    #[cfg_attr(feature = "serde", serde(default))]
    foldable: bool,
    /// Without a default: with another hash than the writer's, keys would be absent.
    key_hash: KeyHash,
    prefixes: Option<PrefixExtractor>,
    #[cfg_attr(feature = "serde", serde(default = "default_true"))]
    whole_keys: bool,
    memory_limit: Option<u64>,
    expected_items: Option<u64>,
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
    /// Ten bits per key: one absent key in a hundred passes.
    fn default() -> Self {
        FilterOptions::new(Sizing::BitsPerKey(10.0))
    }
}

impl FilterOptions {
    /// Filters of whole keys of this size, hashed with XXH3-64 and seed 0.
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

    /// The same filters in another size: for an engine that sizes them by level.
    #[must_use]
    pub fn with_sizing(self, sizing: Sizing) -> Self {
        FilterOptions { sizing, ..self }
    }

    /// Hashes keys with another seed, or leaves hashing to the caller.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        FilterOptions { key_hash, ..self }
    }

    /// Sets the probes, 1 to 30, instead of letting the sizing choose.
    #[must_use]
    pub fn with_probes(self, probes: u32) -> Self {
        FilterOptions { probes: Some(probes), ..self }
    }

    /// Rounds the blocks to a number with many divisors, for at most 1.6 % more memory: see
    /// [`Sizing::foldable_params`].
    ///
    /// Chooses fewer probes where half of the filter then has a lower rate, and the whole one by a
    /// quarter and 0.0002 more at most, within the sizing's rate: at 16 bits per key 7 and not 9,
    /// for 0.100 % in place of 0.084 % whole, and 2.55 % in place of 3.33 % at half. The guide on
    /// resident filters (`docs/resident.md`) has the table.
    #[must_use]
    pub fn foldable(self) -> Self {
        FilterOptions { foldable: true, ..self }
    }

    /// Adds to the filter, beside every key, the key's prefix by this rule, so that it can answer
    /// for scans ([`BloomFilter::contains_prefix`](crate::BloomFilter::contains_prefix)). A prefix
    /// equal to the one added just before it is dropped: in a sorted run each is added once.
    ///
    /// The filter is sized for keys and prefixes together, each with the bits of the sizing.
    #[must_use]
    pub fn with_prefixes(self, extractor: PrefixExtractor) -> Self {
        FilterOptions { prefixes: Some(extractor), whole_keys: true, ..self }
    }

    /// Adds only the prefixes of keys, as [`with_prefixes`](Self::with_prefixes): a smaller filter,
    /// which answers "maybe" for every key.
    #[must_use]
    pub fn with_only_prefixes(self, extractor: PrefixExtractor) -> Self {
        FilterOptions { prefixes: Some(extractor), whole_keys: false, ..self }
    }

    /// Bounds the memory of a builder's list of hashes, in bytes; unbounded by default.
    ///
    /// When the list would outgrow it: with [`with_expected_items`](Self::with_expected_items) the
    /// filter is made at once, for that many keys or as many as have come if those are more, and
    /// later keys go straight into it: with more keys than expected, more absent ones pass than the
    /// sizing promised. If more than half of them would pass,
    /// [`finish`](crate::BloomFilterBuilder::finish) fails with
    /// [`BuildError::MemoryLimit`](crate::BuildError::MemoryLimit) and the number of keys. Without
    /// expected items the list is freed, keys are only counted, and `finish` fails in the same way.
    ///
    /// The limit is checked when a key is added, and by `par_extend` after all keys of its iterator
    /// were collected: give it the keys in pieces. The rate of the finished filter's `params()`
    /// shows what became of it.
    #[must_use]
    pub fn with_memory_limit(self, bytes: u64) -> Self {
        FilterOptions { memory_limit: Some(bytes), ..self }
    }

    /// How many keys are expected, and prefixes if those are added: what the filter is sized for if
    /// the [memory limit](Self::with_memory_limit) is reached, and only then.
    #[must_use]
    pub fn with_expected_items(self, keys: u64) -> Self {
        FilterOptions { expected_items: Some(keys), ..self }
    }

    /// Whether filters of 2 MiB and more are advised to be on huge pages, on Linux; they are by
    /// default. Turn it off where the memory of the process is counted in small pages.
    #[must_use]
    pub fn with_huge_pages(self, huge_pages: bool) -> Self {
        FilterOptions { huge_pages, ..self }
    }

    /// How filters are sized.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    /// The shape of a filter of this many keys, counting prefixes if those are added.
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

    /// As [`foldable`](Self::foldable) says; fewer than 128 blocks may have no half.
    fn probes_for_half(&self, mut params: Params) -> Params {
        let rate = params.false_positive_rate();
        let most = match self.sizing {
            Sizing::FalsePositiveRate(most) => most,
            _ => (rate * 1.25).min(rate + 2e-4),
        };
        // Half of the blocks have the load that all have with twice the keys.
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

    /// What the filters will hold: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        match &self.prefixes {
            None => FilterContents::WholeKeys,
            Some(rule) if self.whole_keys => {
                FilterContents::WholeKeysAndPrefixes { extractor: rule.id() }
            }
            Some(rule) => FilterContents::Prefixes { extractor: rule.id() },
        }
    }

    /// The rule that cuts the prefixes, if any are added.
    pub fn extractor(&self) -> Option<&PrefixExtractor> {
        self.prefixes.as_ref()
    }

    pub(crate) fn memory_limit(&self) -> u64 {
        self.memory_limit.unwrap_or(u64::MAX)
    }

    pub(crate) fn expected_items(&self) -> Option<u64> {
        self.expected_items
    }

    /// Whether large filters are advised to be on huge pages: for the options of other packages.
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// The largest number of additions, keys and prefixes together, whose stored filter takes at
    /// most this many bytes: 0 if no filter is so small, 2^64 - 1 if the sizing means "no filter".
    /// Cost: for a rate, as sizing 64 filters; else as sizing one.
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
        // By the number of blocks alone: choosing the probes costs more than all the rest.
        let blocks = |keys| self.sizing.blocks_for(keys, self.foldable);
        let fits = |keys| blocks(keys).is_ok_and(|blocks| stored_bytes(blocks) <= bytes);
        let (mut most, mut too_many) = (1, u64::MAX);
        while too_many - most > 1 {
            let middle = most + (too_many - most) / 2;
            match fits(middle) {
                true => most = middle,
                false => too_many = middle,
            }
        }
        Ok(most)
    }
}
