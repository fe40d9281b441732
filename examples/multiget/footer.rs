//! Where in a table file its parts are.
//!
//! ```text
//! table   data blocks | zeros | filter | index | footer
//! index   a block with one record per data block: its last key, its range in the file
//! footer  range of the filter | range of the index | magic
//! range   start, u64 | end, u64
//! ```
//!
//! Every integer is little-endian.

use std::ops::Range;

pub(crate) const MAGIC: [u8; 8] = *b"multiget";

/// The ranges of the filter and of the index.
pub(crate) fn footer(file: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let file = file.strip_suffix(&MAGIC)?;
    let (file, index) = file.split_last_chunk()?;
    let (_, filter) = file.split_last_chunk()?;
    Some((decode(*filter)?, decode(*index)?))
}

pub(crate) fn encode(range: Range<u64>) -> [u8; 16] {
    (u128::from(range.start) | u128::from(range.end) << 64).to_le_bytes()
}

pub(crate) fn decode(range: [u8; 16]) -> Option<Range<usize>> {
    let range = u128::from_le_bytes(range);
    Some(usize::try_from(range as u64).ok()?..usize::try_from(range >> 64).ok()?)
}
