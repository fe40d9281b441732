//! Filters of other systems: read where they lie, asked in batches by the kernels of this crate, and written byte for byte.
//!
//! One module and one feature per format. Each owns what its system stores: the bytes, the hash of a key, the sizing. It has a
//! borrowed reader, a writer and errors of its own, and knows nothing of the other formats. None of these modules names an
//! instruction set or changes the formats of this crate. `docs/rocksdb.md`, `docs/parquet.md` and `docs/cassandra.md` are their guides,
//! and each module begins with an example.

#[cfg(feature = "interop-cassandra")]
pub mod cassandra;
#[cfg(feature = "interop-parquet")]
pub mod parquet;
#[cfg(feature = "interop-rocksdb")]
pub mod rocksdb;
