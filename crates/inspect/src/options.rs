//! What is looked up in a filter, beside the keys.

use std::str::FromStr;

use blocked_bloom::PrefixExtractor;
use blocked_bloom_formats::parquet::PhysicalType;

use crate::message::Message;

/// What is looked up, beside the keys. The default are whole keys, as text.
///
/// [`Format::check`](crate::Format::check) says whether filters of a format have every option that
/// is set.
///
/// ```
/// use blocked_bloom_inspect::{Format, LookupOptions};
/// let mut options = LookupOptions::default();
/// options.column = Some("customer.id".to_owned());
/// assert_eq!(Format::PARQUET.check(&options), Ok(()));
/// let message = Format::NATIVE.check(&options).unwrap_err();
/// assert_eq!(message.to_string(), "`column` is for file-index and parquet, not for native");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LookupOptions {
    /// The keys are starts of keys: which prefixes of theirs to look up. Of native filters and SST
    /// files.
    pub prefix: Option<Prefix>,
    /// Column of a Parquet file, its path joined by dots. The keys are values of the column,
    /// as [`ColumnType::encode`](crate::ColumnType::encode) reads them. Or column of an index of
    /// files, if it has several.
    pub column: Option<String>,
    /// Row groups of a Parquet file, from 0; none means all. A value may be present if any of them
    /// may have it.
    pub row_groups: Vec<usize>,
    /// Type of the values. A Parquet filter by itself does not say it; keys of a filter of Spark
    /// are bytes unless this is an integer type; for a column it is checked.
    pub value_type: Option<PhysicalType>,
    /// The keys are bytes as the system stores them, plain-encoded or serialized, not text. Zeros
    /// of floating point are looked up with their own sign only.
    pub encoded: bool,
}

/// Which rule cuts the prefixes that are looked up.
///
/// ```
/// use blocked_bloom::PrefixExtractor;
/// use blocked_bloom_inspect::Prefix;
/// assert_eq!("own".parse(), Ok(Prefix::FromFile));
/// assert_eq!("fixed:4".parse(), Ok(Prefix::Rule(PrefixExtractor::fixed(4))));
/// assert!("fixed:0".parse::<Prefix>().is_err()); // the same prefix for every key
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Prefix {
    /// The extractor that the SST file names.
    FromFile,
    /// This rule.
    Rule(PrefixExtractor),
}

impl FromStr for Prefix {
    type Err = Message;

    fn from_str(text: &str) -> Result<Self, Message> {
        match text {
            "own" => Ok(Prefix::FromFile),
            rule => prefix_rule(rule).map(Prefix::Rule),
        }
    }
}

/// The rule of this name. A rule whose prefixes have no bytes is an error: it gives every key the
/// same prefix, so that nothing is ever absent.
///
/// # Errors
///
/// A [`Message`] that says what to give.
///
/// ```
/// let rule = blocked_bloom_inspect::prefix_rule("delimiter:2f:1")?;
/// assert_eq!(rule.prefix(b"a/b/c"), Some(&b"a/"[..]));
/// # Ok::<(), blocked_bloom_inspect::Message>(())
/// ```
pub fn prefix_rule(text: &str) -> Result<PrefixExtractor, Message> {
    let rule: PrefixExtractor = text.parse().map_err(Message::new)?;
    let same = "the same for every key: give";
    match rule.name().split(':').collect::<Vec<_>>()[..] {
        ["fixed" | "capped", "0"] => Err(Message::new(format_args!(
            "prefixes of no bytes are {same} 1 byte or more, such as fixed:4"
        ))),
        ["delimiter", _, "0"] => Err(Message::new(format_args!(
            "prefixes up to no delimiter are {same} a count of 1 or more, such as delimiter:2f:1"
        ))),
        _ => Ok(rule),
    }
}
