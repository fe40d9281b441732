//! Why a stored filter cannot be opened or looked up in, what its answers are worth, and why a key is none.
//!
//! The texts name no option of any program. A front end that has options words those variants itself that one of them would help with, and
//! shows the text of the others.

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};

use blocked_bloom::{FilterContents, FormatError, KeyHash};
use blocked_bloom_formats::ClassicalError;
use blocked_bloom_formats::cassandra::{CassandraError, Layout};
use blocked_bloom_formats::parquet::{ParquetError, PhysicalType};
use blocked_bloom_formats::redis::RedisError;
use blocked_bloom_formats::rocksdb::{FilterLayout, RocksdbError};
use blocked_bloom_lsm::PartitionError;
use blocked_bloom_planes::PlanesError;
use blocked_bloom_ribbon::RibbonError;
use blocked_bloom_scalable::ScalableFormatError;

use crate::format::Format;
use crate::formats::rocksdb::layout_text;

/// Why a stored filter cannot be opened, or cannot be looked up in as was wanted.
///
/// ```
/// use blocked_bloom_inspect::{Error, FileRanges, Format, Opened};
/// let error = Opened::new("f.sst", &FileRanges::new(3 << 30), Format::RocksdbSst, None).unwrap_err();
/// assert_eq!(error, Error::NotLoaded { offset: (3 << 30) - 53, length: 53 });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Bytes of the file are needed that were not loaded: insert them, and try again.
    NotLoaded {
        /// Where they begin.
        offset: u64,
        /// How many they are.
        length: u64,
    },
    /// The bytes are damaged, or not of the format. They must not be used to answer "absent".
    Damaged {
        /// The format that they were read as.
        format: Format,
        /// What is wrong.
        damage: Damage,
    },
    /// The layout of a Cassandra filter is not known from the file's name: give it.
    CassandraLayout(CassandraError),
    /// What is to be looked up has an option that filters of the format do not have.
    OptionOfOtherFormat {
        /// The option.
        option: LookupOption,
        /// The format of the filter.
        format: Format,
    },
    /// The rule of prefixes is to be the filter's own, but a native filter has no more than a hash of its rule's name: give the rule.
    OwnRuleUnknown,
    /// A Parquet filter by itself does not say of which type its values are: give the type.
    TypeNotGiven,
    /// Spark's filters take no values of this type.
    SparkType {
        /// The type that was given.
        found: PhysicalType,
    },
    /// A Parquet file has a filter per column, and no column was given.
    ColumnNotGiven {
        /// Columns that have filters.
        columns: ColumnNames,
    },
    /// The file, or one of its row groups, has no such column.
    NoSuchColumn {
        /// The name that was given.
        column: String,
        /// The row group, if there is any.
        row_group: Option<usize>,
        /// Columns that have filters.
        columns: ColumnNames,
    },
    /// Several columns have this name, since names may have dots.
    AmbiguousColumn {
        /// The name.
        column: String,
    },
    /// The file has no such row group.
    NoSuchRowGroup {
        /// The row group that was given.
        row_group: usize,
        /// How many there are.
        row_groups: usize,
    },
    /// The column has another type in this row group than in those before: choose row groups of one type.
    ColumnTypeChanges {
        /// The column.
        column: String,
        /// The row group.
        row_group: usize,
    },
    /// The column has values of another type than was given.
    ColumnType {
        /// The column.
        column: String,
        /// The column's type.
        expected: PhysicalType,
        /// The type that was given.
        found: PhysicalType,
    },
    /// The column's filter in this row group is damaged: choose other row groups.
    ColumnDamaged {
        /// The column.
        column: String,
        /// The row group.
        row_group: usize,
        /// What is wrong.
        error: ParquetError,
    },
    /// A key is no value of the filter's type.
    Key(BadKey),
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const ADVICE: &str = "it must not be used to answer \"absent\"; rebuild it, or do without";
        match self {
            Self::NotLoaded { offset, length } => {
                write!(f, "{length} bytes from offset {offset} are needed and were not loaded")
            }
            Self::Damaged { format, damage } => write!(f, "{damage} (read as {format}; {ADVICE})"),
            Self::Key(error) => error.fmt(f),
            Self::CassandraLayout(error) => write!(f, "{error}; or give the version"),
            Self::OptionOfOtherFormat { option, format } => {
                let formats: Vec<&str> = option.formats().iter().map(|of| of.name()).collect();
                write!(f, "{option} is for {}, not for {format}", formats.join(" and "))
            }
            Self::OwnRuleUnknown => f.write_str(
                "the filter has no more than a hash of its rule's name: give the rule that it was built with, not own",
            ),
            Self::TypeNotGiven => f.write_str(
                "give the type of the values: the filter does not say of which type they are, and those of another are absent whatever \
                 it holds",
            ),
            Self::SparkType { found } => {
                write!(f, "values of {found}: for spark give INT32, INT64 or BYTE_ARRAY")
            }
            Self::ColumnNotGiven { columns } => {
                write!(f, "give a column: columns with filters are {columns}")
            }
            Self::NoSuchColumn { column, row_group: Some(row_group), columns } => write!(
                f,
                "no column {column:?} in row group {row_group}: columns with filters are {columns}"
            ),
            Self::NoSuchColumn { column, row_group: None, columns } => {
                write!(f, "no column {column:?}: columns with filters are {columns}")
            }
            Self::AmbiguousColumn { column } => {
                write!(f, "more than one column {column:?}, since names have dots")
            }
            Self::NoSuchRowGroup { row_group, row_groups } => {
                write!(f, "no row group {row_group}: there are {row_groups}, from 0")
            }
            Self::ColumnTypeChanges { column, row_group } => write!(
                f,
                "column {column:?} has another type in row group {row_group} than in those before: choose row groups"
            ),
            Self::ColumnType { column, expected, found } => {
                write!(f, "column {column:?} has values of {expected}, not {found}")
            }
            Self::ColumnDamaged { column, row_group, error } => write!(
                f,
                "column {column:?}, row group {row_group}: {error}; choose other row groups (read as {}; {ADVICE})",
                Format::Parquet
            ),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Damaged { damage, .. } => Some(damage),
            Self::CassandraLayout(error) => Some(error),
            Self::ColumnDamaged { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// What is wrong with the bytes of a stored filter: the error of the package that reads them.
///
/// ```
/// use blocked_bloom_inspect::{Damage, Error, FileRanges, Format, Opened};
/// let file = FileRanges::from(&b"no filter"[..]);
/// let error = Opened::new("f", &file, Format::Guava, None).unwrap_err();
/// assert!(matches!(error, Error::Damaged { format: Format::Guava, damage: Damage::Classical(_) }));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Damage {
    /// Of a native, compact or removable filter.
    Bloom(FormatError),
    /// Of a chain of filters.
    Growing(ScalableFormatError),
    /// Of the index of a filter in partitions.
    PartitionIndex(PartitionError),
    /// Of a Ribbon filter.
    Ribbon(RibbonError),
    /// Of bit planes.
    Planes(PlanesError),
    /// Of a filter block or an SST file.
    Rocksdb(RocksdbError),
    /// Of a Parquet filter or file.
    Parquet(ParquetError),
    /// Of one of the filters of a Parquet file, the first that is damaged.
    ColumnChunk {
        /// The column.
        column: String,
        /// The row group.
        row_group: usize,
        /// What is wrong.
        error: ParquetError,
    },
    /// Of a filter of Cassandra, Guava or Spark.
    Classical(ClassicalError),
    /// Of a dump of RedisBloom.
    Redis(RedisError),
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bloom(error) => error.fmt(f),
            Self::Growing(error) => error.fmt(f),
            Self::PartitionIndex(error) => error.fmt(f),
            Self::Ribbon(error) => error.fmt(f),
            Self::Planes(error) => error.fmt(f),
            Self::Rocksdb(error) => error.fmt(f),
            Self::Parquet(error) => error.fmt(f),
            Self::ColumnChunk { column, row_group, error } => {
                write!(f, "{column}, row group {row_group}: {error}")
            }
            Self::Classical(error) => error.fmt(f),
            Self::Redis(error) => error.fmt(f),
        }
    }
}

