//! [`blocked-bloom`](blocked_bloom) filters in [SlateDB](slatedb): one cache line per lookup,
//! checksummed bytes, fractional bits per key.
//!
//! A [`BlockedBloomPolicy`] stands where SlateDB's own `BloomFilterPolicy` does. Give the same
//! policy to everything that opens a database: the writer, readers, and compactors that run by
//! themselves.
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
//! SlateDB stores a policy's name with each filter and drops filters of policies that are not
//! configured: their tables are read as if they had none, until compaction rewrites them. With both
//! policies configured, in any order, every table has the filter that it was written with, and new
//! tables have both.
//!
//! # What the interface costs
//!
//! - `FilterPolicy::decode` lends a slice of a buffer that it does not give away, so a filter is
//!   copied once when it is read; the copy is aligned to cache lines, which the engine's buffer is
//!   not. `clamp_allocated_size` shares it.
//! - `Filter::might_match` looks one key up in one filter: each table hashes the key anew, and
//!   batches cannot be used.
//! - Errors have no way back to the engine: a filter that is damaged, or could not be built,
//!   answers "maybe" to everything, is logged as an error and counted by
//!   [`BlockedBloomPolicy::unusable_filters`].
mod collect;
mod extractor;
mod filter;
mod policy;

pub use policy::BlockedBloomPolicy;
