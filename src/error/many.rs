//! Why filters cannot be folded, merged or looked up together.

use alloc::boxed::Box;
use core::fmt::{self, Display, Formatter};

use super::{AllocError, error, plural};
use crate::hash::KeyHash;
use crate::prefix::FilterContents;

/// Why a filter cannot be folded.
///
/// ```
/// use blocked_bloom::{BloomFilter, FoldError, KeyHash, Sizing};
/// let params = Sizing::MaxBytes(64 + 40 * 64).params(2_000)?;
/// let mut filter = BloomFilter::new(params, KeyHash::default())?;
/// let error = filter.fold(7).unwrap_err();
/// assert!(matches!(error, FoldError::NotADivisor { below: Some(5), above: Some(8), .. }));
/// assert_eq!(error.to_string(), "7 does not divide 40 blocks: fold by 5 or 8");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoldError {
    /// The number of blocks is no multiple of what it should be divided by.
    NotADivisor {
        /// What the blocks should be divided by.
        divisor: u32,
        /// Blocks of the filter.
        blocks: u32,
        /// The nearest smaller number that divides them; none under 1.
        below: Option<u32>,
        /// The nearest larger number that divides them; none over their number.
        above: Option<u32>,
    },
    /// No memory for the folded copy.
    Alloc(AllocError),
}

impl Display for FoldError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotADivisor { divisor, blocks, below, above } => {
                write!(
                    f,
                    "{divisor} does not divide {blocks} block{}: fold by ",
                    plural(blocks.into())
                )?;
                match (below, above) {
                    (Some(below), Some(above)) => write!(f, "{below} or {above}"),
                    (Some(only), None) | (None, Some(only)) => only.fmt(f),
                    (None, None) => 1.fmt(f),
                }
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

error!(FoldError, Alloc(AllocError));

/// Why filters cannot be merged, by union or intersection. "Left" is the filter that would have received the other.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, MergeError, Sizing};
/// let sized_for = |keys| -> Result<BloomFilter, Box<dyn std::error::Error>> {
///     Ok(BloomFilter::new(Sizing::BitsPerKey(10.0).params(keys)?, KeyHash::default())?)
/// };
/// let (mut union, mut large) = (sized_for(1_000)?, sized_for(2_000)?);
/// union.insert("apple")?;
/// large.insert("banana")?;
/// let error = union.union_with(&large).unwrap_err();
/// assert!(matches!(error, MergeError::BlocksMismatch { left: 20, right: 40, .. }));
/// let error = union.union_all([&union.clone(), &large]).unwrap_err();
/// assert!(matches!(error, MergeError::Input { left: None, right: 1, .. }));
/// assert_eq!(
///     error.to_string(),
///     "input 1: cannot merge a filter of 20 blocks with one of 40: size both for the same keys"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// Different hash or seed.
    HashMismatch {
        /// Identity of the receiving filter.
        left: KeyHash,
        /// Identity of the other.
        right: KeyHash,
    },
    /// Different number of blocks. Where one is a multiple of the other and the probes are the same,
    /// [`fold`](crate::BloomFilter::fold) the larger.
    BlocksMismatch {
        /// Blocks of the receiving filter.
        left: u32,
        /// Blocks of the other.
        right: u32,
    },
    /// Different number of probes.
    ProbesMismatch {
        /// Probes of the receiving filter.
        left: u32,
        /// Probes of the other.
        right: u32,
    },
    /// One holds keys, the other prefixes, or prefixes by another rule.
    ContentsMismatch {
        /// What the receiving filter holds.
        left: FilterContents,
        /// What the other holds.
        right: FilterContents,
    },
    /// No memory to take the shape of the other, or for the list of many.
    Alloc(AllocError),
    /// Of many filters merged at once: what disagrees, and between which two.
    Input {
        /// Which input, from 0, is the left side of the error; none if that is the receiving filter.
        left: Option<usize>,
        /// Which input, from 0, is the right side, or was the one memory did not suffice for.
        right: usize,
        /// What disagrees.
        error: Box<MergeError>,
    },
}

impl Display for MergeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HashMismatch { left, right } => {
                write!(f, "cannot merge a filter of {left} with one of {right}")
            }
            Self::ContentsMismatch { left, right } => {
                write!(f, "cannot merge a filter of {left} with one of {right}: build both alike")
            }
            Self::BlocksMismatch { left, right } => write!(
                f,
                "cannot merge a filter of {left} block{} with one of {right}: size both for the same keys",
                plural((*left).into())
            ),
            Self::ProbesMismatch { left, right } => write!(
                f,
                "cannot merge a filter of {left} probe{} with one of {right}: size both for the same keys",
                plural((*left).into())
            ),
            Self::Alloc(error) => error.fmt(f),
            Self::Input { left: None, right, error } => write!(f, "input {right}: {error}"),
            Self::Input { left: Some(left), right, error } => {
                write!(f, "inputs {left} and {right}: {error}")
            }
        }
    }
}

error!(MergeError, Alloc(AllocError); Input);

/// Why filters cannot be looked up together, or their answers not used as requested. What was given is as it was.
///
/// ```
/// use blocked_bloom::{BloomFilterRef, FilterSet, KeyHash, SetError};
/// let filters = [0, 0, 7].map(|seed| BloomFilterRef::pass_all(KeyHash::Xxh3 { seed }));
/// let error = FilterSet::new(KeyHash::default(), filters).unwrap_err();
/// assert!(matches!(error, SetError::HashMismatch { index: 2, .. }));
/// assert_eq!(
///     error.to_string(),
///     "filter 2 is of XXH3-64 with seed 7, expected XXH3-64 with seed 0: put a pass-all filter in its place"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// A filter was built with another hash or seed than the set's.
    HashMismatch {
        /// Which filter, from 0.
        index: usize,
        /// Identity of the filter.
        found: KeyHash,
        /// Identity of the set.
        expected: KeyHash,
    },
    /// More than [`FilterSet::MAX_FILTERS`](crate::FilterSet::MAX_FILTERS).
    TooManyFilters {
        /// The limit.
        limit: usize,
    },
    /// A matrix is not of the set's filters and the batch's keys.
    Shape {
        /// Filters of the matrix.
        filters: usize,
        /// Keys of the matrix.
        keys: usize,
        /// Filters of the set.
        expected_filters: usize,
        /// Keys of the batch.
        expected_keys: usize,
    },
    /// A filter or a range of keys that is not in a matrix.
    Range {
        /// The filter that was given.
        filter: usize,
        /// The range of keys that was given.
        keys: (usize, usize),
        /// Filters and keys of the matrix.
        matrix: (usize, usize),
    },
    /// No memory for the list of filters, or for so many answers.
    Alloc(AllocError),
}

impl Display for SetError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HashMismatch { index, found, expected } => write!(
                f,
                "filter {index} is of {found}, expected {expected}: put a pass-all filter in its place"
            ),
            Self::TooManyFilters { limit } => {
                write!(f, "more than {limit} filters: make several sets")
            }
            Self::Shape { filters, keys, expected_filters, expected_keys } => write!(
                f,
                "a matrix of {filters} filters and {keys} keys, expected {expected_filters} and {expected_keys}: \
                 clear it for this set and batch"
            ),
            Self::Range { filter, keys: (start, end), matrix: (filters, keys) } => write!(
                f,
                "filter {filter}, keys {start} .. {end} in a matrix of {filters} filters and {keys} keys"
            ),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

error!(SetError, Alloc(AllocError));
