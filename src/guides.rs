//! The guides of `docs`, as pages of this documentation. All of their code runs as tests.
//!
//! Begin with the [guide for engine authors](guide) and [filters in a running engine](running);
//! [which filter when](alternatives) and [choosing parameters](parameters) help to decide.
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
#![doc = include_str!("../docs/img/false-positives.svg")]

/// A page of the documentation, whose code is compiled and run. `rustdoc-links.txt` says where
/// links between pages lead there; in the repository they lead to the files. The first definition
/// of a link counts.
macro_rules! page {
    ($name:ident, $text:expr) => {
        #[doc = include_str!("../docs/rustdoc-links.txt")]
        #[doc = $text]
        pub mod $name {}
    };
}

/// A page whose code is compiled by the package that it needs.
macro_rules! shown {
    ($name:ident, $text:expr) => {
        #[cfg(not(doctest))]
        page!($name, $text);
    };
}

// Its code uses the methods `par_*`.
#[cfg(any(not(doctest), feature = "rayon"))]
page!(guide, include_str!("../docs/guide.md"));
page!(running, include_str!("../docs/running.md"));
page!(alternatives, include_str!("../docs/alternatives.md"));
page!(parameters, include_str!("../docs/parameters.md"));
shown!(partitioned, include_str!("../docs/partitioned.md"));
shown!(growing, include_str!("../docs/growing.md"));
page!(adapter, include_str!("../docs/adapter.md"));
shown!(migrating, include_str!("../docs/migrating.md"));
shown!(rocksdb, include_str!("../docs/rocksdb.md"));
shown!(parquet, include_str!("../docs/parquet.md"));
shown!(foreign, include_str!("../docs/foreign.md"));
shown!(planes, include_str!("../docs/planes.md"));
shown!(removable, include_str!("../docs/removable.md"));
shown!(resident, include_str!("../docs/resident.md"));
shown!(ribbon, include_str!("../docs/ribbon.md"));
shown!(datafusion, include_str!("../docs/datafusion.md"));
shown!(planning, include_str!("../docs/planning.md"));
page!(format, include_str!("../docs/format.md"));
page!(internals, include_str!("../docs/internals.md"));
page!(measuring, include_str!("../docs/measuring.md"));
page!(benchmarks, include_str!("../docs/benchmarks.md"));
page!(where_others_win, include_str!("../docs/where-others-win.md"));
page!(testing, include_str!("../docs/testing.md"));
page!(releasing, include_str!("../docs/releasing.md"));
page!(unsafe_code, include_str!("../docs/unsafe.md"));
page!(security, include_str!("../SECURITY.md"));
