//! Recognising the format of a file by its first and last bytes and its name.
//!
//! Every system says by which mark, if any, a file is one of its own, and the surest mark decides:
//! a magic number at the start, a name, a header, a magic number at the end, lengths, a trailer. No
//! two systems have the same mark in one file.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::str::FromStr;

use crate::message::{LookupOption, Message};
use crate::options::LookupOptions;
use crate::system::{Evidence, Format, Mark};
use crate::systems::may_be_compact;

/// Bytes at the start and at the end of a file that its format is recognised by: fewer are enough
/// only if the file has no more.
pub const EVIDENCE_BYTES: u64 = 64;

/// The format of a file by its name, its first bytes, its last and its length.
///
/// `head` and `tail` have [`EVIDENCE_BYTES`] each, or the whole file if it has fewer. Of a stream,
/// which can only be read from its start, neither the last bytes nor the `length` are known: `tail`
/// is then not looked at. Files of another kind are not taken for filters, but a file whose format
/// is recognised may still be damaged: [`Opened::new`](crate::Opened::new) verifies it.
///
/// # Errors
///
/// [`Unrecognised`] says what the file may be instead.
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

/// The extension of the name, if it is that of a system's files.
fn container_extension(name: &str) -> Option<&'static str> {
    let extension = Path::new(name).extension()?;
    let mut known = Format::ALL.into_iter().filter_map(|format| format.system().extension);
    known.find(|known| extension.eq_ignore_ascii_case(known))
}

/// What a file may be whose format is not recognised.
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
    /// It has no bytes.
    Empty,
    /// It is text.
    Text,
    /// Its name is that of files with more in them than a filter: it may be truncated or
    /// compressed.
    Container {
        /// `sst`, `parquet` or `db`.
        extension: &'static str,
    },
    /// A stream, whose last bytes are not known.
    Stream,
    /// It ends as a filter in the compact form does, which has no mark of its own.
    LooksCompact,
    /// Nothing is known of it.
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

/// Whether the first bytes look like lines of text.
fn is_text(head: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    // A character may be cut off at the end.
    let is_utf8 = match str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    !head.is_empty() && is_utf8 && !head.iter().any(is_control)
}

/// Whether these first bytes are those of a filter of this project, for those who expect keys. The
/// line feed that ends the magic numbers is not compared, since it ends a key.
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
    /// A [`Message`] about the first that they do not have, or do not have with such a value.
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
                    // In order without a sort, which would add a kilobyte to the page.
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
