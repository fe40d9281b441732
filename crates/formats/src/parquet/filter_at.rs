//! Opens the filter at an offset of a file.

use blocked_bloom_split::thrift::ThriftError;
use blocked_bloom_split::{
    Header, MAX_BITSET_BYTES, SplitBlock, SplitBlockError, SplitBlockFilter,
};

use super::error::ParquetError;
use crate::ranges::FileRanges;

/// Opens the filter at `offset` of a file, or of any bytes that contain it. Offset and length are
/// `bloom_filter_offset` and `bloom_filter_length` of the column's metadata. Files of older writers
/// have no length.
///
/// [`ParquetFile`](super::ParquetFile) does this for callers that have not read the metadata.
///
/// # Errors
///
/// [`ParquetError::Filter`] for the errors of [`SplitBlockFilter::from_bytes`], and if the header
/// has another length than `length`; [`ParquetError::OutsideFile`] if the filter is not within
/// `file`.
///
/// ```
/// use blocked_bloom_formats::parquet::filter_at;
/// use blocked_bloom_split::SplitBlockFilter;
/// let filter = SplitBlockFilter::with_blocks(4)?;
/// let file = [b"PAR1", &filter.to_bytes()[..]].concat();
/// assert_eq!(filter_at(&file, 4, Some(16 + 128))?, filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn filter_at(
    file: &[u8],
    offset: i64,
    length: Option<i32>,
) -> Result<SplitBlockFilter<&[SplitBlock]>, ParquetError> {
    let end = file.len() as u64;
    read_filter_before(&FileRanges::from(file), end, offset, length).map(|(filter, _)| filter)
}

/// Like [`filter_at`], in a file whose filters end at or before `end`. Also returns the filter's
/// end.
pub(super) fn read_filter_before<'a>(
    file: &FileRanges<'a>,
    end: u64,
    offset: i64,
    length: Option<i32>,
) -> Result<(SplitBlockFilter<&'a [SplitBlock]>, u64), ParquetError> {
    let outside = |length| ParquetError::OutsideFile { offset, length, end };
    let start = u64::try_from(offset).ok().filter(|&start| start < end).ok_or(outside(1))?;
    let not_loaded = |length: u64| ParquetError::NotLoaded { offset: start, length };
    let rest = file.rest(start, end);
    let header = Header::read(rest, start).map_err(|error| {
        let all = end - start;
        let is_cut = matches!(error, SplitBlockError::Thrift(ThriftError::Truncated { .. }));
        // The column's length, or as many bytes as any writer's header has; twice the loaded bytes
        // if the header is longer.
        let given = length.and_then(|length| u64::try_from(length).ok());
        let given = given.filter(|&given| given <= HEADER + u64::from(MAX_BITSET_BYTES));
        let most = given.unwrap_or(0).max(HEADER).max(2 * rest.len() as u64).min(all);
        if is_cut && (rest.len() as u64) < all { not_loaded(most) } else { error.into() }
    })?;
    let expected = header.total_bytes();
    if let Some(length) = length
        && u64::try_from(length) != Ok(expected)
    {
        return Err(SplitBlockError::Length { found: length.max(0) as u64, expected }.into());
    }
    if expected > end - start {
        return Err(outside(expected));
    }
    let bytes = file.get(start, expected).ok_or(not_loaded(expected))?;
    let filter = SplitBlockFilter::from_bitset(&bytes[header.header_bytes..])?;
    Ok((filter, start + expected))
}

/// Bytes to load for a filter of unknown length. The headers of all writers are shorter.
const HEADER: u64 = 64;
