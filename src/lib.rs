//! Blocked Bloom filters for storage engines: is this key certainly absent from the table?
//!
//! A point lookup in an LSM engine concerns dozens of tables, and a filter for each says which need
//! not be read. In this crate's filters a lookup touches one cache line; whole batches are answered
//! by a SIMD kernel that is chosen at run time; and a stored filter is used where its bytes are, in
//! a mapped file or in a block cache, without decoding.
//!
//! The answer is "maybe" or "certainly absent"; a key that was added is never absent. All bits of a
//! key are in one 64-byte block of the filter. [`probe`] defines which ones, in some 40 lines of
//! plain Rust, and every [`Kernel`] gives the same answers.
//!
#![cfg_attr(doc, doc = include_str!("../docs/img/block.svg"))]
//!
//! # From flush to MultiGet
//!
//! ```
//! use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, Sizing};
//!
//! // Decided once: size, hash and seed. Whoever opens a filter takes the hash from here.
//! let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
//!
//! // Flush: the filter is sized when the last key has come, and written beside the data.
//! let mut builder = options.builder();
//! for key in ["apple", "banana", "cherry"] {
//!     builder.insert(key)?;
//! }
//! let mut table_file = Vec::new();
//! builder.finish()?.write_to(&mut table_file)?;
//!
//! // Open: the bytes stay where they are, here in a vector, elsewhere in a mapped file.
//! let filter = BloomFilter::from_bytes(table_file, options.key_hash())?;
//!
//! // MultiGet: hash the batch once, look it up in every table's filter, read what may be there.
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
//! | type | what it is |
//! |---|---|
//! | [`FilterOptions`] | what filters are to be: size, hash, prefixes, memory limit; makes builders |
//! | [`Sizing`], [`Params`] | from bits per key, a false-positive rate or a number of bytes to blocks and probes, and the rate that follows |
//! | [`BloomFilterBuilder`] | collects keys of an unknown number, then sizes and fills the filter |
//! | [`BloomFilter`] | a filter that owns its blocks, borrows them, or lives in [`Stored`] bytes |
//! | [`Bitmask`] | the answers to a batch, one bit per key |
//! | [`KeyHash`], [`KeyHasher`] | which hash a filter was built with, which is part of its bytes, and how to hash a batch once |
//! | [`PrefixExtractor`], [`FilterContents`] | prefixes of keys, so that a filter can rule out scans, and what a filter holds |
//! | [`AtomicBloomFilter`] | threads add to it and look up in it at the same time: for a memtable |
//! | [`Filter`] | the trait with the lookups of every kind of filter, also of other packages |
//! | [`Key`] | what is a key: bytes |
//! | [`parts`] | what authors of other filters need: memory, prefetching, the header of stored filters |
//!
//! Opening a filter that is damaged, or of another hash, gives a typed error ([`FormatError`]) that
//! says what was found and where; it never panics. [`BloomFilter::open_or_pass_all`] gives a filter
//! in its place that answers "maybe", and the error for the log.
//!
//! # Features
//!
//! | feature | default | what it adds | crate |
//! |---|---|---|---|
//! | `std` | yes | `write_to` for `std::io::Write`, and the choice of a kernel by an environment variable; without it the crate is `no_std` with `alloc` | |
//! | `portable` | yes | a SIMD kernel for machines without AVX2, AVX-512 or NEON, which otherwise take the scalar one | |
//! | `rayon` | no | the methods `par_*`, which hash and fill with the threads of the caller's pool; nothing else uses threads | `rayon` |
//! | `serde` | no | `Serialize` and `Deserialize` for options | `serde` |
//!
//! # Guides and further packages
//!
#![cfg_attr(
    all(doc, feature = "std"),
    doc = "The [guides](guides) are pages of this documentation: [for engine
authors](guides::guide), [filters in a running engine](guides::running), [which filter
when](guides::alternatives), [choosing parameters](guides::parameters),
[partitions](guides::partitioned), [filters that grow](guides::growing), [coming from another
crate](guides::migrating), [writing an adapter](guides::adapter), the [stored
format](guides::format) and [the inside of the crate](guides::internals).

"
)]
//!
//! The README lists the packages around this one, for other systems, engines and structures.
//!
//! # Limits
//!
//! Keys cannot be removed; `blocked-bloom-removable` has a filter whose keys can. At equal memory a
//! blocked filter lets more absent keys pass than a classical one, 0.97 % against 0.82 % at 10 bits
//! per key: the price of the single cache line.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

/// Tells unit tests what ran: a kernel's loop, a prefetch, a part of what threads share.
macro_rules! watch {
    ($($call:tt)*) => {
        #[cfg(all(test, feature = "std"))]
        crate::watch::$($call)*;
    };
}

// First for its macro.
#[macro_use]
mod error;
// So that rustdoc's page of a filter begins with how one is made.
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
pub use filter::AtomicBloomFilter;
pub use filter::{BloomFilter, BuildError, Filter, FormatError, MergeError};
pub use hash::{HashError, Key, KeyError, KeyHash, KeyHasher};
pub use kernel::{InstructionSet, KERNEL_VARIABLE, Kernel, PREFETCH_VARIABLE};
pub use options::FilterOptions;
pub use params::{MAX_RECOMMENDED_BLOCKS, Params, ParamsError, Sizing};
pub use prefix::{ExtractorNameError, FilterContents, PrefixExtractor};
pub use probe::{Block, MAX_BITS_PER_KEY};
pub use stored::Stored;

#[cfg(all(doc, feature = "std"))]
pub mod guides;

/// The code in the README compiles and runs.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
