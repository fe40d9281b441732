//! Recognising the format of a file by its first and last bytes and its name.
//!
//! The rules, in this order. Each is a mark that files of other formats do not have: a filter that is read in the wrong format answers
//! "absent" for keys that it holds.
//!
//! 1. The first bytes are the magic number of one of this project's formats: `native`, `ribbon`, `removable`.
//! 2. The first bytes are `PAR1` or `PARE`: `parquet`.
//! 3. The file's name ends in `Filter.db`, and its first bytes may be a number of probes: `cassandra`, which no byte marks.
//! 4. The first bytes are a whole header of a Parquet filter: `parquet-filter`.
//! 5. The last bytes are the magic number of an SST file: `rocksdb-sst`.
//! 6. The first bytes are the header of a first reply of RedisBloom, as long as its links: `redisbloom`; or a header of Guava or Spark that
//!    says how many bytes the file has: `guava`, `spark`.
//! 7. The last bytes are `ff 00 k 00 00` with `k` from 1 to 30, after a multiple of 64 bytes: `rocksdb-block`. Other filter blocks
//!    of RocksDB have no mark. A file whose name ends in `.sst`, `.parquet` or `.db` is none: an SST file that is cut off behind its
//!    filter ends in the same bytes.

use std::path::Path;

use blocked_bloom::header::HeaderError;
use blocked_bloom::{BloomFilterRef, FormatError};
use blocked_bloom_formats::parquet::{ParquetError, SplitBlockFilterRef};
use blocked_bloom_removable::{MAGIC, RemovableFilterRef};
use blocked_bloom_ribbon::{RibbonError, RibbonFilter};

use crate::failure::Failure;
use crate::file_format::{Format, RECOGNISED};

/// What a file's format is recognised by.
pub(crate) struct Evidence<'a> {
    pub(crate) path: &'a Path,
    /// The first 64 bytes, or all if there are fewer.
    pub(crate) head: &'a [u8],
    /// The last bytes and the length. None for what can only be read from its start.
    pub(crate) end: Option<(&'a [u8], u64)>,
}

const NATIVE_MAGIC: &[u8] = b"\x89BBLOOM\n";
const RIBBON_MAGIC: &[u8] = b"\x89BBRIBN\n";
const PARTITION_INDEX_MAGIC: &[u8] = b"\x89BBPART\n";
const CHAIN_MAGIC: &[u8] = b"\x89BBGROW\n";

impl Evidence<'_> {
    pub(crate) fn format(&self) -> Option<Format> {
        if self.head.starts_with(NATIVE_MAGIC) {
            return Some(Format::Native);
        }
        if self.head.starts_with(&MAGIC) {
            return Some(Format::Removable);
        }
        if self.head.starts_with(RIBBON_MAGIC) {
            return Some(Format::Ribbon);
        }
        if self.head.starts_with(b"PAR1") || self.head.starts_with(b"PARE") {
            return Some(Format::Parquet);
        }
        if is_cassandra_name(self.path) && is_cassandra_head(self.head) {
            return Some(Format::Cassandra);
        }
        if is_parquet_filter(self.head) {
            return Some(Format::ParquetFilter);
        }
        let is_sst = self.end.is_some_and(|(tail, _)| is_sst(tail));
        if is_sst {
            return Some(Format::RocksdbSst);
        }
        if is_redisbloom(self.head) {
            return Some(Format::Redisbloom);
        }
        let (tail, length) = self.end?;
        if let Some(format) = java_format(self.head, length) {
            return Some(format);
        }
        let may_be_block = self.container_extension().is_none() && is_rocksdb_block(tail, length);
        may_be_block.then_some(Format::RocksdbBlock)
    }

    /// The extension of the name, if it is that of files with more in them than a filter, or of Cassandra.
    fn container_extension(&self) -> Option<&'static str> {
        let extension = self.path.extension()?;
        ["sst", "parquet", "db"].into_iter().find(|known| extension.eq_ignore_ascii_case(known))
    }

    /// The error for a file of no known format: what may be meant, and with `--verbose` what was looked for. `keys` are the
    /// keys that were given beside it, if any were, and their format if they are a filter.
    pub(crate) fn unknown(&self, name: &str, keys: Option<(&Path, Option<Format>)>) -> Failure {
        let container = match self.head {
            head if head.starts_with(PARTITION_INDEX_MAGIC) => {
                Some("the index of a partitioned filter")
            }
            head if head.starts_with(CHAIN_MAGIC) => Some("a growing filter, a chain of filters"),
            _ => None,
        };
        if let Some(container) = container {
            let message =
                format!("this is {container}, which only the library reads: see docs/format.md");
            return Failure::of(name, message);
        }
        let is_empty = self.head.is_empty();
        let hint = match (keys, self.container_extension()) {
            (Some((path, Some(format))), _) => {
                let path = path.display();
                format!("{path} is a filter ({format}): give the filter first, then the keys")
            }
            _ if is_empty => "it is empty; give --format if it is a filter".to_owned(),
            (Some(_), None) if is_text(self.head) => {
                "it is text: the filter comes first, then the keys".to_owned()
            }
            (None, None) if is_text(self.head) => {
                "it is text; give --format if it is a filter".to_owned()
            }
            (_, Some(_)) if self.end.is_some() => {
                "truncated or compressed? Fetch it again, or give --format".to_owned()
            }
            _ if self.end.is_none() => {
                "a pipe, whose end is not known: give --format, such as rocksdb-sst".to_owned()
            }
            _ => "give --format if it is a filter".to_owned(),
        };
        let of_name = match self.container_extension().filter(|_| self.end.is_some()) {
            Some("parquet") => "  its name ends in .parquet, but its first bytes are not PAR1\n",
            Some("sst") => {
                "  its name ends in .sst, but its last bytes are no magic number of RocksDB\n"
            }
            Some(_) => {
                "  its name ends in .db, but its first bytes are no number of probes and its last bytes no magic number of RocksDB\n"
            }
            None => "",
        };
        let reasons = format!("{of_name}{RECOGNISED}");
        Failure::of(name, format!("not a recognised filter file: {hint}")).with_reasons(&reasons)
    }
}

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

