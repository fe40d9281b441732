//! Prefixes that are added beside keys, or instead of them.

use super::BloomFilterBuilder;
use crate::error::BuildError;
use crate::hash::{KeyHash, KeyHasher};
use crate::prefix::{Added, PrefixExtractor};

/// What a builder adds for each key.
#[derive(Clone, Debug)]
pub(super) struct Prefixes {
    extractor: PrefixExtractor,
    whole_keys: bool,
    /// Hash of the prefix that was added last.
    last: Option<u64>,
    /// Whether a key has come, be it one of which nothing was added.
    has_keys: bool,
}

/// Hashes of a key and of its prefix, as far as they are to be added.
pub(crate) type Pair = (Option<u64>, Option<u64>);

impl Prefixes {
    pub(super) fn new(extractor: PrefixExtractor, whole_keys: bool) -> Self {
        Prefixes { extractor, whole_keys, last: None, has_keys: false }
    }

    pub(super) fn added(&self) -> Added {
        let extractor = self.extractor.id();
        match self.whole_keys {
            true => Added::WholeKeysAndPrefixes { extractor },
            false => Added::Prefixes { extractor },
        }
    }

    #[inline]
    pub(super) fn hashes(&self, hasher: KeyHasher, key: &[u8]) -> Pair {
        let prefix = self.extractor.prefix(key);
        (self.whole_keys.then(|| hasher.hash(key)), prefix.map(|prefix| hasher.hash(prefix)))
    }
}

impl BloomFilterBuilder {
    /// Whether a key has come. [`is_empty`](Self::is_empty) counts what was added: of a key without a prefix, nothing.
    pub(crate) fn has_keys(&self) -> bool {
        !self.is_empty() || self.prefixes.as_ref().is_some_and(|prefixes| prefixes.has_keys)
    }

    /// Of keys that came before, the prefixes by this rule would be missing.
    pub(super) fn with_prefixes(mut self, prefixes: Prefixes) -> Self {
        if self.has_keys() {
            self.fail(BuildError::PrefixesAfterKeys);
        }
        BloomFilterBuilder { prefixes: Some(prefixes), ..self }
    }

    /// Adds a key and the prefix that the caller cut from it, each unless it equals the one added just before it: for an engine that
    /// has the prefix at hand, or whose own rule wants more than the bytes of a key.
    ///
    /// It stands in for [`insert`](Self::insert), which has the builder's extractor cut the prefix, and must be given the same:
    /// a prefix that [`PrefixExtractor::scan_prefix`] would cut otherwise is one that scans do not find. `None` means that the key
    /// has none. A builder of keys alone ignores the prefix. With [`KeyHash::Caller`], [`finish`](Self::finish) will fail.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PrefixExtractor, Sizing};
    /// let tenant = PrefixExtractor::fixed(4);
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).prefixes(tenant.clone());
    /// builder.insert_with_prefix("ab12/apple", Some(b"ab12"));
    /// builder.insert_with_prefix("ab1", None);
    /// assert_eq!(builder.len(), 3);
    /// let filter = builder.finish()?;
    /// assert!(filter.contains("ab1") && filter.contains_prefix(&tenant, "ab12/"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_with_prefix(&mut self, key: impl AsRef<[u8]>, prefix: Option<&[u8]>) {
        match self.key_hash {
            KeyHash::Xxh3 { seed } => {
                let hasher = KeyHasher::with_seed(seed);
                let whole_keys = self.prefixes.as_ref().is_none_or(|prefixes| prefixes.whole_keys);
                let key = whole_keys.then(|| hasher.hash(key));
                self.add_with_prefix((key, prefix.map(|prefix| hasher.hash(prefix))));
            }
            KeyHash::Caller { tag } => {
                self.fail(BuildError::KeyWithoutHash { tag });
                self.only_counted += 1;
            }
        }
    }

    /// Adds a key and its prefix, each unless it equals the one added just before it.
    #[inline]
    pub(crate) fn add_with_prefix(&mut self, (key, prefix): Pair) {
        if let Some(key) = key {
            self.add(key);
        }
        let Some(prefixes) = &mut self.prefixes else { return };
        prefixes.has_keys = true;
        // A key that is its own prefix is there already.
        if prefix.is_none() || prefix == key || prefix == prefixes.last {
            return;
        }
        prefixes.last = prefix;
        if let Some(prefix) = prefix {
            self.keep(prefix);
        }
    }

    /// How keys are hashed together with their prefixes, if they are and if they can be.
    #[cfg(feature = "rayon")]
    pub(crate) fn pair_hasher(&self) -> Option<impl Fn(&[u8]) -> Pair + Sync + use<>> {
        let (hasher, prefixes) = (self.key_hash.hasher()?, self.prefixes.clone()?);
        Some(move |key: &[u8]| prefixes.hashes(hasher, key))
    }
}
