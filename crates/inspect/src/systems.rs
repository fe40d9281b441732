//! The known systems, one module each.
//!
//! Adding a format takes one file and one line. The file `systems/NAME.rs`, with its `mod` line
//! here, contains everything about the format:
//!
//! ```text
//! impl Format {
//!     /// A filter of NAME.
//!     pub const NAME: Format = Format::new(&System {
//!         recognise: by its name, its first or its last bytes,
//!         ..System::new("name", summary, mark, open)
//!     });
//! }
//!
//! impl Stored for NameFilter {
//!     describe, lookup, and for filters of blocks: parts, part, places
//! }
//! ```
//!
//! The line puts it into [`Format::ALL`], where it is found by its name and its mark. The tool, the
//! page and the Python package have no code for single formats: their lists of formats, help and
//! errors come from here.

mod cassandra;
mod classical;
mod compact;
#[cfg(feature = "file-index")]
mod file_index;
mod growing;
mod guava;
mod native;
mod parquet;
mod parquet_filter;
mod partition_index;
mod planes;
#[cfg(feature = "range")]
mod range;
mod redis;
mod removable;
mod ribbon;
mod rocksdb;
mod sealed;
mod spark;

use crate::system::Format;

pub use cassandra::{is_cassandra_name, layout_of_name, layout_of_version, version_of};
pub(crate) use compact::is_candidate as may_be_compact;
pub use parquet::{ColumnFilters, ColumnNames, RowGroupFilter};
pub(crate) use parquet::{column, columns_with_filters, missing};
pub(crate) use partition_index::Partitioned;
pub use planes::queries;
pub use spark::{spark_hash, spark_type};

const FORMATS: usize =
    15 + cfg!(feature = "file-index") as usize + cfg!(feature = "range") as usize;

impl Format {
    /// Every format.
    pub const ALL: [Format; FORMATS] = [
        Format::NATIVE,
        Format::COMPACT,
        Format::GROWING,
        Format::PARTITION_INDEX,
        Format::RIBBON,
        #[cfg(feature = "range")]
        Format::RANGE,
        Format::REMOVABLE,
        Format::PLANES,
        #[cfg(feature = "file-index")]
        Format::FILE_INDEX,
        Format::ROCKSDB_BLOCK,
        Format::ROCKSDB_SST,
        Format::PARQUET_FILTER,
        Format::PARQUET,
        Format::CASSANDRA,
        Format::GUAVA,
        Format::SPARK,
        Format::REDISBLOOM,
    ];
}
