//! The interface of a system: recognising and opening its files, and the operations on an opened
//! file.

use std::fmt::{self, Debug, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::ops::Bound;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, FormatError, KeyHash};
use blocked_bloom_formats::FileRanges;
use blocked_bloom_formats::cassandra::Layout;
use blocked_bloom_formats::parquet::ParquetFile;

use crate::blocks::Part;
use crate::error::{BadKey, Damage, Error, Warning};
use crate::facts::{Facts, Summary};
use crate::message::{LookupOption, Message};
use crate::options::LookupOptions;

/// A format of stored filters, or of files that hold filters.
///
/// [`Display`] writes its name, and [`FromStr`](std::str::FromStr) parses it.
///
/// ```
/// use blocked_bloom_inspect::Format;
/// assert_eq!(Format::ROCKSDB_SST.to_string(), "rocksdb-sst");
/// assert_eq!("rocksdb-sst".parse(), Ok(Format::ROCKSDB_SST));
/// let message = "bitmap".parse::<Format>().unwrap_err().to_string();
/// assert!(message.starts_with("unknown format \"bitmap\" (supported: native, compact, "));
/// ```
#[derive(Clone, Copy)]
pub struct Format(&'static System);

impl Format {
    pub(crate) const fn new(system: &'static System) -> Self {
        Format(system)
    }

    pub(crate) fn system(self) -> &'static System {
        self.0
    }

    /// Returns the name, in lower case with hyphens.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Describes such a file in a few words.
    ///
    /// ```
    /// use blocked_bloom_inspect::Format;
    /// assert_eq!(Format::CASSANDRA.summary(), "A Cassandra Filter.db");
    /// ```
    pub fn summary(self) -> &'static str {
        self.0.summary
    }

    /// Describes how such a file is recognised, in words that follow its name.
    ///
    /// ```
    /// use blocked_bloom_inspect::Format;
    /// assert_eq!(Format::ROCKSDB_SST.mark(), "ends with a magic number");
    /// ```
    pub fn mark(self) -> &'static str {
        self.0.mark
    }

    /// Returns the length of a filter according to the header in its first bytes. The rest of a
    /// stream need not be read, and a file with another length is damaged and need not be read at
    /// all.
    ///
    /// `None` if the header has no length or is damaged, or if `head` is the whole filter.
    ///
    /// ```
    /// use blocked_bloom_inspect::Format;
    /// # let options = blocked_bloom::FilterOptions::default();
    /// let stored = options.empty_filter(1_000)?.to_bytes();
    /// assert_eq!(Format::NATIVE.length_by_header(&stored[..64]), Some(stored.len() as u64));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn length_by_header(self, head: &[u8]) -> Option<u64> {
        self.0.length?(head)
    }

    /// Returns whether the header of such a filter has its length.
    pub fn has_length(self) -> bool {
        self.0.length.is_some()
    }

    /// Creates the error for a file of `found` bytes with another length, `expected`, in its
    /// header.
    pub fn wrong_length(self, found: u64, expected: u64) -> Error {
        self.damaged((self.0.wrong_length)(found, expected))
    }

    /// Creates the error for a file of this format with this damage.
    pub fn damaged(self, damage: impl Into<Damage>) -> Error {
        Error::Damaged { format: self.0.name, damage: damage.into() }
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl Hash for Format {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl Debug for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Format").field(&self.name()).finish()
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Evidence for a format, the surest first. A filter that is read in the wrong format answers
/// "absent" for keys that it holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// A magic number at the start.
    Magic,
    /// The name of the file, with first bytes that such a file may have.
    Name,
    /// A complete header at the start.
    Header,
    /// A magic number at the end.
    MagicAtEnd,
    /// Numbers at the start that determine the length of the rest.
    Length,
    /// A trailer of a few bytes.
    Trailer,
}

/// The facts about a file that are available before it is opened.
pub(crate) struct Evidence<'e> {
    pub(crate) name: &'e str,
    /// Its first bytes.
    pub(crate) head: &'e [u8],
    /// Its last bytes and its length; `None` for a stream.
    pub(crate) end: Option<(&'e [u8], u64)>,
    /// Whether its extension means that the file holds more than a filter.
    pub(crate) is_container: bool,
}

/// A file to open.
pub(crate) struct Source<'s, 'a> {
    pub(crate) format: Format,
    pub(crate) name: &'s str,
    pub(crate) file: &'s FileRanges<'a>,
    /// The layout of a Cassandra filter, if it was given.
    pub(crate) layout: Option<Layout>,
}

impl<'a> Source<'_, 'a> {
    /// Returns the bytes of the whole file.
    pub(crate) fn bytes(&self) -> Result<&'a [u8], Error> {
        let length = self.file.len();
        self.file.get(0, length).ok_or(Error::NotLoaded { offset: 0, length })
    }

    /// Boxes an opened filter, or returns the error about its damage.
    pub(crate) fn boxed<T: Stored + 'a>(
        &self,
        opened: Result<T, impl Into<Damage>>,
    ) -> Result<Box<dyn Stored + 'a>, Error> {
        match opened {
            Ok(stored) => Ok(Box::new(stored)),
            Err(error) => Err(self.format.damaged(error)),
        }
    }
}

