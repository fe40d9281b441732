//! The hash of a partition key: Cassandra's variant of MurmurHash3, with its quirk and its seed, 0.

use crate::murmur3;

/// Both halves of a partition key's hash, from [`hash_key`].
///
/// The hash does not depend on the table or on the [`Layout`](super::Layout): hash a key once, look
/// it up in the filter of every SSTable.
///
/// ```
/// use blocked_bloom_formats::cassandra::hash_key;
/// let hash = hash_key([0x03]);
/// assert_eq!((hash.h1, hash.h2), (0x726a_c6dd_306a_3e59, 0x4e71_1127_c5b5_a8e4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Hash128 {
    /// The first half, which is also the token of Cassandra's Murmur3Partitioner (as a signed
    /// number, for keys that are not empty).
    pub h1: u64,
    /// The second half.
    pub h2: u64,
}

impl Hash128 {
    /// The hash of these halves, as another program computed them.
    pub const fn new(h1: u64, h2: u64) -> Self {
        Hash128 { h1, h2 }
    }
}

/// The hash of a partition key's bytes: MurmurHash3_x64_128 with seed 0, but as Cassandra computes
/// it.
///
/// Cassandra sign-extends each byte of the tail, which is the last `len % 16` bytes, before it
/// shifts it into place. A key whose tail has a byte of 0x80 or more hashes differently under other
/// implementations of MurmurHash3; every other key does not.
///
/// Cost: a few nanoseconds, and about one per four bytes.
///
/// ```
/// use blocked_bloom_formats::cassandra::hash_key;
/// // "é" in UTF-8 is c3 a9: both bytes are in the tail. Their standard hash is another.
/// assert_eq!(hash_key("").h1, 0);
/// assert_ne!(hash_key("é"), hash_key("e"));
/// ```
#[inline]
pub fn hash_key(key: impl AsRef<[u8]>) -> Hash128 {
    let (h1, h2) = murmur3::x64_128::<true>(key.as_ref(), 0);
    Hash128 { h1, h2 }
}
