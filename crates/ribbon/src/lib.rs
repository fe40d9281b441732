//! Static Ribbon filters: 28 % smaller than blocked Bloom filters at a false-positive rate of 1 %,
//! but slower to build and to look up. `docs/ribbon.md` has the figures.
//!
//! A Ribbon filter is the solution of a system of linear equations, one per key. It takes 1.07 to
//! 1.1 times the theoretical minimum of bits, and a blocked Bloom filter 1.5 times. Building and
//! lookups take several times as much time as those of a Bloom filter. All keys must be known in
//! advance, and filters cannot be extended or merged. Use it where memory matters more than
//! nanoseconds, such as the last level of an LSM tree, which contains about 90 % of the keys.
//!
//! ```
//! use blocked_bloom::{Bitmask, Filter, FilterOptions, Sizing};
//! use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};
//!
//! // The rate, hash and seed of all filters of an engine, chosen once.
//! let filters = FilterOptions::new(Sizing::BitsPerKey(10.0));
//!
//! // Compaction: the keys of a table of the last level.
//! let mut builder = RibbonOptions::for_filters(&filters).builder();
//! builder.extend((0..50_000_u32).map(u32::to_le_bytes))?;
//! let stored: Vec<u8> = builder.finish()?.as_bytes().to_vec();
//!
//! // Open: the bytes are used in place.
//! let filter = RibbonFilter::from_bytes(stored, filters.key_hash())?;
//! assert!(filter.bits_per_key() < 7.4 && filter.expected_false_positive_rate() <= 0.01);
//!
//! // MultiGet: filters of the core have the same methods.
//! let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
//! filters.hasher()?.hash_batch(&[7_u32, 77_777].map(u32::to_le_bytes), &mut hashes);
//! filter.contains_hashes(&hashes, &mut hits);
//! assert!(hits.hits().eq([0]));
//! # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
//! ```
//!
//! # Two kinds
//!
//! | | purpose | built from |
//! |---|---|---|
//! | [`RibbonFilter`] | this crate's own format, in shards of about 3,900 keys: smaller and faster to build, optionally with several threads | [`RibbonOptions`] |
//! | [`rocksdb`] | the filter blocks of RocksDB's Ribbon policy, read in place and written byte for byte; the package `blocked-bloom-formats` adds keys and SST files | [`rocksdb::RibbonBlockOptions`] |
//!
//! Kernels for AVX-512, AVX2, NEON and plain Rust run batch lookups. The core's
//! [`Kernel`](blocked_bloom::Kernel) selects the fastest at run time. All return the same answers.
//!
//! # Bytes
//!
//! The stored form of a [`RibbonFilter`] is its form in memory, with a header and checksums, and it
//! is opened without decoding. `docs/format.md` in the repository is normative. Damaged bytes are a
//! typed error, [`RibbonError`], and must not be used to answer "absent". No input causes a panic.
//! RocksDB's blocks have no checksum of their own.
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `std` | yes | choice of the kernel by an environment variable; without it the crate is `no_std` with `alloc` |
//! | `portable` | yes | the kernel for machines without AVX2, AVX-512 or NEON |
//! | `rayon` | no | the methods `par_*`, which use the threads of the caller's pool |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

/// Records for unit tests that a loop of this kernel runs.
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

/// Compiles and runs the code of the README. `tests/guides` of the repository does the same for the
/// guide, which is not packaged.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
