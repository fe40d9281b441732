//! A block of an SST file: where it is said to lie, and its bytes once they are verified.

use super::super::block::FilterBlock;
use super::super::error::RocksdbError;

/// Compression type and checksum, which follow every block.
pub(super) const TRAILER_BYTES: u64 = 5;

/// Where a block lies, without its trailer.
#[derive(Clone, Copy)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Handle {
    /// Where the block after this one begins.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.size).saturating_add(TRAILER_BYTES)
    }
}

/// A block that was verified.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// What it is, for errors.
    pub(super) name: &'static str,
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// The filter in the block. Five bytes or fewer are what RocksDB wrote, since the block was
    /// verified: they answer "maybe".
    pub(super) fn filter(self) -> Result<FilterBlock<&'a [u8]>, RocksdbError> {
        match FilterBlock::from_bytes(self.bytes) {
            Err(RocksdbError::NoKeys { .. }) => Ok(FilterBlock::pass_all()),
            other => other,
        }
    }
}
