//! What is looked up in a filter, and how its answers are given.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use blocked_bloom::{
    Bitmask, BloomFilter, ExtractorNameError, Filter as _, PrefixExtractor, Stored,
};
use blocked_bloom_formats::cassandra::CassandraFilter;
use blocked_bloom_formats::guava::GuavaFilter;
use blocked_bloom_formats::parquet::PhysicalType;
use blocked_bloom_formats::redis::RedisFilter;
use blocked_bloom_formats::rocksdb::{FilterBlock, SstFilter};
use blocked_bloom_removable::RemovableFilter;
use blocked_bloom_ribbon::RibbonFilter;
use blocked_bloom_scalable::ScalableBloomFilter;

use crate::error::{BadKey, Error, LookupOption, Warning};
use crate::format::Format;
use crate::formats::cassandra::doubts;
use crate::formats::parquet::Values;
use crate::formats::planes::Phrases;
use crate::formats::spark::Items;

/// What is looked up, beside the keys. The default are whole keys, as text.
///
/// ```
/// use blocked_bloom_inspect::{Error, Format, LookupOption, LookupOptions};
/// let mut options = LookupOptions::default();
/// options.column = Some("customer.id".to_owned());
/// assert_eq!(options.check(Format::Parquet), Ok(()));
/// let error = options.check(Format::Native).unwrap_err();
/// assert_eq!(error.to_string(), "a column is for parquet, not for native");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LookupOptions {
    /// The keys are starts of keys: which prefixes of theirs to look up. Of native filters and SST files.
    pub prefix: Option<Prefix>,
    /// Column of a Parquet file, its path joined by dots. The keys are values of the column's physical type, as [`value_of_text`] reads
    /// them.
    ///
    /// [`value_of_text`]: crate::value_of_text
    pub column: Option<String>,
    /// Row groups of a Parquet file, from 0; none means all. A value may be present if any of them may have it.
    pub row_groups: Vec<usize>,
    /// Type of the values, which a Parquet filter by itself does not say; of a filter of Spark, whose keys are bytes unless this is an
    /// integer type. Of a column, checked.
    pub value_type: Option<PhysicalType>,
    /// The keys are bytes as the system stores them, plain-encoded or serialized, not text. Zeros of floating point are looked up with their
    /// own sign only.
    pub encoded: bool,
}

impl LookupOptions {
    /// Checks that filters of the format have every option that is set.
    ///
    /// # Errors
    ///
    /// [`Error::OptionOfOtherFormat`].
    pub fn check(&self, format: Format) -> Result<(), Error> {
        let given = [
            (LookupOption::Prefix, self.prefix.is_some()),
            (LookupOption::Column, self.column.is_some()),
            (LookupOption::RowGroups, !self.row_groups.is_empty()),
            (LookupOption::ValueType, self.value_type.is_some()),
        ];
        let wrong = given.iter().find(|(of, given)| *given && !of.formats().contains(&format));
        wrong.map_or(Ok(()), |&(option, _)| Err(Error::OptionOfOtherFormat { option, format }))
    }
}

/// Which rule cuts the prefixes that are looked up.
///
/// ```
/// use blocked_bloom::PrefixExtractor;
/// use blocked_bloom_inspect::Prefix;
/// assert_eq!("own".parse(), Ok(Prefix::Own));
/// assert_eq!("fixed:4".parse(), Ok(Prefix::Rule(PrefixExtractor::fixed(4))));
/// assert!("fixed:0".parse::<Prefix>().is_err()); // the same prefix for every key
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Prefix {
    /// The extractor that the SST file names.
    Own,
    /// This rule.
    Rule(PrefixExtractor),
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        match text {
            "own" => Ok(Prefix::Own),
            rule => prefix_rule(rule).map(Prefix::Rule),
        }
    }
}

/// The rule of this name, of those whose prefixes have bytes: one that cuts none gives every key the same, so that nothing is ever absent.
///
/// # Errors
///
/// [`PrefixError`].
///
/// ```
/// let rule = blocked_bloom_inspect::prefix_rule("delimiter:2f:1")?;
/// assert_eq!(rule.prefix(b"a/b/c"), Some(&b"a/"[..]));
/// # Ok::<(), blocked_bloom_inspect::PrefixError>(())
/// ```
pub fn prefix_rule(text: &str) -> Result<PrefixExtractor, PrefixError> {
    let rule: PrefixExtractor = text.parse().map_err(PrefixError::Name)?;
    match rule.name().split(':').collect::<Vec<_>>()[..] {
        ["fixed" | "capped", "0"] => Err(PrefixError::NoBytes),
        ["delimiter", _, "0"] => Err(PrefixError::NoDelimiter),
        _ => Ok(rule),
    }
}

/// Why a text is no rule of prefixes.
///
/// ```
/// use blocked_bloom_inspect::{PrefixError, prefix_rule};
/// assert_eq!(prefix_rule("capped:0"), Err(PrefixError::NoBytes));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PrefixError {
    /// There is no such rule.
    Name(ExtractorNameError),
    /// Its prefixes have no bytes.
    NoBytes,
    /// Its prefixes go up to no delimiter.
    NoDelimiter,
}

