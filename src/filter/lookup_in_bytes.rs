//! Lookups in stored bytes without opening the filter, for bytes that were just fetched from a
//! block cache.

use super::BloomFilter;
use super::compact::{self, COMPACT_KIND, COMPACT_VERSION, FLAGS};
use super::format::{PROBE_SCHEME, VERSION};
use crate::hash::KeyHash;
use crate::header::{HEADER_BYTES, MAGIC};
use crate::kernel::Kernel;
use crate::prefix::{FLAG_PREFIXES, FLAG_WHOLE_KEYS};
use crate::probe::{Block, MAX_PROBES, block_index};

impl BloomFilter {
    /// Whether the key with this hash may be present in a stored filter of `key_hash`, in the full
    /// or the [compact](BloomFilter::to_compact_bytes) form: false means certainly absent. For
    /// bytes that are looked up once and not kept open.
    ///
    /// Reads five fields of the header, or four of the trailer, and the hash's block. Returns true
    /// for unexpected bytes: another length, magic, version, hash or seed, a filter without whole
    /// keys, or a pass-all filter. Never fails or panics. **No checksum is verified**: the
    /// container must have verified the bytes.
    ///
    /// Cost: reads two cache lines, one of the header and one of the block. In the cache this takes
    /// 2x the time of [`contains_hash`](Self::contains_hash) and about 0.1x the time of opening the
    /// filter. Keep filters open if possible.
    ///
    /// [`to_compact_bytes`](Self::to_compact_bytes) has an example.
    #[inline]
    pub fn contains_hash_in(bytes: &[u8], key_hash: KeyHash, hash: u64) -> bool {
        let Some((header, blocks)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return true };
        let (blocks, rest) = blocks.as_chunks();
        if !rest.is_empty() {
            return contains_in_compact(bytes, key_hash, hash);
        }
        let word = |offset: usize| u64::from_le_bytes(core::array::from_fn(|i| header[offset + i]));
        let (id, seed) = match key_hash {
            KeyHash::Caller { tag } => (0, tag),
            KeyHash::Xxh3 { seed } => (1, seed),
        };
        // Version, probe scheme and hash id, then probes and flags, and two reserved bytes. A
        // filter of whole keys may also hold prefixes.
        let fields = word(8);
        let ignored = 0xff << 32 | u64::from(FLAG_PREFIXES) << 40;
        let expected = u64::from(VERSION)
            | u64::from(PROBE_SCHEME) << 16
            | id << 24
            | u64::from(FLAG_WHOLE_KEYS) << 40;
        if word(0) != u64::from_le_bytes(MAGIC)
            || fields & !ignored != expected
            || word(16) != seed
            || word(24) != blocks.len() as u64
        {
            return true;
        }
        contains(blocks, (fields >> 32) as u8, hash)
    }
}

#[inline]
fn contains_in_compact(bytes: &[u8], key_hash: KeyHash, hash: u64) -> bool {
    match compact::split(bytes) {
        Some((blocks, [COMPACT_KIND, COMPACT_VERSION, probes, FLAGS, ..]))
            if key_hash == KeyHash::default() =>
        {
            contains(blocks, probes, hash)
        }
        _ => true,
    }
}

/// Whether the hash's block has all its bits set. Returns true for an invalid shape.
#[inline]
fn contains(blocks: &[Block], probes: u8, hash: u64) -> bool {
    let probes = u32::from(probes);
    if !(1..=MAX_PROBES).contains(&probes) {
        return true;
    }
    // No filter has more than 2^32 - 1 blocks; a truncated count would select a wrong block.
    let Ok(count) = u32::try_from(blocks.len()) else { return true };
    let block = blocks.get(block_index(hash, count) as usize);
    block.is_none_or(|block| Kernel::default().contains_one(block, probes, hash))
}
