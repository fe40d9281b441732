//! A table's filter, in the engine's cache.
//!
//! This file owns the answers to the engine's questions, and the count of filters that cannot answer. It refuses "absent" wherever what
//! is asked about was not added.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::{BloomFilter, BloomFilterRef, KeyHash};
use bytes::BufMut;
use slatedb::{Filter, FilterQuery, FilterTarget};

use crate::extractor::Extractor;

/// A filter that is shared by the copies of it.
#[derive(Clone)]
pub(crate) struct BlockedBloom {
    /// `None` answers "maybe" to everything.
    filter: Option<Arc<BloomFilter>>,
    extractor: Option<Extractor>,
}

impl BlockedBloom {
    pub(crate) fn new(filter: BloomFilter, extractor: Option<Extractor>) -> Self {
        BlockedBloom { filter: Some(Arc::new(filter)), extractor }
    }

    pub(crate) fn pass_all(extractor: Option<Extractor>) -> Self {
        BlockedBloom { filter: None, extractor }
    }

    #[inline]
    fn view(&self) -> BloomFilterRef<'_> {
        match &self.filter {
            Some(filter) => filter.view(),
            None => BloomFilterRef::pass_all(KeyHash::default()),
        }
    }

    fn might_have_prefix<'k>(
        &self,
        cut: impl FnOnce(&Extractor) -> Option<(&Extractor, &'k [u8])>,
    ) -> bool {
        match self.extractor.as_ref().and_then(cut) {
            Some((extractor, prefix)) => self.view().prefixes(extractor.core()).contains(prefix),
            None => true,
        }
    }
}

impl Filter for BlockedBloom {
    fn might_match(&self, query: &FilterQuery) -> bool {
        match &query.target {
            FilterTarget::Point(key) if self.view().added().whole_keys() => {
                self.view().contains(key)
            }
            // A filter of prefixes alone: the key is absent if its prefix is.
            FilterTarget::Point(key) => {
                self.might_have_prefix(|rule| Some((rule, rule.of_key(key)?)))
            }
            FilterTarget::Prefix(start) => {
                self.might_have_prefix(|rule| Some((rule, rule.of_scan(start)?)))
            }
            FilterTarget::Range { .. } => true,
        }
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        // The one error is a buffer without room, which panics in `put_slice` too.
        self.view().write_to(writer.writer()).expect("the buffer grows");
    }

    fn size(&self) -> usize {
        self.view().params().stored_bytes() as usize
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        // Memory of the filter's own, of just its size.
        Arc::new(self.clone())
    }
}

/// Filters that could not be built or read since the policy was made.
pub(crate) struct Unusable {
    /// The policy's, for the log.
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
