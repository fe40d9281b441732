//! The frame of an SST file: its footer, and blocks with their trailers.
//!
//! A block is only returned if its checksum is valid, it is not compressed, and it is between the
//! start of the file and its footer.

use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::AllocError;

use super::super::checksum::ChecksumKind;
use super::super::error::RocksdbError;
use super::block::{Block, Handle, TRAILER_BYTES};
use super::entries::Cursor;
use crate::ranges::FileRanges;

/// Size of a footer of `format_version` 1 and later.
const FOOTER_BYTES: usize = 53;
/// The last bytes of a block-based SST file, as a little-endian number: since `format_version` 1,
/// and for version 0, which is not supported.
pub const SST_MAGICS: [u64; 2] = [0x88e2_41b7_85f4_cff7, 0xdb47_7524_8b80_fb57];
/// First four bytes of the footer's second part since `format_version` 6.
const EXTENDED_MAGIC: u32 = u32::from_le_bytes([0x3e, 0, 0x7a, 0]);

/// An SST file with a decoded footer.
pub(super) struct Table<'t, 'a> {
    file: &'t FileRanges<'a>,
    /// Offset of the footer.
    pub(super) footer: u64,
    pub(super) format_version: u32,
    pub(super) checksum: ChecksumKind,
    /// Mixed with offsets into checksums since `format_version` 6; otherwise 0.
    base_context: u32,
    pub(super) metaindex: Handle,
}

impl<'t, 'a> Table<'t, 'a> {
    pub(super) fn open(file: &'t FileRanges<'a>) -> Result<Self, RocksdbError> {
        let short = RocksdbError::FileTooShort { found: file.len() };
        let least = (FOOTER_BYTES as u64).min(file.len());
        let offset = file.len() - least;
        let not_loaded = RocksdbError::NotLoaded { offset, length: least };
        let last = file.get(offset, least).ok_or(not_loaded)?;
        let Some((_, magic)) = last.split_last_chunk() else { return Err(short) };
        let found = u64::from_le_bytes(*magic);
        let magic_offset = file.len() - 8;
        let [magic, old_magic] = SST_MAGICS;
        if found == old_magic {
            return Err(RocksdbError::FormatVersion { offset: magic_offset, found: 0 });
        }
        if found != magic {
            return Err(RocksdbError::Magic { offset: magic_offset, found });
        }
        let Some(footer) = last.last_chunk::<FOOTER_BYTES>() else { return Err(short) };
        let format_version = u32_at(footer, 41);
        if !(2..=7).contains(&format_version) {
            let offset = offset + 41;
            return Err(RocksdbError::FormatVersion { offset, found: format_version });
        }
        let checksum = ChecksumKind::from_byte(footer[0])
            .ok_or(RocksdbError::ChecksumKind { offset, found: footer[0] })?;
        let mut table = Table {
            file,
            footer: offset,
            format_version,
            checksum,
            base_context: 0,
            metaindex: Handle { offset: 0, size: 0 },
        };
        if format_version >= 6 {
            table.read_extended(footer)?;
        } else {
            let part = Block { name: "footer", offset: offset + 1, bytes: &footer[1..41] };
            table.metaindex = Cursor::new(part).handle()?;
        }
        Ok(table)
    }

    /// Reads the second part of a footer of `format_version` 6 or later, and checks its checksum.
    fn read_extended(&mut self, footer: &[u8; FOOTER_BYTES]) -> Result<(), RocksdbError> {
        let unknown = |at: usize, found: u64, expected: u64| RocksdbError::Footer {
            offset: self.footer + at as u64,
            found,
            expected,
        };
        if u32_at(footer, 1) != EXTENDED_MAGIC {
            return Err(unknown(1, u32_at(footer, 1).into(), EXTENDED_MAGIC.into()));
        }
        let reserved = u64::from(u32_at(footer, 33)) | u64::from(u32_at(footer, 37)) << 32;
        if reserved != 0 {
            return Err(unknown(33, reserved, 0));
        }
        let size = u64::from(u32_at(footer, 13));
        self.base_context = u32_at(footer, 9);
        if self.base_context == 0 {
            // Writers never use 0, with which checksums would not depend on the place of their
            // blocks.
            let (block, expected) = ("footer", "a base context checksum other than 0");
            return Err(RocksdbError::Malformed { block, offset: self.footer + 9, expected });
        }
        let found = u32_at(footer, 5);
        let mut summed = *footer;
        summed[5..9].fill(0);
        let expected = self.checksum.compute(&summed).wrapping_add(self.context(self.footer));
        if found != expected {
            let (offset, kind) = (self.footer + 5, self.checksum);
            return Err(RocksdbError::FooterChecksum { offset, found, expected, kind });
        }
        let Some(offset) = self.footer.checked_sub(size + TRAILER_BYTES) else {
            return Err(self.misplaced("metaindex", Handle { offset: 0, size }, 0));
        };
        self.metaindex = Handle { offset, size };
        Ok(())
    }

