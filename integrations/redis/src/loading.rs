//! Filters that are loaded from the pieces of a dump. Each piece is copied directly to the memory
//! of its link.

use std::ops::Range;

use blocked_bloom::parts::{self, BlockBuffer, HEADER_BYTES, Header};
use blocked_bloom::{Block, BloomFilter, FilterContents, KeyHash};
use blocked_bloom_formats::redis::{RedisError as FormatError, RedisFilter};
use redis_module::raw;
use xxhash_rust::xxh3::Xxh3;

use crate::allocator::zeros;
use crate::blocked::Blocked;
use crate::redisbloom;
use crate::settings::huge_pages;
use crate::valkey::{BytesError, ValkeyFilter};

/// Most bytes of a header: 19,784 links. Parsing allocates a small multiple of it.
const MAX_HEADER: usize = 1 << 20;

/// Offsets of the growth and the first link in RedisBloom's header, and the bytes of a link there.
pub(crate) const GROWTH: usize = 16;
pub(crate) const FIRST_LINK: usize = 20;
pub(crate) const LINK: usize = 53;

/// Offsets in the header of a stored filter: the number of blocks, the number of additions, and the
/// checksum of the blocks; then the header's version.
pub(crate) const BLOCKS: usize = 24;
const KEYS: Range<usize> = 32..40;
pub(crate) const CHECKSUM: usize = 48;
pub(crate) const VERSION: u16 = 1;

/// Why a piece is refused. The texts are RedisBloom's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoadError {
    /// Damaged, or not the next piece.
    BadData,
    /// After the end of the filter.
    NoLink,
    /// It crosses the end of a link.
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

/// A filter that is being loaded: its header and some pieces have arrived. It answers no lookups.
///
/// The first piece of a link allocates its memory, as pages that take memory with the data; the
/// header of a filter of valkey-bloom allocates all of it.
pub(crate) struct Loading {
    header: Vec<u8>,
    kind: Kind,
    /// The bytes that have not arrived, in order. Never empty.
    missing: Vec<Range<u64>>,
    /// Bytes of the whole, less than 2^63 - 1.
    total: u64,
}

/// A filter that is complete.
pub(crate) enum Loaded {
    Blocked(Blocked),
    Redis(Box<RedisFilter>),
    Valkey(Box<ValkeyFilter>),
}

