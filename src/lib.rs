//! Blocked Bloom filters for storage engines: is this key certainly absent from the table?
//!
//! A point lookup in an LSM engine concerns dozens of tables. A filter for each table shows which
//! tables need not be read. A lookup in this crate's filters touches one cache line. A SIMD kernel,
//! chosen at run time, answers whole batches. A stored filter is used in place, in a mapped file or
//! in a block cache, without decoding.
//!
//! The answer is "maybe" or "certainly absent"; a key that was inserted is never "absent". All bits
//! of a key are in one 64-byte block of the filter. [`probe`] defines the bits in about 40 lines of
//! plain Rust, and every [`Kernel`] returns the same answers.
//!
#![cfg_attr(doc, doc = include_str!("../docs/img/block.svg"))]
//!
//! # From flush to MultiGet
//!
//! ```
//! use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, Sizing};
//!
//! // Chosen once: size, hash and seed. Code that opens a filter takes the hash from here.
//! let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
//!
//! // Flush: the filter is sized after the last key arrives, and written next to the data.
//! let mut builder = options.builder();
//! for key in ["apple", "banana", "cherry"] {
//!     builder.insert(key)?;
//! }
//! let mut table_file = Vec::new();
//! builder.finish()?.write_to(&mut table_file)?;
//!
//! // Open: the bytes stay where they are, here in a vector, usually in a mapped file.
//! let filter = BloomFilter::from_bytes(table_file, options.key_hash())?;
//!
//! // MultiGet: hash the batch once, look it up in every table's filter, read the hits.
//! let keys = ["banana", "durian", "cherry"];
//! let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
//! options.hasher()?.hash_batch(&keys, &mut hashes);
//! filter.contains_hashes(&hashes, &mut hits);
//! for i in hits.hits() {
//!     println!("read the block that may hold {}", keys[i]);
//! }
//! # assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Types
//!
//! | type | purpose |
//! |---|---|
//! | [`FilterOptions`] | the settings of your filters (size, hash, prefixes, memory limit); creates builders |
//! | [`Sizing`], [`Params`] | compute blocks, probes and the false-positive rate from bits per key, a target rate or a number of bytes |
//! | [`BloomFilterBuilder`] | collects an unknown number of keys, then sizes and fills the filter |
//! | [`BloomFilter`] | a filter that owns its blocks, borrows them, or lives in [`Stored`] bytes |
//! | [`Bitmask`] | the answers to a batch, one bit per key |
//! | [`KeyHash`], [`KeyHasher`] | the hash of a filter, which is stored with it, and the hasher for a batch of keys |
//! | [`PrefixExtractor`], [`FilterContents`] | prefixes of keys, with which a filter can rule out scans of prefixes and ranges, and the contents of a filter |
//! | [`AtomicBloomFilter`], [`BloomFilterWriter`] | a filter that threads insert into and query at the same time, for a memtable, and its handle for one writer |
//! | [`Filter`] | the trait with the lookups of all kinds of filters, including those of other packages |
//! | [`Key`] | the trait of keys: types that lend bytes |
//! | [`parts`] | parts for authors of other filters: memory, prefetching, the header of stored filters |
//!
//! Opening a damaged filter, or one with another hash, returns a typed error ([`FormatError`]) with
//! the unexpected value and its offset; it never panics. [`BloomFilter::open_or_pass_all`] never
//! fails: for a damaged filter it returns one that answers "maybe" to every key, plus the error to
//! log.
//!
//! # Features
//!
//! | feature | default | adds | crate |
//! |---|---|---|---|
//! | `std` | yes | `write_to` for `std::io::Write`, and environment variables that select the kernel; without it the crate is `no_std` with `alloc` | |
//! | `portable` | yes | a faster kernel for machines without AVX2, AVX-512 or NEON, which otherwise use the scalar one | |
//! | `rayon` | no | the methods `par_*`, which hash and fill with the threads of the caller's pool; no other method uses threads | `rayon` |
//! | `serde` | no | `Serialize` and `Deserialize` for options | `serde` |
//!
//! # Guides and further packages
//!
//! The [guides](guides) are pages of this documentation: [for engine authors](guides::guide),
//! [filters in a running engine](guides::running), [which filter when](guides::alternatives),
//! [choosing parameters](guides::parameters), [partitions](guides::partitioned), [filters that
//! grow](guides::growing), [migrating from another crate](guides::migrating), [writing an
//! adapter](guides::adapter), the [stored format](guides::format) and the [internals of the
//! crate](guides::internals).
//!
//! The README lists the companion packages, for other systems, engines and structures.
//!
//! # Limits
//!
//! Keys cannot be removed; `blocked-bloom-removable` has a filter that supports removal. With equal
//! memory, a blocked filter has a higher false-positive rate than a classical one (0.97 % instead
//! of 0.82 % at 10 bits per key), because all bits of a key share one cache line.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

/// Reports to unit tests that a kernel's loop, a prefetch or a part of parallel work ran.
macro_rules! watch {
    ($($call:tt)*) => {
        #[cfg(all(test, feature = "std"))]
        crate::watch::$($call)*;
    };
}

// First for its macro.
#[macro_use]
mod error;
// Not in alphabetical order: rustdoc's page of a filter begins with its constructors.
mod builder;

mod filter;

mod make;

mod batch;
mod bitmask;
mod buffer;
mod checksum;
mod hash;
mod header;
mod kernel;
mod options;
#[cfg(feature = "rayon")]
mod parallel;
mod params;
pub mod parts;
mod prefix;
pub mod probe;
mod stored;
mod threads;
mod unmixed;
#[cfg(all(test, feature = "std"))]
#[path = "../tests/unit/watch.rs"]
mod watch;

pub use batch::LengthError;
pub use bitmask::Bitmask;
pub use buffer::AllocError;
pub use builder::BloomFilterBuilder;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use filter::{AtomicBloomFilter, BloomFilterWriter};
pub use filter::{BloomFilter, BuildError, Filter, FormatError, MergeError};
pub use hash::{HashError, Key, KeyError, KeyHash, KeyHasher};
pub use kernel::{InstructionSet, KERNEL_VARIABLE, Kernel, PREFETCH_VARIABLE};
pub use options::FilterOptions;
pub use params::{MAX_RECOMMENDED_BLOCKS, Params, ParamsError, Sizing};
pub use prefix::{ExtractorNameError, FilterContents, PrefixExtractor};
pub use probe::{Block, MAX_BITS_PER_KEY};
pub use stored::Stored;

#[cfg(all(doc, any(feature = "std", not(doctest))))]
pub mod guides;

/// The README, whose code is compiled and run as a test.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
