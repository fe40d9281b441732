//! Why a stored filter cannot be opened or looked up in, and what its answers are worth.
//!
//! The texts are written where errors are found: in the module of the system, or in the package
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

/// Why a stored filter cannot be opened, or cannot be looked up in as was wanted.
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
    /// Bytes of the file are needed that were not loaded: insert them, and try again.
    NotLoaded {
        /// Where they begin.
        offset: u64,
        /// How many they are.
        length: u64,
    },
    /// The bytes are damaged, or not of the format. They must not be used to answer "absent".
    Damaged {
        /// The name of the format that they were read as.
        format: &'static str,
        /// What is wrong.
        damage: Damage,
    },
    /// An option is missing, or has a wrong value.
    Options(Message),
    /// A key is no value of the filter's type.
    Key(BadKey),
}

impl Error {
    /// The text, for front ends that have names of their own for options.
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

/// What is wrong with the bytes of a stored filter, in the words of the package that reads them.
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

    /// Whether the bytes do not begin as a Bloom filter of this project: they may be of another
    /// kind.
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

/// Why the answers of a filter are worth less than is expected.
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

    /// The warning about a filter that answers "maybe" for every key.
    pub(crate) fn pass_all(problem: impl Display) -> Self {
        let text = format!("{problem}: the answer is \"maybe\" for every key");
        Warning::new(Message::new(text), true)
    }

    /// Whether every answer of the lookup is "maybe".
    pub fn is_pass_all(&self) -> bool {
        self.is_pass_all
    }

    /// The text, for front ends that have names of their own for options.
    pub fn message(&self) -> &Message {
        &self.message
    }
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

/// Why a key cannot be looked up: its bytes would be absent whatever the filter holds.
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
    /// Which key, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub problem: Message,
}

impl Display for BadKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl StdError for BadKey {}