enum Kind {
    Blocked(Parts),
    /// With zeros where its bits are missing, in pages that take memory with the data.
    Valkey(ValkeyFilter),
    /// The end of each link of RedisBloom's in the data, and its bytes: zeros where they are
    /// missing, and none before the first piece of a link.
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
        if ValkeyFilter::is_header(header) {
            return match ValkeyFilter::from_header(header, may_take) {
                Ok((filter, total)) => Ok(Self::new(header, Kind::Valkey(filter), total)),
                Err(BytesError::Memory) => Err(LoadError::Memory),
                Err(BytesError::Damaged | BytesError::Version) => Err(LoadError::BadData),
            };
        }
        let (kind, total) = match Blocked::read_header(header) {
            Some((grows, total)) => (Kind::Blocked(Parts::new(grows)), total),
            None => {
                let ends = ends(header)?;
                let total = ends.last().copied().unwrap_or_default();
                let links = vec![Vec::new(); ends.len()];
                (Kind::Redis { ends, links }, total)
            }
        };
        if !(1..i64::MAX as u64).contains(&total) {
            return Err(LoadError::BadData);
        }
        if !may_take(total) {
            return Err(LoadError::Memory);
        }
        Ok(Self::new(header, kind, total))
    }

    fn new(header: &[u8], kind: Kind, total: u64) -> Self {
        let missing = std::iter::once(0..total).collect();
        Loading { header: header.to_vec(), kind, missing, total }
    }

    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    pub(crate) fn is_redisbloom(&self) -> bool {
        matches!(self.kind, Kind::Redis { .. })
    }

    /// The next bytes that have arrived, at `offset` or after a gap there, and where they begin.
    /// They end at the next gap or at the end of a part. None if no more have arrived.
    pub(crate) fn piece(&self, offset: u64, most: usize) -> Option<(u64, &[u8])> {
        let gap = self.missing.partition_point(|gap| gap.end <= offset);
        let (mut offset, mut end) = (offset, self.total);
        let mut gaps = self.missing[gap..].iter();
        if let Some(gap) = gaps.next() {
            end = gap.start;
            if gap.start <= offset {
                offset = gap.end;
                end = gaps.next().map_or(self.total, |gap| gap.start);
            }
        }
        if offset >= end {
            return None;
        }
        let (start, part) = match &self.kind {
            Kind::Blocked(parts) => {
                let mut start = 0;
                let part = parts.parts.iter().map(|part| part.as_flattened()).find(|part| {
                    let is_here = offset - start < part.len() as u64;
                    start += if is_here { 0 } else { part.len() as u64 };
                    is_here
                });
                (start, part?)
            }
            Kind::Valkey(filter) => filter.bits_at(offset)?,
            Kind::Redis { ends, links } => {
                let (number, link) = link_at(ends, offset);
                (link.start, &links[number][..])
            }
        };
        let end = (end - start).min(part.len() as u64) as usize;
        let rest = &part[(offset - start) as usize..end];
        Some((offset, &rest[..rest.len().min(most)]))
    }

    /// Accepts a piece, which must be the next one. `any_order` accepts a piece of RedisBloom's at
    /// any place, also one that arrived before, as RedisBloom does. Returns the filter if no byte
    /// is missing any more. After an error nothing has changed.
    pub(crate) fn take(
        &mut self,
        iterator: i64,
        piece: &[u8],
        any_order: bool,
    ) -> Result<Option<Loaded>, LoadError> {
        let length = piece.len() as u64;
        let start =
            u64::try_from(iterator).ok().and_then(|end| end.checked_sub(1)?.checked_sub(length));
        let start = start.ok_or(LoadError::BadData)?;
        let next = self.missing.first().map_or(self.total, |gap| gap.start);
        match start {
            start if start >= self.total => return Err(LoadError::NoLink),
            _ if any_order && self.is_redisbloom() => {}
            start if start == next && length > 0 => {}
            _ => return Err(LoadError::BadData),
        }
        let loaded = match &mut self.kind {
            _ if length > self.total - start => return Err(LoadError::AcrossLinks),
            Kind::Blocked(parts) => parts.take(piece, self.total - start)?.map(Loaded::Blocked),
            Kind::Valkey(filter) => {
                filter.set_bits(start, piece);
                let is_last = length == self.total - start;
                is_last.then(|| Loaded::Valkey(Box::new(std::mem::take(filter))))
            }
            Kind::Redis { ends, links } => {
                let (number, link) = link_at(ends, start);
                if length > link.end - start {
                    return Err(LoadError::AcrossLinks);
                }
                let at = (start - link.start) as usize;
                let bits = allocated(&mut links[number], link.end - link.start)?;
                bits[at..at + piece.len()].copy_from_slice(piece);
                None
            }
        };
        self.arrived(start..start + length);
        if self.missing.is_empty() && self.is_redisbloom() {
            return self.complete_with_zeros().map(|filter| Some(Loaded::Redis(filter)));
        }
        Ok(loaded)
    }

    /// Removes a range from the missing ones.
    fn arrived(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.missing.partition_point(|gap| gap.end <= range.start);
        let last = self.missing.partition_point(|gap| gap.start < range.end);
        if first >= last {
            return;
        }
        let before = self.missing[first].start..range.start;
        let after = range.end..self.missing[last - 1].end;
        let rest = [before, after].into_iter().filter(|gap| !gap.is_empty());
        self.missing.splice(first..last, rest);
    }

    /// The filter with zeros for everything that is missing, as RedisBloom uses it. Leaves an
    /// unusable value. After an error nothing has changed.
    pub(crate) fn complete_with_zeros(&mut self) -> Result<Box<RedisFilter>, LoadError> {
        let Kind::Redis { ends, links } = &mut self.kind else { return Err(LoadError::BadData) };
        let mut start = 0;
        for (link, &end) in links.iter_mut().zip(&*ends) {
            allocated(link, end - start)?;
            start = end;
        }
        // The header was checked when it arrived.
        let filter = RedisFilter::from_links(&self.header, std::mem::take(links));
        filter.map(Box::new).map_err(|_| LoadError::BadData)
    }

    /// Writes the filter as RedisBloom's type. Missing bytes are ones, so that no lookup of a file
    /// with half a filter returns "absent"; pieces that arrive later overwrite them.
    pub(crate) fn save_redisbloom(&self, rdb: *mut raw::RedisModuleIO) -> Option<()> {
        let Kind::Redis { ends, links } = &self.kind else { return None };
        let mut parts = links.iter().zip(ends);
        let mut start = 0;
        redisbloom::save_links(rdb, &self.header, || {
            let (link, &end) = parts.next()?;
            let mut bits = Vec::new();
            let length = usize::try_from(end - start).ok()?;
            bits.try_reserve_exact(length).ok()?;
            bits.extend_from_slice(link);
            bits.resize(length, 0);
            for gap in &self.missing {
                let (from, to) = (gap.start.max(start), gap.end.min(end));
                if from < to {
                    bits[(from - start) as usize..(to - start) as usize].fill(0xff);
                }
            }
            start = end;
            Some(bits.into())
        })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let parts = match &self.kind {
            Kind::Blocked(parts) => parts.parts.iter().map(|part| size_of_val(&part[..])).sum(),
            Kind::Valkey(filter) => filter.bytes() as usize,
            Kind::Redis { ends, links } => {
                size_of_val(&ends[..])
                    + size_of_val(&links[..])
                    + links.iter().map(Vec::capacity).sum::<usize>()
            }
        };
        (self.header.capacity() + size_of_val(&self.missing[..]) + parts) as u64
    }
}

