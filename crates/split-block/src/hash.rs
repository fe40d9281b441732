//! The hash of values that filters hold.

use blocked_bloom::{HashError, KeyHash};
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

/// Hashes values that lie in one buffer, Arrow's layout of strings and binary values, by
/// [`hash_value`]: value `i` is `bytes[offsets[i]..offsets[i + 1]]`.
///
/// For scans and joins of such columns: the hashes go to
/// [`contains_hashes`](blocked_bloom::Filter::contains_hashes),
/// [`select_hashes`](crate::SplitBlockFilter::select_hashes) or
/// [`insert_hashes`](crate::SplitBlockFilter::insert_hashes). Offsets are integers of any type, one
/// more than there are values, or none for none. The first need not be 0, nor the last the end, so
/// that part of a column is hashed by part of its offsets. An entry that is null in Arrow is hashed
/// as the bytes that it has, mostly none.
///
/// Cost: that of [`hash_value`] for each, and a pass over the offsets, which are checked first.
///
/// # Errors
///
/// [`HashError::Length`] unless there is one hash per value, [`HashError::Offset`] if an offset is
/// less than the one before it, or beyond the end of the bytes; nothing is written then.
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
        // They fit, as checked above.
        *hash = hash_value(&bytes[wide(pair[0]) as usize..wide(pair[1]) as usize]);
    }
    Ok(())
}

/// The offset. What does not fit a signed 128-bit integer is beyond every end.
#[inline]
fn wide(offset: impl TryInto<i128>) -> i128 {
    offset.try_into().unwrap_or(i128::MAX)
}
