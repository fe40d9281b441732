//! The stored index: "Index of a partitioned filter" of `docs/format.md` in code. Counts, offsets
//! and order are checked before they are used. Reading borrows, and never panics.

use alloc::vec::Vec;

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError};
use blocked_bloom::probe::BLOCK_BYTES;
use blocked_bloom::{AllocError, FilterContents, KeyHash};

/// The first bytes of a stored [`PartitionIndex`](super::PartitionIndex).
pub const INDEX_MAGIC: [u8; 8] = *b"\x89BBPART\n";
const VERSION: u16 = 1;

/// Offset of the checksum of entries and separators in the header.
const BODY_CHECKSUM: usize = 48;

const ENTRY_BYTES: usize = 24;

/// Offset of the checksum at the end of a filter's header, by which the index identifies a
/// partition.
pub(super) const HEADER_CHECKSUM: usize = 56;

/// The header of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexHeader {
    pub(super) key_hash: KeyHash,
    pub(super) contents: FilterContents,
    pub(super) partitions: u32,
    pub(super) keys: u64,
    /// Bytes of all partitions.
    pub(super) stored_bytes: u64,
}

/// The location of a partition in the bytes of all partitions, which are stored one after another.
///
/// ```
/// # use blocked_bloom::{FilterOptions, Sizing};
/// # use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let builder = PartitionedFilterBuilder::new(options.clone(), 4096)?;
/// let (only, index) = builder.finish()?;
/// let at = PartitionIndex::from_bytes(index, options.key_hash())?.locate("any key");
/// assert_eq!((at.partition, at.offset, at.length), (0, 0, 128));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PartitionLocation {
    /// Index of the partition, from 0.
    pub partition: usize,
    /// Bytes of the partitions before it, a multiple of 64.
    pub offset: u64,
    /// Bytes of the partition, a multiple of 64 and at least 128. 0 if the owner of the index now
    /// returns other bytes than were verified.
    pub length: u64,
    /// The checksum at the end of the filter's header, which identifies it. 0 if the length is 0.
    pub header_checksum: u64,
}

/// Checksum of the filter's header, end of the partition, end of its separator.
type Entry = [u8; ENTRY_BYTES];

/// Entries and separators while a filter is built.
#[derive(Clone, Default)]
pub(super) struct IndexBuilder {
    entries: Vec<Entry>,
    separators: Vec<u8>,
    /// Bytes of the partitions so far.
    end: u64,
}

impl IndexBuilder {
    /// Records the next partition.
    pub(super) fn push(
        &mut self,
        header_checksum: u64,
        stored_bytes: u64,
        separator: &[u8],
    ) -> Result<(), AllocError> {
        let no_memory = |bytes: usize| AllocError::new(bytes as u64);
        self.separators.try_reserve(separator.len()).map_err(|_| no_memory(separator.len()))?;
        self.entries.try_reserve(1).map_err(|_| no_memory(ENTRY_BYTES))?;
        self.separators.extend_from_slice(separator);
        self.end += stored_bytes;
        let mut entry = [0; ENTRY_BYTES];
        put(&mut entry, 0, &header_checksum.to_le_bytes());
        put(&mut entry, 8, &self.end.to_le_bytes());
        put(&mut entry, 16, &(self.separators.len() as u64).to_le_bytes());
        self.entries.push(entry);
        Ok(())
    }

    pub(super) fn partitions(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * ENTRY_BYTES + self.separators.capacity()
    }

    /// Returns the stored form. There are at most 2^32 - 1 partitions.
    pub(super) fn to_bytes(
        &self,
        key_hash: KeyHash,
        contents: FilterContents,
        keys: u64,
    ) -> Result<Vec<u8>, AllocError> {
        let entries = self.entries.as_flattened();
        let length = HEADER_BYTES + entries.len() + self.separators.len();
        let mut bytes = Vec::new();
        let error = AllocError::new(length as u64);
        bytes.try_reserve_exact(length).map_err(|_| error)?;
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(entries);
        bytes.extend_from_slice(&self.separators);
        let mut header = Header::new(INDEX_MAGIC, VERSION);
        header.put_key_hash(10, 16, key_hash);
        header.put(11, &[contents.flags()]);
        header.put(12, &(self.entries.len() as u32).to_le_bytes());
        header.put(24, &keys.to_le_bytes());
        header.put(32, &(self.separators.len() as u64).to_le_bytes());
        header.put(40, &contents.extractor().unwrap_or(0).to_le_bytes());
        header.put_body_checksum(BODY_CHECKSUM, &bytes[HEADER_BYTES..]);
        bytes[..HEADER_BYTES].copy_from_slice(&header.seal());
        Ok(bytes)
    }
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

/// Returns the checksum at the end of a stored filter's header; 0 if the bytes are too short for a
/// header.
pub(crate) fn header_checksum(stored: &[u8]) -> u64 {
    stored.first_chunk::<HEADER_BYTES>().map_or(0, |header| u64_at(header, HEADER_CHECKSUM))
}

/// Callers pass slices that are long enough.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

/// Returns the error for a wrong number at an offset of a partition's entry.
fn field(
    partition: usize,
    offset: usize,
    what: &'static str,
    found: u64,
    expected: &'static str,
) -> HeaderError {
    HeaderError::field(HEADER_BYTES + partition * ENTRY_BYTES + offset, what, found, expected)
}

/// Verifies an index in the order of the steps in the document. `expected` is the hash, `None` for
/// any.
pub(super) fn verify(bytes: &[u8], expected: Option<KeyHash>) -> Result<IndexHeader, HeaderError> {
    let header = Header::read(bytes, INDEX_MAGIC, VERSION)?;
    let (hash, flags, extractor) = (header.u8_at(10), header.u8_at(11), header.u64_at(40));
    // Partitions are located by key, so an index cannot use caller-supplied hashes.
    if hash != 1 {
        return Err(HeaderError::field(10, "unsupported hash", hash, "supported: 1"));
    }
    let key_hash = header.key_hash_at(10, 16, expected)?;
    let Some(contents) = FilterContents::from_flags(flags, extractor) else {
        return Err(HeaderError::field(11, "flags", flags, "allowed: 1 to 3"));
    };
    let partitions = header.u32_at(12);
    if partitions == 0 {
        let allowed = "allowed: 1 to 4294967295";
        return Err(HeaderError::field(12, "number of partitions", 0_u8, allowed));
    }
    if contents.extractor().is_some() != (extractor != 0) {
        let expected = match extractor {
            0 => "must not be 0, because prefixes were added",
            _ => "must be 0, because no prefixes were added",
        };
        return Err(HeaderError::field(40, "extractor", extractor, expected));
    }
    let found = bytes.len() as u64;
    let fixed = HEADER_BYTES as u64 + u64::from(partitions) * ENTRY_BYTES as u64;
    let expected = fixed.saturating_add(header.u64_at(32));
    let parts = Entries::split(bytes, partitions).filter(|_| found == expected);
    let Some(parts) = parts else { return Err(HeaderError::Length { found, expected }) };
    header.check_body(BODY_CHECKSUM, &bytes[HEADER_BYTES..])?;
    let stored_bytes = parts.verify()?;
    Ok(IndexHeader { key_hash, contents, partitions, keys: header.u64_at(24), stored_bytes })
}

/// The entries and separators of an index.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    /// At least one.
    entries: &'a [Entry],
    separators: &'a [u8],
}