/// The number of the link that has this byte, which must exist, and where it is in the data.
fn link_at(ends: &[u64], offset: u64) -> (usize, Range<u64>) {
    let number = ends.partition_point(|&end| end <= offset);
    (number, number.checked_sub(1).map_or(0, |before| ends[before])..ends[number])
}

/// The bytes of a link, allocated as zeros before its first piece.
fn allocated(link: &mut Vec<u8>, length: u64) -> Result<&mut [u8], LoadError> {
    if link.is_empty() {
        let length = usize::try_from(length).map_err(|_| LoadError::Memory)?;
        *link = zeros(length).ok_or(LoadError::Memory)?;
    }
    Ok(link)
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

    /// Takes the next piece; `left` is how much is missing with it. Returns the filter if this was
    /// the last one. After an error nothing has changed.
    fn take(&mut self, piece: &[u8], left: u64) -> Result<Option<Blocked>, LoadError> {
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

    /// Allocates the next part: a header, or the blocks that a header announces.
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
    fn finish(&mut self) -> Result<Blocked, LoadError> {
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
        if !views.is_some_and(|views| Blocked::loads(self.grows, &of_views, views)) {
            return Err(LoadError::BadData);
        }
        let blocks = std::mem::take(&mut self.parts).into_iter().skip(2).step_by(2).zip(&facts);
        let links = blocks.map(|(blocks, facts)| {
            let link = facts.filter(blocks)?;
            Some(link.with_facts(facts.keys, facts.contents))
        });
        let own = links.collect::<Option<_>>();
        own.and_then(|links| Blocked::load(self.grows, &headers, links)).ok_or(LoadError::BadData)
    }
}

/// The fields of a stored filter's header.
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