impl StdError for Damage {}

macro_rules! from_errors {
    ($($variant:ident($error:ty))*) => {
        $(impl From<$error> for Damage {
            fn from(error: $error) -> Self {
                Damage::$variant(error)
            }
        })*
    };
}

from_errors! {
    Bloom(FormatError) Growing(ScalableFormatError) PartitionIndex(PartitionError) Ribbon(RibbonError) Planes(PlanesError)
    Rocksdb(RocksdbError) Parquet(ParquetError) Classical(ClassicalError) Redis(RedisError)
}

/// Names of columns for a message: the first twenty, and how many more there are.
///
/// ```
/// # use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// # let stored = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/fixtures/parquet/duckdb_n3000.parquet"));
/// let opened = Opened::new("duckdb.parquet", &FileRanges::from(&stored[..]), Format::Parquet, None)?;
/// let columns = opened.columns_with_filters();
/// assert_eq!(columns.to_string(), columns.names.join(", "));
/// # Ok::<(), blocked_bloom_inspect::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnNames {
    /// In alphabetic order.
    pub names: Vec<String>,
    /// How many are left out.
    pub more: usize,
}

impl Display for ColumnNames {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ColumnNames { names, .. } if names.is_empty() => f.write_str("none"),
            ColumnNames { names, more: 0 } => f.write_str(&names.join(", ")),
            ColumnNames { names, more } => write!(f, "{}, and {more} more", names.join(", ")),
        }
    }
}

