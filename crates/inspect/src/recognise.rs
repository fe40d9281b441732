//! Recognises the format of a file by its name and its first and last bytes.
//!
//! Each system reports the mark, if any, that identifies a file as its own, and the surest mark
//! decides: a magic number at the start, a name, a header, a magic number at the end, lengths, a
//! trailer. No two systems find the same mark in one file.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::str::FromStr;

use crate::message::{LookupOption, Message};
use crate::options::LookupOptions;
use crate::system::{Evidence, Format, Mark};
use crate::systems::may_be_compact;

/// Bytes at the start and at the end of a file that are needed to recognise it. Only a shorter file
/// may supply fewer.
pub const EVIDENCE_BYTES: u64 = 64;

/// Finds the format of a file from its name, its first and last bytes and its length.
///
/// `head` and `tail` have [`EVIDENCE_BYTES`] bytes each, or the whole file if it is shorter. A
/// stream, which can only be read from its start, has no known end: `length` is `None` and `tail`
/// is ignored. Other kinds of files are not recognised as filters. A recognised file may still be
/// damaged; [`Opened::new`](crate::Opened::new) verifies it.
///
/// # Errors
///
/// [`Unrecognised`] suggests another kind of file.
///
/// ```
/// use blocked_bloom_inspect::{Format, Unrecognised, recognise};
/// let filter = [0, 0, 0, 5];
/// let found = recognise("nb-1-big-Filter.db", &filter, &filter, Some(4));
/// assert_eq!(found, Ok(Format::CASSANDRA));
/// let found = recognise("words", b"apple\n", b"apple\n", Some(6));
/// assert_eq!(found, Err(Unrecognised::Text));
/// ```
pub fn recognise(
    name: &str,
    head: &[u8],
    tail: &[u8],
    length: Option<u64>,
) -> Result<Format, Unrecognised> {
    let extension = container_extension(name);
    let end = length.map(|length| (tail, length));
    let file = Evidence { name, head, end, is_container: extension.is_some() };
    let marked = Format::ALL.into_iter().filter_map(|format| {
        let system = format.system();
        let magic = system.magic.filter(|magic| head.starts_with(magic)).map(|_| Mark::Magic);
        Some((magic.or_else(|| (system.recognise)(&file))?, format))
    });
    let surest = marked.min_by_key(|&(mark, _)| mark);
    surest.map(|(_, format)| format).ok_or_else(|| Unrecognised::classify(&file, extension))
}

/// Returns the extension of the name if files of a known system have it.
fn container_extension(name: &str) -> Option<&'static str> {
    let extension = Path::new(name).extension()?;
    let mut known = Format::ALL.into_iter().filter_map(|format| format.system().extension);
    known.find(|known| extension.eq_ignore_ascii_case(known))
}

/// The likely kind of a file with an unrecognised format.
///
/// ```
/// use blocked_bloom_inspect::{Unrecognised, recognise};
/// let unrecognised = recognise("000012.sst", &[0; 64], &[0; 64], Some(4096)).unwrap_err();
/// assert_eq!(unrecognised, Unrecognised::Container { extension: "sst" });
/// assert!(unrecognised.to_string().contains("truncated or compressed"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unrecognised {
    /// An empty file.
    Empty,
    /// A text file.
    Text,
    /// A file whose extension means that it holds more than a filter. It may be truncated or
    /// compressed.
    Container {
        /// `sst`, `parquet` or `db`.
        extension: &'static str,
    },
    /// A stream with an unknown end.
    Stream,
    /// A file that ends like a filter in the compact form, which has no mark.
    LooksCompact,
    /// Any other file.
    Unknown,
}

impl Unrecognised {
    fn classify(file: &Evidence<'_>, extension: Option<&'static str>) -> Self {
        match (extension, file.end) {
            _ if file.head.is_empty() => Self::Empty,
            (None, _) if is_text(file.head) => Self::Text,
            (Some(extension), Some(_)) => Self::Container { extension },
            (_, None) => Self::Stream,
            (_, Some(end)) if may_be_compact(end) => Self::LooksCompact,
            _ => Self::Unknown,
        }
    }
}

impl Display for Unrecognised {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Empty => "it is empty",
            Self::Text => "it is text",
            Self::Container { .. } => "truncated or compressed?",
            Self::Stream => "a stream, whose end is not known",
            Self::LooksCompact => "it ends as a filter in the compact form does",
            Self::Unknown => "give its format if it is a filter",
        };
        write!(f, "not a recognised filter file: {what}")
    }
}

impl std::error::Error for Unrecognised {}

/// Returns whether the first bytes look like lines of text.
fn is_text(head: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    // The last character may be cut off.
    let is_utf8 = match str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    !head.is_empty() && is_utf8 && !head.iter().any(is_control)
}

/// Returns whether these first bytes are those of a filter of this project, for callers that expect
/// keys. The line feed that ends the magic numbers is not compared, since it ends a key.
///
/// ```
/// use blocked_bloom_inspect::begins_as_filter;
/// assert!(begins_as_filter(b"\x89BBLOOM") && !begins_as_filter(b"apple"));
/// ```
pub fn begins_as_filter(head: &[u8]) -> bool {
    let mut magics = Format::ALL.into_iter().filter_map(|format| format.system().magic);
    magics.any(|magic| head.starts_with(magic.trim_ascii_end()))
}

impl Format {
    /// Checks that filters of the format have every option that is set.
    ///
    /// # Errors
    ///
    /// A [`Message`] about the first option that they do not have, or not with this value.
    pub fn check(self, options: &LookupOptions) -> Result<(), Message> {
        let given = [
            (LookupOption::Prefix, options.prefix.is_some()),
            (LookupOption::Column, options.column.is_some()),
            (LookupOption::RowGroups, !options.row_groups.is_empty()),
            (LookupOption::ValueType, options.value_type.is_some()),
        ];
        match given.iter().find(|&&(of, given)| given && !self.system().options.contains(&of)) {
            None => (self.system().check)(options),
            Some(&(option, _)) => {
                let mut names: Vec<&str> = Vec::new();
                for format in Format::ALL.iter().filter(|of| of.system().options.contains(&option))
                {
                    // Inserted in order: a sort would add a kilobyte to the page.
                    let at = names.iter().position(|name| *name > format.name());
                    names.insert(at.unwrap_or(names.len()), format.name());
                }
                let after = format!(" is for {}, not for {self}", names.join(" and "));
                Err(Message::naming("", option, after))
            }
        }
    }
}

impl FromStr for Format {
    type Err = Message;

    fn from_str(name: &str) -> Result<Self, Message> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            Message::new(format_args!("unknown format {name:?} (supported: {names})"))
        })
    }
}
