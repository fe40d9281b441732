//! A filter that the module's own commands made: the core's growing filter, and whether it grows.

use std::cell::OnceCell;
use std::io::{self, Write};

use blocked_bloom::header::{HEADER_BYTES, Header};
use blocked_bloom::{
    BatchQuery, Bitmask, MAX_RECOMMENDED_BLOCKS, Params, ScalableBloomFilter, ScalableError,
    ScalableOptions, Sizing,
};

use crate::filter::{AddError, Added, Reserve};

/// The first reply of a dump. RedisBloom's loader takes a header of 20 bytes and 53 for each link, and no number of links makes that 64; the four
/// bytes where it has its options are all ones, and it knows four of these.
const MAGIC: [u8; 8] = *b"\x89BBRDIS\n";
const VERSION: u16 = 1;
const NO_OPTIONS_OF_REDIS_BLOOM: (usize, u32) = (12, u32::MAX);
const FLAGS: usize = 16;
const LENGTH: usize = 24;
const FLAG_FIXED: u32 = 1;

/// Where the container of a growing filter has its growth, its tightening ratio, and the keys that its last link is for (`docs/format.md`).
const CONTAINER_GROWTH: usize = 11;
const CONTAINER_TIGHTENING: usize = 32;
const CONTAINER_ITEMS: usize = 48;

/// How much of the rate a link leaves to those after it: the core's default, and the least it takes for a filter that will have one link only.
const TIGHTENING: f64 = 0.85;
const TIGHTENING_FIXED: f64 = 0.05;

pub(crate) struct Own {
    chain: ScalableBloomFilter,
    /// Whether another link follows a full one.
    grows: bool,
    growth: u32,
    tightening: f64,
    /// Keys that the last link is for; without links, that the first will be for.
    last_capacity: u64,
    /// The headers of the stored chain, which have checksums of all blocks: made for the first piece of a dump, and kept for the others.
    stored_headers: OnceCell<Vec<u8>>,
}

impl Own {
    /// An empty filter.
    pub(crate) fn new(reserve: &Reserve) -> Result<Self, ScalableError> {
        let grows = reserve.expansion != 0;
        let growth = (reserve.expansion as u32).clamp(2, 16);
        let tightening = if grows { TIGHTENING } else { TIGHTENING_FIXED };
        let chain = ScalableOptions::new(reserve.error_rate, reserve.capacity)
            .with_growth(growth)
            .with_tightening(tightening)
            .build()?;
        let last_capacity = reserve.capacity;
        Ok(Own { chain, grows, growth, tightening, last_capacity, stored_headers: OnceCell::new() })
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.chain.contains(key)
    }

    pub(crate) fn contains_batch(&self, keys: &[&[u8]], hits: &mut Bitmask) {
        self.chain.contains_batch(keys, hits);
    }

    /// Adds keys in their order, by the batch kernel; key by key where a filter that does not grow may become full within them.
    pub(crate) fn add(&mut self, keys: &[&[u8]]) -> Result<Added, AddError> {
        self.stored_headers.take();
        let mut added = Added::default();
        let left = self.last_capacity.saturating_sub(self.chain.keys_inserted());
        if !self.grows && left < keys.len() as u64 {
            for key in keys {
                let is_new = !self.chain.contains(key);
                if is_new && self.chain.keys_inserted() >= self.last_capacity {
                    added.is_full = true;
                    break;
                }
                if is_new {
                    self.chain.insert(key).map_err(|error| self.stopped(error, keys))?;
                }
                added.is_new.push(is_new);
            }
            return Ok(added);
        }
        let links = self.chain.links().len();
        let mut seen = Bitmask::new();
        let result = self.chain.insert_batch(keys, &mut seen);
        self.count_links(links);
        result.map_err(|error| self.stopped(error, keys))?;
        added.is_new.extend(seen.iter().map(|seen| !seen));
        Ok(added)
    }

    /// After a batch failed: the keys before the first that is not there were added.
    fn stopped(&self, error: ScalableError, keys: &[&[u8]]) -> AddError {
        let before = keys.iter().position(|key| !self.chain.contains(key));
        let is_memory = matches!(error, ScalableError::Alloc(_));
        AddError { before: before.unwrap_or(keys.len()), is_memory }
    }

    /// The link that follows so many of the chain's, of which the last is for `last_capacity` keys: keys that it will be for, and its shape. None if no
    /// link can keep what is left of the rate. What the core does, which keeps the number of keys to itself.
    fn next_link(&self, links: usize) -> Option<(u64, Params)> {
        let links = self.chain.links().get(..links)?;
        let used = links.iter().map(|link| link.params().false_positive_rate()).sum::<f64>();
        let left = self.chain.false_positive_rate() - used;
        let sizing = Sizing::FalsePositiveRate((1.0 - self.tightening) * left);
        let keys = self.last_capacity;
        let larger = keys.saturating_mul(self.growth.into());
        match sizing.params(larger) {
            Ok(params) if !links.is_empty() && params.blocks() <= MAX_RECOMMENDED_BLOCKS => {
                Some((larger, params))
            }
            _ => Some((keys, sizing.params(keys).ok()?)),
        }
    }

    /// Brings the capacity of the last link up to date after keys were added to a chain of so many links.
    fn count_links(&mut self, links: usize) {
        for links in links.max(1)..self.chain.links().len() {
            self.last_capacity = self.next_link(links).map_or(self.last_capacity, |(keys, _)| keys);
        }
    }

