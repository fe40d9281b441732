//! The entries of a block of keys and values: the metaindex, the properties, the index of filter
//! partitions.
//!
//! Varints, handles and keys that share a prefix with the one before. What reaches past the block
//! is an error; no value is copied.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use super::super::error::RocksdbError;
use super::block::{Block, Handle};
use crate::varint;

/// A place in a block.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    block: Block<'a>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(block: Block<'a>) -> Self {
        Cursor { block, at: 0 }
    }

    pub(super) fn malformed(&self, expected: &'static str) -> RocksdbError {
        let offset = self.block.offset + self.at as u64;
        RocksdbError::Malformed { block: self.block.name, offset, expected }
    }

    /// Seven bits a byte, lowest first, the last byte below 128.
    pub(super) fn varint(&mut self) -> Result<u64, RocksdbError> {
        let error = self.malformed("a number of at most 64 bits");
        let (number, length) = varint::read(&self.block.bytes[self.at..]).map_err(|_| error)?;
        self.at += length;
        Ok(number)
    }

    pub(super) fn bytes(
        &mut self,
        length: u64,
        what: &'static str,
    ) -> Result<&'a [u8], RocksdbError> {
        let rest = &self.block.bytes[self.at..];
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(self.malformed(what)),
        }
    }

    pub(super) fn handle(&mut self) -> Result<Handle, RocksdbError> {
        Ok(Handle { offset: self.varint()?, size: self.varint()? })
    }
}

/// A key as it is stored: bytes that it shares with the key before it, and its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'a> {
    /// At most the length of the key before it.
    pub(super) shared: usize,
    pub(super) suffix: &'a [u8],
}

impl Key<'_> {
    pub(super) fn len(&self) -> usize {
        self.shared + self.suffix.len()
    }

    /// Turns the key before this one into this one.
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
    /// Of the block without its restart points, which are for searching.
    pub(super) cursor: Cursor<'a>,
    /// Length of the last key.
    key_length: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn new(block: Block<'a>) -> Result<Self, RocksdbError> {
        let end = || {
            let (rest, count) = block.bytes.split_last_chunk()?;
            // The top bit says that a hash index follows, which only data blocks have.
            let restarts = u64::from(u32::from_le_bytes(*count));
            let end = (rest.len() as u64).checked_sub(4 * restarts)?;
            rest.get(..end as usize)
        };
        match end() {
            Some(bytes) => {
                Ok(Entries { cursor: Cursor::new(Block { bytes, ..block }), key_length: 0 })
            }
            None => Err(Cursor { block, at: block.bytes.len().saturating_sub(4) }
                .malformed("a number of restart points that fit")),
        }
    }

    /// Calls `each` with every key and value, in their order.
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
        self.cursor.at == self.cursor.block.bytes.len()
    }

    /// The next entry's key, and the value as a block of its own.
    pub(super) fn next(&mut self) -> Result<(Key<'a>, Block<'a>), RocksdbError> {
        let [shared, own] = self.key_lengths()?;
        let length = self.cursor.varint()?;
        let key = self.key(shared, own)?;
        let offset = self.cursor.block.offset + self.cursor.at as u64;
        let bytes = self.cursor.bytes(length, "a value within the block")?;
        Ok((key, Block { offset, bytes, ..self.cursor.block }))
    }

    /// The next entry's key, where the value's length is not stored: the cursor is then at the
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
