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
/// assert!(matches!(error, RemovableError::Full { inserted: 0, taken: 32, capacity: 32, .. }));
/// assert_eq!(filter.keys_inserted(), 32);
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
    /// A filter that answers "maybe" to everything has no tags that could be copied. Make one from
    /// the keys.
    PassAll,
    /// Both lines of a key are full. It was not added, and nothing was changed by it: what was in
    /// the filter still is. Make a larger one [from the keys](crate::RemovableFilter::from_hashes),
    /// unless one key was added more than 64 times, or 32 if its two lines are one.
    Full {
        /// Keys of the batch that were added: all before this one, none after it. 0 for a single
        /// key.
        inserted: usize,
        /// Lanes that are taken now.
        taken: u64,
        /// Lanes of the filter.
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
            Self::PassAll => f.write_str(
                "a filter that answers \"maybe\" to everything has no tags to copy: make one from \
                 the keys",
            ),
            Self::Full { inserted, taken, capacity } => {
                match inserted {
                    0 => f.write_str("no space for the key")?,
                    _ => write!(f, "no space for the key at index {inserted} of the batch")?,
                }
                write!(
                    f,
                    ": both of its lines are full, with {taken} of {capacity} lanes taken; make a \
                     larger filter from the keys"
                )
            }
        }
    }
}

blocked_bloom::impl_error!(RemovableError, Alloc(AllocError), Key(KeyError));
