//! Filters that come piece by piece, as their dumps have them: each link is read into the memory
//! where it stays.

use std::ops::Range;

use blocked_bloom::parts::{self, BlockBuffer, HEADER_BYTES, Header};
use blocked_bloom::{Block, BloomFilter, FilterContents, KeyHash};
use blocked_bloom_formats::redis::{RedisError as FormatError, RedisFilter};
use xxhash_rust::xxh3::Xxh3;

use crate::own::Own;
use crate::reserve::MAX_EXPANSION;
use crate::settings::huge_pages;

/// Most bytes of a header: that of 19,784 links. What is allocated for them is a small multiple of
/// it.
const MAX_HEADER: usize = 1 << 20;

/// Where RedisBloom's header has the growth and the first link, and how far the next one is.
const GROWTH: usize = 16;
pub(crate) const FIRST_LINK: usize = 20;
pub(crate) const LINK: usize = 53;

/// Where the header of a stored filter has its number of blocks, of additions and the checksum of
/// the blocks, and which version it has.
const BLOCKS: usize = 24;
const KEYS: Range<usize> = 32..40;
const CHECKSUM: usize = 48;
const VERSION: u16 = 1;

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
/// The memory of a link is allocated when its first piece comes, as pages that take memory with the
/// data: the header of a filter for which there is none is not taken.
pub(crate) struct Loading {
    header: Vec<u8>,
    kind: Kind,
    /// Bytes that have come, without a gap.
    have: u64,
    /// Bytes of the whole, less than 2^63 - 1.
    total: u64,
}

/// A filter of which all has come.
pub(crate) enum Loaded {
    Own(Own),
    Redis(Box<RedisFilter>),
}

enum Kind {
    Own(Parts),
    /// Where each link of RedisBloom's ends in the data, and the bits of those that have begun.
    Redis {
        ends: Vec<u64>,
        links: Vec<Vec<u8>>,
    },
}

impl Loading {
    /// A filter with this header, if as many bytes as it announces may be taken.
    pub(crate) fn begin(
        header: &[u8],
        may_take: impl FnOnce(u64) -> bool,
    ) -> Result<Self, LoadError> {
        if header.len() > MAX_HEADER {
            return Err(LoadError::BadData);
        }
        let (kind, total) = match Own::read_header(header) {
            Some((grows, total)) => (Kind::Own(Parts::new(grows)), total),
            None => {
                let ends = ends(header)?;
                let total = ends.last().copied().unwrap_or_default();
                (Kind::Redis { ends, links: Vec::new() }, total)
            }
        };
        if !(1..i64::MAX as u64).contains(&total) {
            return Err(LoadError::BadData);
        }
        if !may_take(total) {
            return Err(LoadError::Memory);
        }
        Ok(Loading { header: header.to_vec(), kind, have: 0, total })
    }

    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    /// What has come, from this offset to the end of a part at most; none behind the end.
    pub(crate) fn piece(&self, offset: u64, most: usize) -> Option<&[u8]> {
        let mut skip = offset;
        let mut all: Box<dyn Iterator<Item = &[u8]>> = match &self.kind {
            Kind::Own(parts) => Box::new(parts.came()),
            Kind::Redis { links, .. } => Box::new(links.iter().map(Vec::as_slice)),
        };
        let part = all.find(|part| {
            let is_here = skip < part.len() as u64;
            if !is_here {
                skip -= part.len() as u64;
            }
            is_here
        })?;
        let rest = &part[skip as usize..];
        Some(&rest[..rest.len().min(most)])
    }

