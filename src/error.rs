//! Every error of the crate but that of [headers](crate::header): one enum per operation, one variant per cause, each carrying the value at
//! fault and the limit.

mod format;
mod grow;
mod hash;
mod many;

use core::fmt::{self, Display, Formatter};

use crate::hash::KeyHash;
use crate::prefix::FilterContents;
use crate::probe::{MAX_BITS_PER_KEY, MAX_PROBES};

pub use format::FormatError;
pub use grow::{PartitionBuildError, ScalableError};
pub use hash::HashError;
pub use many::{FoldError, MergeError, SetError};

/// Implements `Error` with the given variants as its sources, and `From` for those that hold one error alone; the one behind the
/// semicolon also says where its error was met.
macro_rules! error {
    ($name:ty $(, $variant:ident($source:ty))* $(; $located:ident)?) => {
        impl core::error::Error for $name {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                match self {
                    $(Self::$variant(error) => Some(error),)*
                    $(Self::$located { error, .. } => Some(&**error),)?
                    #[allow(unreachable_patterns, reason = "some errors have a source in every variant")]
                    _ => None,
                }
            }
        }
        $(impl From<$source> for $name {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        })*
    };
}
use error;

/// `s` unless there is one.
fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Why a filter cannot be sized as requested.
///
/// ```
/// use blocked_bloom::{ParamsError, Sizing};
/// let error = Sizing::BitsPerKey(f64::NAN).params(1_000).unwrap_err();
/// assert!(matches!(error, ParamsError::BitsPerKeyOutOfRange { .. }));
/// assert_eq!(error.to_string(), "NaN bits per key: give 0 to 100 (0 means no filter)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamsError {
    /// Not 0 to 100 bits per key.
    BitsPerKeyOutOfRange {
        /// The value given.
        bits_per_key: f64,
    },
    /// Not above 0 and up to 1.
    RateOutOfRange {
        /// The value given.
        rate: f64,
    },
    /// No filter of these keys has so low a rate.
    RateUnreachable {
        /// The value given.
        rate: f64,
        /// The lowest rate sizing can give.
        lowest: f64,
        /// Whether the limit is the number of blocks: then several smaller filters reach the rate.
        needs_partition: bool,
    },
    /// Not even one block fits.
    TooFewBytes {
        /// The value given.
        bytes: u64,
    },
    /// Not 1 to 2^32 - 1 blocks.
    BlocksOutOfRange {
        /// What would be needed.
        blocks: u64,
    },
    /// Not 1 to 30 probes.
    ProbesOutOfRange {
        /// The value given.
        probes: u32,
    },
}

impl Display for ParamsError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BitsPerKeyOutOfRange { bits_per_key } => {
                write!(
                    f,
                    "{bits_per_key} bits per key: give 0 to {MAX_BITS_PER_KEY} (0 means no filter)"
                )
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate}: give a number above 0 and up to 1")
            }
            Self::RateUnreachable { rate, lowest, needs_partition: false } => write!(
                f,
                "false-positive rate {rate:e} is out of reach: at {MAX_BITS_PER_KEY} bits/key it is {lowest:.3e}"
            ),
            Self::RateUnreachable { rate, lowest, needs_partition: true } => write!(
                f,
                "false-positive rate {rate:e} is out of reach: with all {} blocks it is {lowest:.3e}; partition the keys",
                u32::MAX
            ),
            Self::TooFewBytes { bytes } => {
                write!(
                    f,
                    "{bytes} bytes hold no filter: the smallest takes 128 (header and one block)"
                )
            }
            Self::BlocksOutOfRange { blocks: 0 } => write!(f, "0 blocks: a filter has at least 1"),
            Self::BlocksOutOfRange { blocks } => write!(
                f,
                "{blocks} blocks needed, {} allowed: partition the keys over several filters",
                u32::MAX
            ),
            Self::ProbesOutOfRange { probes } => {
                write!(f, "{probes} probes: give 1 to {MAX_PROBES}")
            }
        }
    }
}

error!(ParamsError);

/// Memory for a filter's blocks or a builder's hashes could not be had.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, Sizing};
/// # if cfg!(not(any(miri, target_family = "wasm"))) {
/// let params = Sizing::BitsPerKey(10.0).params(200_000_000_000)?;
/// if let Err(error) = BloomFilter::new(params, KeyHash::default()) {
///     assert_eq!(error.bytes, 250_000_000_000);
/// }
/// # }
/// # Ok::<(), blocked_bloom::ParamsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocError {
    /// Bytes requested.
    pub bytes: u64,
}

impl AllocError {
    /// No memory for so many bytes: for packages that allocate as this one does.
    pub const fn new(bytes: u64) -> Self {
        AllocError { bytes }
    }
}

