//! The stored index: "Index of a partitioned filter" of `docs/format.md` in code.
//!
//! This file owns the layout and its checks. It refuses to trust a count, an offset or an order that it has not checked, borrows
//! when reading and panics on no input.

use alloc::vec::Vec;

use super::{Facts, PartitionLocation};
use crate::error::{AllocError, PartitionIndexError};
use crate::hash::{KeyHash, checksum};
use crate::params::HEADER_BYTES;
use crate::prefix::Added;
use crate::probe::BLOCK_BYTES;

/// First byte not ASCII, last a line feed: a transfer in text mode shows.
const MAGIC: [u8; 8] = *b"\x89BBPART\n";
const VERSION: u16 = 1;
const HASH_XXH3: u8 = 1;
const FLAG_WHOLE_KEYS: u8 = 1;
const FLAG_PREFIXES: u8 = 2;

const ENTRY_BYTES: usize = 24;

/// Checksum of the filter's header, end of the partition, end of its separator.
type Entry = [u8; ENTRY_BYTES];

/// Entries and separators while a filter is built.
#[derive(Clone, Default)]
pub(super) struct Draft {
    entries: Vec<Entry>,
    separators: Vec<u8>,
    /// Bytes of the partitions so far.
    end: u64,
}

impl Draft {
    /// Takes note of the next partition.
    pub(super) fn push(
        &mut self,
        header_checksum: u64,
        stored_bytes: u64,
        separator: &[u8],
    ) -> Result<(), AllocError> {
        let no_memory = |bytes: usize| AllocError { bytes: bytes as u64 };
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

    /// The stored form, of at most 2^32 - 1 partitions.
    pub(super) fn to_bytes(
        &self,
        seed: u64,
        added: Added,
        keys: u64,
    ) -> Result<Vec<u8>, AllocError> {
        let entries = self.entries.as_flattened();
        let length = HEADER_BYTES + entries.len() + self.separators.len();
        let mut bytes = Vec::new();
        let error = AllocError { bytes: length as u64 };
        bytes.try_reserve_exact(length).map_err(|_| error)?;
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(entries);
        bytes.extend_from_slice(&self.separators);
        let flags = if added.whole_keys() { FLAG_WHOLE_KEYS } else { 0 }
            | if added.extractor().is_some() { FLAG_PREFIXES } else { 0 };
        let body = checksum(&bytes[HEADER_BYTES..]);
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 10, &[HASH_XXH3, flags]);
        put(&mut bytes, 12, &(self.entries.len() as u32).to_le_bytes());
        put(&mut bytes, 16, &seed.to_le_bytes());
        put(&mut bytes, 24, &keys.to_le_bytes());
        put(&mut bytes, 32, &(self.separators.len() as u64).to_le_bytes());
        put(&mut bytes, 40, &added.extractor().unwrap_or(0).to_le_bytes());
        put(&mut bytes, 48, &body.to_le_bytes());
        let header = checksum(&bytes[..56]);
        put(&mut bytes, 56, &header.to_le_bytes());
        Ok(bytes)
    }
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

/// The callers' slices are long enough.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

/// Checks an index: the steps of the document, in its order.
pub(super) fn verify(bytes: &[u8]) -> Result<Facts, PartitionIndexError> {
    let found = bytes.len() as u64;
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(PartitionIndexError::TooShort { found });
    };
    if header[..8] != MAGIC {
        let mut found = [0; 8];
        found.copy_from_slice(&header[..8]);
        return Err(PartitionIndexError::Magic { found });
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        return Err(PartitionIndexError::Version { found: version });
    }
    let (stored, computed) = (u64_at(header, 56), checksum(&header[..56]));
    if stored != computed {
        return Err(PartitionIndexError::HeaderChecksum { stored, computed });
    }
    let [hash, flags] = [header[10], header[11]];
    if hash != HASH_XXH3 {
        return Err(PartitionIndexError::Hash { found: hash });
    }
    let extractor = u64_at(header, 40);
    let added = match flags {
        FLAG_WHOLE_KEYS => Added::WholeKeys,
        FLAG_PREFIXES => Added::Prefixes { extractor },
        3 => Added::WholeKeysAndPrefixes { extractor },
        _ => return Err(PartitionIndexError::Flags { found: flags }),
    };
    let partitions = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    if partitions == 0 {
        return Err(PartitionIndexError::PartitionCount);
    }
    if added.extractor().is_some() != (extractor != 0) {
        return Err(PartitionIndexError::Extractor { found: extractor });
    }
    let fixed = HEADER_BYTES as u64 + u64::from(partitions) * ENTRY_BYTES as u64;
    let expected = fixed.saturating_add(u64_at(header, 32));
    let parts = Parts::of(bytes, partitions).filter(|_| found == expected);
    let Some(parts) = parts else {
        return Err(PartitionIndexError::Length { found, expected });
    };
    let (stored, computed) = (u64_at(header, 48), checksum(&bytes[HEADER_BYTES..]));
    if stored != computed {
        return Err(PartitionIndexError::BodyChecksum { stored, computed });
    }
    let stored_bytes = parts.verify()?;
    let (key_hash, keys) = (KeyHash::Xxh3 { seed: u64_at(header, 16) }, u64_at(header, 24));
    Ok(Facts { key_hash, added, partitions, keys, stored_bytes })
}

