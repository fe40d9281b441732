//! The policy: the kind, name and size of the filters. An impossible sizing is an error when it is
//! configured, not at the first flush.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use blocked_bloom::{BloomFilter, FilterOptions, MAX_BITS_PER_KEY, ParamsError, Sizing};
use slatedb::{Filter, FilterBuilder, FilterPolicy, PrefixExtractor};

use crate::collect::Collector;
use crate::extractor::Extractor;
use crate::filter::{BlockedBloom, Unusable};

/// Version of the stored format, number of the probe scheme, hash and seed. If one of them differs,
/// filters cannot be read or would answer "absent" for present keys. The contents of the filter and
/// the extractor are appended.
const IDENTITY: &str = "blocked-bloom:v1:scheme1:xxh3-0";

/// Keys for which the bits per key of a false-positive rate are computed.
const TYPICAL_KEYS: u64 = 1 << 20;

/// A filter policy for `DbBuilder::with_filter_policies`.
///
/// Its [name](FilterPolicy::name) identifies the filters that it can read: by the stored format,
/// the probe scheme, the hash and its seed, the contents and the extractor. The sizing is not part
/// of the name: it can be changed at any time and applies to new tables.
///
/// ```
/// use blocked_bloom::Sizing;
/// use blocked_bloom_slatedb::BlockedBloomPolicy;
/// use slatedb::FilterPolicy;
///
/// let policy = BlockedBloomPolicy::new(Sizing::FalsePositiveRate(0.01))?;
/// assert_eq!(policy.name(), "blocked-bloom:v1:scheme1:xxh3-0:keys");
/// assert_eq!(BlockedBloomPolicy::new(Sizing::BitsPerKey(12.5))?.name(), policy.name());
/// # Ok::<(), blocked_bloom::ParamsError>(())
/// ```
pub struct BlockedBloomPolicy {
    /// The settings of all filters that are built or opened.
    options: FilterOptions,
    extractor: Option<Arc<Extractor>>,
    /// Whether range scans read filters.
    ranges: bool,
    /// Also holds the name.
    unusable: Arc<Unusable>,
    estimated_bits_per_key: f64,
}

impl BlockedBloomPolicy {
    /// Creates a policy for whole keys. [`Sizing::BitsPerKey`] accepts fractions. With
    /// [`Sizing::FalsePositiveRate`], each table gets the smallest filter that keeps the rate.
    /// [`Sizing::MaxBytes`] applies to each table.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if the sizing is out of range.
    ///
    /// ```
    /// use blocked_bloom::Sizing;
    /// use blocked_bloom_slatedb::BlockedBloomPolicy;
    /// assert!(BlockedBloomPolicy::new(Sizing::BitsPerKey(10.5)).is_ok());
    /// assert!(BlockedBloomPolicy::new(Sizing::BitsPerKey(-1.0)).is_err());
    /// ```
    pub fn new(sizing: Sizing) -> Result<Self, ParamsError> {
        let typical = sizing.params(TYPICAL_KEYS)?;
        let estimated_bits_per_key = match sizing {
            _ if typical.is_pass_all() => 0.0,
            Sizing::BitsPerKey(bits) => bits,
            Sizing::MaxBytes(_) => MAX_BITS_PER_KEY,
            _ => typical.bits_per_key(),
        };
        let policy = BlockedBloomPolicy {
            options: FilterOptions::new(sizing),
            extractor: None,
            ranges: false,
            unusable: Arc::new(Unusable::new(String::new())),
            estimated_bits_per_key,
        };
        Ok(policy.named())
    }

    /// Also adds the prefixes of keys, so that prefix scans can skip tables. The filter is sized
    /// for keys and prefixes together.
    ///
    /// The extractor's name becomes part of the policy's name, as with SlateDB's own policy: it
    /// must change whenever the extractor does.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use blocked_bloom::Sizing;
    /// use blocked_bloom_slatedb::BlockedBloomPolicy;
    /// use slatedb::{FilterPolicy, PrefixExtractor, PrefixTarget};
    ///
    /// struct Tenant;
    ///
    /// impl PrefixExtractor for Tenant {
    ///     fn name(&self) -> &str {
    ///         "tenant-1"
    ///     }
    ///
    ///     fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
    ///         let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
    ///         bytes.iter().position(|&byte| byte == b'/').map(|slash| slash + 1)
    ///     }
    /// }
    ///
    /// let policy = BlockedBloomPolicy::new(Sizing::BitsPerKey(10.0))?.prefixes(Arc::new(Tenant));
    /// assert_eq!(policy.name(), "blocked-bloom:v1:scheme1:xxh3-0:keys+prefixes=tenant-1");
    /// # Ok::<(), blocked_bloom::ParamsError>(())
    /// ```
    #[must_use]
    pub fn prefixes(self, extractor: Arc<dyn PrefixExtractor>) -> Self {
        let extractor = Extractor::new(extractor);
        let options = self.options.with_prefixes(extractor.core().clone());
        BlockedBloomPolicy { options, extractor: Some(Arc::new(extractor)), ..self }.named()
    }

