//! The hash of the values in split-block filters.

use blocked_bloom::{HashError, KeyHash};
use xxhash_rust::xxh64::xxh64;

/// The identity of [`hash_value`].
pub(crate) const KEY_HASH: KeyHash = KeyHash::Caller { tag: u64::from_be_bytes(*b"XXH64_s0") };

/// Returns the XXH64 hash with seed 0 of a value's plain-encoded bytes, as in Parquet's filters.
///
/// The plain encoding of integers and floating-point numbers is little-endian in the width of their
/// physical type. That of byte arrays is their bytes without the length. Cost: 1 to 2 ns for
/// numbers.
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

/// Hashes values that are concatenated in one buffer, Arrow's layout of strings and binary values,
/// with [`hash_value`]: value `i` is `bytes[offsets[i]..offsets[i + 1]]`.
///
/// For scans and joins of such columns: pass the hashes to
/// [`contains_hashes`](blocked_bloom::Filter::contains_hashes),
/// [`select_hashes`](crate::SplitBlockFilter::select_hashes) or
/// [`insert_hashes`](crate::SplitBlockFilter::insert_hashes). Offsets are integers of any type, one
/// more than there are values, or none for no values. The first offset may be above 0 and the last
/// below the end, so a slice of the offsets hashes a slice of the column. A null entry of Arrow is
/// hashed like the bytes in its range, usually none.
///
/// Cost: that of [`hash_value`] for each value, and one pass over the offsets to check them.
///
/// # Errors
///
/// [`HashError::Length`] unless there is one hash per value. [`HashError::Offset`] if an offset is
/// less than the one before it, or after the end of the bytes. Nothing is written in either case.
///
/// ```
/// use blocked_bloom::HashError;
/// use blocked_bloom_split::{hash_offsets, hash_value};
/// let mut hashes = [0; 2];
/// hash_offsets(b"applefig", &[0_i32, 5, 8], &mut hashes)?;
/// assert_eq!(hashes, [hash_value("apple"), hash_value("fig")]);
///
/// let error = hash_offsets(b"applefig", &[0_i32, 5, 9], &mut hashes).unwrap_err();
/// assert_eq!(error, HashError::Offset { index: 2, offset: 9, least: 5, most: 8 });
/// # Ok::<(), HashError>(())
/// ```
pub fn hash_offsets<O: Copy + TryInto<i128>>(
    bytes: &[u8],
    offsets: &[O],
    hashes: &mut [u64],
) -> Result<(), HashError> {
    let keys = offsets.len().saturating_sub(1);
    if hashes.len() != keys {
        return Err(HashError::Length { hashes: hashes.len(), keys });
    }
    let (mut least, most) = (0, bytes.len());
    for (index, &offset) in offsets.iter().enumerate() {
        let offset = wide(offset);
        least = match usize::try_from(offset) {
            Ok(next) if (least..=most).contains(&next) => next,
            _ => return Err(HashError::Offset { index, offset, least, most }),
        };
    }
    for (hash, pair) in hashes.iter_mut().zip(offsets.windows(2)) {
        // The offsets fit, as checked above.
        *hash = hash_value(&bytes[wide(pair[0]) as usize..wide(pair[1]) as usize]);
    }
    Ok(())
}

/// Converts an offset. Values outside a signed 128-bit integer become the largest one, which is
/// after every end.
#[inline]
fn wide(offset: impl TryInto<i128>) -> i128 {
    offset.try_into().unwrap_or(i128::MAX)
}
