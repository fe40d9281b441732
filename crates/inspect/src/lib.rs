//! Recognises, describes and queries any stored filter, given as bytes or by ranges of a file.
//!
//! No files, no terminal, no threads: whoever has the bytes, a command-line tool, a page in a
//! browser or a Python package, gives them and shows what comes back. Warnings are returned, errors
//! are values.
//!
//! 1. [`recognise`] finds the [`Format`] by the file's name, its first bytes and its last.
//! 2. [`Opened::new`] verifies what it is given. Of a file that is not wholly in memory it says
//!    which range it needs ([`Error::NotLoaded`]).
//! 3. [`Opened::describe`] says what is known of the filter, [`Opened::lookup`] looks keys up,
//!    [`Opened::block_loads`] and [`Opened::probes`] give what is needed to draw it.
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
//! Modules import only from those below them: `encoding`; `opened`; `recognise`; `systems`, a
//! module for each; `system`, the traits that these have; `facts`; `blocks`, `typed`, `options`;
//! `decimal`, `times`, `content`, `error`, `message`, `numbers`, `value`.

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