    /// Adds the prefixes of keys instead of the keys, which makes smaller filters. A key is then
    /// looked up by its prefix. See also [`prefixes`](Self::prefixes).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use slatedb::{FilterPolicy, PrefixExtractor, PrefixTarget};
    /// # struct Tenant;
    /// # impl PrefixExtractor for Tenant {
    /// #     fn name(&self) -> &str { "tenant-1" }
    /// #     fn prefix_len(&self, _: &PrefixTarget) -> Option<usize> { None }
    /// # }
    /// # use blocked_bloom::Sizing;
    /// # use blocked_bloom_slatedb::BlockedBloomPolicy;
    /// let policy = BlockedBloomPolicy::new(Sizing::BitsPerKey(10.0))?;
    /// let policy = policy.only_prefixes(Arc::new(Tenant));
    /// assert_eq!(policy.name(), "blocked-bloom:v1:scheme1:xxh3-0:prefixes=tenant-1");
    /// # Ok::<(), blocked_bloom::ParamsError>(())
    /// ```
    #[must_use]
    pub fn only_prefixes(self, extractor: Arc<dyn PrefixExtractor>) -> Self {
        let extractor = Extractor::new(extractor);
        let options = self.options.with_only_prefixes(extractor.core().clone());
        BlockedBloomPolicy { options, extractor: Some(Arc::new(extractor)), ..self }.named()
    }

    /// Lets range scans skip tables by the prefixes of their keys. Has no effect without an
    /// extractor.
    ///
    /// A table is skipped if all keys of the range share a prefix that its filter does not contain,
    /// for example all keys from `tenant/a` up to `tenant/b`.
    /// [`PrefixExtractor::range_prefixes`](blocked_bloom::PrefixExtractor::range_prefixes) has the
    /// rules.
    ///
    /// Cost: SlateDB asks a policy once whether it supports ranges, and then reads the filters of
    /// all tables that a range scan touches, whether they can answer the range or not. Most range
    /// scans should therefore stay within one prefix. The name of the policy and the stored filters
    /// stay the same.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use slatedb::{FilterPolicy, PrefixExtractor, PrefixTarget};
    /// # struct Tenant;
    /// # impl PrefixExtractor for Tenant {
    /// #     fn name(&self) -> &str { "tenant-1" }
    /// #     fn prefix_len(&self, _: &PrefixTarget) -> Option<usize> { None }
    /// # }
    /// # use blocked_bloom::Sizing;
    /// # use blocked_bloom_slatedb::BlockedBloomPolicy;
    /// let policy = BlockedBloomPolicy::new(Sizing::BitsPerKey(10.0))?.prefixes(Arc::new(Tenant));
    /// assert!(!policy.supports_range_queries());
    /// assert!(policy.with_ranges().supports_range_queries());
    /// # Ok::<(), blocked_bloom::ParamsError>(())
    /// ```
    #[must_use]
    pub fn with_ranges(self) -> Self {
        BlockedBloomPolicy { ranges: true, ..self }
    }

    /// How many filters answered "maybe" to everything because they were damaged when they were
    /// read, or could not be built, since the policy was made. Each was logged as an error. A
    /// filter that is read again, since no cache kept it, counts again.
    ///
    /// ```
    /// # use blocked_bloom::Sizing;
    /// use blocked_bloom_slatedb::BlockedBloomPolicy;
    /// use slatedb::FilterPolicy;
    /// let policy = BlockedBloomPolicy::new(Sizing::BitsPerKey(10.0))?;
    /// policy.decode(b"not a filter");
    /// assert_eq!(policy.unusable_filters(), 1);
    /// # Ok::<(), blocked_bloom::ParamsError>(())
    /// ```
    pub fn unusable_filters(&self) -> u64 {
        self.unusable.count()
    }

    fn named(self) -> Self {
        let rule = self.extractor.as_ref().map(|rule| rule.name());
        let name = match (rule, self.options.contents().whole_keys()) {
            (None, _) => format!("{IDENTITY}:keys"),
            // The extractor's name is last, since it may have any characters.
            (Some(rule), true) => format!("{IDENTITY}:keys+prefixes={rule}"),
            (Some(rule), false) => format!("{IDENTITY}:prefixes={rule}"),
        };
        BlockedBloomPolicy { unusable: Arc::new(Unusable::new(name)), ..self }
    }
}

impl FilterPolicy for BlockedBloomPolicy {
    fn name(&self) -> &str {
        self.unusable.name()
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        let (builder, extractor) = (self.options.builder(), self.extractor.clone());
        Box::new(Collector::new(builder, extractor, Arc::clone(&self.unusable)))
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        let (view, error) = BloomFilter::open_or_pass_all(data, self.options.key_hash());
        if let Some(error) = error {
            self.unusable.report("cannot be read", &error);
            return Arc::new(BlockedBloom::pass_all());
        }
        match view.to_filter() {
            Ok(filter) => Arc::new(BlockedBloom::new(filter, self.extractor.clone())),
            Err(error) => {
                self.unusable.report("cannot be read", &error);
                Arc::new(BlockedBloom::pass_all())
            }
        }
    }

    /// Without the prefixes, whose number is not known. The engine estimates after every write, so
    /// nothing is computed anew.
    fn estimate_size(&self, num_keys: usize) -> usize {
        let blocks = (num_keys as f64 * self.estimated_bits_per_key / 512.0).ceil().max(1.0);
        let bytes = 64.0 + 64.0 * blocks;
        match self.options.sizing() {
            Sizing::MaxBytes(most) => bytes.min(most as f64) as usize,
            _ => bytes as usize,
        }
    }

    fn supports_range_queries(&self) -> bool {
        self.ranges && self.extractor.is_some()
    }

    fn supports_prefix_queries(&self) -> bool {
        self.extractor.is_some()
    }
}

impl Debug for BlockedBloomPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockedBloomPolicy")
            .field("name", &self.name())
            .field("sizing", &self.options.sizing())
            .field("unusable_filters", &self.unusable_filters())
            .finish()
    }
}
