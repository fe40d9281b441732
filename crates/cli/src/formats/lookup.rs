//! What is looked up in a filter, and how its answers are given.

use blocked_bloom::{Bitmask, KeyHash, PrefixExtractor};
use blocked_bloom_formats::parquet::PhysicalType;

use super::value::parse_type;
use crate::failure::{Failure, warn};
use crate::file_format::{Format, check_options};
use crate::keys::{Key, KeyFormat};
use crate::stored::Stored;

/// Whether each key may be present; or the position of a line that is no key, and why.
pub(crate) type Lookup<'a> = Box<dyn FnMut(&[Key]) -> Result<Vec<bool>, (usize, String)> + 'a>;

/// What is looked up, beside the keys.
#[derive(clap::Args)]
pub(crate) struct LookupArgs {
    /// The lines are starts of keys: select those that some key may start with. RULE is the one that build had, or
    /// for an SST file own, or the same rule in these words: fixed:BYTES or capped:BYTES
    #[arg(long, value_name = "RULE", value_parser = Prefix::parse)]
    pub(crate) prefix: Option<Prefix>,

    /// Column of a Parquet file, its path joined by dots. Lines are values of the column's physical type: decimal numbers (of
    /// a date or a timestamp the number that is stored), or the bytes of byte arrays, of fixed ones as many as the schema says;
    /// with --hex the plain-encoded bytes. Without --hex, zeros are looked up with both signs
    #[arg(long, value_name = "PATH")]
    pub(crate) column: Option<String>,

    /// Row group of a Parquet file, from 0; may be repeated: a value is selected if any of them may have it [default: all]
    #[arg(long = "row-group", value_name = "N")]
    pub(crate) row_groups: Vec<usize>,

    /// Physical type of the values of a Parquet filter by itself, which does not say it: int32, int64, int96 (with --hex), float,
    /// double, byte-array or fixed-len-byte-array. Values of another type than its column's are absent, whatever it holds. Of a filter
    /// of Spark: int32 or int64 for lines that are numbers, otherwise they are bytes
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    pub(crate) value_type: Option<PhysicalType>,

    #[command(flatten)]
    pub(crate) key_format: KeyFormat,
}

impl LookupArgs {
    /// Checks that filters of the format have every option that was given.
    pub(crate) fn check(&self, format: Format) -> Result<(), Failure> {
        use Format::{Native, Parquet, ParquetFilter, RocksdbSst, Spark};
        check_options(
            format,
            &[
                ("--prefix", self.prefix.is_some(), &[Native, RocksdbSst]),
                ("--column", self.column.is_some(), &[Parquet]),
                ("--row-group", !self.row_groups.is_empty(), &[Parquet]),
                ("--type", self.value_type.is_some(), &[Parquet, ParquetFilter, Spark]),
            ],
        )
    }
}

/// Which rule cut the prefixes that are looked up.
#[derive(Clone)]
pub(crate) enum Prefix {
    /// The extractor that the file names.
    Own,
    Rule(PrefixExtractor),
}

impl Prefix {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "own" => Ok(Prefix::Own),
            rule => parse_rule(rule).map(Prefix::Rule).map_err(|error| format!("{error}, or own")),
        }
    }
}

/// A rule whose prefixes have bytes: one that cuts none gives every key the same, so that nothing is ever absent.
pub(crate) fn parse_rule(text: &str) -> Result<PrefixExtractor, String> {
    let rule: PrefixExtractor = text.parse().map_err(|error| format!("{error}"))?;
    match rule.name().split(':').collect::<Vec<_>>()[..] {
        ["fixed" | "capped", "0"] => Err(
            "prefixes of no bytes are the same for every key: give 1 byte or more, such as fixed:4"
                .to_owned(),
        ),
        ["delimiter", _, "0"] => Err("prefixes up to no delimiter are the same for every key: \
                                      give a count of 1 or more, such as delimiter:2f:1"
            .to_owned()),
        _ => Ok(rule),
    }
}

/// Warns of a filter whose keys cannot be hashed here.
pub(crate) fn warn_of_hash(stored: &Stored, hash: KeyHash) {
    if hash.hasher().is_err() {
        let name = &stored.name;
        warn(format!("{name}: a filter of {hash}: the answer is \"maybe\" for every key"));
    }
}

/// Answers of a filter that takes batches.
pub(crate) fn in_batches<'a>(
    mut contains_batch: impl FnMut(&[Key], &mut Bitmask) + 'a,
) -> Lookup<'a> {
    let mut hits = Bitmask::new();
    Box::new(move |keys| {
        contains_batch(keys, &mut hits);
        Ok(hits.iter().collect())
    })
}

/// Answers of a filter that takes key by key.
pub(crate) fn one_by_one<'a>(contains: impl Fn(&[u8]) -> bool + 'a) -> Lookup<'a> {
    Box::new(move |keys| Ok(keys.iter().map(|key| contains(key.as_ref())).collect()))
}

/// "Maybe" for every key.
pub(crate) fn pass_all<'a>() -> Lookup<'a> {
    Box::new(|keys| Ok(vec![true; keys.len()]))
}
