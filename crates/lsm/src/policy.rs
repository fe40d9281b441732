//! An engine's decisions about its filters: kind and size by level, whole or in partitions.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use blocked_bloom::{FilterOptions, KeyHash, Sizing};
use blocked_bloom_ribbon::RibbonOptions;

use crate::plan::FilterKind;

/// An engine's decisions about filters in one value, configured at start and consulted at every
/// flush.
///
/// It contains the [`FilterOptions`] of all filters, a kind and size for each level, and the size
/// from which a filter is cut into partitions. With the feature `serde` it can be part of a
/// configuration file.
///
/// ```
/// use blocked_bloom::{BloomFilter, FilterOptions, PrefixExtractor, Sizing};
/// use blocked_bloom_lsm::{FilterChoice, FilterPolicy, Level, Plan};
///
/// // Two levels share 20 MB: the small one gets more bits per key.
/// let plan = Plan::for_budget(&[Level::new(1_000_000), Level::new(15_000_000)], 20_000_000)?;
/// let options =
///     FilterOptions::new(Sizing::BitsPerKey(10.0)).with_prefixes(PrefixExtractor::fixed(4));
/// let policy = FilterPolicy::new(options)
///     .with_levels(plan.sizings())
///     .with_partitions(1 << 20, 16 << 10);
///
/// // Flush: choose the filter of this table.
/// match policy.choose_filter(0, 1_000) {
///     FilterChoice::Whole(options) => {
///         let mut builder = options.builder();
///         builder.insert("ab12/apple")?;
///         let stored = builder.finish()?.to_bytes();
///         // Open: a damaged filter answers "maybe", and returns an error to log.
///         let key_hash = policy.options().key_hash();
///         let (filter, error) = BloomFilter::open_or_pass_all(stored, key_hash);
///         assert!(error.is_none() && filter.contains("ab12/apple"));
///     }
///     FilterChoice::Partitioned { .. } => unreachable!("a thousand keys fit into 1 MiB"),
///     _ => {} // no filter, or a Ribbon filter
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct FilterPolicy {
    options: FilterOptions,
    /// By level, the top level first; deeper levels use the last. If empty, all levels get Bloom
    /// filters of the sizing in `options`.
    #[cfg_attr(feature = "serde", serde(default))]
    levels: Vec<FilterKind>,
    #[cfg_attr(feature = "serde", serde(default))]
    partitions: Option<Partitions>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
struct Partitions {
    above: u64,
    bytes: u64,
}

/// The filter of one table, chosen by [`FilterPolicy::choose_filter`].
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_lsm::{FilterChoice, FilterPolicy};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let policy = FilterPolicy::new(options).with_partitions(1 << 20, 16 << 10);
/// assert!(matches!(policy.choose_filter(0, 100_000), FilterChoice::Whole(_)));
/// assert!(matches!(policy.choose_filter(0, 10_000_000), FilterChoice::Partitioned { .. }));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FilterChoice {
    /// No filter: the level's plan says that none is worth its memory.
    None,
    /// One Bloom filter with these options.
    Whole(FilterOptions),
    /// One Ribbon filter with these options.
    Ribbon(RibbonOptions),
    /// A Bloom filter in partitions: the arguments of
    /// [`PartitionedFilterBuilder::new`](crate::PartitionedFilterBuilder::new).
    Partitioned {
        /// The options of every partition.
        options: FilterOptions,
        /// Maximum bytes of a partition.
        partition_bytes: u64,
    },
}

impl FilterPolicy {
    /// Creates a policy with Bloom filters of these options on every level, never in partitions.
    pub fn new(options: FilterOptions) -> Self {
        FilterPolicy { options, levels: Vec::new(), partitions: None }
    }

    /// Sets the kind and size of the filters of each level, the top level first: the
    /// [sizings of a plan](crate::Plan::sizings), the [kinds of a plan](crate::KindPlan::kinds), or
    /// the caller's own. Deeper levels use the last one.
    ///
    /// The budget of a plan holds for the keys that its levels count: if prefixes are added, count
    /// them as keys.
    #[must_use]
    pub fn with_levels(self, levels: impl IntoIterator<Item = impl Into<FilterKind>>) -> Self {
        FilterPolicy { levels: levels.into_iter().map(Into::into).collect(), ..self }
    }

