//! A Bloom filter for an unknown number of keys: it grows and keeps its false-positive rate.
//!
//! A crawler that checks whether it has seen a URL cannot know the number of URLs in advance.
//! [`ScalableBloomFilter`] is a chain of the filters of [`blocked_bloom`], each larger and stricter
//! than the one before, so that their combined rate stays below the target at every size.
//!
//! ```
//! use blocked_bloom::{Bitmask, Filter, FilterOptions, Sizing};
//! use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
//!
//! // Hash and rate are chosen once for all filters.
//! let options = FilterOptions::new(Sizing::FalsePositiveRate(0.001));
//! let mut seen = ScalableOptions::for_filters(&options, 10_000)?.build()?;
//!
//! // One at a time: true means certainly new.
//! assert!(seen.insert("https://example.com/")?);
//! assert!(!seen.insert("https://example.com/")?);
//!
//! // In batches: one bit per key, set if the key is certainly new.
//! let found = ["https://example.com/a", "https://example.com/", "https://example.com/a"];
//! let mut new = Bitmask::new();
//! seen.insert_batch_new(&found, &mut new)?;
//! assert!(new.hits().eq([0]));
//!
//! // Stored, and looked up in place.
//! let stored = seen.to_bytes();
//! let opened = ScalableBloomFilter::from_bytes(&stored, options.key_hash())?;
//! assert!(opened.contains("https://example.com/a") && !opened.contains("https://example.com/b"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! If the number of keys is known after the last key arrives, use a
//! [builder](blocked_bloom::BloomFilterBuilder): it builds one filter of the right size, which is
//! smaller and reads one cache line per lookup instead of one per link. `docs/growing.md` in the
//! repository explains how the chain grows and what it costs.
//!
//! # Types
//!
//! | type | purpose |
//! |---|---|
//! | [`ScalableOptions`] | rate, first size, growth and hash |
//! | [`ScalableBloomFilter`] | owns its links: insert, look up, merge, store |
//! | `ScalableBloomFilter<Stored<LinkBytes<B>>>` | a stored filter, looked up in the bytes in `B` |
//! | [`LinkBytes`] | the bytes of one link of a stored filter |
//! | [`ScalableError`], [`ScalableFormatError`] | errors of building and merging, and of opening |
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `std` | yes | `write_to` for `std::io::Write`, and the core's `std`; without it the crate is `no_std` with `alloc` |
//! | `serde` | no | `Serialize` and `Deserialize` for options |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod error;
mod filter;
mod insert;
mod merge;
mod options;
mod query;
mod stored;

pub use error::ScalableError;
pub use filter::ScalableBloomFilter;
pub use options::ScalableOptions;
pub use stored::{LinkBytes, MAGIC, ScalableFormatError};

/// Compiles and runs the code of the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
