//! Recognises, describes and queries any stored filter, given as bytes or as ranges of a file.
//!
//! The crate uses no files, terminal or threads. The caller (a command-line tool, a page in a
//! browser, a Python package) supplies the bytes and shows the results. Warnings and errors are
//! returned as values.
//!
//! 1. [`recognise`] finds the [`Format`] from the file's name and its first and last bytes.
//! 2. [`Opened::new`] verifies the bytes. For a file that is not wholly in memory it returns the
//!    range that it needs next ([`Error::NotLoaded`]).
//! 3. [`Opened::describe`] describes the filter, [`Opened::lookup`] looks up keys, and
//!    [`Opened::block_loads`] and [`Opened::probes`] return the data to draw it.
//!
//! ```
//! use blocked_bloom_inspect::{FileRanges, LookupOptions, Opened, recognise};
//! # let stored = include_bytes!(concat!(
//! #     env!("CARGO_MANIFEST_DIR"),
//! #     "/../formats/tests/fixtures/rocksdb/bloom_b10_n5000_str.sst"
//! # ));
//! let (head, tail) = (&stored[..64], &stored[stored.len() - 64..]);
//! let format = recognise("000012.sst", head, tail, Some(stored.len() as u64))?;
//! let opened = Opened::new("000012.sst", &FileRanges::from(&stored[..]), format, None)?;
//! for (name, value) in opened.describe().rows {
//!     println!("{name:<32}{value}");
//! }
//! let lookup = opened.lookup(&LookupOptions::default())?;
//! assert_eq!(lookup.contains(&["user00000000", "nobody"])?, [true, false]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each module imports only from modules later in this list: `encoding`; `opened`; `recognise`;
//! `systems`, one module per system; `system`, the traits of these; `facts`; `blocks`, `typed`,
//! `options`; `plan`; `decimal`, `times`, `content`, `error`, `message`, `numbers`, `value`.

mod blocks;
mod content;
mod decimal;
mod encoding;
mod error;
mod facts;
mod message;
pub mod numbers;
mod opened;
mod options;
mod plan;
mod recognise;
mod system;
mod systems;
mod times;
mod typed;
mod value;

pub use blocked_bloom_formats::FileRanges;
pub use blocked_bloom_formats::cassandra::Layout;
pub use blocked_bloom_formats::parquet::{LogicalType, PhysicalType, TimeUnit};

pub use blocks::{BlockLoads, Probe};
pub use content::Content;
pub use encoding::{KeyEncoding, encoding_hint};
pub use error::{BadKey, Damage, Error, Warning};
pub use facts::{DAMAGED, Facts, List};
pub use message::{LookupOption, Message};
pub use opened::{Lookup, Opened};
pub use options::{LookupOptions, Prefix, prefix_rule};
pub use plan::describe_plan;
pub use recognise::{EVIDENCE_BYTES, Unrecognised, begins_as_filter, recognise};
pub use system::{Format, FoundFile};
pub use systems::{
    ColumnFilters, ColumnNames, RowGroupFilter, is_cassandra_name, layout_of_name,
    layout_of_version, queries, spark_hash, spark_type, version_of,
};
pub use typed::{ColumnType, Encoded, VALUE_TYPES, type_name, type_of_name};
pub use value::Value;

/// The code in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
