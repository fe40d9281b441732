//! The entries of a block of keys and values: the metaindex, the properties, the index of filter
//! partitions.
//!
//! Entries have varints, handles, and keys that share a prefix with the previous key. An entry that
//! extends past the block is an error. No value is copied.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use super::super::error::RocksdbError;
use super::block::{Block, Handle};
use crate::varint;

/// A position in a block.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    block: Block<'a>,
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(block: Block<'a>) -> Self {
        Cursor { block, position: 0 }
    }

    pub(super) fn malformed(&self, expected: &'static str) -> RocksdbError {
        let offset = self.block.offset + self.position as u64;
        RocksdbError::Malformed { block: self.block.name, offset, expected }
    }

    /// Reads a number with seven bits per byte, the lowest first. The last byte is below 128.
    pub(super) fn varint(&mut self) -> Result<u64, RocksdbError> {
        let error = self.malformed("a number of at most 64 bits");
        let (number, length) = varint::read(&self.block.bytes[self.position..]).ok_or(error)?;
        self.position += length;
        Ok(number)
    }

    pub(super) fn bytes(
        &mut self,
        length: u64,
        what: &'static str,
    ) -> Result<&'a [u8], RocksdbError> {
        let rest = &self.block.bytes[self.position..];
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(bytes) => {
                self.position += bytes.len();
                Ok(bytes)
            }
            None => Err(self.malformed(what)),
        }
    }

    pub(super) fn handle(&mut self) -> Result<Handle, RocksdbError> {
        Ok(Handle { offset: self.varint()?, size: self.varint()? })
    }
}

/// A stored key: the length that it shares with the previous key, and its own bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'a> {
    /// At most the length of the previous key.
    pub(super) shared: usize,
    pub(super) suffix: &'a [u8],
}

impl Key<'_> {
    pub(super) fn len(&self) -> usize {
        self.shared + self.suffix.len()
    }

    /// Converts the previous key into this one.
    pub(super) fn follow(&self, key: &mut Vec<u8>) -> Result<(), AllocError> {
        key.truncate(self.shared);
        let error = AllocError::new(self.len() as u64);
        key.try_reserve(self.suffix.len()).map_err(|_| error)?;
        key.extend_from_slice(self.suffix);
        Ok(())
    }
}

/// Reads a block from its first entry to its last.
pub(super) struct Entries<'a> {
    /// The block without its restart points, which are only needed for searching.
    pub(super) cursor: Cursor<'a>,
    /// Length of the previous key.
    key_length: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn new(block: Block<'a>) -> Result<Self, RocksdbError> {
        let end = || {
            let (rest, count) = block.bytes.split_last_chunk()?;
            // The top bit announces a hash index, which only data blocks have.
            let restarts = u64::from(u32::from_le_bytes(*count));
            let end = (rest.len() as u64).checked_sub(4 * restarts)?;
            rest.get(..end as usize)
        };
        match end() {
            Some(bytes) => {
                Ok(Entries { cursor: Cursor::new(Block { bytes, ..block }), key_length: 0 })
            }
            None => Err(Cursor { block, position: block.bytes.len().saturating_sub(4) }
                .malformed("a number of restart points that fit")),
        }
    }

    /// Calls `each` with every key and value, in order.
    pub(super) fn for_each(
        block: Block<'a>,
        mut each: impl FnMut(&[u8], Block<'a>) -> Result<(), RocksdbError>,
    ) -> Result<(), RocksdbError> {
        let mut entries = Entries::new(block)?;
        let mut key = Vec::new();
        while !entries.is_at_end() {
            let (next, value) = entries.next()?;
            next.follow(&mut key)?;
            each(&key, value)?;
        }
        Ok(())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.cursor.position == self.cursor.block.bytes.len()
    }

    /// Reads the next entry: its key, and its value as a separate block.
    pub(super) fn next(&mut self) -> Result<(Key<'a>, Block<'a>), RocksdbError> {
        let [shared, own] = self.key_lengths()?;
        let length = self.cursor.varint()?;
        let key = self.key(shared, own)?;
        let offset = self.cursor.block.offset + self.cursor.position as u64;
        let bytes = self.cursor.bytes(length, "a value within the block")?;
        Ok((key, Block { offset, bytes, ..self.cursor.block }))
    }

    /// Reads the next entry's key if the value's length is not stored. The cursor is then at the
    /// value.
    pub(super) fn next_key(&mut self) -> Result<Key<'a>, RocksdbError> {
        let [shared, own] = self.key_lengths()?;
        self.key(shared, own)
    }

    fn key_lengths(&mut self) -> Result<[u64; 2], RocksdbError> {
        Ok([self.cursor.varint()?, self.cursor.varint()?])
    }

    fn key(&mut self, shared: u64, own: u64) -> Result<Key<'a>, RocksdbError> {
        if shared > self.key_length as u64 {
            return Err(self
                .cursor
                .malformed("a key that shares no more bytes than the one before it has"));
        }
        let suffix = self.cursor.bytes(own, "a key within the block")?;
        let key = Key { shared: shared as usize, suffix };
        self.key_length = key.len();
        Ok(key)
    }
}
