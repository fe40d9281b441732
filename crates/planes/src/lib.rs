//! Thousands of small Bloom filters, stored as bit planes and queried together.
//!
//! Log and analytics stores keep a small filter for every page, segment or file, and look one token
//! up in all of them. One by one, each filter costs a cache miss. Here plane `j` holds bit `j` of
//! every row's filter: a query reads the few planes of its items' bits from end to end, and gets a
//! bit for every row. A row is whatever has a filter: a page, a granule, a file, a table, a row of
//! a table.
//!
//! ```
//! use blocked_bloom::{Bitmask, FilterOptions};
//! use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
//!
//! // Pages of a log, each with its different tokens: how many there are at most, and how often a
//! // page may be read in vain. The hash is that of the store's filters, decided in one place.
//! let pages = [vec!["disk", "full", "error"], vec!["disk", "ok"], vec!["net", "error"]];
//! let store = FilterOptions::default();
//! let options = PlanesOptions::for_filters(&store, Shape::for_rate(3, 0.001)?);
//! let hasher = options.hasher()?;
//! let rows = pages.map(|page| page.into_iter().map(move |token| hasher.hash(token)));
//! let planes = Planes::from_hashes(&options, rows)?;
//!
//! // Which pages may have both tokens?
//! let mut hits = Bitmask::new();
//! planes.query(&Query::all(["disk", "error"].map(|token| hasher.hash(token))), &mut hits);
//! assert!(hits.hits().eq([0]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Types
//!
//! | type | what it is |
//! |---|---|
//! | [`Shape`] | blocks, bits and probes of every row's filter: given, or from bits per item or a rate; and the exact rate |
//! | [`PlanesOptions`] | shape, rows in a group, hash, liveness plane, text; makes builders |
//! | [`TextRows`] | rows that are lines of a text: how many, and how they are divided into words |
//! | [`TextState`] | length, lines, checksum and time of a text, to notice later changes of it |
//! | [`PlanesBuilder`] | takes rows, gives back stored groups: for a file that is written while it grows |
//! | [`Planes`] | stored planes, in memory of their own ([`PlanesBytes`]) or in the bytes that they were opened from |
//! | [`Query`] | all of some items, and of each of some lists any: AND, OR, and IN-lists |
//! | [`PlanesLayout`], [`GroupLocation`], [`PlaneLocation`], [`GroupRef`] | which bytes a query needs of a file, and opening what was loaded |
//! | [`PlanesError`], [`ShapeError`] | what was wrong |
//!
//! # Several columns
//!
//! One row's filter serves all columns of a row if a value is hashed together with its column, by
//! [`KeyHasher::hash_parts`](blocked_bloom::KeyHasher::hash_parts); a query then names any subset
//! of the columns. Or a row is an existing filter of the core: [`Planes::from_filters`].
//!
//! # Damage
//!
//! Every plane of every group has a checksum, which covers its place too, so that planes that are
//! loaded one by one are verified one by one. What fails is a typed error, and must not be used to
//! rule a row out. The bytes are described in `docs/planes.md`.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | that of the core; without it the crate is `no_std` with `alloc` |
//! | `rayon` | no | [`par_append_all`](PlanesBuilder::append_all), in the caller's pool |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod builder;
mod copy;
mod error;
mod evaluate;
mod filters;
mod layout;
mod options;
#[cfg(feature = "rayon")]
mod parallel;
mod planes;
mod query;
mod ranged;
mod shape;
mod text;
mod transpose;
#[cfg(test)]
#[path = "../tests/unit/watch.rs"]
mod watch;

pub use builder::PlanesBuilder;
pub use error::{MAX_GROUP_ROWS, PlanesError};
pub use layout::{MAGIC, PlaneLocation, PlanesLayout};
pub use options::PlanesOptions;
pub use planes::{Planes, PlanesBytes};
pub use query::Query;
pub use ranged::{GroupLocation, GroupRef};
pub use shape::{MAX_BLOCK_BITS, MAX_PLANES, MIN_BLOCK_BITS, Shape, ShapeError};
pub use text::{TextRows, TextState};

/// The code in the README compiles and runs.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
