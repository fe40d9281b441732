//! Range filters: a policy that answers range scans, scans of a prefix and lookups of keys.

use std::fmt::{self, Debug, Formatter};
use std::ops::Bound;
use std::sync::Arc;

use blocked_bloom_range::{RangeError, RangeFilter, RangeFilterBuilder, RangeOptions};
use bytes::{BufMut, Bytes};
use slatedb::{Filter, FilterBuilder, FilterPolicy, FilterQuery, FilterTarget, RowEntry};

use crate::filter::Unusable;

/// A filter policy for range scans. Use it next to a
/// [`BlockedBloomPolicy`](crate::BlockedBloomPolicy), which answers lookups of keys faster.
///
/// The options can be changed at any time and apply to new tables. The unit decides which ranges
/// can be answered: see [`RangeOptions::with_unit`].
///
/// Cost: SlateDB reads the filters of all tables that a range scan touches, of all policies.
///
/// ```
/// use blocked_bloom_range::RangeOptions;
/// use blocked_bloom_slatedb::RangePolicy;
/// use slatedb::FilterPolicy;
///
/// let policy = RangePolicy::new(RangeOptions::new(16.0).with_unit(16))?;
/// assert!(policy.supports_range_queries());
/// assert_eq!(policy.name(), "blocked-bloom-range:v1:scheme1");
/// assert!(RangePolicy::new(RangeOptions::new(1.0)).is_err());
/// # Ok::<(), blocked_bloom_range::RangeError>(())
/// ```
pub struct RangePolicy {
    options: RangeOptions,
    unusable: Arc<Unusable>,
}

impl RangePolicy {
    /// Creates a policy.
    ///
    /// # Errors
    ///
    /// [`RangeError`] if an option is out of range.
    pub fn new(options: RangeOptions) -> Result<Self, RangeError> {
        options.builder().finish()?;
        let name = "blocked-bloom-range:v1:scheme1".to_owned();
        Ok(RangePolicy { options, unusable: Arc::new(Unusable::new(name)) })
    }

    /// How many filters answered "maybe" to everything, as
    /// [`BlockedBloomPolicy::unusable_filters`](crate::BlockedBloomPolicy::unusable_filters).
    pub fn unusable_filters(&self) -> u64 {
        self.unusable.count()
    }
}

impl FilterPolicy for RangePolicy {
    fn name(&self) -> &str {
        self.unusable.name()
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        let unusable = Arc::clone(&self.unusable);
        Box::new(Collector { builder: Some(self.options.builder()), unusable })
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        let (filter, error) = RangeFilter::open_or_pass_all(data.to_vec());
        if let Some(error) = error {
            self.unusable.report("cannot be read", &error);
        }
        Arc::new(Ranges(Arc::new(filter)))
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        128 + (num_keys as f64 * self.options.bits_per_key() / 8.0) as usize
    }

    fn supports_range_queries(&self) -> bool {
        true
    }

    /// Scans of a prefix are ranges too.
    fn supports_prefix_queries(&self) -> bool {
        true
    }
}

impl Debug for RangePolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangePolicy")
            .field("options", &self.options)
            .field("unusable_filters", &self.unusable_filters())
            .finish()
    }
}

/// A filter shared by its clones.
struct Ranges(Arc<RangeFilter>);

impl Filter for Ranges {
    fn might_match(&self, query: &FilterQuery) -> bool {
        match &query.target {
            FilterTarget::Point(key) => self.0.contains(&key[..]),
            FilterTarget::Range { lower, upper } => {
                let [lower, upper] = [lower, upper].map(|bound| bound.as_ref().map(Bytes::as_ref));
                self.0.contains_range(lower, upper)
            }
            FilterTarget::Prefix(start) => {
                // All keys that start with "a\xff" lie below "b".
                let mut end = start.to_vec();
                while end.pop_if(|&mut last| last == u8::MAX).is_some() {}
                if let Some(last) = end.last_mut() {
                    *last += 1;
                }
                let upper =
                    if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(&end[..]) };
                self.0.contains_range(Bound::Included(&start[..]), upper)
            }
        }
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(self.0.as_bytes());
    }

    fn size(&self) -> usize {
        self.0.memory_bytes() as usize
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Ranges(Arc::clone(&self.0)))
    }
}

/// Collects the keys of a table, which the engine adds in order.
struct Collector {
    /// `None` after `build`, or after a key could not be added.
    builder: Option<RangeFilterBuilder>,
    unusable: Arc<Unusable>,
}

impl FilterBuilder for Collector {
    fn add_entry(&mut self, entry: &RowEntry) {
        let Some(builder) = &mut self.builder else { return };
        if let Err(error) = builder.insert(&entry.key[..]) {
            self.unusable.report("could not be built", &error);
            self.builder = None;
        }
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let filter = match self.builder.take().map(RangeFilterBuilder::finish) {
            Some(Ok(filter)) => filter,
            // Zero bytes are refused and answer "maybe".
            None => RangeFilter::open_or_pass_all(Vec::new()).0,
            Some(Err(error)) => {
                self.unusable.report("could not be built", &error);
                RangeFilter::open_or_pass_all(Vec::new()).0
            }
        };
        Arc::new(Ranges(Arc::new(filter)))
    }
}
