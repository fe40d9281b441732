//! Errors of opening filters and looking up keys, and warnings about answers.
//!
//! Each message is written where the error is found: in the module of the system, or in the package
//! that reads its bytes.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};

use blocked_bloom::FormatError;
use blocked_bloom::parts::HeaderError;

use crate::message::Message;

/// The advice that follows the description of damage.
pub(crate) const ADVICE: &str =
    "it must not be used to answer \"absent\"; rebuild it, or do without";

/// Why a stored filter cannot be opened, or why a lookup is not possible.
///
/// ```
/// use blocked_bloom_inspect::{Error, FileRanges, Format, Opened};
/// let file = FileRanges::new(3 << 30);
/// let error = Opened::new("f.sst", &file, Format::ROCKSDB_SST, None).unwrap_err();
/// assert_eq!(error, Error::NotLoaded { offset: (3 << 30) - 53, length: 53 });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Some of the bytes that are needed are not loaded. Insert them and try again.
    NotLoaded {
        /// Offset of the first missing byte.
        offset: u64,
        /// Number of missing bytes.
        length: u64,
    },
    /// The bytes are damaged or have another format. They must not be used to answer "absent".
    Damaged {
        /// Name of the format that was used to read them.
        format: &'static str,
        /// The damage.
        damage: Damage,
    },
    /// An option is missing or has a wrong value.
    Options(Message),
    /// A key is not a value of the filter's type.
    Key(BadKey),
}

impl Error {
    /// Returns the message, for front ends that have their own names for options.
    pub fn message(&self) -> Message {
        match self {
            Self::NotLoaded { offset, length } => Message::new(format_args!(
                "{length} bytes from offset {offset} are needed and were not loaded"
            )),
            Self::Damaged { format, damage } => {
                Message::new(format_args!("{damage} (read as {format}; {ADVICE})"))
            }
            Self::Options(message) => message.clone(),
            Self::Key(error) => error.problem.clone(),
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.message().fmt(f)
    }
}

impl StdError for Error {}

impl From<BadKey> for Error {
    fn from(error: BadKey) -> Self {
        Error::Key(error)
    }
}

/// Damage of a stored filter, described by the package that reads its bytes.
///
/// ```
/// use blocked_bloom_inspect::{Error, FileRanges, Format, Opened};
/// let file = FileRanges::from(&[7; 64][..]);
/// let error = Opened::new("f", &file, Format::NATIVE, None).unwrap_err();
/// let Error::Damaged { format: "native", damage } = error else { panic!("{error}") };
/// assert!(damage.is_other_magic());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    text: String,
    is_other_magic: bool,
}

impl Damage {
    pub(crate) fn new(text: String) -> Self {
        Damage { text, is_other_magic: false }
    }

    /// Returns whether the bytes lack the magic number of this project's Bloom filters. The file
    /// may be another kind of filter.
    pub fn is_other_magic(&self) -> bool {
        self.is_other_magic
    }
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: StdError + 'static> From<E> for Damage {
    fn from(error: E) -> Self {
        let of_header = (&error as &dyn Any).downcast_ref();
        let is_other_magic =
            matches!(of_header, Some(FormatError::Header(HeaderError::Magic { .. })));
        Damage { text: error.to_string(), is_other_magic }
    }
}

/// A reason why the answers of a filter are less useful than expected.
///
/// ```
/// use blocked_bloom::{FilterOptions, KeyHash, Sizing};
/// use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let options = options.with_key_hash(KeyHash::Caller { tag: 1 });
/// let stored = options.empty_filter(1_000)?.to_bytes();
/// let opened = Opened::new("f", &FileRanges::from(&stored[..]), Format::NATIVE, None)?;
/// let lookup = opened.lookup(&LookupOptions::default())?;
/// assert!(lookup.warnings()[0].is_pass_all());
/// assert!(lookup.warnings()[0].to_string().ends_with("the answer is \"maybe\" for every key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    message: Message,
    is_pass_all: bool,
}

impl Warning {
    pub(crate) fn new(message: Message, is_pass_all: bool) -> Self {
        Warning { message, is_pass_all }
    }

    /// Creates the warning about a filter that answers "maybe" for every key.
    pub(crate) fn pass_all(problem: impl Display) -> Self {
        let text = format!("{problem}: the answer is \"maybe\" for every key");
        Warning::new(Message::new(text), true)
    }

    /// Returns whether every answer of the lookup is "maybe".
    pub fn is_pass_all(&self) -> bool {
        self.is_pass_all
    }

    /// Returns the message, for front ends that have their own names for options.
    pub fn message(&self) -> &Message {
        &self.message
    }
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

/// A key that cannot be looked up: its bytes would be absent whatever the filter holds.
///
/// ```
/// use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened, PhysicalType};
/// # let stored = blocked_bloom_split::SplitBlockFilter::new(10, 0.01)?.to_bytes();
/// let file = FileRanges::from(&stored[..]);
/// let opened = Opened::new("f", &file, Format::PARQUET_FILTER, None)?;
/// let mut options = LookupOptions::default();
/// options.value_type = Some(PhysicalType::Int64);
/// let error = opened.lookup(&options)?.contains(&["1", "two"]).unwrap_err();
/// assert_eq!(error.index, 1);
/// assert_eq!(error.to_string(), "found 'two', expected a whole number of 64 bits");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadKey {
    /// Position of the key, from 0.
    pub index: usize,
    /// The problem with the key.
    pub problem: Message,
}

impl Display for BadKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl StdError for BadKey {}
