//! The filters of RocksDB, Apache Parquet, Cassandra and Spark, Guava and RedisBloom: read where
//! they lie, queried in batches, and written byte for byte as those systems write them.
//!
//! ```
//! # #[cfg(feature = "rocksdb")] {
//! use blocked_bloom::{Bitmask, Filter};
//! use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};
//!
//! // The filter block that RocksDB writes for these keys at 10 bits per key.
//! let mut builder = FilterBlockBuilder::new(10.0)?;
//! builder.extend(["apple", "banana", "cherry"]);
//! let block: Vec<u8> = builder.finish()?;
//!
//! // Where the bytes lie, here in a vector, elsewhere in a block cache or a mapped file.
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
//! One module and one feature per format, all of them default. Each has a reader that borrows, a
//! writer and the hash of keys; none depends on another. The filters of Cassandra, Guava and Spark
//! and the links of RedisBloom's are one type, `ClassicalFilter`.
//!
//! | module | bytes | read | written | batches |
//! |---|---|---|---|---|
//! | [`rocksdb`] | filter blocks, and those in SST files of `format_version` 2 to 7 | FastLocalBloom, LegacyBloom and Ribbon, full and partitioned | filter blocks of all three | the kernels of [`blocked_bloom`], and for Ribbon those of [`blocked_bloom_ribbon`] |
//! | [`parquet`] | Parquet files | the footer, and the filters that it leads to | filters, by [`blocked_bloom_split`] | the kernels of that package |
//! | [`cassandra`] | `Filter.db`, Cassandra 1.2.5 to 5 | all three layouts | all three layouts | staged prefetch |
//! | [`guava`] | `BloomFilter.writeTo` | both strategies | both strategies | staged prefetch |
//! | [`spark`] | the sketch `BloomFilter` | versions 1 and 2 | versions 1 and 2 | staged prefetch |
//! | [`redis`] | `BF.SCANDUMP` of RedisBloom | chains of all versions, loaded into memory of their own | what current versions make | staged prefetch |
//!
//! The guides are `docs/rocksdb.md`, `docs/parquet.md` and `docs/foreign.md` in the repository; all
//! code in them runs as tests.
//!
//! # Damage
//!
//! Bytes that are not a filter are a typed error that says what was found where, and must not be
//! used to answer "absent". No input causes a panic. Of these formats only SST files have
//! checksums: in the others a flipped bit cannot be detected, as each module says.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `rocksdb`, `parquet`, `cassandra`, `guava`, `spark`, `redis` | yes | the module of that name |
//! | `std` | yes | `write_to` for `std::io::Write`, the kernel by environment variable; without it the crate is `no_std` with `alloc` |
//! | `rayon` | no | Ribbon blocks built by the threads of the caller's pool |
//! | `portable` | yes | the kernels in portable SIMD, by the crate `wide`, for machines without AVX2, AVX-512 or NEON |
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

/// The code in the README compiles and runs; that of the guides, which are not packaged, does in
/// `tests/guides` of the repository.
#[cfg(all(doctest, feature = "std", feature = "parquet"))]
#[doc = include_str!("../README.md")]
struct Readme;