/// An option of a lookup that not all formats have: the fields of [`LookupOptions`](crate::LookupOptions).
///
/// ```
/// use blocked_bloom_inspect::{Format, LookupOption};
/// assert_eq!(LookupOption::Prefix.formats(), [Format::Native, Format::RocksdbSst]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupOption {
    /// Look up starts of keys.
    Prefix,
    /// The column of a Parquet file.
    Column,
    /// The row groups of a Parquet file.
    RowGroups,
    /// The type of values.
    ValueType,
}

impl LookupOption {
    /// The formats that have it.
    pub fn formats(self) -> &'static [Format] {
        match self {
            LookupOption::Prefix => &[Format::Native, Format::RocksdbSst],
            LookupOption::Column | LookupOption::RowGroups => &[Format::Parquet],
            LookupOption::ValueType => &[Format::Parquet, Format::ParquetFilter, Format::Spark],
        }
    }
}

impl Display for LookupOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LookupOption::Prefix => "a prefix",
            LookupOption::Column => "a column",
            LookupOption::RowGroups => "a row group",
            LookupOption::ValueType => "a type",
        })
    }
}

/// What the answers of a filter are worth, where that is less than is expected.
///
/// ```
/// use blocked_bloom::{FilterOptions, KeyHash, Sizing};
/// use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened, Warning};
/// let key_hash = KeyHash::Caller { tag: 1 };
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(key_hash);
/// let stored = options.empty_filter(1_000)?.to_bytes();
/// let opened = Opened::new("f", &FileRanges::from(&stored[..]), Format::Native, None)?;
/// let lookup = opened.lookup(&LookupOptions::default())?;
/// assert_eq!(lookup.warnings(), [Warning::CallersHash { key_hash }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Keys cannot be hashed here: every answer is "maybe".
    CallersHash {
        /// What they are hashed with.
        key_hash: KeyHash,
    },
    /// A native filter does not hold what is looked up: every answer is "maybe".
    Contents {
        /// What it holds.
        contents: FilterContents,
        /// What was looked up: `keys`, or prefixes by a rule.
        looked_up: String,
    },
    /// The index of a filter in partitions is without them: every answer is "maybe".
    IndexOnly,
    /// An SST file has no filter that is read: every answer is "maybe".
    NoFilter {
        /// What it has.
        layout: FilterLayout,
    },
    /// The filter has only prefixes, and whole keys are looked up: every answer is "maybe".
    OnlyPrefixes {
        /// The name of their extractor.
        extractor: String,
    },
    /// The SST file does not say whether whole keys are in its filter: every answer is "maybe".
    WholeKeysUnknown,
    /// The filter has no prefixes, and starts of keys are looked up: every answer is "maybe".
    NoPrefixes,
    /// The filter has prefixes by an extractor that is not known here: every answer is "maybe".
    UnknownExtractor {
        /// Its name.
        extractor: String,
    },
    /// The filter has prefixes by another extractor than was given: every answer is "maybe".
    OtherExtractor {
        /// Its name.
        extractor: String,
        /// The rule that was given.
        rule: String,
    },
    /// Filter blocks answer "maybe" for every key.
    BlocksWithoutAnswers {
        /// How many do.
        blocks: u64,
        /// Of this many.
        all: u64,
        /// What one of them is.
        kind: &'static str,
    },
    /// The column has no filter in some of the row groups: every answer is "maybe".
    RowGroupsWithoutFilter {
        /// The column.
        column: String,
        /// The row groups.
        row_groups: Vec<usize>,
        /// Columns that have filters.
        columns: ColumnNames,
    },
    /// A Cassandra filter of no bytes: every answer is "maybe".
    EmptyFile,
    /// A key of a Cassandra filter is written as a number or a UUID, whose serialized bytes are others: they are absent as text.
    NumberAsText {
        /// The key.
        key: Vec<u8>,
    },
    /// No key of a Cassandra filter was found, but all are if the file is read in another layout: its name may be wrong.
    OtherLayout {
        /// The layout that it is read in.
        layout: Layout,
        /// The other.
        other: Layout,
        /// How many keys were looked up in both.
        keys: usize,
    },
}

