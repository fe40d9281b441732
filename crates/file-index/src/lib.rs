//! One index over the files of a data set: which of their row groups may have a value.
//!
//! Without an index, a query for one identifier in ten thousand Parquet files reads every footer,
//! and then statistics or filters. The index has a few small Bloom filters for each row group. All
//! have one shape, and are stored transposed as the bit planes of [`blocked_bloom_planes`], so that
//! a lookup reads a few ranges of one file.
//!
//! The crate takes hashes and returns row groups. It knows neither a file format nor storage:
//! functions return the ranges that they need, and take their bytes from the caller.
//! `docs/file-index.md` describes the stored bytes.
//!
//! # Building
//!
//! ```
//! use blocked_bloom::KeyHash;
//! use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};
//!
//! let column = Column::new("trace_id", KeyHash::Xxh3 { seed: 3 });
//! let hasher = column.hasher()?;
//! // The tag tells this index from others that are stored at the same place before or after it.
//! let mut builder = FileIndexOptions::new(vec![column], 1_700_000_000_000_000_000).builder()?;
//! let mut stored = Vec::new(); // or a file, or an upload
//! let files = [("a.parquet", [["x", "y"], ["y", "z"]]), ("b.parquet", [["u", "v"]; 2])];
//! for (name, row_groups) in files {
//!     let file = FileIdentity::new(name, 12_345).with_etag("\"5d41402a\"");
//!     let mut file = builder.file(file, &[Some("Utf8")], 2)?;
//!     for values in row_groups {
//!         file.insert_hashes(0, &values.map(|value| hasher.hash(value)))?;
//!         stored.extend(file.end_row_group()?);
//!     }
//!     file.end()?;
//! }
//! stored.extend(builder.finish()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Looking up
//!
//! [`FileIndex`] is an index in memory. [`Manifest`] locates the ranges that a lookup needs in a
//! stored index. Both return the [`Candidates`] among the row groups, and [`Manifest::prune`]
//! returns the row groups of a listed file to read.
//!
//! # Updating
//!
//! [`FileIndex::merging_appender`] adds files, and again files that were replaced. Entries of files
//! that no longer exist do no harm. [`FileIndex::compact`] drops files, and merges all planes.
//!
//! # Unknown files and row groups
//!
//! [`Pruned::Unknown`] is the answer for every file that the index does not know exactly as it is
//! listed now. A row group is a candidate if the column is not indexed in it, or has a type that
//! the caller did not accept, or if its planes are damaged or could not be loaded.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `std` | yes | `std` of the core; without it the crate is `no_std` with `alloc` |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod builder;
mod bytes;
mod column;
mod error;
mod identity;
mod index;
mod lookup;
mod manifest;
mod options;
mod part;

pub use builder::{FileBuilder, FileIndexBuilder};
pub use bytes::MAGIC;
pub use error::{FileIndexError, MAX_COLUMNS, MAX_ROW_GROUPS};
pub use identity::{FileIdentity, SameFile, UnknownReason};
pub use index::FileIndex;
pub use lookup::{Candidates, LocatedLookups, Lookup, Pruned};
pub use manifest::{FileEntry, Manifest};
pub use options::{Column, FileIndexOptions};

/// The code in the README compiles and runs.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