    /// Takes the next piece. Returns the filter if this was the last one. After an error nothing
    /// has changed.
    pub(crate) fn take(
        &mut self,
        iterator: i64,
        piece: &[u8],
    ) -> Result<Option<Loaded>, LoadError> {
        let (have, length) = (self.have, piece.len() as u64);
        let start =
            u64::try_from(iterator).ok().and_then(|end| end.checked_sub(1)?.checked_sub(length));
        match start {
            Some(start) if start >= self.total => return Err(LoadError::NoLink),
            Some(start) if start == have && length > 0 => {}
            _ => return Err(LoadError::BadData),
        }
        let is_last = have + length == self.total;
        let loaded = match &mut self.kind {
            _ if length > self.total - have => return Err(LoadError::AcrossLinks),
            Kind::Own(parts) => parts.take(piece, self.total - have)?.map(Loaded::Own),
            Kind::Redis { ends, links } => {
                let link = ends.partition_point(|&end| end <= have);
                let start = link.checked_sub(1).map_or(0, |before| ends[before]);
                if length > ends[link] - have {
                    return Err(LoadError::AcrossLinks);
                }
                if have == start {
                    let bytes = usize::try_from(ends[link] - start);
                    let (mut bits, bytes) = (Vec::new(), bytes.map_err(|_| LoadError::Memory)?);
                    bits.try_reserve_exact(bytes).map_err(|_| LoadError::Memory)?;
                    links.push(bits);
                }
                links[link].extend_from_slice(piece);
                let filter = is_last.then(|| {
                    RedisFilter::from_links(&self.header, std::mem::take(links)).map(Box::new)
                });
                // What the header says was checked when it came.
                filter.transpose().map_err(|_| LoadError::BadData)?.map(Loaded::Redis)
            }
        };
        self.have += length;
        Ok(loaded)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let parts = match &self.kind {
            Kind::Own(parts) => parts.parts.iter().map(|part| size_of_val(&part[..])).sum(),
            Kind::Redis { ends, links } => {
                size_of_val(&ends[..]) + links.iter().map(Vec::capacity).sum::<usize>()
            }
        };
        (self.header.capacity() + parts) as u64
    }
}

/// The stored chain of an own filter, as far as it has come.
struct Parts {
    grows: bool,
    /// The header of the chain, and then of each link its header and its blocks.
    parts: Vec<BlockBuffer>,
    /// Bytes of the last part that have come.
    filled: usize,
    /// Checksum of the blocks of the last part, as far as they have come.
    sum: Box<Xxh3>,
}

impl Parts {
    fn new(grows: bool) -> Self {
        Parts { grows, parts: Vec::new(), filled: 0, sum: Box::default() }
    }

    /// What has come of each part.
    fn came(&self) -> impl Iterator<Item = &[u8]> {
        let last = self.parts.len().saturating_sub(1);
        self.parts.iter().enumerate().map(move |(i, part)| {
            let part = part.as_flattened();
            if i == last { &part[..self.filled] } else { part }
        })
    }

    /// Takes the next piece; `left` is how much is missing with it. Returns the filter if this was
    /// the last one. After an error nothing has changed.
    fn take(&mut self, piece: &[u8], left: u64) -> Result<Option<Own>, LoadError> {
        let (parts, filled, sum) = (self.parts.len(), self.filled, self.sum.clone());
        let is_last = piece.len() as u64 == left;
        let taken = self.extend(piece, left);
        let taken = taken.and_then(|()| is_last.then(|| self.finish()).transpose());
        if taken.is_err() {
            self.parts.truncate(parts);
            (self.filled, self.sum) = (filled, sum);
        }
        taken
    }

    fn extend(&mut self, mut piece: &[u8], mut left: u64) -> Result<(), LoadError> {
        while !piece.is_empty() {
            if self.filled == self.parts.last().map_or(0, |part| size_of_val(&part[..])) {
                self.begin_part(left)?;
            }
            let Some((part, before)) = self.parts.split_last_mut() else { break };
            let rest = &mut part.as_flattened_mut()[self.filled..];
            let (now, later) = piece.split_at(piece.len().min(rest.len()));
            rest[..now.len()].copy_from_slice(now);
            self.filled += now.len();
            left -= now.len() as u64;
            piece = later;
            if let (Some(header), true) = (before.last(), before.len().is_multiple_of(2)) {
                self.sum.update(now);
                let stored = header[0][CHECKSUM..].first_chunk().copied().map(u64::from_le_bytes);
                if now.len() == rest.len() && stored != Some(self.sum.digest()) {
                    return Err(LoadError::BadData);
                }
            }
        }
        Ok(())
    }

