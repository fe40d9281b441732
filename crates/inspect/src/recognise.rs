//! Recognising the format of a file by its first and last bytes and its name.
//!
//! The rules, in this order. Each is a mark that files of other formats do not have: a filter that is read in the wrong format answers
//! "absent" for keys that it holds.
//!
//! 1. The first bytes are the magic number of one of this project's formats: `native`, `growing`, `partition-index`, `ribbon`, `removable`,
//!    `planes`.
//! 2. The first bytes are `PAR1` or `PARE`: `parquet`.
//! 3. The file's name ends in `Filter.db`, and its first bytes may be a number of probes: `cassandra`, which no byte marks.
//! 4. The first bytes are a whole header of a Parquet filter: `parquet-filter`.
//! 5. The last bytes are the magic number of an SST file: `rocksdb-sst`.
//! 6. The first bytes are the header of a first reply of RedisBloom, as long as its links: `redisbloom`; or a header of Guava or Spark that
//!    says how many bytes the file has: `guava`, `spark`.
//! 7. The last bytes are `ff 00 k 00 00` with `k` from 1 to 30, after a multiple of 64 bytes: `rocksdb-block`. Other filter blocks
//!    of RocksDB have no mark. A file whose name ends in `.sst`, `.parquet` or `.db` is none: an SST file that is cut off behind its
//!    filter ends in the same bytes.
//!
//! `compact` has no mark of its own, only a trailer: a container that knows its form holds it, and its user must say so.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{BloomFilter, FormatError};
use blocked_bloom_formats::parquet::{ParquetError, SplitBlockFilter};
use blocked_bloom_removable::{MAGIC as REMOVABLE_MAGIC, RemovableFilter};
use blocked_bloom_ribbon::{RibbonError, RibbonFilter};

use crate::error::Damage;
use crate::format::Format;

pub(crate) const NATIVE_MAGIC: &[u8; 8] = b"\x89BBLOOM\n";
const RIBBON_MAGIC: &[u8; 8] = b"\x89BBRIBN\n";
const PLANES_MAGIC: &[u8; 8] = b"\x89BBPLNS\n";
const PARTITION_INDEX_MAGIC: &[u8; 8] = b"\x89BBPART\n";
const CHAIN_MAGIC: &[u8; 8] = b"\x89BBGROW\n";

/// What the first bytes of this project's formats are.
const MAGICS: [(&[u8; 8], Format); 6] = [
    (NATIVE_MAGIC, Format::Native),
    (CHAIN_MAGIC, Format::Growing),
    (PARTITION_INDEX_MAGIC, Format::PartitionIndex),
    (&REMOVABLE_MAGIC, Format::Removable),
    (RIBBON_MAGIC, Format::Ribbon),
    (PLANES_MAGIC, Format::Planes),
];

/// Bytes at the start and at the end of a file that its format is recognised by: fewer are enough only if the file has no more.
pub const EVIDENCE_BYTES: u64 = 64;

/// The format of a file by its name, its first bytes, its last and its length.
///
/// `head` and `tail` have [`EVIDENCE_BYTES`] each, or the whole file if it has fewer. Of a stream, which can only be read from its start,
/// neither the last bytes nor the `length` are known: `tail` is then not looked at. Files of another kind are not taken for filters, but a
/// format is no promise that the file is sound: [`Opened::new`](crate::Opened::new) says that.
///
/// # Errors
///
/// [`Unrecognised`] says what the file may be instead.
///
/// ```
/// use blocked_bloom_inspect::{Format, Unrecognised, recognise};
/// assert_eq!(recognise("nb-1-big-Filter.db", &[0, 0, 0, 5], &[0, 0, 0, 5], Some(4)), Ok(Format::Cassandra));
/// assert_eq!(recognise("words", b"apple\n", b"apple\n", Some(6)), Err(Unrecognised::Text));
/// ```
pub fn recognise(
    name: &str,
    head: &[u8],
    tail: &[u8],
    length: Option<u64>,
) -> Result<Format, Unrecognised> {
    let found = format_of(name, head, length.map(|length| (tail, length)));
    found.ok_or_else(|| Unrecognised::of(name, head, length.map(|length| (tail, length))))
}