impl<'a> Entries<'a> {
    /// Returns `None` if there are too few bytes.
    pub(super) fn split(bytes: &'a [u8], partitions: u32) -> Option<Self> {
        let length = usize::try_from(partitions).ok()?.checked_mul(ENTRY_BYTES)?;
        let (entries, separators) = bytes.get(HEADER_BYTES..)?.split_at_checked(length)?;
        Some(Entries { entries: entries.as_chunks().0, separators })
    }

    /// Verifies every entry, and returns the bytes of all partitions.
    fn verify(&self) -> Result<u64, HeaderError> {
        const BLOCK: u64 = BLOCK_BYTES as u64;
        let (mut end, mut separator_end, mut last) = (0, 0, None);
        for (partition, entry) in self.entries.iter().enumerate() {
            let (next, next_separator) = (u64_at(entry, 8), u64_at(entry, 16));
            // One header and 1 to 2^32 - 1 blocks.
            let length = next.checked_sub(end).filter(|length| {
                length.is_multiple_of(BLOCK) && (2..=1 << 32).contains(&(length / BLOCK))
            });
            if length.is_none() {
                let expected =
                    "must be one header and 1 to 4294967295 blocks after the previous end";
                return Err(field(partition, 8, "end of a partition", next, expected));
            }
            let most = if partition == 0 { 0 } else { self.separators.len() as u64 };
            if next_separator < separator_end || next_separator > most {
                let expected = "must be 0 for the first, and for others between the previous end \
                                and the end of all separators";
                return Err(field(partition, 16, "end of a separator", next_separator, expected));
            }
            let separator = self.separator(partition);
            if last.is_some() && separator <= last {
                let expected = "the separator must be greater than the previous one";
                return Err(field(partition, 16, "end of a separator", next_separator, expected));
            }
            (end, separator_end, last) = (next, next_separator, separator);
        }
        match separator_end == self.separators.len() as u64 {
            true => Ok(end),
            false => {
                let (last, expected) =
                    (self.entries.len() - 1, "must be the end of all separators");
                Err(field(last, 16, "end of a separator", separator_end, expected))
            }
        }
    }

    /// Returns the start of the range whose end is at this offset of an entry: the end in the
    /// previous entry.
    fn begin(&self, partition: usize, offset: usize) -> u64 {
        let before = partition.checked_sub(1).and_then(|before| self.entries.get(before));
        before.map_or(0, |entry| u64_at(entry, offset))
    }

    pub(super) fn separator(&self, partition: usize) -> Option<&'a [u8]> {
        let end = usize::try_from(u64_at(self.entries.get(partition)?, 16)).ok()?;
        let begin = usize::try_from(self.begin(partition, 16)).ok()?;
        self.separators.get(begin..end)
    }

    pub(super) fn location(&self, partition: usize) -> Option<PartitionLocation> {
        let offset = self.begin(partition, 8);
        let entry = self.entries.get(partition)?;
        let (header_checksum, end) = (u64_at(entry, 0), u64_at(entry, 8));
        let length = end.saturating_sub(offset);
        Some(PartitionLocation { partition, offset, length, header_checksum })
    }

    /// Returns the checksum at the end of the header of a partition's filter.
    pub(super) fn header_checksum(&self, partition: usize) -> Option<u64> {
        self.entries.get(partition).map(|entry| u64_at(entry, 0))
    }

    /// Returns the last partition whose separator is not greater than the key. The first separator
    /// is empty.
    pub(super) fn find_partition(&self, key: &[u8]) -> usize {
        let (mut found, mut end) = (0, self.entries.len());
        while end - found > 1 {
            let middle = found + (end - found) / 2;
            match self.separator(middle) {
                Some(separator) if separator <= key => found = middle,
                _ => end = middle,
            }
        }
        found
    }
}
