//! Blocks: sorted records with a checksum. Data blocks and the index of a table have this form.
//!
//! ```text
//! block   records | start of each record, u32 | number of records, u32 | checksum, u64
//! record  length of the key, u16 | length of the value, u16 | key | value
//! ```

use std::io::{self, Write};

use blocked_bloom::KeyHasher;

/// Size of a data block, exceeded only by a single record that is larger.
pub(crate) const BLOCK_BYTES: usize = 4096;

#[derive(Default)]
pub(crate) struct BlockBuilder {
    records: Vec<u8>,
    starts: Vec<[u8; 4]>,
}

impl BlockBuilder {
    pub(crate) fn has_space_for(&self, key: &[u8], value: &[u8]) -> bool {
        let record = 4 + key.len() + value.len();
        let end = (self.starts.len() + 1) * 4 + 4 + 8;
        self.records.len() + record + end <= BLOCK_BYTES
    }

    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.starts.push((self.records.len() as u32).to_le_bytes());
        self.records.extend(length(key)?);
        self.records.extend(length(value)?);
        self.records.extend(key);
        self.records.extend(value);
        Ok(())
    }

    /// Writes the block, returns its length and starts the next one.
    pub(crate) fn write_to(&mut self, mut writer: impl Write) -> io::Result<u64> {
        let BlockBuilder { records: mut bytes, starts } = std::mem::take(self);
        bytes.extend(starts.as_flattened());
        bytes.extend((starts.len() as u32).to_le_bytes());
        bytes.extend(KeyHasher::default().hash(&bytes).to_le_bytes());
        writer.write_all(&bytes)?;
        Ok(bytes.len() as u64)
    }
}

fn length(bytes: &[u8]) -> io::Result<[u8; 2]> {
    let found = bytes.len();
    let too_long = |_| format!("a key or value of {found} bytes: at most {} fit", u16::MAX);
    let length = u16::try_from(found).map_err(too_long);
    Ok(length.map_err(io::Error::other)?.to_le_bytes())
}

pub(crate) struct Block<'a> {
    records: &'a [u8],
    starts: &'a [[u8; 4]],
}

impl<'a> Block<'a> {
    /// The block in these bytes, or `None` if they are damaged.
    pub(crate) fn verify(bytes: &'a [u8]) -> Option<Self> {
        let (bytes, checksum) = bytes.split_last_chunk()?;
        if KeyHasher::default().hash(bytes) != u64::from_le_bytes(*checksum) {
            return None;
        }
        let (bytes, count) = bytes.split_last_chunk()?;
        let starts = (u32::from_le_bytes(*count) as usize).checked_mul(4)?;
        let (records, starts) = bytes.split_at_checked(bytes.len().checked_sub(starts)?)?;
        let (starts, _) = starts.as_chunks();
        Some(Block { records, starts })
    }

    /// Every key and value in order; `None` for a record that is not inside the block.
    pub(crate) fn records(&self) -> impl Iterator<Item = Option<(&'a [u8], &'a [u8])>> {
        self.starts.iter().map(|start| self.record(start))
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        let is_below = |start: &_| self.record(start).is_some_and(|(found, _)| found < key);
        let i = self.starts.partition_point(is_below);
        let (found, value) = self.record(self.starts.get(i)?)?;
        (found == key).then_some(value)
    }

    fn record(&self, start: &[u8; 4]) -> Option<(&'a [u8], &'a [u8])> {
        let record = self.records.get(u32::from_le_bytes(*start) as usize..)?;
        let (key_len, record) = record.split_first_chunk()?;
        let (value_len, record) = record.split_first_chunk()?;
        let (key, record) = record.split_at_checked(u16::from_le_bytes(*key_len).into())?;
        let value = record.get(..u16::from_le_bytes(*value_len).into())?;
        Some((key, value))
    }
}
