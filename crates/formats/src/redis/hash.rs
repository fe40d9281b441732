//! The hashes of a key: MurmurHash64A or MurmurHash2 (Appleby 2008), twice.

/// Both hashes of a key, computed by [`RedisFilter::hash_key`](super::RedisFilter::hash_key). The
/// first is the seed of the second.
///
/// They depend only on the filter's hash width, which is 64 bits in all filters of current versions
/// of RedisBloom.
///
/// ```
/// use blocked_bloom_formats::redis::RedisFilter;
/// let filters = [RedisFilter::new(100, 0.01, Some(2))?, RedisFilter::new(7, 0.1, None)?];
/// assert_eq!(filters[0].hash_key("apple"), filters[1].hash_key("apple"));
/// # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RedisHash {
    /// Start of the walk of positions.
    first: u64,
    /// Step of the walk.
    second: u64,
}

impl RedisHash {
    /// Creates hashes, of the filter's width, that another program computed.
    pub const fn new(first: u64, second: u64) -> Self {
        RedisHash { first, second }
    }

    /// Returns the first hash, the start of the walk of positions.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Returns the second hash, the step of the walk.
    pub const fn second(self) -> u64 {
        self.second
    }

    /// Hashes a key to 64 bits if `is_64`, otherwise to 32.
    #[inline]
    pub(super) fn hash(key: &[u8], is_64: bool) -> Self {
        if is_64 {
            let first = murmur2_64(key, 0xc6a4_a793_5bd1_e995);
            return RedisHash { first, second: murmur2_64(key, first) };
        }
        let first = murmur2_32(key, 0x9747_b28c);
        RedisHash { first: first.into(), second: murmur2_32(key, first).into() }
    }
}

/// MurmurHash64A.
#[inline]
fn murmur2_64(key: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    let (words, tail) = key.as_chunks();
    for &word in words {
        let mut word = u64::from_le_bytes(word).wrapping_mul(M);
        word = (word ^ word >> 47).wrapping_mul(M);
        hash = (hash ^ word).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let word = tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        hash = (hash ^ word).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

/// MurmurHash2.
#[inline]
fn murmur2_32(key: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = seed ^ key.len() as u32;
    let (words, tail) = key.as_chunks();
    for &word in words {
        let mut word = u32::from_le_bytes(word).wrapping_mul(M);
        word = (word ^ word >> 24).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ word;
    }
    if !tail.is_empty() {
        let word = tail.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        hash = (hash ^ word).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{murmur2_32, murmur2_64};

    /// The verification values of the author's test program: the hash of the hashes of the keys
    /// `0..n`, each with the seed `256 - n`.
    #[test]
    fn the_hashes_are_the_authors() {
        let key: Vec<u8> = (0..=255).collect();
        let all: Vec<u8> =
            (0..256).flat_map(|n| murmur2_64(&key[..n], 256 - n as u64).to_le_bytes()).collect();
        assert_eq!(murmur2_64(&all, 0) as u32, 0x1f0d_3804);
        let all: Vec<u8> =
            (0..256).flat_map(|n| murmur2_32(&key[..n], 256 - n as u32).to_le_bytes()).collect();
        assert_eq!(murmur2_32(&all, 0), 0x2786_4c1e);
    }
}
