//! Compiles and runs the code in the guides of the packages in `crates`: `cargo test -p guides`. A
//! package cannot include its guides itself, since it is published without `docs`. The core
//! contains its guides and runs their code itself.

/// One page each. Paths in their code are relative to this folder.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../docs/async.md")]
    struct Async;
    #[doc = include_str!("../../docs/foreign.md")]
    struct Foreign;
    #[doc = include_str!("../../docs/migrating.md")]
    struct Migrating;
    #[doc = include_str!("../../docs/parquet.md")]
    struct Parquet;
    #[doc = include_str!("../../docs/partitioned.md")]
    struct Partitioned;
    #[doc = include_str!("../../docs/planes.md")]
    struct Planes;
    #[doc = include_str!("../../docs/planning.md")]
    struct Planning;
    #[doc = include_str!("../../docs/resident.md")]
    struct Resident;
    #[doc = include_str!("../../docs/rocksdb.md")]
    struct Rocksdb;
}
