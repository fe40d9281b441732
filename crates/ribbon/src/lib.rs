//! Static Ribbon filters: 28 % smaller than Bloom filters at a false-positive rate of 1 %, slower
//! to build and to look up; `docs/ribbon.md` has the figures.
//!
//! A Ribbon filter is the solution of a system of linear equations, one for each key, and takes
//! 1.07 to 1.1 times the bits that any filter needs; a blocked Bloom filter takes 1.5 times as
//! many. The price: building and lookups take several times as long as those of a Bloom filter; all
//! keys must be known, and nothing can be added or merged. It pays where memory matters more than
//! nanoseconds: in the last level of an LSM tree, which has nine tenths of the keys.
//!
//! ```
//! use blocked_bloom::{Bitmask, Filter, FilterOptions, Sizing};
//! use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};
//!
//! // Decided once: the rate, hash and seed of all filters of an engine.
//! let filters = FilterOptions::new(Sizing::BitsPerKey(10.0));
//!
//! // Compaction: the keys of a table of the last level.
//! let mut builder = RibbonOptions::for_filters(&filters).builder();
//! builder.extend((0..50_000_u32).map(u32::to_le_bytes))?;
//! let stored: Vec<u8> = builder.finish()?.as_bytes().to_vec();
//!
//! // Open: the bytes stay where they are.
//! let filter = RibbonFilter::from_bytes(stored, filters.key_hash())?;
//! assert!(filter.bits_per_key() < 7.4 && filter.expected_false_positive_rate() <= 0.01);
//!
//! // MultiGet: a filter of the core answers the same calls.
//! let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
//! filters.hasher()?.hash_batch(&[7_u32, 77_777].map(u32::to_le_bytes), &mut hashes);
//! filter.contains_hashes(&hashes, &mut hits);
//! assert!(hits.hits().eq([0]));
//! # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
//! ```
//!
//! # Two kinds
//!
//! | | what it is | built from |
//! |---|---|---|
//! | [`RibbonFilter`] | this crate's own, in shards of some 3,900 keys: smaller and faster to build, by several threads if wanted | [`RibbonOptions`] |
//! | [`rocksdb`] | the filter blocks of RocksDB's Ribbon policy, read where they lie and written byte for byte; with keys and SST files in the package `blocked-bloom-formats` | [`rocksdb::RibbonBlockOptions`] |
//!
//! Both are looked up in batches by kernels for AVX-512, AVX2, NEON and plain Rust, found by the
//! core's [`Kernel`](blocked_bloom::Kernel); the fastest is chosen at run time and all give the
//! same answers.
//!
//! # Bytes
//!
//! A [`RibbonFilter`] is stored as it is in memory, with a header and checksums, and opened without
//! decoding; `docs/format.md` in the repository is normative. Damaged bytes are a typed error,
//! [`RibbonError`], and must not be used to answer "absent"; no input causes a panic. RocksDB's
//! blocks have no checksum of their own.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | the choice of a kernel by an environment variable; without it the crate is `no_std` with `alloc` |
//! | `portable` | yes | the kernel for machines without AVX2, AVX-512 or NEON |
//! | `rayon` | no | the methods `par_*`, by the threads of the caller's pool |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

/// Tells unit tests that a loop of this kernel runs.
macro_rules! ran {
    ($kernel:literal) => {
        #[cfg(test)]
        crate::watch::note(crate::watch::Event::Ran($kernel));
    };
}

mod builder;
mod error;
mod filter;
mod format;
mod kernel;
mod options;
pub mod rocksdb;
mod scheme;
mod sizing;
mod solve;
mod threads;
#[cfg(test)]
#[path = "../tests/unit/watch.rs"]
mod watch;

#[cfg(not(test))]
use blocked_bloom::parts::prefetch;
#[cfg(test)]
use watch::prefetch;

pub use builder::RibbonFilterBuilder;
pub use error::RibbonError;
pub use filter::{RibbonBytes, RibbonFilter};
pub use format::MAGIC;
pub use options::RibbonOptions;

/// The code in the README compiles and runs; that of the guide, which is not packaged, does in
/// `tests/guides` of the repository.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
