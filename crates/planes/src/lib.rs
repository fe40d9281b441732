//! Thousands of small Bloom filters, stored as bit planes and queried together.
//!
//! Log and analytics stores keep a small filter for every page, segment or file, and look up one
//! token in all of them. With separate filters, each lookup costs a cache miss. Here plane `j`
//! contains bit `j` of every row's filter: a query reads only the planes of its items' bits,
//! sequentially, and returns one bit per row. A row is anything that has a filter: a page, a
//! granule, a file, a table, or a row of a table.
//!
//! ```
//! use blocked_bloom::{Bitmask, FilterOptions};
//! use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
//!
//! // Pages of a log, each with at most 3 distinct tokens. One page in 1,000 may be a false match.
//! // The hash comes from the options of the store's filters.
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
//! | [`Shape`] | blocks, bits and probes of every row's filter: explicit, or from bits per item or a rate |
//! | [`PlanesOptions`] | shape, rows in a group, hash, liveness plane, text; creates builders |
//! | [`TextRows`] | lines of text as rows: lines per row, and how lines are divided into words |
//! | [`TextState`] | length, lines, checksum and time of a text, to notice later changes of it |
//! | [`PlanesBuilder`] | takes rows and returns stored groups, for a file that is written while it grows |
//! | [`Planes`] | stored planes, in their own memory ([`PlanesBytes`]) or in the bytes from which they were opened |
//! | [`Query`] | AND and OR of items, including IN-lists |
//! | [`PlanesLayout`], [`GroupLocation`], [`PlaneLocation`], [`GroupRef`] | locate the bytes of a file that a query needs, and open the loaded bytes |
//! | [`PlanesError`], [`ShapeError`] | errors |
//!
//! # Several columns
//!
//! One filter can serve all columns of a row: hash each value together with its column
//! ([`KeyHasher::hash_parts`](blocked_bloom::KeyHasher::hash_parts)), and query any subset of the
//! columns. A row can also be an existing filter of the core: [`Planes::from_filters`].
//!
//! # Damage
//!
//! Every plane of every group has a checksum, which also covers its place, so planes can be loaded
//! and verified one by one. A failed check returns a typed error, and the row must be treated as
//! "maybe". `docs/planes.md` describes the bytes.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | the core's `std`; without it the crate is `no_std` with `alloc` |
//! | `rayon` | no | [`par_append_all`](PlanesBuilder::append_all), in the caller's thread pool |
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

/// Compiles and runs the code of the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
