//! A filter that the module's own commands made: a growing filter, and whether it grows.

use std::cell::OnceCell;

use blocked_bloom::Bitmask;
use blocked_bloom::header::{HEADER_BYTES, Header};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableError, ScalableOptions};

use crate::filter::{AddError, Added, Reserve};

/// The first reply of a dump. RedisBloom's loader takes a header of 20 bytes and 53 for each link, and no number of links makes that 64; the four
/// bytes where it has its options are all ones, and it knows four of these.
const MAGIC: [u8; 8] = *b"\x89BBRDIS\n";
const VERSION: u16 = 1;
const NO_OPTIONS_OF_REDIS_BLOOM: (usize, u32) = (12, u32::MAX);
const FLAGS: usize = 16;
const LENGTH: usize = 24;
const FLAG_FIXED: u32 = 1;

/// How much of the rate the only link of a filter that does not grow leaves to others: the least there can be.
const TIGHTENING_FIXED: f64 = 0.05;

pub(crate) struct Own {
    chain: ScalableBloomFilter,
    /// Whether another link follows a full one.
    grows: bool,
    /// The headers of the stored chain, which have checksums of all blocks: made for the first piece of a dump, and kept for the others.
    stored_headers: OnceCell<Vec<[u8; HEADER_BYTES]>>,
}

impl Own {
    /// An empty filter.
    pub(crate) fn new(reserve: &Reserve) -> Result<Self, ScalableError> {
        let grows = reserve.expansion != 0;
        let mut options = ScalableOptions::new(reserve.error_rate, reserve.capacity)
            .with_growth((reserve.expansion as u32).clamp(2, 16));
        if !grows {
            options = options.with_tightening(TIGHTENING_FIXED);
        }
        Ok(Own { chain: options.build()?, grows, stored_headers: OnceCell::new() })
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.chain.contains(key)
    }

    pub(crate) fn contains_batch(&self, keys: &[&[u8]], hits: &mut Bitmask) {
        self.chain.contains_batch(keys, hits);
    }

    /// Adds keys in their order, by the batch kernel; one by one where a filter that does not grow may become full within them.
    pub(crate) fn add(&mut self, keys: &[&[u8]]) -> Result<Added, AddError> {
        self.stored_headers.take();
        let mut added = Added::default();
        let may_be_full = !self.grows && self.chain.capacity_left() < keys.len() as u64;
        if may_be_full || keys.len() == 1 {
            for key in keys {
                let is_full = !self.grows && self.chain.capacity_left() == 0;
                if is_full && !self.chain.contains(key) {
                    added.is_full = true;
                    break;
                }
                let is_new = self.chain.insert(key).map_err(|error| self.stopped(error, keys))?;
                added.is_new.push(is_new);
            }
            return Ok(added);
        }
        let mut new = Bitmask::new();
        let result = self.chain.insert_batch_new(keys, &mut new);
        result.map_err(|error| self.stopped(error, keys))?;
        added.is_new.extend(new.iter());
        Ok(added)
    }

    /// After a batch failed: the keys before the first that is not there were added.
    fn stopped(&self, error: ScalableError, keys: &[&[u8]]) -> AddError {
        let before = keys.iter().position(|key| !self.chain.contains(key));
        let is_memory = matches!(error, ScalableError::Alloc(_));
        AddError { before: before.unwrap_or(keys.len()), is_memory }
    }

    /// Bytes of the link that adding so many keys may make; 0 if they fit. A chain that was loaded may have a small link that says to be of many keys.
    pub(crate) fn bytes_to_grow(&self, keys: usize) -> u64 {
        let fits = !self.grows || keys as u64 <= self.chain.capacity_left();
        if fits && !self.chain.links().is_empty() {
            return 0;
        }
        // Where there is no link, adding fails.
        self.chain.next_link().map_or(0, |params| params.stored_bytes())
    }

    pub(crate) fn keys(&self) -> u64 {
        self.chain.keys_inserted()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.keys().saturating_add(self.chain.capacity_left())
    }

    pub(crate) fn links(&self) -> usize {
        self.chain.links().len()
    }

    pub(crate) fn expansion(&self) -> Option<u32> {
        self.grows.then(|| self.chain.growth())
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let headers = self.stored_headers.get().map_or(0, |headers| size_of_val(&headers[..]));
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
        let chain = ScalableBloomFilter::from_bytes(stored).ok()?.to_filter().ok()?;
        if !grows && chain.links().len() > 1 || chain.hasher().is_err() {
            return None;
        }
        Some(Own { chain, grows, stored_headers: OnceCell::new() })
    }

    fn stored_bytes(&self) -> u64 {
        self.chain.memory_bytes() + (HEADER_BYTES * (1 + self.links())) as u64
    }

    /// The bytes of the stored chain from `offset` on, at most so many; none behind the end.
    pub(crate) fn piece(&self, offset: u64, most: usize) -> Option<Vec<u8>> {
        let headers = self.stored_headers.get_or_init(|| self.chain.stored_headers());
        let (first, headers) = headers.split_first()?;
        let links = headers.iter().zip(self.chain.links());
        let parts = links.flat_map(|(header, link)| [&header[..], link.blocks().as_flattened()]);
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
}
