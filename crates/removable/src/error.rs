//! Errors of building filters and of inserting keys.

use alloc::format;
use alloc::string::String;

use blocked_bloom::{AllocError, KeyError};

/// Why a filter could not be built or a key could not be inserted.
///
/// ```
/// use blocked_bloom_removable::{RemovableError, RemovableOptions};
/// let mut filter = RemovableOptions::new(1).empty_filter()?;
/// for _ in 0..32 {
///     filter.insert("apple")?;
/// }
/// // The only line is full and stays unchanged.
/// let error = filter.insert("apple").unwrap_err();
/// assert!(matches!(error, RemovableError::Full { inserted: 0, taken: 32, capacity: 32, .. }));
/// assert_eq!(filter.keys_inserted(), 32);
/// # Ok::<(), RemovableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RemovableError {
    /// The number of keys is too large for one filter.
    KeysOutOfRange {
        /// The value given.
        keys: u64,
        /// The maximum for this slack.
        most: u64,
    },
    /// The slack is outside 0 to 0.9.
    SlackOutOfRange {
        /// The value given.
        slack: f64,
    },
    /// Allocating the lines failed.
    Alloc(AllocError),
    /// The filter takes caller-supplied hashes, but was given a key. Nothing changed.
    Key(KeyError),
    /// A pass-all filter has no tags to copy. Build a filter from the keys.
    PassAll,
    /// Both lines of a key are full. The key was not inserted, and all other keys are still
    /// present. Build a larger filter [from the keys](crate::RemovableFilter::from_hashes), unless
    /// one key was inserted more than 64 times (32 times if both of its lines are the same).
    Full {
        /// Number of keys of the batch inserted before this one; 0 for a single key. No later key
        /// was inserted.
        inserted: usize,
        /// Number of lanes in use.
        taken: u64,
        /// Number of lanes of the filter.
        capacity: u64,
    },
}

blocked_bloom::impl_error!(RemovableError, Alloc(AllocError), Key(KeyError);
    Self::KeysOutOfRange { keys, most } => (
        "{keys} keys: give at most {most}, or split the keys among several filters"
    ),
    Self::SlackOutOfRange { slack } => ("slack {slack:?}: give 0 to 0.9"),
    Self::PassAll => ("a pass-all filter has no tags to copy: build a filter from the keys"),
    Self::Full { inserted, taken, capacity } => (
        "no space for the key{}: both of its lines are full, and {taken} of {capacity} lanes are \
         in use; build a larger filter from the keys",
        match inserted {
            0 => String::new(),
            index => format!(" at index {index} of the batch"),
        }
    ),
);
