//! Records and their checksums, in tables and in the log.

use std::io;
use std::iter;

use blocked_bloom::KeyHasher;

/// Appends a record to a block.
pub(crate) fn put(block: &mut Vec<u8>, key: &[u8], entry: &[u8]) -> io::Result<()> {
    for part in [key, entry] {
        block.extend(u16::try_from(part.len()).map_err(io::Error::other)?.to_le_bytes());
    }
    block.extend([key, entry].concat());
    Ok(())
}

/// Ends a block with its checksum.
pub(crate) fn seal(block: &mut Vec<u8>) {
    block.extend(KeyHasher::default().hash(&block).to_le_bytes());
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

/// The stored form of a value, or of a deletion.
pub(crate) fn encode(value: Option<&[u8]>) -> Vec<u8> {
    value.map_or(vec![0], |value| [&[1], value].concat())
}

/// The value of a stored entry, or `None` for a deletion.
pub(crate) fn decode(entry: &[u8]) -> Option<&[u8]> {
    entry.split_first().filter(|(kind, _)| **kind == 1).map(|(_, value)| value)
}
