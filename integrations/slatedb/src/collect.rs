//! Collects the keys of a table while it is written. A filter never makes a table fail: if no
//! trustworthy filter can be built, the table gets one that answers "maybe".

use std::sync::Arc;

use blocked_bloom::BloomFilterBuilder;
use slatedb::{Filter, FilterBuilder, RowEntry};

use crate::extractor::Extractor;
use crate::filter::{BlockedBloom, Unusable};

pub(crate) struct Collector {
    /// `None` after `build`, or after a key could not be added: a filter without that key would
    /// answer "absent" for it.
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
        // Without a builder, `build` returns a filter that answers "maybe", also for this key.
        let Some(builder) = &mut self.builder else { return };
        let added = match &self.extractor {
            None => builder.insert(&entry.key),
            Some(extractor) => {
                builder.insert_with_prefix(&entry.key, extractor.key_prefix(&entry.key))
            }
        };
        if let Err(error) = added {
            self.unusable.report("could not be built", &error);
            self.builder = None;
        }
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        // A filter that is built a second time would lack the keys of the first.
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
