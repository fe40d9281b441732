//! The hash of values that filters hold.

use blocked_bloom::KeyHash;
use xxhash_rust::xxh64::xxh64;

/// The identity of [`hash_value`].
pub(crate) const KEY_HASH: KeyHash = KeyHash::Caller { tag: u64::from_be_bytes(*b"XXH64_s0") };

/// XXH64 with seed 0 of a value's plain-encoded bytes: what filters of Parquet files hold.
///
/// The plain bytes: integers and floating-point numbers little-endian in the width of their
/// physical type; byte arrays their bytes without the length. Cost: 1 to 2 ns for numbers.
///
/// ```
/// use blocked_bloom_split::hash_value;
/// assert_eq!(hash_value(""), 0xef46_db37_51d8_e999);
/// assert_ne!(hash_value(5_i64.to_le_bytes()), hash_value(5_i32.to_le_bytes()));
/// ```
#[inline]
pub fn hash_value(plain: impl AsRef<[u8]>) -> u64 {
    xxh64(plain.as_ref(), 0)
}
