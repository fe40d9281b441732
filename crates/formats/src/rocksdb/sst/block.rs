//! A block of an SST file: where it is said to lie, and its bytes once they are verified.

use blocked_bloom::Stored;

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
    /// The filter in the block, in the bytes that `hold` makes of it. Five bytes or fewer are what
    /// RocksDB wrote, since the block was verified: they answer "maybe".
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

/// The bytes of a filter block: a part of those that `D` holds, or none if their owner lends fewer
/// or more than were verified.
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

/// Cold: otherwise a conditional move chooses the bytes, and the address of what is looked up in
/// them waits for it.
#[cold]
fn empty_slice() -> &'static [u8] {
    &[]
}
