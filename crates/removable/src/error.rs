//! Why a filter cannot be made or added to.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::{AllocError, KeyError};

/// Why a filter cannot be made or added to.
///
/// ```
/// use blocked_bloom_removable::{RemovableError, RemovableOptions};
/// let mut filter = RemovableOptions::new(1).empty_filter()?;
/// for _ in 0..32 {
///     filter.insert("apple")?;
/// }
/// // The only line is full, and stays as it is.
/// let error = filter.insert("apple").unwrap_err();
/// assert!(matches!(error, RemovableError::Full { inserted: 0, len: 32, capacity: 32, .. }));
/// assert_eq!(filter.len(), 32);
/// # Ok::<(), RemovableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RemovableError {
    /// More keys than the largest filter is for.
    KeysOutOfRange {
        /// The value given.
        keys: u64,
        /// The most that a filter of this slack is for.
        most: u64,
    },
    /// Not 0 to 0.9.
    SlackOutOfRange {
        /// The value given.
        slack: f64,
    },
    /// No memory for the lines.
    Alloc(AllocError),
    /// A key was given to a filter of the caller's hashes. Nothing was changed.
    Key(KeyError),
    /// Both lines of a key are full. It was not added, and nothing was changed by it: what was in the filter still is. Make a larger one
    /// [from the keys](crate::RemovableFilter::from_hashes), unless one key was added more than 64 times, or 32 if its two lines are one.
    Full {
        /// Keys of the batch that were added: all before this one, none after it. 0 for a single key.
        inserted: usize,
        /// Tags that the filter holds now.
        len: u64,
        /// Tags that it could hold.
        capacity: u64,
    },
}

impl Display for RemovableError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::KeysOutOfRange { keys, most } => {
                write!(f, "{keys} keys: give up to {most}, or partition them over several filters")
            }
            Self::SlackOutOfRange { slack } => write!(f, "a slack of {slack}: give 0 to 0.9"),
            Self::Alloc(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::Full { inserted, len, capacity } => write!(
                f,
                "both lines of key {inserted} are full, with {len} of {capacity} lanes taken: rebuild with more lines"
            ),
        }
    }
}

impl core::error::Error for RemovableError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            Self::Key(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for RemovableError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl From<KeyError> for RemovableError {
    fn from(error: KeyError) -> Self {
        Self::Key(error)
    }
}
