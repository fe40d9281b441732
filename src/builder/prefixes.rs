//! Insertion of prefixes, with keys or without them.

use super::BloomFilterBuilder;
use crate::hash::{Key, KeyError, KeyHasher};
use crate::options::FilterOptions;

/// Hashes of a key and of its prefix; `None` if the key or the prefix is not inserted.
pub(super) type HashPair = (Option<u64>, Option<u64>);

#[inline]
pub(super) fn hashes(options: &FilterOptions, hasher: KeyHasher, key: &[u8]) -> HashPair {
    let prefix = options.extractor().and_then(|extractor| extractor.prefix(key));
    let key = options.contents().whole_keys().then(|| hasher.hash(key));
    (key, prefix.map(|prefix| hasher.hash(prefix)))
}

impl BloomFilterBuilder {
    /// Inserts a key and its prefix, each unless it equals its predecessor. For engines that
    /// already have the prefix.
    ///
    /// The prefix must be the one that the options' extractor returns, which
    /// [`insert`](Self::insert) uses; builds with debug assertions check that. A scan looks up
    /// [`PrefixExtractor::scan_prefix`](crate::PrefixExtractor::scan_prefix) and does not find a
    /// key that was inserted with another prefix. `None` means that the key has no prefix. A
    /// builder of keys alone ignores the prefix.
    ///
    /// # Errors
    ///
    /// The errors of `insert`.
    ///
    /// # Panics
    ///
    /// With debug assertions, if the extractor cuts another prefix.
    #[inline]
    pub fn insert_with_prefix(
        &mut self,
        key: impl Key,
        prefix: Option<&[u8]>,
    ) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        debug_assert!(
            self.options.extractor().is_none_or(|rule| rule.prefix(key.as_ref()) == prefix),
            "the prefix is not the one that the options' extractor cuts: scans would not find the \
             key"
        );
        let key = self.options.contents().whole_keys().then(|| hasher.hash(key));
        self.add_with_prefix((key, prefix.map(|prefix| hasher.hash(prefix))));
        Ok(())
    }

    /// Inserts the key and the prefix with these hashes, each unless it equals its predecessor. For
    /// caller-supplied hashes. `None` means that the key has no prefix.
    ///
    /// The prefix must be the one that the options' extractor returns, hashed like a key. A builder
    /// of keys alone ignores the prefix, and a builder of prefixes alone ignores the key. Scans
    /// look up the prefix by its hash: `filter.prefixes(&extractor).contains_hash(hash)`.
    ///
    /// ```
    /// use blocked_bloom::{FilterOptions, KeyHash, PrefixExtractor, Sizing};
    /// # let my_hash = |bytes: &str| blocked_bloom::KeyHasher::with_seed(7).hash(bytes);
    /// let tenant = PrefixExtractor::fixed(4);
    /// let options = FilterOptions::new(Sizing::BitsPerKey(16.0))
    ///     .with_key_hash(KeyHash::Caller { tag: 1 })
    ///     .with_prefixes(tenant.clone());
    /// let mut builder = options.builder();
    /// builder.insert_hash_with_prefix(my_hash("abcd/1"), Some(my_hash("abcd")));
    /// let filter = builder.finish()?;
    /// assert!(filter.contains_hash(my_hash("abcd/1")));
    /// assert!(filter.prefixes(&tenant).contains_hash(my_hash("abcd")));
    /// assert!(!filter.prefixes(&tenant).contains_hash(my_hash("wxyz")));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash_with_prefix(&mut self, key: u64, prefix: Option<u64>) {
        let key = self.options.contents().whole_keys().then_some(key);
        self.add_with_prefix((key, prefix));
    }

    /// Adds a key and its prefix, each unless it equals its predecessor.
    #[inline]
    pub(super) fn add_with_prefix(&mut self, (key, prefix): HashPair) {
        if let Some(key) = key {
            self.add(key);
        }
        // A key that equals its prefix is inserted once.
        if self.options.extractor().is_none() || prefix == key || prefix == self.last_prefix {
            return;
        }
        if let Some(prefix) = prefix {
            self.last_prefix = Some(prefix);
            self.keep(prefix);
        }
    }

    /// Inserts the prefix of a key, but not the key. Does nothing if the options add no prefixes or
    /// the key has none.
    ///
    /// For partitions: each filter also receives the prefixes of the keys just before and just
    /// after its partition, since a scan that starts between two partitions looks up its prefix in
    /// both.
    ///
    /// # Errors
    ///
    /// The errors of `insert`.
    pub fn insert_prefix_of(&mut self, key: impl Key) -> Result<(), KeyError> {
        let (_, prefix) = hashes(&self.options, self.options.hasher()?, key.as_ref());
        self.add_with_prefix((None, prefix));
        Ok(())
    }
}