fn format_of(name: &str, head: &[u8], end: Option<(&[u8], u64)>) -> Option<Format> {
    if let Some(&(_, format)) = MAGICS.iter().find(|(magic, _)| head.starts_with(*magic)) {
        return Some(format);
    }
    if head.starts_with(b"PAR1") || head.starts_with(b"PARE") {
        return Some(Format::Parquet);
    }
    if is_cassandra_name(name) && is_cassandra_head(head) {
        return Some(Format::Cassandra);
    }
    if is_parquet_filter(head) {
        return Some(Format::ParquetFilter);
    }
    if end.is_some_and(|(tail, _)| is_sst(tail)) {
        return Some(Format::RocksdbSst);
    }
    if is_redisbloom(head) {
        return Some(Format::Redisbloom);
    }
    let (tail, length) = end?;
    if let Some(format) = java_format(head, length) {
        return Some(format);
    }
    let may_be_block = container_extension(name).is_none() && is_rocksdb_block(tail, length);
    may_be_block.then_some(Format::RocksdbBlock)
}

/// The extension of the name, if it is that of files with more in them than a filter, or of Cassandra.
fn container_extension(name: &str) -> Option<&'static str> {
    let extension = Path::new(name).extension()?;
    ["sst", "parquet", "db"].into_iter().find(|known| extension.eq_ignore_ascii_case(known))
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
    /// It is named as files with more in them than a filter: truncated, perhaps, or compressed.
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
    fn of(name: &str, head: &[u8], end: Option<(&[u8], u64)>) -> Self {
        match (container_extension(name), end) {
            _ if head.is_empty() => Self::Empty,
            (None, _) if is_text(head) => Self::Text,
            (Some(extension), Some(_)) => Self::Container { extension },
            (_, None) => Self::Stream,
            (_, Some(end)) if is_compact(end) => Self::LooksCompact,
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

/// Whether these first bytes are those of a filter of this project, for those who expect keys: without the line feed that ends the magic
/// numbers, which ends a key.
///
/// ```
/// use blocked_bloom_inspect::begins_as_filter;
/// assert!(begins_as_filter(b"\x89BBLOOM") && !begins_as_filter(b"apple"));
/// ```
pub fn begins_as_filter(head: &[u8]) -> bool {
    MAGICS.iter().any(|(magic, _)| head.starts_with(magic.trim_ascii_end()))
}

/// The length of a filter by the header in its first bytes: for a stream, of which no more needs to be read, and for a file of another
/// length, which is damaged and need not be read.
///
/// `None` where the header gives no length, is not sound, or where `head` is the whole filter.
///
/// ```
/// use blocked_bloom_inspect::{Format, length_by_header};
/// # let stored = blocked_bloom::FilterOptions::default().empty_filter(1_000)?.to_bytes();
/// assert_eq!(length_by_header(Format::Native, &stored[..64]), Some(stored.len() as u64));
/// # Ok::<(), blocked_bloom::BuildError>(())
/// ```
pub fn length_by_header(format: Format, head: &[u8]) -> Option<u64> {
    match damage_of_head(format, head)? {
        Damage::Bloom(FormatError::Header(HeaderError::Length { expected, .. }))
        | Damage::Ribbon(RibbonError::Header(HeaderError::Length { expected, .. }))
        | Damage::Parquet(ParquetError::Length { expected, .. }) => Some(expected),
        _ => None,
    }
}

/// What is wrong with these first bytes alone as a filter of a format whose header gives its length.
fn damage_of_head(format: Format, head: &[u8]) -> Option<Damage> {
    match format {
        Format::Native => BloomFilter::from_bytes_trusted(head).err().map(Damage::Bloom),
        Format::Removable => RemovableFilter::from_bytes_trusted(head).err().map(Damage::Bloom),
        Format::Ribbon => RibbonFilter::from_bytes_trusted(head).err().map(Damage::Ribbon),
        Format::ParquetFilter => SplitBlockFilter::from_bytes(head).err().map(Damage::Parquet),
        _ => None,
    }
}

impl Format {
    /// Whether the header of such a filter gives its length: [`length_by_header`] then reads it.
    pub fn has_length(self) -> bool {
        matches!(self, Format::Native | Format::Removable | Format::Ribbon | Format::ParquetFilter)
    }

    /// The damage of a file of `found` bytes whose header gives another length, `expected`.
    pub fn wrong_length(self, found: u64, expected: u64) -> Damage {
        match self {
            Format::ParquetFilter => ParquetError::Length { found, expected }.into(),
            _ => FormatError::Header(HeaderError::Length { found, expected }).into(),
        }
    }
}

/// Whether these first bytes begin with a whole header of a Parquet filter.
fn is_parquet_filter(head: &[u8]) -> bool {
    use ParquetError::{BitsetLength, Length};
    matches!(SplitBlockFilter::from_bytes(head), Ok(_) | Err(Length { .. } | BitsetLength { .. }))
}

/// Whether Cassandra gives such a name to a filter.
///
/// ```
/// assert!(blocked_bloom_inspect::is_cassandra_name("data/nb-1-big-Filter.db"));
/// ```
pub fn is_cassandra_name(name: &str) -> bool {
    name.ends_with("Filter.db")
}

/// Whether these first bytes may be the number of probes, which is never above 21, or are fewer. An empty file is a filter.
fn is_cassandra_head(head: &[u8]) -> bool {
    head.iter().take(3).all(|&byte| byte == 0)
}

/// Whether a file with these last bytes is a block-based SST file, of any version.
fn is_sst(tail: &[u8]) -> bool {
    const MAGICS: [u64; 2] = [0x88e2_41b7_85f4_cff7, 0xdb47_7524_8b80_fb57];
    MAGICS.iter().any(|magic| tail.ends_with(&magic.to_le_bytes()))
}

/// Whether these first bytes are a frame of iterator 1 and a header of as many links as its length says.
fn is_redisbloom(head: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| {
        let bytes = head.get(at..at + bytes)?;
        Some(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    let (iterator, length, links, options) =
        (number(0, 8), number(8, 8), number(24, 4), number(28, 4));
    let of_links = links.filter(|&links| links > 0).map(|links| 20 + 53 * links);
    iterator == Some(1) && of_links.is_some() && of_links == length && options < Some(16)
}

/// The format, of Guava's and Spark's, in which these first bytes are those of a file of this length. None has both headers.
fn java_format(head: &[u8], length: u64) -> Option<Format> {
    use blocked_bloom_formats::ClassicalError;
    use blocked_bloom_formats::guava::GuavaFilter;
    use blocked_bloom_formats::spark::SparkFilter;
    let guava = match GuavaFilter::from_bytes(head) {
        Ok(_) => Some(head.len() as u64),
        Err(ClassicalError::Length { expected, .. }) => Some(expected),
        Err(_) => None,
    };
    let spark = match SparkFilter::from_bytes(head) {
        Ok(_) => Some(head.len() as u64),
        Err(ClassicalError::Length { expected, .. }) => Some(expected),
        Err(_) => None,
    };
    let length = Some(length);
    match (guava == length, spark == length) {
        (true, _) => Some(Format::Guava),
        (_, true) => Some(Format::Spark),
        _ => None,
    }
}

/// Whether a file with these last bytes and this length may be a compact filter.
fn is_compact((tail, length): (&[u8], u64)) -> bool {
    let trailer = matches!(tail, [.., 0xbc, 1, 1..=30, 1 | 5, _, _, _, _]);
    trailer && length > 8 && (length - 8).is_multiple_of(64)
}

/// Whether a file with these last bytes and this length is a FastLocalBloom block and hardly anything else.
fn is_rocksdb_block(tail: &[u8], length: u64) -> bool {
    let trailer = matches!(tail, [.., 0xff, 0, 1..=30, 0, 0]);
    trailer && length > 5 && (length - 5).is_multiple_of(64)
}
