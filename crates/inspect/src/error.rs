//! Why a stored filter cannot be opened or looked up in, and what its answers are worth.
//!
//! What is wrong is said where it is found: in the module of the system, or in the package that
//! reads its bytes.

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::message::Message;

/// What follows the description of damage.
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
    /// An option is to be given, or another value of it.
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

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Damaged { damage, .. } => Some(damage.error()),
            _ => None,
        }
    }
}

impl From<BadKey> for Error {
    fn from(error: BadKey) -> Self {
        Error::Key(error)
    }
}

/// What is wrong with the bytes of a stored filter: the error of the package that reads them.
///
/// Two are equal if their texts are.
///
/// ```
/// use blocked_bloom_formats::ClassicalError;
/// use blocked_bloom_inspect::{Error, FileRanges, Format, Opened};
/// let file = FileRanges::from(&b"no filter"[..]);
/// let error = Opened::new("f", &file, Format::GUAVA, None).unwrap_err();
/// let Error::Damaged { format: "guava", damage } = error else { panic!("{error}") };
/// assert!(damage.error().is::<ClassicalError>());
/// ```
#[derive(Clone, Debug)]
pub struct Damage(Arc<dyn StdError + Send + Sync>);

impl Damage {
    /// The error itself.
    pub fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }
}

impl PartialEq for Damage {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Damage {
    fn from(error: E) -> Self {
        Damage(Arc::new(error))
    }
}

/// What the answers of a filter are worth, where that is less than is expected.
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

    /// Of a filter that cannot tell any key from those that it holds.
    pub(crate) fn of_pass_all(problem: impl Display) -> Self {
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
/// # let stored = blocked_bloom_formats::parquet::SplitBlockFilter::new(10, 0.01)?.to_bytes();
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
