//! The guides of `docs`, as pages of this documentation. All of their code runs as tests.
//!
//! Begin with the [guide for engine authors](guide) and [filters in a running engine](running); [which filter when](alternatives) and
//! [choosing parameters](parameters) help to decide.
//!
//! ```
//! // From the guide: `FilterOptions` says once what an engine's filters are to be.
//! use blocked_bloom::{FilterOptions, Sizing};
//! let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
//! assert_eq!(options.params(1_000)?.probes(), 6);
//! # Ok::<(), blocked_bloom::ParamsError>(())
//! ```
#![doc = include_str!("../docs/img/time-per-key.svg")]
#![doc = include_str!("../docs/img/batch-size.svg")]
#![doc = include_str!("../docs/img/throughput.svg")]
#![doc = include_str!("../docs/img/false-positives.svg")]

/// Where links between pages lead in this documentation; in the repository they lead to the files. The first definition of a link counts.
macro_rules! links {
    () => {
        "
[SECURITY.md]: crate::guides::security
[SECURITY.md#hostile-keys]: crate::guides::security#hostile-keys
[adapter.md]: crate::guides::adapter
[alternatives.md]: crate::guides::alternatives
[benchmarks.md#beside-other-filters]: crate::guides::benchmarks#beside-other-filters
[benchmarks.md#hashing]: crate::guides::benchmarks#hashing
[benchmarks.md#one-key-in-20-tables]: crate::guides::benchmarks#one-key-in-20-tables
[benchmarks.md#results-in-short]: crate::guides::benchmarks#results-in-short
[cassandra.md]: crate::guides::cassandra
[format.md]: crate::guides::format
[format.md#compact-form]: crate::guides::format#compact-form
[format.md#growing-filter]: crate::guides::format#growing-filter
[format.md#header]: crate::guides::format#header
[format.md#index-of-a-partitioned-filter]: crate::guides::format#index-of-a-partitioned-filter
[format.md#probe-scheme-1]: crate::guides::format#probe-scheme-1
[format.md#removable-filter]: crate::guides::format#removable-filter
[format.md#ribbon-filter]: crate::guides::format#ribbon-filter
[growing.md]: crate::guides::growing
[guava.md]: crate::guides::guava
[guide.md]: crate::guides::guide
[guide.md#flush-a-builder-beside-the-table-writer]: crate::guides::guide#flush-a-builder-beside-the-table-writer
[img/batch-size.svg]: crate::guides
[img/block.svg]: crate::guides
[img/false-positives.svg]: crate::guides
[img/throughput.svg]: crate::guides
[internals.md]: crate::guides::internals
[memtable.md]: crate::guides::memtable
[migrating.md]: crate::guides::migrating
[parameters.md]: crate::guides::parameters
[parameters.md#folding]: crate::guides::parameters#folding
[parameters.md#when-not-to-use-a-filter]: crate::guides::parameters#when-not-to-use-a-filter
[parquet.md]: crate::guides::parquet
[partitioned.md]: crate::guides::partitioned
[planes.md]: crate::guides::planes
[planes.md#the-bytes]: crate::guides::planes#the-bytes
[planning.md]: crate::guides::planning
[planning.md#bloom-or-ribbon]: crate::guides::planning#bloom-or-ribbon
[planning.md#no-filter]: crate::guides::planning#no-filter
[policy.md]: crate::guides::policy
[redis.md]: crate::guides::redis
[removable.md]: crate::guides::removable
[ribbon.md]: crate::guides::ribbon
[rocksdb.md]: crate::guides::rocksdb
[running.md]: crate::guides::running
[running.md#changing-filters-under-data-that-stays]: crate::guides::running#changing-filters-under-data-that-stays
[running.md#scans-filters-of-prefixes]: crate::guides::running#scans-filters-of-prefixes
[running.md#what-cannot-be-added]: crate::guides::running#what-cannot-be-added
[running.md#which-kernel]: crate::guides::running#which-kernel
[spark.md]: crate::guides::spark
[unsafe.md]: crate::guides::unsafe_code

"
    };
}

// A page whose code needs another package is compiled by that package.
// Its code uses the methods `par_*`.
#[cfg(any(not(doctest), feature = "rayon"))]
#[doc = links!()]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[doc = links!()]
#[doc = include_str!("../docs/running.md")]
pub mod running {}

#[doc = links!()]
#[doc = include_str!("../docs/alternatives.md")]
pub mod alternatives {}

#[doc = links!()]
#[doc = include_str!("../docs/parameters.md")]
pub mod parameters {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/partitioned.md")]
pub mod partitioned {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/growing.md")]
pub mod growing {}

#[doc = links!()]
#[doc = include_str!("../docs/memtable.md")]
pub mod memtable {}

#[doc = links!()]
#[doc = include_str!("../docs/adapter.md")]
pub mod adapter {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/migrating.md")]
pub mod migrating {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/rocksdb.md")]
pub mod rocksdb {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/parquet.md")]
pub mod parquet {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/cassandra.md")]
pub mod cassandra {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/guava.md")]
pub mod guava {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/planes.md")]
pub mod planes {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/redis.md")]
pub mod redis {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/removable.md")]
pub mod removable {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/spark.md")]
pub mod spark {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/ribbon.md")]
pub mod ribbon {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/datafusion.md")]
pub mod datafusion {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/planning.md")]
pub mod planning {}

#[cfg(not(doctest))]
#[doc = links!()]
#[doc = include_str!("../docs/policy.md")]
pub mod policy {}

#[doc = links!()]
#[doc = include_str!("../docs/format.md")]
pub mod format {}

#[doc = links!()]
#[doc = include_str!("../docs/internals.md")]
pub mod internals {}

#[doc = links!()]
#[doc = include_str!("../docs/benchmarks.md")]
pub mod benchmarks {}

#[doc = links!()]
#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

#[doc = links!()]
#[doc = include_str!("../docs/unsafe.md")]
pub mod unsafe_code {}

#[doc = links!()]
#[doc = include_str!("../SECURITY.md")]
pub mod security {}
