//! SlateDB's prefix rule, and the same rule under the name that the core stores. A length past the
//! end of a key or a scan is no error here, where SlateDB's own filter panics.

use std::sync::Arc;

use bytes::Bytes;
use slatedb::{PrefixExtractor, PrefixTarget};

/// A rule of SlateDB's, which takes `Bytes`, and the core's, which takes slices.
pub(crate) struct Extractor {
    slatedb: Arc<dyn PrefixExtractor>,
    core: blocked_bloom::PrefixExtractor,
}

impl Extractor {
    pub(crate) fn new(slatedb: Arc<dyn PrefixExtractor>) -> Self {
        // These two copy what they are given, since only `Bytes` will do; keys and scans go by
        // `key_prefix` and `scan_prefix`.
        let (key, scan) = (Arc::clone(&slatedb), Arc::clone(&slatedb));
        let core = blocked_bloom::PrefixExtractor::custom(
            slatedb.name(),
            move |bytes| key.prefix_len(&PrefixTarget::Point(Bytes::copy_from_slice(bytes))),
            move |bytes| scan.prefix_len(&PrefixTarget::Prefix(Bytes::copy_from_slice(bytes))),
        );
        Extractor { slatedb, core }
    }

    pub(crate) fn name(&self) -> &str {
        self.slatedb.name()
    }

    /// The rule as filters know it.
    pub(crate) fn core(&self) -> &blocked_bloom::PrefixExtractor {
        &self.core
    }

    /// The prefix of a stored key, as [`blocked_bloom::PrefixExtractor::prefix`] gives it: all of
    /// the key if the rule wants more.
    pub(crate) fn key_prefix<'k>(&self, key: &'k Bytes) -> Option<&'k [u8]> {
        let length = self.slatedb.prefix_len(&PrefixTarget::Point(key.clone()))?;
        Some(&key[..length.min(key.len())])
    }

    /// The prefix that a scan's keys share.
    pub(crate) fn scan_prefix<'k>(&self, start: &'k Bytes) -> Option<&'k [u8]> {
        let length = self.slatedb.prefix_len(&PrefixTarget::Prefix(start.clone()))?;
        start.get(..length)
    }
}