    /// Cuts Bloom filters that would take more than `above` bytes into partitions of at most
    /// `partition_bytes`.
    #[must_use]
    pub fn with_partitions(self, above: u64, partition_bytes: u64) -> Self {
        FilterPolicy { partitions: Some(Partitions { above, bytes: partition_bytes }), ..self }
    }

    /// Returns the options that all filters share, apart from their sizes: hash and contents. Take
    /// the hash for opening filters from here.
    pub fn options(&self) -> &FilterOptions {
        &self.options
    }

    /// Chooses the filter of a table from its level, 0 being the top level, and its expected number
    /// of keys (plus prefixes, if they are added).
    ///
    /// The number decides between one filter and partitions. A builder that reaches the [memory
    /// limit](FilterOptions::with_memory_limit) of the options sizes the filter for it; otherwise
    /// the builder counts the keys.
    ///
    /// Ribbon filters, filters of caller-supplied hashes, and filters sized by bytes are never cut
    /// into partitions. A Ribbon filter contains no prefixes, so it never rules out a scan. If a
    /// sizing is out of range, the builder's `finish` returns the error.
    pub fn choose_filter(&self, level: usize, expected_keys: u64) -> FilterChoice {
        let sizing = match self.levels.get(level).or(self.levels.last()) {
            None => self.options.sizing(),
            Some(FilterKind::None) => return FilterChoice::None,
            Some(&FilterKind::Bloom { sizing }) => sizing,
            Some(&FilterKind::Ribbon { false_positive_rate }) => {
                let sizing = Sizing::FalsePositiveRate(false_positive_rate);
                let options = self.options.clone().with_sizing(sizing);
                return FilterChoice::Ribbon(RibbonOptions::for_filters(&options));
            }
        };
        if sizing.is_pass_all() {
            return FilterChoice::None;
        }
        let options = self.options.clone().with_sizing(sizing);
        let bytes = options.params(expected_keys).map_or(0, |params| params.stored_bytes());
        let can_be_cut = options.hasher().is_ok() && !matches!(sizing, Sizing::MaxBytes(_));
        match self.partitions {
            Some(partitions) if bytes > partitions.above && can_be_cut => {
                FilterChoice::Partitioned { options, partition_bytes: partitions.bytes }
            }
            _ => FilterChoice::Whole(options.with_expected_items(expected_keys)),
        }
    }

    /// Returns a name for everything that filters must agree on to be looked up together: format
    /// version, probe scheme, hash and seed, contents, and last the prefix rule, whose name may
    /// contain any characters. `docs/adapter.md` uses the same scheme.
    ///
    /// Kinds, sizes and partitions are not part of the name, because they may differ between
    /// tables. Stored filters contain all of this themselves; the name is for engines that record a
    /// policy's name with each table.
    ///
    /// ```
    /// # use blocked_bloom::{FilterOptions, KeyHash, PrefixExtractor, Sizing};
    /// # use blocked_bloom_lsm::FilterPolicy;
    /// let options =
    ///     FilterOptions::new(Sizing::BitsPerKey(10.0)).with_prefixes(PrefixExtractor::fixed(4));
    /// let name = "blocked-bloom:v1:scheme1:xxh3-0:keys+prefixes=fixed:4";
    /// assert_eq!(FilterPolicy::new(options).name(), name);
    /// ```
    pub fn name(&self) -> String {
        let hash = match self.options.key_hash() {
            KeyHash::Xxh3 { seed } => format!("xxh3-{seed}"),
            KeyHash::Caller { tag } => format!("caller-{tag}"),
            later => format!("{later}"),
        };
        let contents = match self.options.extractor() {
            None => "keys".into(),
            Some(rule) if self.options.contents().whole_keys() => format!("keys+prefixes={rule}"),
            Some(rule) => format!("prefixes={rule}"),
        };
        format!("blocked-bloom:v1:scheme1:{hash}:{contents}")
    }
}
