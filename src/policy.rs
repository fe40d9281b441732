//! What an engine decides once about its filters: how large on which level, of what, whole or in partitions, and what happens to one
//! that is damaged.
//!
//! This file owns the decision and the name that goes with it. It refuses to build, ask or count: it hands out builders and opens
//! filters, and the rest is theirs.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::builder::BloomFilterBuilder;
use crate::bytes::BloomFilterBytes;
use crate::error::FormatError;
use crate::hash::KeyHash;
use crate::params::Sizing;
use crate::plan::Plan;
use crate::prefix::{Added, PrefixExtractor};

/// An engine's decisions about filters, in one value that it configures at start and asks at every flush and open.
///
/// ```
/// use blocked_bloom::{FilterPolicy, Level, Plan, PrefixExtractor, TableFilter};
///
/// // Two levels share 20 MB: the small one gets more bits per key.
/// let plan = Plan::for_budget(&[Level::new(1_000_000), Level::new(15_000_000)], 20_000_000)?;
/// let policy = FilterPolicy::from_plan(&plan)
///     .prefixes(PrefixExtractor::fixed(4))
///     .partition_bytes(1 << 20, 16 << 10);
///
/// // Flush: what this table gets.
/// match policy.for_table(0, 1_000) {
///     TableFilter::None => {}
///     TableFilter::Whole(mut builder) => {
///         builder.insert("ab12/apple");
///         let stored = builder.finish()?.to_bytes();
///         // Open: a damaged filter is one that answers "maybe", and a line in the log.
///         let (filter, error) = policy.open(stored);
///         assert!(error.is_none() && filter.view().contains("ab12/apple"));
///     }
///     TableFilter::Partitioned { .. } => unreachable!("a thousand keys do not fill 1 MiB"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FilterPolicy {
    /// By level, 0 first; deeper levels have the last. Never empty.
    sizings: Vec<Sizing>,
    key_hash: KeyHash,
    prefixes: Option<PrefixExtractor>,
    whole_keys: bool,
    partitions: Option<Partitions>,
}

#[derive(Clone, Copy, Debug)]
struct Partitions {
    above: u64,
    bytes: u64,
}

/// What a table gets, as [`FilterPolicy::for_table`] decides it.
///
/// ```
/// use blocked_bloom::{FilterPolicy, Sizing, TableFilter};
/// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0)).partition_bytes(1 << 20, 16 << 10);
/// assert!(matches!(policy.for_table(0, 100_000), TableFilter::Whole(_)));
/// assert!(matches!(policy.for_table(0, 10_000_000), TableFilter::Partitioned { .. }));
/// ```
#[derive(Clone, Debug)]
pub enum TableFilter {
    /// No filter: the level's sizing says that none is worth its memory.
    None,
    /// One filter, by this builder.
    Whole(BloomFilterBuilder),
    /// A filter in partitions: both are for [`PartitionedFilterBuilder::new`](crate::PartitionedFilterBuilder::new).
    Partitioned {
        /// The settings of every partition.
        template: BloomFilterBuilder,
        /// Most bytes of a partition.
        partition_bytes: u64,
    },
}

