//! A filter that keys can be removed from, for [`blocked_bloom`]: the working set of a cache,
//! sessions, bans that expire.
//!
//! A Bloom filter forgets nothing but by being built again. Here a key is a tag of 16 bits in one
//! of two cache lines of 32 tags; removing the key empties the lane. Tags never move, so that
//! nothing is ever lost by an addition that fails, an addition takes one or two cache lines, never
//! a chain of evictions, and readers can look up while a writer adds and removes.
//!
//! ```
//! use blocked_bloom::{Bitmask, Filter, FilterOptions};
//! use blocked_bloom_removable::{RemovableFilter, RemovableOptions};
//!
//! // For a million keys at a time, 2.3 MB. The hash is that of the store's filters, decided in one
//! // place.
//! let store = FilterOptions::default();
//! let mut banned = RemovableOptions::for_filters(&store, 1_000_000).empty_filter()?;
//! banned.insert("203.0.113.7")?;
//! banned.insert("198.51.100.23")?;
//!
//! // Removed, and only because it was added before.
//! banned.remove("203.0.113.7")?;
//!
//! // A batch, looked up by a SIMD kernel.
//! let mut hits = Bitmask::new();
//! banned.contains_batch(&["198.51.100.23", "203.0.113.7"], &mut hits);
//! assert!(hits.hits().eq([0]));
//!
//! // Stored, and read where it lies.
//! let opened = RemovableFilter::from_bytes(banned.to_bytes(), store.key_hash())?;
//! assert!(opened.contains("198.51.100.23"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When to use it
//!
//! | | Bloom filter of the core | this filter |
//! |---|---|---|
//! | keys can be removed | no | yes, those that were added |
//! | bits per key | any; 10 for 0.97 % | 18.3 |
//! | false positives | any | 0.085 % at that size |
//! | cache lines per lookup | 1 | 2 |
//! | more keys than it was made for | a higher rate | an error, and the filter is as before |
//! | merge, fold | yes | no |
//!
//! `docs/removable.md` in the repository has the measurements, what removing a key that was never
//! added costs, and working sets by example.
//!
//! # Types
//!
//! | type | what it is |
//! |---|---|
//! | [`RemovableOptions`] | for how many keys, with how much slack, of which hash |
//! | [`RemovableFilter`] | add, remove, look up, store: in memory of its own, in stored bytes, or borrowed |
//! | [`RemovableWriter`], [`RemovableReader`] | one thread adds and removes while others look up, without locks |
//! | [`RemovableError`] | why a filter cannot be made or added to |
//! | [`tags`] | the definition that every kernel is held to |
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | `write_to` for `std::io::Write`, and the kernel by environment variable; without it the crate is `no_std` with `alloc` |
//! | `portable` | yes | the core's kernel of that name, for machines without AVX2, AVX-512 or NEON |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

/// Tells unit tests that a loop of this kernel runs.
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

/// The code in the README compiles and runs.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
