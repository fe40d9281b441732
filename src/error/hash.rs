//! Why a batch of keys cannot be hashed.

use core::fmt::{self, Display, Formatter};

use super::{error, plural};

/// Why a batch of keys cannot be hashed into a slice. Nothing was written to it.
///
/// ```
/// use blocked_bloom::{HashError, KeyHasher};
/// let error = KeyHasher::default().hash_u64s(&[1, 2, 3], &mut [0; 2]).unwrap_err();
/// assert_eq!(error, HashError::Length { hashes: 2, keys: 3 });
/// assert_eq!(error.to_string(), "2 hashes for 3 keys: give a slice of 3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashError {
    /// The slice for the hashes is not as long as there are keys.
    Length {
        /// Hashes of the slice.
        hashes: usize,
        /// Keys given.
        keys: usize,
    },
    /// An offset of a key in a buffer is less than the one before it, or beyond the end.
    Offset {
        /// Which offset, from 0.
        index: usize,
        /// What was given.
        offset: i128,
        /// The offset before it; 0 for the first.
        least: usize,
        /// Bytes of the buffer.
        most: usize,
    },
}

impl Display for HashError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { hashes, keys } => {
                let (is, are) = (if hashes == 1 { "" } else { "es" }, plural(keys as u64));
                write!(f, "{hashes} hash{is} for {keys} key{are}: give a slice of {keys}")
            }
            Self::Offset { index, offset, least, most } => {
                write!(f, "offset {index} is {offset}, expected {least} to {most}")
            }
        }
    }
}

error!(HashError);
