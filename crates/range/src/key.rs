//! Keys and their values: numbers of 128 bits, in the order of the keys.

/// A key or bound: an integer, or a byte string. The key of an integer is its big-endian bytes.
///
/// Other types of keys can implement it. The bytes must have the order of the keys.
///
/// ```
/// use blocked_bloom_range::{RangeKey, RangeOptions};
///
/// #[derive(Clone, Copy)]
/// struct Point {
///     series: u32,
///     time: u64,
/// }
///
/// impl RangeKey for Point {
///     type Bytes = [u8; 12];
///
///     fn to_key(self) -> [u8; 12] {
///         let (series, time) = (self.series.to_be_bytes(), self.time.to_be_bytes());
///         std::array::from_fn(|i| if i < 4 { series[i] } else { time[i - 4] })
///     }
/// }
///
/// let mut builder = RangeOptions::new(16.0).builder();
/// builder.insert(Point { series: 1, time: 2 })?;
/// assert!(builder.finish()?.contains(&b"\0\0\0\x01\0\0\0\0\0\0\0\x02"[..]));
/// # Ok::<(), blocked_bloom_range::RangeError>(())
/// ```
pub trait RangeKey: Copy {
    /// The bytes of a key.
    type Bytes: AsRef<[u8]>;

    /// Returns the bytes, which have the order of the keys.
    fn to_key(self) -> Self::Bytes;
}

impl RangeKey for u64 {
    type Bytes = [u8; 8];

    #[inline]
    fn to_key(self) -> [u8; 8] {
        self.to_be_bytes()
    }
}

impl<'k> RangeKey for &'k [u8] {
    type Bytes = &'k [u8];

    #[inline]
    fn to_key(self) -> &'k [u8] {
        self
    }
}

/// Number of bytes of a key that its value has.
pub(crate) const VALUE_BYTES: usize = 16;

/// Returns the first 16 bytes as a big-endian number, with zeros after a shorter string.
#[inline]
pub(crate) fn value(bytes: &[u8]) -> u128 {
    let mut all = [0; VALUE_BYTES];
    let length = bytes.len().min(VALUE_BYTES);
    all[..length].copy_from_slice(&bytes[..length]);
    u128::from_be_bytes(all)
}
