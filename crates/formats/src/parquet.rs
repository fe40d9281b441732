//! Split-block Bloom filters of Apache Parquet files, one per row group and column.
//!
//! [`ParquetFile`] finds the filters of a whole file by its footer. A [`SplitBlockFilter`] borrows
//! a stored filter, or owns its blocks and is filled; threads fill an [`AtomicSplitBlockFilter`]
//! together. Values are looked up and inserted by their plain-encoded bytes, which [`Value`] makes,
//! or by the XXH64 of these ([`hash_value`]). [`split_block`] is the probe scheme.
//!
//! ```
//! use blocked_bloom::Filter;
//! use blocked_bloom_formats::parquet::{SplitBlockFilter, Value};
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
//! # Ok::<(), blocked_bloom_formats::parquet::ParquetError>(())
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

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod atomic;
mod error;
mod file;
mod filter;
mod fold;
mod header;
mod kernel;
mod lookup;
mod neighbour;
mod select;
pub mod split_block;
mod thrift;
mod value;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use atomic::AtomicSplitBlockFilter;
pub use error::{MAX_BITSET_BYTES, ParquetError};
pub use file::{Column, MAGICS, ParquetFile, RowGroup};
pub use filter::{SplitBlockFilter, SplitBlocks, StoredSplitBlocks};
pub use split_block::SplitBlock;
pub use value::{PhysicalType, Value, hash_value};
