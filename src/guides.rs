//! The guides in `docs`, as pages of this documentation. All of their code is tested.
//!
//! Start with the [guide for engine authors](guide) and [filters in a running engine](running).
//! [Which filter when](alternatives) and [choosing parameters](parameters) help to decide.
//!
//! ```
//! // From the guide: `FilterOptions` holds the settings of all filters of an engine.
//! use blocked_bloom::{FilterOptions, Sizing};
//! let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
//! assert_eq!(options.params(1_000)?.probes(), 6);
//! # Ok::<(), blocked_bloom::ParamsError>(())
//! ```
#![doc = include_str!("../docs/img/time-per-key.svg")]
#![doc = include_str!("../docs/img/batch-size.svg")]
#![doc = include_str!("../docs/img/false-positives.svg")]

/// Defines a module for each page. Every page starts with `rustdoc-links.txt`, which defines the
/// targets of links to files in the repository.
macro_rules! pages {
    ($($name:ident),*) => {$(
        page!($name, include_str!(concat!("../docs/", stringify!($name), ".md")));
    )*};
}
macro_rules! page {
    ($name:ident, $text:expr) => {
        #[doc = include_str!("../docs/rustdoc-links.txt")]
        #[doc = $text]
        pub mod $name {}
    };
}

// Uses the methods `par_*`.
#[cfg(any(not(doctest), feature = "rayon"))]
pages!(guide);
pages!(running, alternatives, parameters, adapter, format, internals, measuring, benchmarks);
pages!(testing, releasing, deletes);
page!(where_others_win, include_str!("../docs/where-others-win.md"));
page!(file_index, include_str!("../docs/file-index.md"));
page!(unsafe_code, include_str!("../docs/unsafe.md"));
page!(security, include_str!("../SECURITY.md"));
// The packages that these pages use compile their code.
#[cfg(not(doctest))]
page!(async_engines, include_str!("../docs/async.md"));
#[cfg(not(doctest))]
pages!(partitioned, growing, migrating, rocksdb, parquet, foreign, planes, removable, resident);
#[cfg(not(doctest))]
pages!(ribbon, datafusion, planning);