/// A format: how its files are recognised and opened.
pub(crate) struct System {
    pub(crate) name: &'static str,
    /// Description of such a file in a few words.
    pub(crate) summary: &'static str,
    /// How such a file is recognised, in words that follow its name.
    pub(crate) mark: &'static str,
    /// The magic number of a format of this project.
    pub(crate) magic: Option<[u8; 8]>,
    /// Recognises files of this format that do not begin with `magic`.
    pub(crate) recognise: fn(&Evidence<'_>) -> Option<Mark>,
    /// The extension of files of this format, if they hold more than a filter.
    pub(crate) extension: Option<&'static str>,
    /// Reads the length from the first bytes, if the header has it.
    pub(crate) length: Option<ReadLength>,
    /// Describes the damage of a file: its actual length and the length in its header.
    pub(crate) wrong_length: fn(u64, u64) -> Damage,
    /// The lookup options of such filters, among those that not all formats have.
    pub(crate) options: &'static [LookupOption],
    /// Checks the values of the options, as far as no filter is needed.
    pub(crate) check: fn(&LookupOptions) -> Result<(), Message>,
    pub(crate) open: Open,
}

type ReadLength = fn(&[u8]) -> Option<u64>;

type Open = for<'a> fn(&Source<'_, 'a>) -> Result<Box<dyn Stored + 'a>, Error>;

impl System {
    /// Creates a format without mark, length and options.
    pub(crate) const fn new(
        name: &'static str,
        summary: &'static str,
        mark: &'static str,
        open: Open,
    ) -> Self {
        System {
            name,
            summary,
            mark,
            magic: None,
            recognise: |_| None,
            extension: None,
            length: None,
            wrong_length: |found, expected| {
                FormatError::Header(HeaderError::Length { found, expected }).into()
            },
            options: &[],
            check: |_| Ok(()),
            open,
        }
    }

    /// Creates a format of this project, with its magic number.
    pub(crate) const fn native(
        name: &'static str,
        summary: &'static str,
        magic: [u8; 8],
        open: Open,
    ) -> Self {
        let new = System::new(name, summary, "begins with a magic number", open);
        System { magic: Some(magic), ..new }
    }
}

/// The options of a lookup, and the warnings about its answers.
pub(crate) struct LookupContext<'w> {
    pub(crate) options: &'w LookupOptions,
    pub(crate) warnings: Vec<Warning>,
}

/// An opened and verified filter, or a file of filters.
pub(crate) trait Stored: Send + Sync {
    fn describe(&self, about: &Summary) -> Facts;

    /// Damage of the blocks. Damaged blocks are described but not looked up.
    fn damage(&self) -> Option<Damage> {
        None
    }

    /// The hash of the keys, for this project's filters.
    fn hash_of_keys(&self) -> Option<KeyHash> {
        None
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error>;

    /// Doubts whether the file is read correctly, from keys and their answers.
    fn doubts(&self, _: &[&[u8]], _: &Bitmask, _is_text: bool) -> Vec<Warning> {
        Vec::new()
    }

    /// Number of block filters.
    fn parts(&self) -> usize {
        0
    }

    /// The block filter with this number, if it exists.
    fn part(&self, _: usize) -> Option<Part<'_>> {
        None
    }

    /// The parts that a key is looked up in, and its hash there. `None` means all parts, with the
    /// hash of the filter.
    fn places(&self, _key: &[u8], _: &LookupOptions) -> Option<Vec<(usize, u64)>> {
        None
    }

    /// Whether a key between two bounds may be present, for a range filter.
    fn contains_range(&self, _: Bound<&[u8]>, _: Bound<&[u8]>) -> Result<bool, Error> {
        Err(Error::Options(Message::new("no ranges: only a range filter answers them")))
    }

    /// The files that may hold a key, for a file index.
    fn files_with(&self, _key: &[u8], _: &LookupOptions) -> Result<Vec<FoundFile>, Error> {
        Err(Error::Options(Message::new("no files: only an index of files lists some")))
    }

    /// A file with filters of columns.
    fn columns(&self) -> Option<&ParquetFile<'_>> {
        None
    }
}

/// A file that may hold a key, as of its indexing; returned by [`Opened::files_with`].
///
/// ```
/// use blocked_bloom_inspect::FoundFile;
/// let shown = |file: &FoundFile| format!("{}: {:?}", file.name, file.row_groups);
/// # let _ = shown;
/// ```
///
/// [`Opened::files_with`]: crate::Opened::files_with
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundFile {
    /// Name of the file in the index.
    pub name: String,
    /// Row groups that may hold the key, from 0.
    pub row_groups: Vec<usize>,
    /// Row groups that the index knows nothing about.
    pub unknown: Vec<usize>,
}

/// Looks up keys, with one bit per key as the answer.
pub(crate) type Answers<'o> =
    Box<dyn Fn(&[&[u8]], &mut Bitmask) -> Result<(), BadKey> + Send + Sync + 'o>;

/// Creates the answers of a filter that takes all keys in one call.
pub(crate) fn answers<'o>(
    lookup: impl Fn(&[&[u8]], &mut Bitmask) + Send + Sync + 'o,
) -> Result<Answers<'o>, Error> {
    Ok(Box::new(move |keys, hits| {
        lookup(keys, hits);
        Ok(())
    }))
}

/// Answers "maybe" for every key.
pub(crate) fn pass_all<'o>() -> Result<Answers<'o>, Error> {
    answers(|keys, hits| hits.write(keys.len(), |words| words.fill(u64::MAX)))
}

/// Creates the answers of a filter that takes one key per call.
pub(crate) fn look_up_singly(
    keys: &[&[u8]],
    hits: &mut Bitmask,
    mut contains: impl FnMut(&[u8]) -> bool,
) {
    hits.write(keys.len(), |words| {
        words.fill(0);
        for (i, key) in keys.iter().enumerate() {
            words[i / 64] |= u64::from(contains(key)) << (i % 64);
        }
    });
}
