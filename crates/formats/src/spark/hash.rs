//! The hash of a key: Spark's variant of MurmurHash3_x86_32, twice.

use super::version::Version;

/// Both hashes of a key, computed by [`Version::hash_long`] or [`Version::hash_bytes`]. The first
/// is the seed of the second.
///
/// Hash a key once and look it up in all filters of the same version and seed.
///
/// ```
/// use blocked_bloom_formats::spark::Version;
/// assert_ne!(Version::V1.hash_long(7), Version::V1.hash_bytes("7"));
/// assert_eq!(Version::V1.hash_long(7), Version::V1.hash_bytes(7_i64.to_le_bytes()));
/// assert_eq!(Version::V1.hash_long(7), Version::V2 { seed: 0 }.hash_long(7));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SparkHash {
    /// The first hash, with the filter's seed.
    pub h1: i32,
    /// The second hash, with the first as its seed.
    pub h2: i32,
}

impl SparkHash {
    /// Creates a hash from halves that another program computed.
    pub const fn new(h1: i32, h2: i32) -> Self {
        SparkHash { h1, h2 }
    }
}

impl Version {
    /// Hashes a number as eight little-endian bytes, like `putLong` and `mightContainLong`.
    #[inline]
    pub fn hash_long(self, key: i64) -> SparkHash {
        self.hash_bytes(key.to_le_bytes())
    }

    /// Hashes bytes, like `putBinary` and `mightContainBinary`. Text is hashed as UTF-8.
    ///
    /// Cost: about two nanoseconds per four bytes.
    #[inline]
    pub fn hash_bytes(self, key: impl AsRef<[u8]>) -> SparkHash {
        let key = key.as_ref();
        twice(self.seed(), |seed| murmur3_bytes(key, seed))
    }
}

#[inline]
fn twice(seed: i32, hash: impl Fn(u32) -> u32) -> SparkHash {
    let h1 = hash(seed.cast_unsigned());
    SparkHash { h1: h1.cast_signed(), h2: hash(h1).cast_signed() }
}

/// Hashes four-byte little-endian words. Unlike the standard, each remaining byte is hashed as a
/// separate word, sign-extended.
#[inline]
fn murmur3_bytes(key: &[u8], seed: u32) -> u32 {
    let (words, tail) = key.as_chunks();
    let hash = words.iter().fold(seed, |hash, &word| mix(hash, u32::from_le_bytes(word)));
    let word = |byte: u8| i32::from(byte.cast_signed()).cast_unsigned();
    let hash = tail.iter().fold(hash, |hash, &byte| mix(hash, word(byte)));
    finish(hash, key.len() as u32)
}

#[inline]
fn mix(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[inline]
fn finish(hash: u32, length: u32) -> u32 {
    let mut hash = hash ^ length;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