/// The entries and the separators of an index.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    /// At least one.
    entries: &'a [Entry],
    separators: &'a [u8],
}

impl<'a> Parts<'a> {
    /// `None` if there are too few bytes.
    pub(super) fn of(bytes: &'a [u8], partitions: u32) -> Option<Self> {
        let length = usize::try_from(partitions).ok()?.checked_mul(ENTRY_BYTES)?;
        let (entries, separators) = bytes.get(HEADER_BYTES..)?.split_at_checked(length)?;
        Some(Parts { entries: entries.as_chunks().0, separators })
    }

    /// Checks every entry; returns the bytes of all partitions.
    fn verify(&self) -> Result<u64, PartitionIndexError> {
        const BLOCK: u64 = BLOCK_BYTES as u64;
        let (mut end, mut separator_end, mut last) = (0, 0, None);
        for (partition, entry) in (0_u32..).zip(self.entries) {
            let (next, next_separator) = (u64_at(entry, 8), u64_at(entry, 16));
            // A header and 1 to 2^32 - 1 blocks.
            let length = next.checked_sub(end).filter(|length| {
                length.is_multiple_of(BLOCK) && (2..=1 << 32).contains(&(length / BLOCK))
            });
            if length.is_none() {
                return Err(PartitionIndexError::PartitionEnd { partition, end: next });
            }
            let most = if partition == 0 { 0 } else { self.separators.len() as u64 };
            if next_separator < separator_end || next_separator > most {
                return Err(PartitionIndexError::SeparatorEnd { partition, end: next_separator });
            }
            let separator = self.separator(partition as usize);
            if last.is_some() && separator <= last {
                return Err(PartitionIndexError::SeparatorOrder { partition });
            }
            (end, separator_end, last) = (next, next_separator, separator);
        }
        match separator_end == self.separators.len() as u64 {
            true => Ok(end),
            false => {
                let partition = self.entries.len() as u32 - 1;
                Err(PartitionIndexError::SeparatorEnd { partition, end: separator_end })
            }
        }
    }

    /// Where a number of an entry begins: where it ended in the entry before.
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
        let length = u64_at(self.entries.get(partition)?, 8).saturating_sub(offset);
        Some(PartitionLocation { partition, offset, length })
    }

    /// The checksum that ends the header of the partition's filter.
    pub(super) fn header_checksum(&self, partition: usize) -> Option<u64> {
        self.entries.get(partition).map(|entry| u64_at(entry, 0))
    }

    /// The last partition whose separator is not greater than the key. That of the first is empty.
    pub(super) fn partition_of(&self, key: &[u8]) -> usize {
        let (mut found, mut beyond) = (0, self.entries.len());
        while beyond - found > 1 {
            let middle = found + (beyond - found) / 2;
            match self.separator(middle) {
                Some(separator) if separator <= key => found = middle,
                _ => beyond = middle,
            }
        }
        found
    }
}
