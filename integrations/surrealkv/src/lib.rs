//! [`blocked-bloom`](blocked_bloom) filters in [SurrealKV](surrealkv): one block per lookup, SIMD
//! instructions, fractional bits per key.
//!
//! A [`BlockedBloomPolicy`] replaces SurrealKV's own filter policy. Pass a policy to everything
//! that opens the database.
//!
//! ```
//! use std::sync::Arc;
//! use blocked_bloom::Sizing;
//! use blocked_bloom_surrealkv::BlockedBloomPolicy;
//! use surrealkv::TreeBuilder;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().to_path_buf();
//! let policy = Arc::new(BlockedBloomPolicy::new(Sizing::BitsPerKey(10.5))?);
//! let tree =
//!     TreeBuilder::new().with_path(path).with_filter_policy(Some(policy.clone())).build()?;
//! let mut transaction = tree.begin()?;
//! transaction.set("apple", "green")?;
//! transaction.commit().await?;
//! assert_eq!(tree.begin()?.get("apple")?.as_deref(), Some(&b"green"[..]));
//! tree.close().await?;
//! assert_eq!(policy.unusable_filters(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Changing from SurrealKV's filter, and back
//!
//! SurrealKV stores a policy's name in each table. A table whose name differs from that of the
//! configured policy is read without a filter until compaction rewrites it.
mod policy;

pub use policy::BlockedBloomPolicy;
