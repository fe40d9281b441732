//! [`blocked-bloom`](blocked_bloom) filters in [SlateDB](slatedb): one cache line per lookup,
//! checksummed bytes, fractional bits per key.
//!
//! A [`BlockedBloomPolicy`] replaces SlateDB's own `BloomFilterPolicy`. Pass the same policy to
//! everything that opens a database: the writer, readers, and compactors that run separately.
//!
//! ```
//! use std::sync::Arc;
//! use blocked_bloom::Sizing;
//! use blocked_bloom_slatedb::BlockedBloomPolicy;
//! use slatedb::{Db, object_store::memory::InMemory};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Arc::new(BlockedBloomPolicy::new(Sizing::BitsPerKey(10.5))?);
//! let db = Db::builder("example", Arc::new(InMemory::new()))
//!     .with_filter_policies(vec![policy.clone()])
//!     .build()
//!     .await?;
//! db.put(b"apple", b"green").await?;
//! assert_eq!(db.get(b"apple").await?.as_deref(), Some(&b"green"[..]));
//! assert_eq!(policy.unusable_filters(), 0);
//! db.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Changing from SlateDB's filter, and back
//!
//! SlateDB stores a policy's name with each filter and ignores filters of policies that are not
//! configured. It reads their tables as if they had no filter, until compaction rewrites them. If
//! both policies are configured, in any order, every table uses the filter that it was written
//! with, and new tables get both.
//!
//! # Benchmark
//!
//! `bench.sh` runs SlateDB's own benchmark of `scan_prefix`. With prefixes or ranges, a scan takes
//! about an eighth of the time without filters.
//!
//! # Cost of the interface
//!
//! - `FilterPolicy::decode` receives a slice of a buffer that the engine keeps, so a filter is
//!   copied once when it is read. The copy is aligned to cache lines; the engine's buffer is not.
//!   `clamp_allocated_size` shares the copy.
//! - `Filter::might_match` looks up one key in one filter: each table hashes the key again, and
//!   batches cannot be used.
//! - Errors cannot be returned to the engine. A filter that is damaged or could not be built
//!   answers "maybe" to everything, is logged as an error, and is counted by
//!   [`BlockedBloomPolicy::unusable_filters`].
mod collect;
mod extractor;
mod filter;
mod policy;
mod ranges;

pub use policy::BlockedBloomPolicy;
pub use ranges::RangePolicy;
