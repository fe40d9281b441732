//! Records and blocks of records, in tables and in the log.
//!
//! ```text
//! block   records | XXH3-64 of the records, u64
//! record  length of the key, u16 | length of the entry, u16 | key | entry
//! entry   1 and the value, or 0 for a deletion
//! ```
//!
//! Integers are little-endian.

use std::io;
use std::iter;

use blocked_bloom::KeyHasher;

/// A value, or `None` for a deletion.
pub(crate) type Entry<'a> = Option<&'a [u8]>;

/// Appends a record to a block.
pub(crate) fn put(block: &mut Vec<u8>, key: &[u8], entry: &[u8]) -> io::Result<()> {
    for part in [key, entry] {
        block.extend(u16::try_from(part.len()).map_err(io::Error::other)?.to_le_bytes());
    }
    block.extend([key, entry].concat());
    Ok(())
}

/// Ends a block with its checksum.
pub(crate) fn seal(block: &mut Vec<u8>) -> &mut Vec<u8> {
    block.extend(KeyHasher::default().hash(&block).to_le_bytes());
    block
}

/// Returns the records of a block, or `None` if it is damaged. The checksum is verified first, so
/// every record is complete.
pub(crate) fn records(block: &[u8]) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
    let (mut records, checksum) = block.split_last_chunk()?;
    let is_sound = KeyHasher::default().hash(records) == u64::from_le_bytes(*checksum);
    let next = move || {
        let ([k0, k1, e0, e1], rest) = records.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes([*k0, *k1]).into())?;
        let (entry, rest) = rest.split_at_checked(u16::from_le_bytes([*e0, *e1]).into())?;
        records = rest;
        Some((key, entry))
    };
    is_sound.then(|| iter::from_fn(next))
}

pub(crate) fn encode(entry: Entry<'_>) -> Vec<u8> {
    entry.map_or(vec![0], |value| [&[1], value].concat())
}

pub(crate) fn decode(stored: &[u8]) -> Entry<'_> {
    stored.split_first().filter(|(kind, _)| **kind == 1).map(|(_, value)| value)
}
