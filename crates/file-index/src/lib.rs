//! One index over the files of a data set: which of their row groups may have a value.
//!
//! A table of ten thousand Parquet files and a query for one identifier: without an index every
//! footer is read, and then whatever statistics or filters it leads to. Here a few small Bloom
//! filters stand for each row group, all of one shape, stored transposed as the bit planes of
//! [`blocked_bloom_planes`], and a lookup reads a few ranges of one file.
//!
//! The crate knows neither a file format nor storage: hashes go in, row groups come out, and what
//! needs bytes says which and takes them back. `docs/file-index.md` describes the bytes.
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
//! [`FileIndex`] is an index in memory; [`Manifest`] says which ranges of one a lookup needs, and
//! takes them back. Both give the [`Candidates`] among the row groups, from which
//! [`Manifest::prune`] says what is to be read of a file that is listed.
//!
//! # Updating
//!
//! [`Manifest::appender`] adds files; a file that was replaced is simply added again, and one that
//! vanished does no harm. [`FileIndex::compact`] drops what is of no use, and merges the planes.
//!
//! # What is not known is read
//!
//! [`Pruned::Unknown`] is the answer for every file that the index does not know exactly as it is
//! listed now; row groups of which a column is not indexed, or in a type that the caller did not
//! accept, or whose planes are damaged or could not be loaded, are among the candidates.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | that of the core; without it the crate is `no_std` with `alloc` |
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
