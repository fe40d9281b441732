//! A table's filter in the engine's cache, and the count of unusable filters. A filter answers
//! "absent" only for entries of a kind that its builder added.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::{Block, BloomFilter, KeyHash};
use bytes::{BufMut, Bytes};
use slatedb::{Filter, FilterQuery, FilterTarget};

use crate::extractor::Extractor;

/// A filter shared by its clones. It consists of two pointers, so a lookup reads only one cache
/// line before that of the filter.
#[derive(Clone)]
pub(crate) struct BlockedBloom {
    /// `None` answers "maybe" to everything.
    filter: Option<Arc<BloomFilter>>,
    extractor: Option<Arc<Extractor>>,
}

impl BlockedBloom {
    pub(crate) fn new(filter: BloomFilter, extractor: Option<Arc<Extractor>>) -> Self {
        BlockedBloom { filter: Some(Arc::new(filter)), extractor }
    }

    pub(crate) fn pass_all() -> Self {
        BlockedBloom { filter: None, extractor: None }
    }

    /// Returns the filter for storing and measuring. A filter that answers "maybe" is stored too.
    fn view(&self) -> BloomFilter<&[Block]> {
        match &self.filter {
            Some(filter) => filter.view(),
            None => BloomFilter::pass_all(KeyHash::default()),
        }
    }
}

impl Filter for BlockedBloom {
    fn might_match(&self, query: &FilterQuery) -> bool {
        let Some(filter) = &self.filter else { return true };
        let (extractor, prefix) = match (&query.target, self.extractor.as_deref()) {
            (FilterTarget::Point(key), _) if filter.contents().whole_keys() => {
                return filter.contains(key);
            }
            // The filter holds only prefixes: the key is absent if its prefix is.
            (FilterTarget::Point(key), Some(extractor)) => (extractor, extractor.key_prefix(key)),
            (FilterTarget::Prefix(start), Some(extractor)) => {
                (extractor, extractor.scan_prefix(start))
            }
            (FilterTarget::Range { lower, upper }, Some(extractor)) => {
                let [lower, upper] = [lower, upper].map(|bound| bound.as_ref().map(Bytes::as_ref));
                return filter.contains_range(extractor.core(), lower, upper);
            }
            (_, None) => return true,
        };
        prefix.is_none_or(|prefix| filter.prefixes(extractor.core()).contains(prefix))
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        // The only possible error is a full buffer, on which `put_slice` panics too.
        self.view().write_to(writer.writer()).expect("the buffer grows");
    }

    fn size(&self) -> usize {
        self.view().params().stored_bytes() as usize
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        // The filter owns memory of exactly its size already.
        Arc::new(self.clone())
    }
}

/// Counts the filters that could not be built or read since the policy was created.
pub(crate) struct Unusable {
    /// Name of the policy, for the log.
    name: String,
    count: AtomicU64,
}

impl Unusable {
    pub(crate) fn new(name: String) -> Self {
        Unusable { name, count: AtomicU64::new(0) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn report(&self, what: &str, error: &dyn Display) {
        self.count.fetch_add(1, Ordering::Relaxed);
        log::error!("filter {what}, its table is read without one [policy={}]: {error}", self.name);
    }
}
