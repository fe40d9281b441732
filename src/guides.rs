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

/// Pages whose code is compiled and run. Each begins with the lines of `rustdoc-links.txt`, which
/// say where links to files of the repository lead.
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

// Its code uses the methods `par_*`.
#[cfg(any(not(doctest), feature = "rayon"))]
pages!(guide);
pages!(running, alternatives, parameters, adapter, format, internals, measuring, benchmarks);
pages!(testing, releasing, deletes);
page!(where_others_win, include_str!("../docs/where-others-win.md"));
page!(file_index, include_str!("../docs/file-index.md"));
page!(unsafe_code, include_str!("../docs/unsafe.md"));
page!(security, include_str!("../SECURITY.md"));
// Their code is compiled by the packages that they need.
#[cfg(not(doctest))]
page!(async_engines, include_str!("../docs/async.md"));
#[cfg(not(doctest))]
pages!(partitioned, growing, migrating, rocksdb, parquet, foreign, planes, removable, resident);
#[cfg(not(doctest))]
pages!(ribbon, datafusion, planning);
