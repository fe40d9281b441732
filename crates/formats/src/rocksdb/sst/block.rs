//! A block of an SST file: its stored location, and its bytes after verification.

use blocked_bloom::Stored;

use super::super::block::FilterBlock;
use super::super::error::RocksdbError;

/// Size of the compression type and checksum that follow every block.
pub(super) const TRAILER_BYTES: u64 = 5;

/// The location of a block, without its trailer.
#[derive(Clone, Copy)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Handle {
    /// Returns the offset of the next block.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.size).saturating_add(TRAILER_BYTES)
    }
}

/// A verified block.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// Its name in errors.
    pub(super) name: &'static str,
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Opens the filter in the block; `hold` returns the bytes to keep. Five bytes or fewer answer
    /// "maybe": the block was verified, so RocksDB wrote them.
    pub(super) fn filter<D: AsRef<[u8]>>(
        self,
        hold: impl Fn(Self) -> BlockBytes<D>,
    ) -> Result<FilterBlock<BlockBytes<D>>, RocksdbError> {
        match FilterBlock::open_or_pass_all(hold(self)) {
            (filter, None | Some(RocksdbError::NoKeys { .. })) => Ok(filter),
            (_, Some(error)) => Err(error),
        }
    }
}

/// The bytes of a filter block: a part of the bytes in `D`, or none if their length has changed
/// since verification.
#[derive(Clone, Copy)]
pub(super) struct BlockBytes<D> {
    pub(super) stored: Stored<D>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<D: AsRef<[u8]>> AsRef<[u8]> for BlockBytes<D> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self.stored.bytes().and_then(|bytes| bytes.get(self.start..self.end)) {
            Some(block) => block,
            None => empty_slice(),
        }
    }
}

/// Cold, so that the compiler branches. A conditional move would make the address of the block wait
/// for this check.
#[cold]
fn empty_slice() -> &'static [u8] {
    &[]
}
