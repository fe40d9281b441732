//! RedisBloom's filters (`BF.ADD`, `BF.EXISTS`), in the form that `BF.SCANDUMP` returns and
//! `BF.LOADCHUNK` accepts: chains of classical Bloom filters.
//!
//! When a filter is full, it gets another link with half the error rate and, by default, twice the
//! size. A key may be present if any link may contain it. Keys are bytes. The hash has 64 bits, or
//! 32 bits in filters of early versions; the dump contains the width.
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::redis::RedisFilter;
//!
//! // BF.RESERVE fruit 0.01 100, then BF.MADD: 150 keys need more than one link.
//! let mut filter = RedisFilter::new(100, 0.01, Some(2))?;
//! for i in 0..150 {
//!     filter.insert(format!("fruit:{i}"))?;
//! }
//! assert_eq!(filter.links().len(), 2);
//!
//! // The replies of BF.SCANDUMP in order, which BF.LOADCHUNK accepts.
//! let dump: Vec<(i64, Vec<u8>)> = filter.dump().map(|(i, data)| (i, data.into_owned())).collect();
//! let filter = RedisFilter::load(dump)?;
//! let mut hits = Bitmask::new();
//! filter.contains_batch(&["fruit:7", "stone:7", "fruit:149"], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
//! ```
//!
//! # Stored bytes
//!
//! The first reply of `BF.SCANDUMP` has iterator 1 and the header, little-endian: `u64` keys, `u32`
//! links, `u32` options, `u32` growth; then 53 bytes per link: `u64` bytes, `u64` bits, `u64` keys,
//! `f64` error rate, `f64` bits per entry, `u32` hashes, `u64` entries, `u8` n2. The following
//! replies hold the bits of one link after the other. A reply holds at most 16 MiB and never parts
//! of two links; its iterator is one more than the offset at which its bits end, counted over all
//! links.
//!
//! - Options: bit value 1 does not round sizes, 2 takes the entries as the logarithm of the bits, 4
//!   uses 64-bit hashes, 8 does not scale. `BF.RESERVE` uses 5, or 13.
//! - The hashes are `a` = MurmurHash64A with seed `c6a4a7935bd1e995` and `b` = the same with seed
//!   `a`; or, without option 4, MurmurHash2 with seeds `9747b28c` and `a`, each zero-extended from
//!   32 to 64 bits. Probe `i`, for `i` from 0 to one less than the link's hashes, is bit `(a + i b)
//!   mod M`. `a + i b` is computed in 64 bits and wraps; `M` is the link's bits, or `2^n2` if `n2`
//!   is not 0. Bit `p` is bit `p mod 8` of byte `p div 8`.
//! - A link for `n` entries and error rate `e` has `n * -ln(e) / ln(2)^2` bits, rounded up to
//!   words; the next has half the error rate and `growth` times the entries. The first link has
//!   half of the reserved rate, unless the filter does not scale.
//!
//! `RedisFilter` refuses a header unless all of these conditions hold. They are RedisBloom's own,
//! plus ranges for bytes and bits per entry. Offsets of a link's fields count from the start of its
//! 53 bytes:
//!
//! | offset | field | accepted | error |
//! |---:|---|---|---|
//! | - | length | exactly `20 + 53 * links` bytes | `Truncated`, `Trailing` |
//! | 0 | keys | the sum of the links' keys (at most 2^64 - 1) | `OutOfRange` |
//! | 8 | links | 1 or more | `OutOfRange` |
//! | 12 | options | 0 to 15 | `OutOfRange` |
//! | 16 | growth | any | |
//! | **per link:** 0 | bytes | 1 to 2^60 | `OutOfRange` |
//! | 8 | bits | 8 times the bytes | `OutOfRange` |
//! | 16 | keys | any | |
//! | 24 | error rate | above 0 and below 1 | `Rate` |
//! | 32 | bits per entry (`-ln(e) / ln(2)^2`, which is not checked) | above 0 and below 1,552 | `Rate` |
//! | 40 | hashes | `ceil(0.693147180559945 * bits per entry)`, in 64-bit floating point | `OutOfRange` |
//! | 44 | entries | any; see below | |
//! | 52 | n2 | 0 to `floor(log2(bits))` | `OutOfRange` |
//!
//! Entries are checked before an insertion appends a link: more than `(bits + 64) / bits per
//! entry`, rounded down, are an `OutOfRange` error, because the next link would take memory out of
//! proportion to the dump.
//!
//! Replies are refused if an iterator is not the expected one (`Order`), if a reply goes beyond the
//! end of a link (`SpansLinks`), or if bits are missing (`Missing`).
//!
//! # Damage
//!
//! A dump has **no checksum**. Damage to the header, and missing, repeated or reordered replies,
//! return a [`RedisError`]. A cleared bit cannot be detected and makes a present key absent.
//! Protect dumps with a checksum of your own.

mod chain;
mod dump;
mod error;
mod hash;
mod link;
mod log;

pub use chain::RedisFilter;
pub use error::RedisError;
pub use hash::RedisHash;
pub use link::{Link, LinkScheme};
