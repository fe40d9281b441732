//! The keys of a table while it is written.
//!
//! This file owns the end of a table: it refuses to let the table fail for its filter's sake.

use std::sync::Arc;

use blocked_bloom::BloomFilterBuilder;
use slatedb::{Filter, FilterBuilder, RowEntry};

use crate::extractor::Extractor;
use crate::filter::{BlockedBloom, Unusable};

pub(crate) struct Collector {
    /// Taken by `build`.
    builder: Option<BloomFilterBuilder>,
    extractor: Option<Arc<Extractor>>,
    unusable: Arc<Unusable>,
}

impl Collector {
    pub(crate) fn new(
        builder: BloomFilterBuilder,
        extractor: Option<Arc<Extractor>>,
        unusable: Arc<Unusable>,
    ) -> Self {
        Collector { builder: Some(builder), extractor, unusable }
    }
}

impl FilterBuilder for Collector {
    fn add_entry(&mut self, entry: &RowEntry) {
        // After `build` there is nothing to add to, and no filter that would lack the key.
        let Some(builder) = &mut self.builder else { return };
        match &self.extractor {
            None => builder.insert(&entry.key),
            Some(extractor) => {
                builder.insert_with_prefix(&entry.key, extractor.of_key(&entry.key));
            }
        }
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        // Built a second time, a filter would lack the keys of the first.
        let Some(builder) = self.builder.take() else {
            return Arc::new(BlockedBloom::pass_all());
        };
        match builder.finish_verified_or_pass_all() {
            Ok((filter, None)) => Arc::new(BlockedBloom::new(filter, self.extractor.clone())),
            Ok((_, Some(error))) => {
                self.unusable.report("could not be built", &error);
                Arc::new(BlockedBloom::pass_all())
            }
            Err(error) => {
                self.unusable.report("could not be built", &error);
                Arc::new(BlockedBloom::pass_all())
            }
        }
    }
}
