//! Parquet files, whose columns may have a split-block Bloom filter in each row group.
//!
//! [`ParquetFile`] finds the filters of a whole file by its footer, [`filter_at`] one by its
//! offset. Both give a `SplitBlockFilter` of the package [`blocked_bloom_split`], which also writes
//! filters. Values are looked up by the hash of their plain-encoded bytes, which [`Value`] makes.
//!
//! ```
//! use blocked_bloom::Filter;
//! use blocked_bloom_formats::parquet::Value;
//! use blocked_bloom_split::SplitBlockFilter;
//!
//! // A writer: distinct values and false-positive rate of a column of a row group.
//! let mut filter = SplitBlockFilter::new(1_000, 0.01)?;
//! for value in 0..1_000_i64 {
//!     filter.insert_hash(Value::Int64(value).hash());
//! }
//! let stored = filter.to_bytes(); // at ColumnMetaData's bloom_filter_offset, this long
//!
//! // A reader: no value of the row group equals -1, which need not be read.
//! let filter = SplitBlockFilter::from_bytes(&stored)?;
//! assert!(filter.contains_hash(Value::Int64(7).hash()));
//! assert!(!filter.contains_hash(Value::Int64(-1).hash()));
//! # Ok::<(), blocked_bloom_split::SplitBlockError>(())
//! ```
//!
//! # Damage
//!
//! Parquet stores no checksum of a filter. Damage of the header, of lengths and offsets, and
//! truncation are a [`ParquetError`]; **a cleared bit of the bitset cannot be detected and makes a
//! value that is there "absent"**. Where files may be damaged, verify them by other means. No input
//! makes this module panic or allocate more than some 60 times its own length.
//!
//! Encrypted filters, hashes other than XXH64, other algorithms, and compression, of which Parquet
//! has none, are errors, too.

mod error;
mod file;
mod filter_at;
mod logical;
mod neighbour;
mod value;

pub use error::ParquetError;
pub use file::{Column, MAGICS, ParquetFile, RowGroup};
pub use filter_at::filter_at;
pub use logical::{LogicalType, TimeUnit};
pub use value::{PhysicalType, Value};
