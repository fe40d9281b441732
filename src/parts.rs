//! Parts for authors of other filters: memory for blocks, prefetching, lookups of batches of keys,
//! and the header of stored filters.
//!
//! Users of this crate's filters, and of the companion packages, do not need them.
//!
//! ```
//! use blocked_bloom::parts::{BlockBuffer, Header};
//! let mut header = Header::new(*b"\x89MYBLOOM", 1);
//! header.put(16, &3_u32.to_le_bytes());
//! let blocks = BlockBuffer::zeroed(3, true)?;
//! let stored = [header.seal().as_slice(), blocks.as_flattened()].concat();
//! assert_eq!(Header::read(&stored, *b"\x89MYBLOOM", 1)?.u32_at(16), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use crate::batch::{check_words, look_up_keys};
pub use crate::bitmask::fill_with_hits;
pub use crate::buffer::BlockBuffer;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use crate::buffer::{AtomicBuffer, AtomicWord};
pub use crate::filter::{Blocks, BlocksMut};
pub use crate::header::{HEADER_BYTES, Header, HeaderError, MAGIC};
pub use crate::kernel::{PrefetchAhead, prefetch};
pub use crate::stored::{stored, stored_unused};
pub use crate::unmixed::{UnmixedHashes, check_mixed};