    /// Allocates what the next bytes are of: a header, or the blocks that a header announces.
    fn begin_part(&mut self, left: u64) -> Result<(), LoadError> {
        let blocks = match self.parts.last() {
            Some(header) if self.parts.len().is_multiple_of(2) => {
                self.sum.reset();
                Facts::read(&header[0]).ok_or(LoadError::BadData)?.blocks
            }
            _ => 1,
        };
        if u64::from(blocks) * HEADER_BYTES as u64 > left {
            return Err(LoadError::BadData);
        }
        self.parts.try_reserve(1).map_err(|_| LoadError::Memory)?;
        let part = BlockBuffer::zeroed(blocks, huge_pages()).map_err(|_| LoadError::Memory)?;
        self.parts.push(part);
        self.filled = 0;
        Ok(())
    }

    /// The filter of all parts. After an error nothing has changed.
    fn finish(&mut self) -> Result<Own, LoadError> {
        let is_whole = self.parts.last().is_some_and(|part| self.filled == size_of_val(&part[..]));
        if !is_whole || self.parts.len().is_multiple_of(2) {
            return Err(LoadError::BadData);
        }
        let headers = self.parts.iter().take(1).chain(self.parts.iter().skip(1).step_by(2));
        let headers: Vec<[u8; HEADER_BYTES]> = headers.map(|header| header[0]).collect();
        let facts: Option<Vec<Facts>> = headers[1..].iter().map(Facts::read).collect();
        let facts = facts.ok_or(LoadError::BadData)?;
        let views = self.parts.iter().skip(2).step_by(2).zip(&facts);
        let views: Option<Vec<_>> =
            views.map(|(blocks, facts)| facts.filter(&blocks[..])).collect();
        // Blocks that are borrowed do not say how many keys were added; headers are compared.
        let mut of_views = headers.clone();
        of_views[1..].iter_mut().for_each(|header| header[KEYS].fill(0));
        if !views.is_some_and(|views| Own::loads(self.grows, &of_views, views)) {
            return Err(LoadError::BadData);
        }
        let blocks = std::mem::take(&mut self.parts).into_iter().skip(2).step_by(2).zip(&facts);
        let links = blocks.map(|(blocks, facts)| {
            let link = facts.filter(blocks)?;
            Some(link.with_facts(facts.keys, facts.contents))
        });
        let own = links.collect::<Option<_>>();
        own.and_then(|links| Own::load(self.grows, &headers, links)).ok_or(LoadError::BadData)
    }
}

/// What the header of a stored filter says.
struct Facts {
    blocks: u32,
    probes: u32,
    key_hash: KeyHash,
    keys: u64,
    contents: FilterContents,
}

impl Facts {
    /// None if no filter has such a header. It is read as that of a filter of one empty block.
    fn read(header: &[u8; HEADER_BYTES]) -> Option<Self> {
        let mut header = Header::read(header, parts::MAGIC, VERSION).ok()?;
        let blocks = header.u32_at(BLOCKS);
        header.put(BLOCKS, &blocks.min(1).to_le_bytes());
        header.put_body_checksum(CHECKSUM, &[0; HEADER_BYTES]);
        let filter = [header.seal(), [0; HEADER_BYTES]];
        let filter = BloomFilter::from_bytes_any_hash(filter.as_flattened()).ok()?;
        Some(Facts {
            blocks,
            probes: filter.params().probes(),
            key_hash: filter.key_hash(),
            keys: filter.keys_inserted(),
            contents: filter.contents(),
        })
    }

    fn filter<D: AsRef<[Block]>>(&self, blocks: D) -> Option<BloomFilter<D>> {
        BloomFilter::from_blocks(blocks, self.probes, self.key_hash).ok()
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