impl Warning {
    /// Whether every answer of the lookup is "maybe".
    pub fn is_pass_all(&self) -> bool {
        match self {
            Self::NumberAsText { .. } | Self::OtherLayout { .. } => false,
            Self::BlocksWithoutAnswers { blocks, all, .. } => blocks == all,
            _ => true,
        }
    }

    /// The text without what follows for the answers.
    pub fn problem(&self) -> String {
        match self {
            Self::CallersHash { key_hash } => format!("a filter of {key_hash}"),
            Self::Contents { contents, looked_up } => {
                format!("the filter holds {contents}, not {looked_up}")
            }
            Self::IndexOnly => {
                "the index of a partitioned filter, without its partitions".to_owned()
            }
            Self::NoFilter { layout } => format!("the file has {}", layout_text(*layout)),
            Self::OnlyPrefixes { extractor } => {
                format!("the filter has only prefixes by {extractor}")
            }
            Self::WholeKeysUnknown => {
                "the file does not say whether whole keys are in its filter".to_owned()
            }
            Self::NoPrefixes => "the filter has no prefixes".to_owned(),
            Self::UnknownExtractor { extractor } => {
                format!("the filter has prefixes by {extractor}, which is not known here")
            }
            Self::OtherExtractor { extractor, rule } => {
                format!("the filter has prefixes by {extractor}, not by {rule}")
            }
            Self::BlocksWithoutAnswers { blocks: 1, all: 1, kind } => {
                format!("the filter is {kind}")
            }
            Self::BlocksWithoutAnswers { blocks, all, kind } => {
                format!("{blocks} of {all} partitions are {kind}")
            }
            Self::RowGroupsWithoutFilter { column, row_groups, .. } => {
                let row_groups: Vec<String> = row_groups.iter().map(usize::to_string).collect();
                format!("column {column:?} has no filter in row group {}", row_groups.join(", "))
            }
            Self::EmptyFile => "the file is empty".to_owned(),
            Self::NumberAsText { key } => format!(
                "'{}' and the like are looked up as text; if the partition key is an int, a uuid or composite, give its serialized bytes, \
                 such as 00 00 00 2a for the int 42",
                key.escape_ascii()
            ),
            Self::OtherLayout { layout, other, keys } => format!(
                "read as of {layout}, none of {keys} keys is found; read as of {other}, all are: its name may be wrong"
            ),
        }
    }
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem())?;
        match self {
            Self::NumberAsText { .. } | Self::OtherLayout { .. } => Ok(()),
            Self::RowGroupsWithoutFilter { columns, .. } => write!(
                f,
                ": the answer is \"maybe\" for every value; columns with filters are {columns}"
            ),
            Self::BlocksWithoutAnswers { all: 2.., .. } => {
                f.write_str(": their answer is \"maybe\" for every key")
            }
            _ => f.write_str(": the answer is \"maybe\" for every key"),
        }
    }
}