/// Whether these first bytes are those of a container of this crate.
pub(crate) fn begins_as_filter(head: &[u8]) -> bool {
    // The magic numbers end in a line feed, which ends a key.
    [NATIVE_MAGIC, PARTITION_INDEX_MAGIC, CHAIN_MAGIC, RIBBON_MAGIC, &MAGIC]
        .iter()
        .any(|magic| head.starts_with(magic.trim_ascii_end()))
}

/// Whether the header of such a filter gives its length.
pub(crate) fn has_length(format: Format) -> bool {
    matches!(format, Format::Native | Format::Removable | Format::Ribbon | Format::ParquetFilter)
}

/// The length that a sound header in these first bytes gives, unless there are as many.
pub(crate) fn length_by_header(format: Format, head: &[u8]) -> Option<u64> {
    match format {
        Format::Native => match BloomFilterRef::from_bytes_trusted(head) {
            Err(FormatError::Header(HeaderError::Length { expected, .. })) => Some(expected),
            _ => None,
        },
        Format::Removable => match RemovableFilterRef::from_bytes_trusted(head) {
            Err(FormatError::Header(HeaderError::Length { expected, .. })) => Some(expected),
            _ => None,
        },
        Format::Ribbon => match RibbonFilter::from_bytes_trusted(head) {
            Err(RibbonError::Header(HeaderError::Length { expected, .. })) => Some(expected),
            _ => None,
        },
        Format::ParquetFilter => match SplitBlockFilterRef::from_bytes(head) {
            Err(ParquetError::Length { expected, .. }) => Some(expected),
            _ => None,
        },
        _ => None,
    }
}

/// The library's error for a file of this length, if that is not what a sound header in its first bytes gives: for a file that is not
/// read then.
pub(crate) fn length_error(format: Format, head: &[u8], found: u64) -> Option<String> {
    let expected = length_by_header(format, head).filter(|&expected| expected != found)?;
    Some(match format {
        Format::ParquetFilter => ParquetError::Length { found, expected }.to_string(),
        _ => FormatError::Header(HeaderError::Length { found, expected }).to_string(),
    })
}

/// Whether these first bytes begin with a whole header of a Parquet filter.
fn is_parquet_filter(head: &[u8]) -> bool {
    use ParquetError::{BitsetLength, Length};
    matches!(
        SplitBlockFilterRef::from_bytes(head),
        Ok(_) | Err(Length { .. } | BitsetLength { .. })
    )
}

/// Whether Cassandra gives such a name to a filter.
pub(crate) fn is_cassandra_name(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().ends_with("Filter.db")
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
    use blocked_bloom_formats::guava::{GuavaError, GuavaFilterRef};
    use blocked_bloom_formats::spark::{SparkError, SparkFilterRef};
    let guava = match GuavaFilterRef::from_bytes(head) {
        Ok(_) => Some(head.len() as u64),
        Err(GuavaError::Length { expected, .. }) => Some(expected),
        Err(_) => None,
    };
    let spark = match SparkFilterRef::from_bytes(head) {
        Ok(_) => Some(head.len() as u64),
        Err(SparkError::Length { expected, .. }) => Some(expected),
        Err(_) => None,
    };
    let length = Some(length);
    match (guava == length, spark == length) {
        (true, _) => Some(Format::Guava),
        (_, true) => Some(Format::Spark),
        _ => None,
    }
}

/// Whether a file with these last bytes and this length is a FastLocalBloom block and hardly anything else.
fn is_rocksdb_block(tail: &[u8], length: u64) -> bool {
    let trailer = matches!(tail, [.., 0xff, 0, 1..=30, 0, 0]);
    trailer && length > 5 && (length - 5).is_multiple_of(64)
}
