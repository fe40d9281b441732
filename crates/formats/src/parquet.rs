//! Parquet files, whose columns may have a split-block Bloom filter in each row group.
//!
//! [`ParquetFile`] locates the filters of a whole file through its footer, and [`filter_at`] one
//! filter by its offset. Both return a `SplitBlockFilter` of the package [`blocked_bloom_split`],
//! which also writes filters. Values are looked up by the hash of their plain-encoded bytes, from
//! [`Value`].
//!
//! ```
//! use blocked_bloom::Filter;
//! use blocked_bloom_formats::parquet::Value;
//! use blocked_bloom_split::SplitBlockFilter;
//!
//! // A writer: distinct values and false-positive rate of a column in a row group.
//! let mut filter = SplitBlockFilter::new(1_000, 0.01)?;
//! for value in 0..1_000_i64 {
//!     filter.insert_hash(Value::Int64(value).hash());
//! }
//! let stored = filter.to_bytes(); // at ColumnMetaData's bloom_filter_offset, this long
//!
//! // A reader: no value of the row group equals -1, so it can be skipped.
//! let filter = SplitBlockFilter::from_bytes(&stored)?;
//! assert!(filter.contains_hash(Value::Int64(7).hash()));
//! assert!(!filter.contains_hash(Value::Int64(-1).hash()));
//! # Ok::<(), blocked_bloom_split::SplitBlockError>(())
//! ```
//!
//! # Damage
//!
//! Parquet stores no checksum of a filter. Damage to the header, to lengths and offsets, and
//! truncation return a [`ParquetError`]. **A cleared bit of the bitset cannot be detected and makes
//! a present value "absent"**. If files may be damaged, verify them by other means. No input makes
//! this module panic or allocate more than about 60 times its own length.
//!
//! Encrypted filters, other hashes than XXH64, other algorithms, and compression (Parquet defines
//! none) are errors too.

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
