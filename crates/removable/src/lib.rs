//! A filter with removal, for [`blocked_bloom`]: the working set of a cache, sessions, bans that
//! expire.
//!
//! Keys cannot be removed from a Bloom filter. Here a key is stored as a 16-bit tag in one of two
//! cache lines of 32 tags, and removing the key empties its lane. Tags never move. An insertion
//! that fails therefore loses nothing, an insertion writes one cache line without a chain of
//! evictions, and readers can look up keys while a writer inserts and removes.
//!
//! ```
//! use blocked_bloom::{Bitmask, Filter, FilterOptions};
//! use blocked_bloom_removable::{RemovableFilter, RemovableOptions};
//!
//! // For up to a million keys, 2.3 MB. The hash comes from the options of the store's filters.
//! let store = FilterOptions::default();
//! let mut banned = RemovableOptions::for_filters(&store, 1_000_000).empty_filter()?;
//! banned.insert("203.0.113.7")?;
//! banned.insert("198.51.100.23")?;
//!
//! // Remove only keys that were inserted.
//! banned.remove("203.0.113.7")?;
//!
//! // A batch lookup with a SIMD kernel.
//! let mut hits = Bitmask::new();
//! banned.contains_batch(&["198.51.100.23", "203.0.113.7"], &mut hits);
//! assert!(hits.hits().eq([0]));
//!
//! // Stored, and read in place.
//! let opened = RemovableFilter::from_bytes(banned.to_bytes(), store.key_hash())?;
//! assert!(opened.contains("198.51.100.23"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When to use it
//!
//! | | Bloom filter of the core | this filter |
//! |---|---|---|
//! | removal of keys | no | yes, of inserted keys |
//! | bits per key | any; 10 for 0.97 % | 18.3 |
//! | false positives | any | 0.085 % at that size |
//! | cache lines per lookup | 1 | 2 |
//! | more keys than planned | a higher rate | an error; the filter is unchanged |
//! | merge, fold | yes | no |
//!
//! `docs/removable.md` in the repository has measurements, the effect of removing a key that was
//! never inserted, and examples of working sets.
//!
//! # Types
//!
//! | type | purpose |
//! |---|---|
//! | [`RemovableOptions`] | number of keys, slack and hash |
//! | [`RemovableFilter`] | insert, remove, look up, store: in its own memory, in stored bytes, or borrowed |
//! | [`RemovableWriter`], [`RemovableReader`] | one thread inserts and removes while others look up, without locks |
//! | [`RemovableError`] | why a filter could not be built or a key not inserted |
//! | [`tags`] | the definition with which every kernel agrees |
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `std` | yes | `write_to` for `std::io::Write`, and choice of the kernel by environment variable; without it the crate is `no_std` with `alloc` |
//! | `portable` | yes | the core's portable kernel, for machines without AVX2, AVX-512 or NEON |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

/// Records for unit tests that a loop of this kernel runs.
macro_rules! ran {
    ($kernel:literal) => {
        #[cfg(test)]
        crate::watch::note(crate::watch::Event::Ran($kernel));
    };
}

mod error;
mod filter;
mod format;
mod kernel;
mod options;
mod owned;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod shared;
pub mod tags;
#[cfg(test)]
#[path = "../tests/unit/watch.rs"]
mod watch;

#[cfg(not(test))]
use blocked_bloom::parts::prefetch;
#[cfg(test)]
use watch::prefetch;

pub use error::RemovableError;
pub use filter::RemovableFilter;
pub use format::MAGIC;
pub use options::RemovableOptions;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use shared::{RemovableReader, RemovableWriter};

/// Compiles and runs the code of the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
