//! Blocked Bloom filters for storage engines.
//!
//! An LSM engine asks dozens of tables "could you hold this key?" for every lookup. This crate answers with one cache line per
//! key and filter, for whole batches at once, from bytes that are used where they lie: in a mapped file, in a block cache.
//!
//! The answer is "maybe" or "certainly absent"; a key that was inserted is never absent. All probes of a key fall in one
//! 64-byte block ([`probe`] has the law, 40 lines), so a query costs one cache miss at most, and a batch is answered by a
//! SIMD kernel that is chosen at run time ([`Kernel`]).
//!
#![cfg_attr(doc, doc = include_str!("../docs/img/block.svg"))]
//!
//! # From flush to MultiGet
//!
//! ```
//! use blocked_bloom::{Bitmask, BloomFilterBuilder, BloomFilterBytes, KeyHash, KeyHasher, Sizing};
//!
//! // Flush: keys arrive in order, their number is known at the end.
//! let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
//! for key in ["apple", "banana", "cherry"] {
//!     builder.insert(key);
//! }
//! let mut table_file = Vec::new();
//! builder.finish()?.write_to(&mut table_file)?;
//!
//! // Open: the bytes stay where they are, here a vector, elsewhere a mapped file.
//! let filter = BloomFilterBytes::from_bytes(table_file)?.require_key_hash(KeyHash::default())?;
//!
//! // MultiGet: hash the batch once, ask the filter of every table, read only what may be there.
//! let keys = ["banana", "durian", "cherry"];
//! let mut hashes = Vec::new();
//! KeyHasher::default().hash_batch(&keys, &mut hashes);
//! let mut hits = Bitmask::new();
//! filter.view().contains_hashes(&hashes, &mut hits);
//! for i in hits.hits() {
//!     println!("read the block that may hold {}", keys[i]);
//! }
//! # assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it costs
//!
//! Absent keys, hashed already, 10 bits and six probes per key, ns per key. The limit loads one cache line per key and tests nothing.
//!
//! | keys in the filter | 10 k | 100 k | 1 M | 10 M | 100 M |
//! |---|---:|---:|---:|---:|---:|
//! | *limit* | *0.66* | *0.85* | *1.17* | *3.71* | *9.27* |
//! | AVX2, batches of 4096 | 1.61 | 1.79 | 2.19 | 4.09 | 9.89 |
//! | AVX2, batches of 32 | 1.92 | 2.09 | 2.70 | 5.37 | 15.6 |
//! | one key at a time | 3.26 | 3.64 | 5.62 | 24.2 | 37.9 |
//!
//! Medians of `cargo run --release --features cli -- bench` on a virtual machine with two cores of an AMD EPYC (Zen 3, 512 KB of second-level
//! cache), Rust 1.95, 2026-11-21. Beside other filters, on the same machine (`benches/compare`, which says how each is configured):
//!
#![cfg_attr(doc, doc = include_str!("../docs/img/time-per-key.svg"))]
//!
//! # Types
//!
//! | type | what it is |
//! |---|---|
//! | [`Sizing`], [`Params`] | from bits per key, a false-positive rate or a memory budget to blocks and probes, with the rate that follows |
//! | [`Plan`], [`Level`] | a budget of memory shared among the filters of many levels, so that the fewest reads are wasted |
//! | [`BloomFilterBuilder`] | collects keys of an unknown number; cannot be asked |
//! | [`BloomFilter`] | owns its blocks; can be added to, folded, merged, asked |
//! | [`AtomicBloomFilter`] | shared by threads that add and ask at the same time: a memtable's; becomes a [`BloomFilter`] and back without a copy |
//! | [`ScalableBloomFilter`], [`ScalableBloomFilterRef`] | grows with keys of an unknown number and keeps its rate: for deduplication |
//! | [`BloomFilterRef`] | a `Copy` view of borrowed bytes at any alignment; every query is a method of it |
//! | [`BloomFilterBytes`] | owns mapped or shared bytes, verified once; what a table object holds |
//! | [`Bitmask`] | the answers to a batch, one bit per key, reusable |
//! | [`PartitionedFilterBuilder`], [`PartitionIndex`] | the filter of a large table in parts that are loaded one by one |
//! | [`FilterMetrics`] | counters of what filters save, shared by threads; the engine records, the queries know nothing of it |
//! | [`FilterSet`], [`BitMatrix`] | the filters of many tables, asked about a key or a batch at once, and the answers |
//! | [`PrefixExtractor`], [`Added`] | which prefixes of keys are added for questions about scans, and what a filter can be asked about |
//! | [`FilterPolicy`], [`TableFilter`] | an engine's decisions about filters: sizes by level, hash, prefixes, partitions |
//! | [`KeyHash`], [`KeyHasher`] | which hash a filter was built with (part of its bytes), and how to hash a batch once |
//!
//! # Damage
//!
//! [`BloomFilterRef::from_bytes`] verifies checksums of header and blocks: every truncation and every flipped bit is a
//! [`FormatError`] that says what was found where. It never panics and allocates nothing. A filter that fails must not be used to
//! answer "absent"; [`BloomFilterRef::open_or_pass_all`] puts one in its place that keeps an engine correct, and gives the reason.
//!
//! # Features
//!
//! | feature | default | what it adds | depends on |
//! |---|---|---|---|
//! | `std` | yes | `write_to` for `std::io::Write`, the kernel by environment variable; without it the crate is `no_std` with `alloc` | |
//! | `rayon` | yes | large filters are filled and merged by the threads of the current rayon pool, keys collected from parallel iterators (`par_insert_batch`, `par_insert_hashes`, `par_extend_hashes`) | `rayon` |
//! | `interop-rocksdb` | no | RocksDB's filter blocks and the filters in its SST files, read and written: module `interop::rocksdb` | |
//! | `interop-parquet` | no | the filters of Parquet files, read and written: modules `interop::parquet`, `probe::split_block` | |
//! | `interop-cassandra` | no | Cassandra's `Filter.db`, read and written: module `interop::cassandra` | |
//! | `cli` | no | the command-line tool `blocked-bloom`; nothing in the library | `clap` and others |
//!
//! Instruction sets are no features: every kernel is compiled, and the CPU decides.
//!
//! # Guides
//!
//! In the package's `docs`, all code of which runs as tests: `guide.md` for authors of engines, `parameters.md`, `planning.md`,
//! `partitioned.md`, `growing.md`, `memtable.md`, `policy.md`, `adapter.md`, `migrating.md` from other crates, one page for each foreign
//! format, `format.md` (the bytes, normative) and `internals.md`.
//!
//! # Limits
//!
//! Keys cannot be removed; at equal memory a blocked filter lets some more absent keys pass than a classical one (0.97 %
//! against 0.82 % at 10 bits per key), which is the price of the single cache line.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod atomic;
mod bitmask;
mod buffer;
mod builder;
mod bytes;
#[cfg(feature = "rayon")]
mod collect;
mod error;
mod filter;
mod fold;
mod format;
mod hash;
#[cfg(any(
    feature = "interop-rocksdb",
    feature = "interop-parquet",
    feature = "interop-cassandra"
))]
pub mod interop;
mod kernel;
mod merge;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod metrics;
#[cfg(feature = "rayon")]
mod parallel;
mod params;
mod partition;
mod plan;
mod policy;
mod prefix;
pub mod probe;
mod scalable;
mod set;
mod view;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use atomic::AtomicBloomFilter;
pub use bitmask::Bitmask;
pub use builder::BloomFilterBuilder;
pub use bytes::BloomFilterBytes;
pub use error::{
    AllocError, BuildError, FilterSetError, FoldError, FormatError, LengthError, MatrixError,
    MergeAllError, MergeError, ParamsError, PartitionBuildError, PartitionError, PartitionFailure,
    PartitionIndexError, PlanError, ScalableError, ScalableFormatError,
};
pub use filter::BloomFilter;
pub use hash::{KeyHash, KeyHasher};
pub use kernel::{KERNEL_VARIABLE, Kernel};
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use metrics::{FilterMetrics, MetricsSnapshot, RateWarning};
pub use params::{MAX_RECOMMENDED_BLOCKS, Params, Sizing};
pub use partition::{PartitionIndex, PartitionLocation, PartitionedFilterBuilder};
pub use plan::{Level, Plan, PlannedLevel, SkipReason};
pub use policy::{FilterPolicy, TableFilter};
pub use prefix::{Added, ExtractorNameError, PrefixExtractor};
pub use probe::{Block, MAX_BITS_PER_KEY};
pub use scalable::{ScalableBloomFilter, ScalableBloomFilterRef};
pub use set::{BitMatrix, FilterSet};
pub use view::BloomFilterRef;

/// The code in the README and the guides compiles and runs.
#[cfg(all(doctest, feature = "std"))]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../docs/parameters.md")]
    struct Parameters;
    #[doc = include_str!("../docs/planning.md")]
    struct Planning;
    #[cfg(feature = "interop-cassandra")]
    #[doc = include_str!("../docs/cassandra.md")]
    struct Cassandra;
    #[cfg(feature = "interop-rocksdb")]
    #[doc = include_str!("../docs/rocksdb.md")]
    struct Rocksdb;
    #[doc = include_str!("../docs/partitioned.md")]
    struct Partitioned;
    #[cfg(feature = "interop-parquet")]
    #[doc = include_str!("../docs/parquet.md")]
    struct Parquet;
    #[doc = include_str!("../docs/growing.md")]
    struct Growing;
    #[doc = include_str!("../docs/adapter.md")]
    struct Adapter;
    #[doc = include_str!("../docs/internals.md")]
    struct Internals;
    #[doc = include_str!("../docs/memtable.md")]
    struct Memtable;
    #[cfg(feature = "interop-parquet")]
    #[doc = include_str!("../docs/migrating.md")]
    struct Migrating;
    #[doc = include_str!("../docs/policy.md")]
    struct Policy;
}
