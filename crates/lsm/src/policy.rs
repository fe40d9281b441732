//! What an engine decides once about its filters: how large on which level, of what, whole or in
//! partitions.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use blocked_bloom::{FilterOptions, KeyHash, Sizing};
use blocked_bloom_ribbon::RibbonOptions;

use crate::plan::FilterKind;

/// An engine's decisions about filters, in one value that it configures at start and consults at
/// every flush.
///
/// [`FilterOptions`] for every filter, a sizing for each level, and from which size on a filter is
/// cut into partitions. With the feature `serde` it is part of a configuration file.
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
/// // Flush: what this table gets.
/// match policy.choose_filter(0, 1_000) {
///     FilterChoice::Whole(options) => {
///         let mut builder = options.builder();
///         builder.insert("ab12/apple")?;
///         let stored = builder.finish()?.to_bytes();
///         // Open: a damaged filter is one that answers "maybe", and a line in the log.
///         let key_hash = policy.options().key_hash();
///         let (filter, error) = BloomFilter::open_or_pass_all(stored, key_hash);
///         assert!(error.is_none() && filter.contains("ab12/apple"));
///     }
///     FilterChoice::Partitioned { .. } => unreachable!("a thousand keys do not fill 1 MiB"),
///     _ => {} // no filter is worth its memory here
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

/// What a table gets, as [`FilterPolicy::choose_filter`] decides it.
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
    /// No filter: the level's sizing says that none is worth its memory.
    None,
    /// One Bloom filter with these options.
    Whole(FilterOptions),
    /// One Ribbon filter with these options.
    Ribbon(RibbonOptions),
    /// A filter in partitions: both are for
    /// [`PartitionedFilterBuilder::new`](crate::PartitionedFilterBuilder::new).
    Partitioned {
        /// The options of every partition.
        options: FilterOptions,
        /// Most bytes of a partition.
        partition_bytes: u64,
    },
}

impl FilterPolicy {
    /// Filters of these options on every level, never in partitions.
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

    /// Cuts filters that are expected to take more than `above` bytes into partitions of at most
    /// `partition_bytes`.
    #[must_use]
    pub fn with_partitions(self, above: u64, partition_bytes: u64) -> Self {
        FilterPolicy { partitions: Some(Partitions { above, bytes: partition_bytes }), ..self }
    }

    /// The options of all filters but for their sizes: hash and contents. Whoever opens filters
    /// takes the hash from here.
    pub fn options(&self) -> &FilterOptions {
        &self.options
    }

    /// What a table of this level gets, 0 being the top one, that is expected to have this many
    /// keys, and prefixes if those are added. The number decides between one filter and partitions,
    /// and is what a builder of one filter sizes for if it reaches the options' [memory
    /// limit](FilterOptions::with_memory_limit); else it sizes for the keys it gets.
    ///
    /// A filter of the caller's hashes, and one that is sized by its bytes, is never cut. A sizing
    /// that is out of range is reported by the builder's `finish`.
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

    /// A name for all that decides whether a filter can answer: the version of the format, the
    /// probe scheme, the hash and its seed, what is added, and last the extractor, whose name may
    /// have any characters; `docs/adapter.md` has the same scheme. Sizes and partitions are not in
    /// it: they may change between tables. Filters carry all of this in their bytes; the name is
    /// for engines that record a policy's name beside a table.
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
