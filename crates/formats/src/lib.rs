//! The filters of RocksDB, Apache Parquet, Cassandra and Spark, Guava and RedisBloom: read in
//! place, queried in batches, and written byte for byte like those systems.
//!
//! ```
//! # #[cfg(feature = "rocksdb")] {
//! use blocked_bloom::{Bitmask, Filter};
//! use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};
//!
//! // The filter block that RocksDB writes for these keys with 10 bits per key.
//! let mut builder = FilterBlockBuilder::new(10.0)?;
//! builder.extend(["apple", "banana", "cherry"]);
//! let block: Vec<u8> = builder.finish()?;
//!
//! // The bytes are used in place: here in a vector, elsewhere in a block cache or a mapped file.
//! let filter = FilterBlock::from_bytes(&block)?;
//! let mut hits = Bitmask::new();
//! filter.contains_batch(&["banana", "durian", "cherry"], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Formats
//!
//! There is one module and one default feature per format. Each has a borrowing reader, a writer
//! and the hash of keys, and none depends on another. The filters of Cassandra, Guava and Spark and
//! the links of RedisBloom share one type, `ClassicalFilter`.
//!
//! | module | bytes | read | written | batches |
//! |---|---|---|---|---|
//! | [`rocksdb`] | filter blocks, alone and in SST files of `format_version` 2 to 7 | FastLocalBloom, LegacyBloom and Ribbon, full and partitioned | filter blocks of all three | the kernels of [`blocked_bloom`], and for Ribbon those of [`blocked_bloom_ribbon`] |
//! | [`parquet`] | Parquet files | the footer, and the filters that it locates | filters, with [`blocked_bloom_split`] | the kernels of that package |
//! | [`cassandra`] | `Filter.db`, Cassandra 1.2.5 to 5 | all three layouts | all three layouts | staged prefetch |
//! | [`guava`] | `BloomFilter.writeTo` | both strategies | both strategies | staged prefetch |
//! | [`spark`] | the sketch `BloomFilter` | versions 1 and 2 | versions 1 and 2 | staged prefetch |
//! | [`redis`] | `BF.SCANDUMP` of RedisBloom | chains of all versions, loaded into their own memory | the chains of current versions | staged prefetch |
//!
//! The guides are `docs/rocksdb.md`, `docs/parquet.md` and `docs/foreign.md` in the repository.
//! Their code runs as tests.
//!
//! # Damage
//!
//! Bytes that are not a valid filter are a typed error with the value found and its offset, and
//! must not be used to answer "absent". No input causes a panic. Only SST files have checksums: in
//! the other formats a flipped bit cannot be detected, as each module explains.
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `rocksdb`, `parquet`, `cassandra`, `guava`, `spark`, `redis` | yes | the module of that name |
//! | `std` | yes | `write_to` for `std::io::Write`, and choice of the kernel by environment variable; without it the crate is `no_std` with `alloc` |
//! | `rayon` | no | builds Ribbon blocks with the threads of the caller's pool |
//! | `portable` | yes | the kernels in portable SIMD, with the crate `wide`, for machines without AVX2, AVX-512 or NEON |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(feature = "cassandra")]
pub mod cassandra;
#[cfg(any(feature = "cassandra", feature = "guava", feature = "redis", feature = "spark"))]
mod classical;
#[cfg(any(feature = "cassandra", feature = "guava", feature = "redis", feature = "spark"))]
pub use classical::{ClassicalError, ClassicalFilter, ClassicalShape};
#[cfg(feature = "guava")]
pub mod guava;
#[cfg(any(feature = "cassandra", feature = "guava"))]
mod murmur3;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(any(feature = "parquet", feature = "rocksdb"))]
mod ranges;
#[cfg(any(feature = "parquet", feature = "rocksdb"))]
pub use ranges::FileRanges;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "spark")]
pub mod spark;
#[cfg(feature = "rocksdb")]
mod varint;
#[cfg(test)]
#[path = "../tests/unit/watch.rs"]
mod watch;

#[cfg(not(test))]
#[allow(unused_imports, reason = "not every format prefetches by itself")]
use blocked_bloom::parts::prefetch;
#[cfg(test)]
#[allow(unused_imports, reason = "not every format prefetches by itself")]
use watch::prefetch;

/// Compiles and runs the code of the README. `tests/guides` of the repository does the same for the
/// guides, which are not packaged.
#[cfg(all(doctest, feature = "std", feature = "parquet"))]
#[doc = include_str!("../README.md")]
struct Readme;