impl Display for AllocError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for {} bytes", self.bytes)
    }
}

impl core::error::Error for AllocError {}

/// Why a key or a hash cannot be added to a filter or builder, or a key cannot be hashed. Nothing was changed.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyError, KeyHash, Sizing};
/// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
/// let mut filter = BloomFilter::new(params, KeyHash::Caller { tag: 7 })?;
/// assert_eq!(filter.insert("apple"), Err(KeyError::NoHasher { tag: 7 }));
/// assert_eq!(filter.insert_hash(0x9c1c_34f1_0a4e_7ab3), Ok(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The filter is of the caller's hashes and cannot hash a key itself.
    NoHasher {
        /// The tag of the caller's hash.
        tag: u64,
    },
    /// The filter holds prefixes, and the key or hash came without its own.
    NoPrefix {
        /// What the filter holds.
        contents: FilterContents,
    },
}

impl Display for KeyError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoHasher { tag } => {
                write!(
                    f,
                    "the filter is of {} and cannot hash keys: give hashes",
                    KeyHash::Caller { tag }
                )
            }
            Self::NoPrefix { contents } => write!(
                f,
                "the filter holds {contents}, and the key's prefix is not known: build it anew, or give the builder keys"
            ),
        }
    }
}

error!(KeyError);

/// Why a builder could not finish.
///
/// ```
/// use blocked_bloom::{BuildError, FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_memory_limit(8 << 10).builder();
/// builder.extend((0..2_000_u32).map(u32::to_le_bytes))?;
/// let error = builder.finish().unwrap_err();
/// assert_eq!(error, BuildError::MemoryLimit { limit_bytes: 8 << 10, keys: 2_000 });
/// # Ok::<(), blocked_bloom::KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The keys cannot be sized as requested.
    Params(ParamsError),
    /// Memory ran out.
    Alloc(AllocError),
    /// Keys or hashes were given that the filter cannot take.
    Key(KeyError),
    /// The list of hashes reached the builder's limit, and no number of expected items was given.
    MemoryLimit {
        /// The limit that was given.
        limit_bytes: u64,
        /// Keys that were added in all, adjacent equal ones counted once: what to size a filter for.
        keys: u64,
    },
    /// The hashes in memory are no longer those that were added: memory is failing, or was overwritten.
    HashesChanged {
        /// Sum of the mixed hashes as they were added.
        expected: u64,
        /// The same of those in memory.
        found: u64,
    },
    /// The finished filter says that keys are absent which were added to it.
    KeysMissing {
        /// How many.
        missing: u64,
        /// Of so many.
        keys: u64,
    },
}

impl Display for BuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Params(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::MemoryLimit { limit_bytes, keys } => write!(
                f,
                "the hashes of {keys} keys do not fit the limit of {limit_bytes} bytes: give a number of \
                 expected items, or size a filter for {keys} keys and add them again"
            ),
            Self::HashesChanged { expected, found } => write!(
                f,
                "hashes changed in memory before they were inserted: their sum is {found:#018x}, expected \
                 {expected:#018x}; build the filter again"
            ),
            Self::KeysMissing { missing, keys } => write!(
                f,
                "the finished filter misses {missing} of {keys} keys: do not use it, build it again"
            ),
        }
    }
}

error!(BuildError, Params(ParamsError), Alloc(AllocError), Key(KeyError));

/// A slice of words for the results of a batch has the wrong length.
///
/// ```
/// use blocked_bloom::{BatchQuery, BloomFilter, KeyHash};
/// let filter = BloomFilter::pass_all(KeyHash::default())?;
/// let error = filter.contains_hashes_into(&[1, 2, 3], &mut [0; 2]).unwrap_err();
/// assert_eq!((error.words, error.expected), (2, 1));
/// # Ok::<(), blocked_bloom::AllocError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LengthError {
    /// Words given.
    pub words: usize,
    /// Words needed: one per 64 keys, rounded up; for a set of filters, so many per filter.
    pub expected: usize,
}

impl LengthError {
    /// Checks that there is exactly one word per 64 keys, rounded up: for types of other packages that implement
    /// [`BatchQuery`](crate::BatchQuery).
    ///
    /// # Errors
    ///
    /// The error itself if there is not.
    #[inline]
    pub fn check(keys: usize, words: &[u64]) -> Result<(), Self> {
        let expected = keys.div_ceil(64);
        if words.len() == expected {
            Ok(())
        } else {
            Err(LengthError { words: words.len(), expected })
        }
    }
}

impl Display for LengthError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} words for the results, {} needed: one per 64 keys", self.words, self.expected)
    }
}

impl core::error::Error for LengthError {}
