//! Split-block Bloom filters of Apache Parquet and Impala: looked up in batches with SIMD kernels,
//! and written byte for byte like Arrow.
//!
//! ```
//! use blocked_bloom::Filter;
//! let mut filter = blocked_bloom_split::SplitBlockFilter::new(1_000, 0.01)?;
//! filter.insert("apple");
//! let stored = filter.to_bytes(); // header and bitset, as in a Parquet file
//! let filter = blocked_bloom_split::SplitBlockFilter::from_bytes(&stored)?;
//! assert!(filter.contains("apple") && !filter.contains("banana"));
//! # Ok::<(), blocked_bloom_split::SplitBlockError>(())
//! ```
//!
//! A [`SplitBlockFilter`] borrows a stored filter, or owns its blocks and accepts values. Threads
//! can fill an [`AtomicSplitBlockFilter`] together. Values are inserted and looked up by their
//! plain-encoded bytes or by their XXH64 hashes ([`hash_value`], [`hash_offsets`]), one at a time
//! or in batches, with the methods of [`blocked_bloom::Filter`]. [`split_block`] is the probe
//! scheme in plain Rust, and [`sbbf`] offers the filter with the names of the crate `parquet`. The
//! package `blocked-bloom-formats` reads the footers of Parquet files, which locate their filters.
//!
//! # Damage
//!
//! A stored filter has no checksum. Damage to the header or to lengths, and truncation, return a
//! [`SplitBlockError`]. **A cleared bit of the bitset cannot be detected and makes a present value
//! "absent"**. No input causes a panic.
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `std` | yes | `write_to` for `std::io::Write`, and choice of the kernel by environment variable; without it the crate is `no_std` with `alloc` |
//! | `portable` | no | a kernel in portable SIMD, with the crate `wide`, for machines without AVX2, AVX-512 or NEON, which otherwise use the scalar kernel |
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

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod atomic;
mod error;
mod filter;
mod fold;
mod hash;
mod header;
mod kernel;
mod lookup;
pub mod sbbf;
mod select;
pub mod split_block;
pub mod thrift;
#[cfg(test)]
#[path = "../tests/unit/watch.rs"]
mod watch;

#[cfg(not(test))]
use blocked_bloom::parts::prefetch;
#[cfg(test)]
use watch::prefetch;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use atomic::AtomicSplitBlockFilter;
pub use error::{MAX_BITSET_BYTES, SplitBlockError};
pub use filter::{SplitBlockFilter, SplitBlocks, StoredSplitBlocks};
pub use hash::{hash_offsets, hash_value};
pub use header::Header;
pub use kernel::Lookup;
pub use split_block::SplitBlock;

/// Compiles and runs the code of the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
