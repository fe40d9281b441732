//! Options of a lookup besides the keys.

use std::str::FromStr;

use blocked_bloom::PrefixExtractor;
use blocked_bloom_formats::parquet::PhysicalType;

use crate::message::Message;

/// Options of a lookup besides the keys. By default, keys are whole keys as text.
///
/// [`Format::check`](crate::Format::check) returns an error for an option that filters of the
/// format do not have.
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
    /// Treats the keys as starts of keys: the rule that cuts the prefixes to look up. For native
    /// filters and SST files.
    pub prefix: Option<Prefix>,
    /// Column of a Parquet file, its path joined by dots. The keys are values of the column, as
    /// [`ColumnType::encode`](crate::ColumnType::encode) reads them. Also selects the column of a
    /// file index that has several.
    pub column: Option<String>,
    /// Row groups of a Parquet file, from 0; empty for all. A value may be present if any of them
    /// may hold it.
    pub row_groups: Vec<usize>,
    /// Type of the values. A Parquet filter without its file needs it; for a column of a file it is
    /// only checked. Keys of Spark filters are bytes unless this is an integer type.
    pub value_type: Option<PhysicalType>,
    /// Whether keys are bytes as the system stores them, plain-encoded or serialized, instead of
    /// text. Floating-point zeros are then looked up with their own sign only.
    pub encoded: bool,
}

/// The rule that cuts the prefixes to look up.
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
    /// The given rule.
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

/// Parses a prefix rule. A rule that cuts empty prefixes is an error: all keys would have the same
/// prefix, so none would ever be absent.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
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