impl FilterPolicy {
    /// Filters of whole keys of the same sizing on every level, hashed with seed 0, never in partitions.
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, Sizing};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0));
    /// assert_eq!(policy.sizing(3), Sizing::BitsPerKey(10.0));
    /// ```
    pub fn new(sizing: Sizing) -> Self {
        FilterPolicy {
            sizings: vec![sizing],
            key_hash: KeyHash::default(),
            prefixes: None,
            whole_keys: true,
            partitions: None,
        }
    }

    /// A sizing for each level of a plan, in its order; levels past the last have that of the last. A plan without levels gives 10
    /// bits per key. The plan's budget holds for what its levels count: if prefixes are added, count them as keys.
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, Level, Plan};
    /// let plan = Plan::for_budget(&[Level::new(1_000), Level::new(100_000)], 100_000)?;
    /// let policy = FilterPolicy::from_plan(&plan);
    /// assert_eq!(policy.sizing(1), plan.levels()[1].sizing);
    /// assert_eq!(policy.sizing(2), plan.levels()[1].sizing);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn from_plan(plan: &Plan) -> Self {
        let mut policy = FilterPolicy::new(Sizing::BitsPerKey(10.0));
        if !plan.levels().is_empty() {
            policy.sizings = plan.levels().iter().map(|level| level.sizing).collect();
        }
        policy
    }

    /// Hashes keys with another seed, or leaves hashing to the caller.
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, KeyHash, Sizing};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0)).key_hash(KeyHash::Xxh3 { seed: 7 });
    /// assert_eq!(policy.name(), "blocked-bloom.law1.xxh3-7.keys");
    /// ```
    #[must_use]
    pub fn key_hash(self, key_hash: KeyHash) -> Self {
        FilterPolicy { key_hash, ..self }
    }

    /// Adds the prefixes of keys, too: see [`BloomFilterBuilder::prefixes`].
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, PrefixExtractor, Sizing};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0)).prefixes(PrefixExtractor::fixed(4));
    /// assert_eq!(policy.name(), "blocked-bloom.law1.xxh3-0.keys+fixed:4");
    /// ```
    #[must_use]
    pub fn prefixes(self, extractor: PrefixExtractor) -> Self {
        FilterPolicy { prefixes: Some(extractor), whole_keys: true, ..self }
    }

    /// Adds the prefixes of keys alone: see [`BloomFilterBuilder::only_prefixes`].
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, PrefixExtractor, Sizing};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0)).only_prefixes(PrefixExtractor::fixed(4));
    /// assert_eq!(policy.name(), "blocked-bloom.law1.xxh3-0.fixed:4");
    /// ```
    #[must_use]
    pub fn only_prefixes(self, extractor: PrefixExtractor) -> Self {
        FilterPolicy { prefixes: Some(extractor), whole_keys: false, ..self }
    }

    /// Cuts filters that are expected to take more than `above` bytes into partitions of at most `partition_bytes`, at least 128 (a
    /// smaller number counts as that).
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, Sizing, TableFilter};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0)).partition_bytes(1 << 20, 16 << 10);
    /// assert!(matches!(policy.for_table(0, 10_000_000), TableFilter::Partitioned { .. }));
    /// assert!(matches!(policy.for_table(0, 10_000), TableFilter::Whole(_)));
    /// ```
    #[must_use]
    pub fn partition_bytes(self, above: u64, partition_bytes: u64) -> Self {
        FilterPolicy {
            partitions: Some(Partitions { above, bytes: partition_bytes.max(128) }),
            ..self
        }
    }

    /// The sizing of filters on a level; the top one is 0.
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, Sizing};
    /// assert_eq!(FilterPolicy::new(Sizing::BitsPerKey(8.5)).sizing(0), Sizing::BitsPerKey(8.5));
    /// ```
    pub fn sizing(&self, level: usize) -> Sizing {
        let last = self.sizings.len() - 1;
        self.sizings[level.min(last)]
    }

    /// What a table of this level gets that is expected to have so many keys, and prefixes if those are added. The number only
    /// decides between one filter and partitions: a builder sizes for what comes.
    ///
    /// A filter of the caller's hashes, and one that is sized by its bytes, is never cut. With the caller's hashes there are no
    /// prefixes: a builder cannot cut them from a hash, and `finish` will say so.
    ///
    /// A sizing that is out of range is reported by the builder's `finish`.
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, Sizing, TableFilter};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(0.0));
    /// assert!(matches!(policy.for_table(0, 1_000), TableFilter::None));
    /// ```
    pub fn for_table(&self, level: usize, expected_keys: u64) -> TableFilter {
        let sizing = self.sizing(level);
        if sizing.is_no_filter() {
            return TableFilter::None;
        }
        let builder = BloomFilterBuilder::with_key_hash(sizing, self.key_hash);
        let template = match (self.prefixes.clone(), self.whole_keys) {
            (None, _) => builder,
            (Some(extractor), true) => builder.prefixes(extractor),
            (Some(extractor), false) => builder.only_prefixes(extractor),
        };
        let bytes = sizing.params(expected_keys).map_or(0, |params| params.stored_bytes());
        match self.partitions {
            Some(Partitions { above, bytes: partition_bytes })
                if bytes > above && self.can_be_cut(sizing) =>
            {
                TableFilter::Partitioned { template, partition_bytes }
            }
            _ => TableFilter::Whole(template),
        }
    }

    fn can_be_cut(&self, sizing: Sizing) -> bool {
        self.key_hash.hasher().is_some() && !matches!(sizing, Sizing::MaxBytes(_))
    }

    /// Opens the stored filter of a table, or goes on with one that answers "maybe" and gives the reason, for the log and a counter:
    /// see [`BloomFilterBytes::open_or_pass_all`].
    ///
    /// A filter of the policy's hash that was built by another one, with other prefixes or sizes, is opened as it is: what was not
    /// added to it is answered "maybe".
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, Sizing};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0));
    /// let (filter, error) = policy.open(b"damaged");
    /// assert_eq!(error.unwrap().offset(), 7);
    /// assert!(filter.view().contains("any key"));
    /// ```
    pub fn open<B: AsRef<[u8]>>(&self, bytes: B) -> (BloomFilterBytes<B>, Option<FormatError>) {
        BloomFilterBytes::open_or_pass_all(bytes, self.key_hash)
    }

    /// What filters of this policy hold.
    ///
    /// ```
    /// # use blocked_bloom::{Added, FilterPolicy, Sizing};
    /// assert_eq!(FilterPolicy::new(Sizing::BitsPerKey(10.0)).added(), Added::WholeKeys);
    /// ```
    pub fn added(&self) -> Added {
        match (&self.prefixes, self.whole_keys) {
            (None, _) => Added::WholeKeys,
            (Some(rule), true) => Added::WholeKeysAndPrefixes { extractor: rule.id() },
            (Some(rule), false) => Added::Prefixes { extractor: rule.id() },
        }
    }

    /// A name for all that decides whether a filter can answer: the law, the hash and its seed, what was added. Sizes and partitions
    /// are not in it: they may change between tables. Filters carry all of this in their bytes; the name is for engines that record a
    /// policy's name beside a table.
    ///
    /// ```
    /// # use blocked_bloom::{FilterPolicy, KeyHash, Sizing};
    /// let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0)).key_hash(KeyHash::Caller { tag: 5 });
    /// assert_eq!(policy.name(), "blocked-bloom.law1.caller-5.keys");
    /// ```
    pub fn name(&self) -> String {
        let hash = match self.key_hash {
            KeyHash::Xxh3 { seed } => format!("xxh3-{seed}"),
            KeyHash::Caller { tag } => format!("caller-{tag}"),
        };
        let added = match (&self.prefixes, self.whole_keys) {
            (None, _) => "keys".into(),
            (Some(rule), true) => format!("keys+{rule}"),
            (Some(rule), false) => format!("{rule}"),
        };
        format!("blocked-bloom.law1.{hash}.{added}")
    }
}