/// Why a key cannot be looked up: its bytes would be absent whatever the filter holds.
///
/// ```
/// use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened, PhysicalType};
/// # let stored = blocked_bloom_formats::parquet::SplitBlockFilter::new(10, 0.01)?.to_bytes();
/// let opened = Opened::new("f", &FileRanges::from(&stored[..]), Format::ParquetFilter, None)?;
/// let mut options = LookupOptions::default();
/// options.value_type = Some(PhysicalType::Int64);
/// let error = opened.lookup(&options)?.contains(&["1", "two"]).unwrap_err();
/// assert_eq!((error.index, error.to_string()), (1, "found 'two', expected a whole number of 64 bits".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BadKey {
    /// Which key, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub problem: KeyProblem,
}

impl Display for BadKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl StdError for BadKey {}

/// What is wrong with a key: see [`BadKey`].
///
/// ```
/// use blocked_bloom_inspect::{KeyProblem, PhysicalType, value_of_text};
/// let problem = value_of_text(PhysicalType::Float, b"nan").unwrap_err();
/// assert!(matches!(&problem, KeyProblem::Text { physical_type: PhysicalType::Float, .. }));
/// assert!(problem.to_string().starts_with("found 'nan', expected a number within the range of FLOAT"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum KeyProblem {
    /// A text that is no value of the type.
    Text {
        /// The text.
        found: Vec<u8>,
        /// The type.
        physical_type: PhysicalType,
    },
    /// Plain-encoded bytes of another length than values of the type have.
    Length {
        /// The bytes given.
        found: usize,
        /// The bytes of a value.
        expected: usize,
        /// The type.
        physical_type: PhysicalType,
    },
    /// A value that the column cannot have.
    Column(ParquetError),
}

impl Display for KeyProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { found, physical_type } => {
                let expected = match physical_type {
                    PhysicalType::Int32 => "a whole number of 32 bits",
                    PhysicalType::Int64 => "a whole number of 64 bits",
                    PhysicalType::Int96 => "INT96 as its 12 bytes",
                    PhysicalType::Float => {
                        "a number within the range of FLOAT (NaN, which has many encodings, as its bytes)"
                    }
                    PhysicalType::Double => {
                        "a number within the range of DOUBLE (NaN, which has many encodings, as its bytes)"
                    }
                    _ => "a value",
                };
                write!(f, "found '{}', expected {expected}", found.escape_ascii())
            }
            Self::Length { found, expected, physical_type } => {
                write!(f, "found {found} bytes, expected the {expected} of {physical_type}")
            }
            Self::Column(error) => error.fmt(f),
        }
    }
}

impl StdError for KeyProblem {}
