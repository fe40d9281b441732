//! Dumps of own filters. The headers of a stored chain have checksums of all blocks: a client reads
//! them part by part, before the first piece.

use blocked_bloom::BloomFilter;
use blocked_bloom::parts::{self, BlockBuffer, HEADER_BYTES, Header};
use xxhash_rust::xxh3::Xxh3;

use super::*;
use crate::loading::{BLOCKS, CHECKSUM, VERSION as LINK_VERSION};

/// Bytes of blocks that one command reads for checksums. This takes less time than copying a piece
/// of RedisBloom's.
const PART: usize = 24 << 20;

pub(super) struct Dump {
    /// Keys that the filter had at the start.
    keys: u64,
    /// Parts of [`PART`] bytes that were read.
    parts: i64,
    /// Bytes of the next link that were read, and their checksum.
    read: usize,
    sum: Xxh3,
    /// A place for the header of the chain, and then the headers of links that were read. After the
    /// last one, all headers.
    headers: Vec<[u8; HEADER_BYTES]>,
    is_complete: bool,
}

impl Dump {
    fn new(keys: u64) -> Box<Self> {
        let headers = vec![[0; HEADER_BYTES]];
        let sum = Xxh3::new();
        Box::new(Dump { keys, parts: 0, read: 0, sum, headers, is_complete: false })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        counted_bytes(Layout::for_value(self)) + counted_bytes(Layout::for_value(&self.headers[..]))
    }

    /// Reads at most this many bytes of the links, and completes the headers after the last one.
    fn read(&mut self, own: &Blocked, mut most: usize) -> Option<()> {
        self.parts += 1;
        while let Some(link) = own.links().get(self.headers.len() - 1) {
            let rest = &link.blocks().as_flattened()[self.read..];
            let now = &rest[..rest.len().min(most)];
            self.sum.update(now);
            (self.read, most) = (self.read + now.len(), most - now.len());
            if now.len() < rest.len() {
                return Some(());
            }
            self.headers.push(link_header(link, self.sum.digest())?);
            self.read = 0;
            self.sum.reset();
        }
        self.headers[0] = match &own.body {
            One { link, rate } => own.as_chain(link, *rate).ok()?.stored_header(&self.headers[1..]),
            Chain(chain) => chain.stored_header(&self.headers[1..]),
        };
        self.is_complete = true;
        Some(())
    }
}

/// The stored header of a link whose blocks have this checksum.
fn link_header(link: &BloomFilter, checksum: u64) -> Option<[u8; HEADER_BYTES]> {
    let blocks = BlockBuffer::zeroed(1, false).ok()?;
    let short = BloomFilter::from_blocks(blocks, link.params().probes(), link.key_hash()).ok()?;
    let short = short.with_facts(link.keys_inserted(), link.contents()).stored_header();
    let mut header = Header::read(&short, parts::MAGIC, LINK_VERSION).ok()?;
    header.put(BLOCKS, &(link.blocks().len() as u32).to_le_bytes());
    header.put(CHECKSUM, &checksum.to_le_bytes());
    Some(header.seal())
}

impl Blocked {
    /// The first reply of a dump.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut header = Header::new(MAGIC, VERSION);
        let (options, none) = NO_OPTIONS_OF_REDIS_BLOOM;
        header.put(options, &none.to_le_bytes());
        header.put(FLAGS, &if self.grows { 0 } else { FLAG_FIXED }.to_le_bytes());
        header.put(LENGTH, &self.stored_bytes().to_le_bytes());
        Vec::from(header.seal())
    }

    fn stored_bytes(&self) -> u64 {
        let blocks = self.links().iter().map(BloomFilter::memory_bytes).sum::<u64>();
        blocks + (HEADER_BYTES * (1 + self.links().len())) as u64
    }

    pub(crate) fn is_read_in_parts(&self) -> bool {
        self.stored_bytes() > PART as u64
    }

    /// Reads the next part of the blocks for a client's dump. Returns the iterator of the reply,
    /// which has no data; none if the first piece can follow.
    ///
    /// Keys that are added meanwhile change blocks that were read. Their checksum does not match,
    /// which is an error of loading.
    pub(crate) fn read_part(&self, iterator: i64) -> Option<i64> {
        if iterator > 1 || !self.is_read_in_parts() {
            return None;
        }
        let kept = self.dump.take().filter(|dump| iterator < 0 || dump.keys == self.keys());
        let mut dump = kept.unwrap_or_else(|| Dump::new(self.keys()));
        // Also after the last part: one command does not read a part and copy a piece.
        let reads = !dump.is_complete;
        if reads {
            dump.read(self, PART)?;
        }
        let next = reads.then_some(-dump.parts);
        self.dump.set(Some(dump));
        next
    }

    /// The bytes of the stored chain from `offset` on, at most this many; none after the end.
    /// `any_keys` accepts checksums of blocks that have changed since.
    pub(crate) fn piece(&self, offset: u64, most: usize, any_keys: bool) -> Option<Vec<u8>> {
        // The last reply of a dump reads no block.
        if offset >= self.stored_bytes() {
            return None;
        }
        let kept = self.dump.take().filter(|dump| {
            let is_current =
                dump.keys == self.keys() && dump.headers.len() == 1 + self.links().len();
            dump.is_complete && (offset > 0 || any_keys || is_current)
        });
        let mut dump = kept.unwrap_or_else(|| Dump::new(self.keys()));
        if !dump.is_complete {
            dump.read(self, usize::MAX)?;
        }
        // The chain may have more links now.
        let (first, headers) = dump.headers.split_first()?;
        let links = headers.iter().zip(self.links());
        let parts = links.flat_map(|(header, link)| [&header[..], link.blocks().as_flattened()]);
        let (mut skip, mut piece, mut is_last) = (offset, Vec::new(), true);
        for part in std::iter::once(&first[..]).chain(parts) {
            let length = part.len() as u64;
            if skip >= length {
                skip -= length;
                continue;
            }
            let part = &part[skip as usize..];
            skip = 0;
            let now = part.len().min(most - piece.len());
            piece.extend_from_slice(&part[..now]);
            is_last &= now == part.len();
        }
        if !is_last {
            self.dump.set(Some(dump));
        }
        (!piece.is_empty()).then_some(piece)
    }
}