    /// Bytes of the link that adding so many keys may make; 0 if they fit. A chain that was loaded may have a small link that says to be of many keys.
    pub(crate) fn bytes_to_grow(&self, keys: usize) -> u64 {
        let links = self.chain.links();
        if let Some(last) = links.last() {
            let left = self.last_capacity.saturating_sub(last.view().keys_inserted());
            if !self.grows || keys as u64 <= left {
                return 0;
            }
        }
        // Where there is no link, adding fails.
        self.next_link(links.len()).map_or(0, |(_, params)| params.stored_bytes())
    }

    pub(crate) fn keys(&self) -> u64 {
        self.chain.keys_inserted()
    }

    pub(crate) fn capacity(&self) -> u64 {
        let last = self.chain.links().last().map_or(0, |link| link.view().keys_inserted());
        self.keys().saturating_sub(last).saturating_add(self.last_capacity)
    }

    pub(crate) fn links(&self) -> usize {
        self.chain.links().len()
    }

    pub(crate) fn expansion(&self) -> Option<u32> {
        self.grows.then_some(self.growth)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let headers = self.stored_headers.get().map_or(0, Vec::capacity);
        let links = size_of_val(self.chain.links());
        self.chain.memory_bytes().saturating_add((headers + links) as u64)
    }

    /// The first reply of a dump.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut header = Header::new(MAGIC, VERSION);
        let (options, none) = NO_OPTIONS_OF_REDIS_BLOOM;
        header.put(options, &none.to_le_bytes());
        header.put(FLAGS, &if self.grows { 0 } else { FLAG_FIXED }.to_le_bytes());
        header.put(LENGTH, &self.stored_bytes().to_le_bytes());
        Vec::from(header.seal())
    }

    /// Whether the filter grows, and the bytes that follow, by the first reply of a dump; none if it is not one of this module's.
    pub(crate) fn read_header(bytes: &[u8]) -> Option<(bool, u64)> {
        let header = Header::read(bytes, MAGIC, VERSION).ok()?;
        let (options, none) = NO_OPTIONS_OF_REDIS_BLOOM;
        let flags = header.u32_at(FLAGS);
        let zero =
            [10..12, 20..24, 32..56].into_iter().all(|range| header.check_zero(range).is_ok());
        let valid = bytes.len() == HEADER_BYTES
            && header.u32_at(options) == none
            && zero
            && flags & !FLAG_FIXED == 0;
        valid.then(|| (flags & FLAG_FIXED == 0, header.u64_at(LENGTH)))
    }

    /// The filter of a stored chain. Every damage of it is an error.
    pub(crate) fn load(grows: bool, stored: &[u8]) -> Option<Self> {
        let chain = ScalableBloomFilter::from_bytes(stored).ok()?;
        let growth = u32::from(*stored.get(CONTAINER_GROWTH)?);
        let number =
            |at: usize| stored.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let (tightening, last_capacity) =
            (f64::from_bits(number(CONTAINER_TIGHTENING)?), number(CONTAINER_ITEMS)?);
        if !grows && chain.links().len() > 1 || chain.hasher().is_err() {
            return None;
        }
        Some(Own {
            chain,
            grows,
            growth,
            tightening,
            last_capacity,
            stored_headers: OnceCell::new(),
        })
    }

    fn stored_bytes(&self) -> u64 {
        self.chain.memory_bytes() + (HEADER_BYTES * (1 + self.links())) as u64
    }

    /// The bytes of the stored chain from `offset` on, at most so many; none behind the end.
    pub(crate) fn piece(&self, offset: u64, most: usize) -> Option<Vec<u8>> {
        let (headers, _) = self.stored_headers().as_chunks::<HEADER_BYTES>();
        let (first, headers) = headers.split_first()?;
        let links = headers.iter().zip(self.chain.links());
        let parts =
            links.flat_map(|(header, link)| [&header[..], link.view().blocks().as_flattened()]);
        let mut skip = offset;
        let rest = self.stored_bytes().saturating_sub(offset).min(most as u64);
        let mut piece = Vec::with_capacity(rest as usize);
        for part in std::iter::once(&first[..]).chain(parts) {
            let length = part.len() as u64;
            if skip >= length {
                skip -= length;
                continue;
            }
            let part = &part[skip as usize..];
            skip = 0;
            piece.extend_from_slice(&part[..part.len().min(most - piece.len())]);
        }
        (!piece.is_empty()).then_some(piece)
    }

    fn stored_headers(&self) -> &[u8] {
        self.stored_headers.get_or_init(|| {
            let mut headers =
                HeadersOnly { kept: Vec::new(), skip: Vec::new(), left: HEADER_BYTES, keeps: true };
            headers.skip.extend(
                self.chain
                    .links()
                    .iter()
                    .rev()
                    .map(|link| link.view().blocks().len() * HEADER_BYTES),
            );
            // A writer of this kind has no errors.
            let _ = self.chain.write_to(&mut headers);
            headers.kept
        })
    }
}

/// Keeps the header of a chain and those of its links, and drops their blocks.
struct HeadersOnly {
    kept: Vec<u8>,
    /// Bytes of the blocks of links to come, the last one first.
    skip: Vec<usize>,
    /// Bytes until the next change between headers and blocks.
    left: usize,
    keeps: bool,
}

impl Write for HeadersOnly {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = bytes.len().min(self.left);
        if self.keeps {
            self.kept.extend_from_slice(&bytes[..now]);
        }
        self.left -= now;
        if self.left == 0 {
            // A link's header follows the chain's, and every link's blocks.
            let is_first = self.kept.len() == HEADER_BYTES;
            self.keeps = is_first || !self.keeps;
            self.left = if self.keeps { HEADER_BYTES } else { self.skip.pop().unwrap_or_default() };
        }
        Ok(now)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
