//! Filters that come piece by piece, as their dumps have them.

use blocked_bloom_formats::redis::{RedisError as FormatError, RedisFilter};

use crate::own::Own;
use crate::reserve::MAX_EXPANSION;

/// Most bytes of a piece, as in RedisBloom.
pub(crate) const PIECE: usize = 16 << 20;

/// Most bytes of a header: that of 19,784 links. What is allocated for them is a small multiple of
/// it.
const MAX_HEADER: usize = 1 << 20;

/// Where RedisBloom's header has the growth and the first link, and how far the next one is.
const GROWTH: usize = 16;
const FIRST_LINK: usize = 20;
const LINK: usize = 53;

/// Why a piece is not taken. Texts are RedisBloom's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoadError {
    /// Not what a loader can take at this place, or damaged.
    BadData,
    /// Behind the end of the filter.
    NoLink,
    /// It goes on behind the end of a link.
    AcrossLinks,
    /// There is no memory for it.
    Memory,
}

impl LoadError {
    pub(crate) fn text(self) -> &'static str {
        match self {
            LoadError::BadData => "ERR received bad data",
            LoadError::NoLink => "ERR invalid offset - no link found",
            LoadError::AcrossLinks => "ERR invalid chunk - Too big for current filter",
            LoadError::Memory => "ERR Insufficient memory to create filter",
        }
    }
}

/// A filter of which the header and the first pieces have come. It answers nothing.
///
/// Memory grows with the data that comes, whatever the header announces.
pub(crate) struct Loading {
    header: Vec<u8>,
    kind: Kind,
    /// What has come, without a gap.
    data: Vec<u8>,
    /// Bytes of the whole, less than 2^63 - 1.
    total: u64,
}

/// A filter of which all has come.
pub(crate) enum Loaded {
    Own(Own),
    Redis(Box<RedisFilter>),
}

enum Kind {
    Own {
        grows: bool,
    },
    /// Where each link of RedisBloom's ends in the data.
    Redis {
        ends: Vec<u64>,
    },
}

impl Loading {
    /// A filter with this header.
    pub(crate) fn begin(header: &[u8]) -> Result<Self, LoadError> {
        if header.len() > MAX_HEADER {
            return Err(LoadError::BadData);
        }
        let (kind, total) = match Own::read_header(header) {
            Some((grows, total)) => (Kind::Own { grows }, total),
            None => {
                let ends = ends(header)?;
                let total = ends.last().copied().unwrap_or_default();
                (Kind::Redis { ends }, total)
            }
        };
        if !(1..i64::MAX as u64).contains(&total) {
            return Err(LoadError::BadData);
        }
        Ok(Loading { header: header.to_vec(), kind, data: Vec::new(), total })
    }

    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    /// What has come, from this offset to the end of a link at most; none behind the end.
    pub(crate) fn piece(&self, offset: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok().filter(|&start| start < self.data.len())?;
        let end = self.end_of_link(offset).min(self.data.len() as u64) as usize;
        Some(&self.data[start..end.min(start + PIECE)])
    }

    /// Takes the next piece. Returns the filter if this was the last one. After an error nothing
    /// has changed.
    pub(crate) fn take(
        &mut self,
        iterator: i64,
        piece: &[u8],
    ) -> Result<Option<Loaded>, LoadError> {
        let (have, length) = (self.data.len() as u64, piece.len() as u64);
        let start =
            u64::try_from(iterator).ok().and_then(|end| end.checked_sub(1)?.checked_sub(length));
        match start {
            Some(start) if start >= self.total => return Err(LoadError::NoLink),
            Some(start) if start == have && length > 0 => {}
            _ => return Err(LoadError::BadData),
        }
        if length > self.end_of_link(have) - have {
            return Err(LoadError::AcrossLinks);
        }
        if have + length > self.data.capacity() as u64 {
            // Twice as much as before, but no more than the whole, and at least what has come.
            let wanted = (2 * have).clamp(have + length, self.total);
            let more = usize::try_from(wanted - have).map_err(|_| LoadError::Memory)?;
            self.data.try_reserve_exact(more).map_err(|_| LoadError::Memory)?;
        }
        self.data.extend_from_slice(piece);
        if have + length < self.total {
            return Ok(None);
        }
        let filter = self.finish();
        if filter.is_err() {
            self.data.truncate(have as usize);
        }
        filter.map(Some)
    }

    fn finish(&self) -> Result<Loaded, LoadError> {
        match &self.kind {
            Kind::Own { grows } => {
                Own::load(*grows, &self.data).map(Loaded::Own).ok_or(LoadError::BadData)
            }
            Kind::Redis { ends } => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let links = starts.zip(ends).flat_map(|(start, &end)| {
                    let pieces = self.data[start as usize..end as usize].chunks(PIECE);
                    pieces.scan(start, |at, piece| {
                        *at += piece.len() as u64;
                        Some((*at as i64 + 1, piece))
                    })
                });
                let replies = std::iter::once((1, &self.header[..])).chain(links);
                let loaded = RedisFilter::load(replies).map(Box::new);
                loaded.map(Loaded::Redis).map_err(|error| match error {
                    FormatError::Alloc(_) => LoadError::Memory,
                    _ => LoadError::BadData,
                })
            }
        }
    }

    /// Where the link ends that has the byte at this offset; where the whole ends, if the offset is
    /// beyond it.
    fn end_of_link(&self, offset: u64) -> u64 {
        match &self.kind {
            Kind::Own { .. } => self.total,
            Kind::Redis { ends } => {
                let after = ends.partition_point(|&end| end <= offset);
                ends.get(after).copied().unwrap_or(self.total)
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let ends = match &self.kind {
            Kind::Own { .. } => 0,
            Kind::Redis { ends } => ends.capacity() * 8,
        };
        (self.header.capacity() + self.data.capacity() + ends) as u64
    }
}

/// Where the links end, by a header that RedisBloom loads.
fn ends(header: &[u8]) -> Result<Vec<u64>, LoadError> {
    // Of a sound header only the data are missing, at least one byte; any other result is an error
    // of the header itself.
    match RedisFilter::load([(1, header)]) {
        Err(FormatError::Missing { .. }) => {}
        _ => return Err(LoadError::BadData),
    }
    // The next link would be this many times as large, whatever has come until then.
    let growth = header.get(GROWTH..).and_then(|bytes| bytes.first_chunk());
    if growth.is_none_or(|growth| i64::from(u32::from_le_bytes(*growth)) > MAX_EXPANSION) {
        return Err(LoadError::BadData);
    }
    let links = header.get(FIRST_LINK..).unwrap_or_default().chunks_exact(LINK);
    let sizes = links.filter_map(|link| link.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)));
    let mut end = 0_u64;
    sizes
        .map(|bytes| {
            end = end.checked_add(bytes).ok_or(LoadError::BadData)?;
            Ok(end)
        })
        .collect()
}
