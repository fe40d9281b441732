//! SlateDB's prefix rule, and the same rule under the name that the core stores. A length past the
//! end of a key or a scan is accepted here; SlateDB's own filter panics.

use std::sync::Arc;

use bytes::Bytes;
use slatedb::{PrefixExtractor, PrefixTarget};

/// SlateDB's rule, which takes `Bytes`, and the core's rule, which takes slices.
pub(crate) struct Extractor {
    slatedb: Arc<dyn PrefixExtractor>,
    core: blocked_bloom::PrefixExtractor,
}

impl Extractor {
    pub(crate) fn new(slatedb: Arc<dyn PrefixExtractor>) -> Self {
        // Both closures copy the slice, since SlateDB's rule takes `Bytes`. Keys and scans use
        // `key_prefix` and `scan_prefix` instead, which do not copy.
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

    /// Returns the rule in the form that filters use.
    pub(crate) fn core(&self) -> &blocked_bloom::PrefixExtractor {
        &self.core
    }

    /// Returns the prefix of a stored key, like [`blocked_bloom::PrefixExtractor::prefix`]: the
    /// whole key if the rule's length is larger.
    pub(crate) fn key_prefix<'k>(&self, key: &'k Bytes) -> Option<&'k [u8]> {
        let length = self.slatedb.prefix_len(&PrefixTarget::Point(key.clone()))?;
        Some(&key[..length.min(key.len())])
    }

    /// Returns the prefix that all keys of a scan share.
    pub(crate) fn scan_prefix<'k>(&self, start: &'k Bytes) -> Option<&'k [u8]> {
        let length = self.slatedb.prefix_len(&PrefixTarget::Prefix(start.clone()))?;
        start.get(..length)
    }
}
