//! The formats of stored filters, by name.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A format of stored filters, or of files that hold filters.
///
/// Its name is what [`Display`] writes and [`FromStr`] reads.
///
/// ```
/// use blocked_bloom_inspect::Format;
/// assert_eq!(Format::RocksdbSst.to_string(), "rocksdb-sst");
/// assert_eq!("rocksdb-sst".parse(), Ok(Format::RocksdbSst));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A Bloom filter of this project, with its header.
    Native,
    /// The same without a header, for containers that have a checksum of their own: blocks and eight bytes.
    Compact,
    /// A filter that grows, a chain of native ones, of `blocked-bloom-scalable`.
    Growing,
    /// The index of a filter in partitions, of `blocked-bloom-lsm`. The partitions are native filters of their own.
    PartitionIndex,
    /// A static filter, smaller and slower, of `blocked-bloom-ribbon`.
    Ribbon,
    /// A filter that keys can be removed from, of `blocked-bloom-removable`.
    Removable,
    /// Bit planes, a skip index, of `blocked-bloom-planes`.
    Planes,
    /// A filter block of RocksDB, without the SST file around it.
    RocksdbBlock,
    /// An SST file of RocksDB, with the filter in it.
    RocksdbSst,
    /// A Bloom filter of Parquet: header and bitset, without the file around it.
    ParquetFilter,
    /// A Parquet file, with the filters in it.
    Parquet,
    /// Cassandra's `Filter.db`.
    Cassandra,
    /// What `writeTo` of Guava's `BloomFilter` wrote.
    Guava,
    /// What `writeTo` of Spark's `BloomFilter` wrote.
    Spark,
    /// A file of the replies of RedisBloom's `BF.SCANDUMP`.
    Redisbloom,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 15] = [
        Format::Native,
        Format::Compact,
        Format::Growing,
        Format::PartitionIndex,
        Format::Ribbon,
        Format::Removable,
        Format::Planes,
        Format::RocksdbBlock,
        Format::RocksdbSst,
        Format::ParquetFilter,
        Format::Parquet,
        Format::Cassandra,
        Format::Guava,
        Format::Spark,
        Format::Redisbloom,
    ];

    /// The name, in lower case with hyphens.
    pub fn name(self) -> &'static str {
        match self {
            Format::Native => "native",
            Format::Compact => "compact",
            Format::Growing => "growing",
            Format::PartitionIndex => "partition-index",
            Format::Ribbon => "ribbon",
            Format::Removable => "removable",
            Format::Planes => "planes",
            Format::RocksdbBlock => "rocksdb-block",
            Format::RocksdbSst => "rocksdb-sst",
            Format::ParquetFilter => "parquet-filter",
            Format::Parquet => "parquet",
            Format::Cassandra => "cassandra",
            Format::Guava => "guava",
            Format::Spark => "spark",
            Format::Redisbloom => "redisbloom",
        }
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// A name that no [`Format`] has.
///
/// ```
/// use blocked_bloom_inspect::Format;
/// let error = "bitmap".parse::<Format>().unwrap_err();
/// assert!(error.to_string().starts_with("unknown format \"bitmap\" (supported: native, compact, "));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
}

impl Display for UnknownFormat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = Format::ALL.map(Format::name).join(", ");
        write!(f, "unknown format {:?} (supported: {names})", self.name)
    }
}

impl std::error::Error for UnknownFormat {}
