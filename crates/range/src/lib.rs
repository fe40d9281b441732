//! A static range filter: "could any key of this table lie between these two bounds?"
//!
//! The keys, integers or byte strings, are known and sorted when the filter is built, as when a
//! storage engine flushes a table. The false-positive rate is bounded for all keys and queries: on
//! average over filters at most 1.2 x 2^0.95 x L / 2^(B - 2) for ranges of L units at B bits per
//! key. Long ranges need units of more than one value: see [`RangeOptions::with_unit`].
//!
//! ```
//! use std::ops::Bound::{Excluded, Included};
//! use blocked_bloom_range::{RangeFilter, RangeOptions};
//!
//! // Flush: the keys of a table, in order.
//! let mut builder = RangeOptions::new(16.0).builder();
//! for key in [1_000, 5_000, 9_000_u64] {
//!     builder.insert(key)?;
//! }
//! let stored: Vec<u8> = builder.finish()?.as_bytes().to_vec();
//!
//! // Open: the bytes are used in place.
//! let filter = RangeFilter::from_bytes(stored)?;
//! assert!(filter.contains_range(Included(900_u64), Included(1_000)));
//! assert!(!filter.contains_range(Included(900_u64), Excluded(1_000)));
//! # Ok::<(), blocked_bloom_range::RangeError>(())
//! ```
//!
//! # How it works
//!
//! Values are cut into blocks of `2^w`. A key's code is a hash of its block plus its offset in the
//! block, and the sorted codes are stored in about `l + 2` bits each: `l` low bits, and the rest in
//! unary. A range within a block is a range of codes, which holds a code by chance with a
//! probability of (keys x length / number of codes). This is a bound of the mean over all filters;
//! the rate of a filter whose keys fall into few blocks can be above or below it. The idea is that
//! of Grafite (Costa, Ferragina, Vinciguerra: "Grafite: Taming Adversarial Queries with Optimal
//! Range Filters", SIGMOD 2024).
//!
//! # Bytes
//!
//! The stored form is the form in memory, and is opened without decoding. `docs/format.md` in the
//! repository is normative. Damaged bytes are a typed error, [`RangeError`], and must not be used
//! to answer "absent". No input causes a panic.
//!
//! # Features
//!
//! `std` (default) enables the core's feature of the same name. Without it, the crate is `no_std`
//! with `alloc`.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod builder;
mod error;
mod filter;
mod format;
mod key;
mod options;
mod packed;
mod space;

pub use builder::RangeFilterBuilder;
pub use error::RangeError;
pub use filter::RangeFilter;
pub use format::MAGIC;
pub use key::RangeKey;
pub use options::RangeOptions;

/// Compiles and runs the code of the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