    /// Returns the number that is added to the checksum of a block at this offset.
    fn context(&self, offset: u64) -> u32 {
        let folded = (offset as u32).wrapping_add((offset >> 32) as u32);
        if self.base_context == 0 { 0 } else { self.base_context ^ folded }
    }

    /// Returns a block after verifying it. It must not begin before `first`.
    pub(super) fn block(
        &self,
        name: &'static str,
        handle: Handle,
        first: u64,
    ) -> Result<Block<'a>, RocksdbError> {
        let (bytes, stored) = self.unverified(name, handle, first)?;
        self.verify(name, handle, bytes, stored)
    }

    /// Returns the properties block. When RocksDB ingests a file, it writes a sequence number into
    /// the block but keeps the checksum, which was computed with zeros in that place.
    /// `sequence_number` locates the place.
    pub(super) fn block_with_sequence_number(
        &self,
        name: &'static str,
        handle: Handle,
        sequence_number: impl Fn(Block<'a>) -> Option<Range<usize>>,
    ) -> Result<Block<'a>, RocksdbError> {
        let (bytes, stored) = self.unverified(name, handle, 0)?;
        let intact = self.verify(name, handle, bytes, stored);
        let Err(error @ RocksdbError::BlockChecksum { .. }) = intact else { return intact };
        let (block, _) = split_compression_type(name, handle, bytes);
        let Some(place) = sequence_number(block) else { return Err(error) };
        let mut before = Vec::new();
        let no_memory = AllocError::new(bytes.len() as u64);
        before.try_reserve_exact(bytes.len()).map_err(|_| no_memory)?;
        before.extend_from_slice(bytes);
        before[place].fill(0);
        match self.verify(name, handle, &before, stored) {
            Ok(_) => Ok(block),
            Err(_) => Err(error),
        }
    }

    /// Returns the block with its compression type, and its checksum.
    fn unverified(
        &self,
        name: &'static str,
        handle: Handle,
        first: u64,
    ) -> Result<(&'a [u8], u32), RocksdbError> {
        let Handle { offset, size } = handle;
        let misplaced = self.misplaced(name, handle, first);
        let length = size.checked_add(TRAILER_BYTES).ok_or(misplaced)?;
        match offset.checked_add(length) {
            Some(end) if offset >= first && end <= self.footer => {}
            _ => return Err(misplaced),
        }
        let whole = self.file.get(offset, length);
        let whole = whole.ok_or(RocksdbError::NotLoaded { offset, length })?;
        let (bytes, stored) = whole.split_last_chunk().ok_or(misplaced)?;
        Ok((bytes, u32::from_le_bytes(*stored)))
    }

    /// Returns the block of these bytes, the last of them the compression type.
    fn verify<'b>(
        &self,
        name: &'static str,
        handle: Handle,
        bytes: &'b [u8],
        found: u32,
    ) -> Result<Block<'b>, RocksdbError> {
        let (block, compression) = split_compression_type(name, handle, bytes);
        let expected = self.checksum.compute(bytes).wrapping_add(self.context(handle.offset));
        let offset = handle.offset + handle.size;
        if found != expected {
            let (offset, kind) = (offset + 1, self.checksum);
            return Err(RocksdbError::BlockChecksum { block: name, offset, found, expected, kind });
        }
        match compression {
            0 => Ok(block),
            found => Err(RocksdbError::Compressed { block: name, offset, found }),
        }
    }

    fn misplaced(&self, block: &'static str, handle: Handle, first: u64) -> RocksdbError {
        let Handle { offset, size } = handle;
        RocksdbError::Handle { block, offset, size, first, end: self.footer }
    }
}

/// Splits the block and its compression type, which always exists.
fn split_compression_type<'a>(
    name: &'static str,
    handle: Handle,
    bytes: &'a [u8],
) -> (Block<'a>, u8) {
    let (&compression, bytes) = bytes.split_last().unwrap_or((&0, &[]));
    (Block { name, offset: handle.offset, bytes }, compression)
}

fn u32_at(footer: &[u8; FOOTER_BYTES], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&footer[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests;