impl Display for PrefixError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::NoBytes => f.write_str(
                "prefixes of no bytes are the same for every key: give 1 byte or more, such as fixed:4",
            ),
            Self::NoDelimiter => f.write_str(
                "prefixes up to no delimiter are the same for every key: give a count of 1 or more, such as delimiter:2f:1",
            ),
        }
    }
}

impl std::error::Error for PrefixError {}

/// How keys are looked up.
pub(crate) enum Kind<'o> {
    Bloom(&'o BloomFilter<Stored<&'o [u8]>>),
    Prefixes(&'o BloomFilter<Stored<&'o [u8]>>, PrefixExtractor),
    Growing(&'o ScalableBloomFilter<Stored<&'o [u8]>>),
    Removable(&'o RemovableFilter<Stored<&'o [u8]>>),
    Ribbon(&'o RibbonFilter<&'o [u8]>),
    Planes(Phrases<'o>),
    Block(FilterBlock<&'o [u8]>),
    Sst(&'o SstFilter<'o>),
    SstPrefixes(&'o SstFilter<'o>),
    Values(Values<'o>),
    Cassandra(&'o CassandraFilter<&'o [u8]>),
    Guava(&'o GuavaFilter<&'o [u8]>),
    Spark(Items<'o>),
    Redis(&'o RedisFilter),
    /// "Maybe" for every key.
    PassAll,
}

/// A filter that is ready for lookups of one kind: made by [`Opened::lookup`](crate::Opened::lookup).
///
/// ```
/// # use blocked_bloom::FilterOptions;
/// # use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened};
/// # let mut builder = FilterOptions::default().builder();
/// # builder.extend(["apple"])?;
/// # let stored = builder.finish()?.to_bytes();
/// let opened = Opened::new("keys.bloom", &FileRanges::from(&stored[..]), Format::Native, None)?;
/// let lookup = opened.lookup(&LookupOptions::default())?;
/// assert!(lookup.warnings().is_empty());
/// assert_eq!(lookup.contains(&["apple", "durian"])?, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lookup<'o> {
    pub(crate) kind: Kind<'o>,
    pub(crate) warnings: Vec<Warning>,
    /// Whether keys are text.
    pub(crate) is_text: bool,
}

impl Lookup<'_> {
    /// What the answers are worth, where that is less than is expected. To be shown before them.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether each key may be present: false means certainly absent.
    ///
    /// # Errors
    ///
    /// [`BadKey`]: one is no value of the filter's type.
    pub fn contains<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<bool>, BadKey> {
        let mut hits = Bitmask::new();
        self.contains_batch(keys, &mut hits)?;
        Ok(hits.iter().collect())
    }

    /// [`contains`](Self::contains) as one bit per key.
    ///
    /// # Errors
    ///
    /// [`BadKey`]; `hits` then means nothing.
    pub fn contains_batch<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        hits: &mut Bitmask,
    ) -> Result<(), BadKey> {
        match &self.kind {
            Kind::Bloom(filter) => filter.contains_batch(keys, hits),
            Kind::Prefixes(filter, rule) => filter.contains_prefix_batch(rule, keys, hits),
            Kind::Growing(filter) => filter.contains_batch(keys, hits),
            Kind::Removable(filter) => filter.contains_batch(keys, hits),
            Kind::Ribbon(filter) => filter.contains_batch(keys, hits),
            Kind::Planes(phrases) => {
                let mut rows = Bitmask::new();
                one_by_one(keys, hits, |phrase| phrases.may_be_in_a_row(phrase, &mut rows));
            }
            Kind::Block(filter) => filter.contains_batch(keys, hits),
            Kind::Sst(filter) => filter.contains_batch(keys, hits),
            Kind::SstPrefixes(filter) => {
                one_by_one(keys, hits, |start| filter.contains_prefix(start));
            }
            Kind::Values(values) => return values.contains_batch(keys, hits),
            Kind::Cassandra(filter) => filter.contains_batch(keys, hits),
            Kind::Guava(filter) => filter.contains_batch(keys, hits),
            Kind::Spark(items) => return items.contains_batch(keys, hits),
            Kind::Redis(filter) => filter.contains_batch(keys, hits),
            Kind::PassAll => hits.write(keys.len(), |words| words.fill(u64::MAX)),
        }
        Ok(())
    }

    /// What keys and their answers say against each other: of Cassandra's filters, that keys are numbers as text, and that the file is
    /// perhaps read in a wrong layout. To be shown once, whatever the number of batches.
    ///
    /// Cost: looks at the keys' texts; if none was found, looks up to 64 of them up in the other layouts.
    pub fn doubts<K: AsRef<[u8]>>(&self, keys: &[K], hits: &Bitmask) -> Vec<Warning> {
        match &self.kind {
            Kind::Cassandra(filter) => doubts(filter, keys, hits, self.is_text),
            _ => Vec::new(),
        }
    }
}

/// What will be looked up.
impl fmt::Debug for Lookup<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}

/// Answers of a filter that takes key by key.
fn one_by_one<K: AsRef<[u8]>>(
    keys: &[K],
    hits: &mut Bitmask,
    mut contains: impl FnMut(&[u8]) -> bool,
) {
    hits.write(keys.len(), |words| {
        words.fill(0);
        for (i, key) in keys.iter().enumerate() {
            words[i / 64] |= u64::from(contains(key.as_ref())) << (i % 64);
        }
    });
}
