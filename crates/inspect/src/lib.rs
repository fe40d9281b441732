//! Recognises, describes and queries any stored filter, given as bytes or by ranges of a file.
//!
//! No files, no terminal, no threads: whoever has the bytes, a command-line tool, a page in a browser or a Python package, gives them and
//! shows what comes back. Warnings are returned, errors are values.
//!
//! 1. [`recognise`] finds the [`Format`] by the file's name, its first bytes and its last.
//! 2. [`Opened::new`] verifies what it is given. Of a file that is not wholly in memory it says which range it needs
//!    ([`Error::NotLoaded`]).
//! 3. [`Opened::describe`] says what is known of the filter, [`Opened::lookup`] looks keys up, [`Opened::block_loads`] and
//!    [`Opened::probes`] give what is needed to draw it.
//!
//! ```
//! use blocked_bloom_inspect::{FileRanges, LookupOptions, Opened, recognise};
//! # let stored = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/fixtures/rocksdb/bloom_b10_n5000_str.sst"));
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

mod error;
mod facts;
mod format;
mod formats;
mod loads;
mod lookup;
mod opened;
mod recognise;
mod value;

pub use blocked_bloom_formats::FileRanges;
pub use blocked_bloom_formats::cassandra::Layout;
pub use blocked_bloom_formats::parquet::PhysicalType;

pub use error::{BadKey, ColumnNames, Damage, Error, KeyProblem, LookupOption, Warning};
pub use facts::{DAMAGED, Facts, List, binary_bytes, percent};
pub use format::{Format, UnknownFormat};
pub use formats::cassandra::{layout_of_name, version_of};
pub use formats::parquet::{ColumnFilters, RowGroupFilter};
pub use formats::planes::queries;
pub use formats::spark::{spark_hash, spark_type};
pub use formats::typed::{
    VALUE_TYPES, other_zero, type_name, type_of_name, value_of_bytes, value_of_text,
};
pub use loads::{BlockLoads, Probe};
pub use lookup::{Lookup, LookupOptions, Prefix, PrefixError, prefix_rule};
pub use opened::Opened;
pub use recognise::{
    EVIDENCE_BYTES, Unrecognised, begins_as_filter, is_cassandra_name, length_by_header, recognise,
};
pub use value::Value;

/// The code in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
