//! Looking up a key in stored bytes without opening them: for bytes just fetched from a block
//! cache, one lookup each.

use super::BloomFilter;
use super::compact::{self, COMPACT_KIND, COMPACT_VERSION, FLAGS};
use super::format::{PROBE_SCHEME, VERSION};
use crate::hash::KeyHash;
use crate::header::{HEADER_BYTES, MAGIC};
use crate::kernel::Kernel;
use crate::prefix::{FLAG_PREFIXES, FLAG_WHOLE_KEYS};
use crate::probe::{Block, MAX_PROBES, block_index};

impl BloomFilter {
    /// Whether the key with this hash may be present in the stored filter in `bytes`, in the full
    /// or the [compact](BloomFilter::to_compact_bytes) form, a filter of `key_hash`: false means
    /// certainly absent. For bytes that are looked up once and not kept open.
    ///
    /// Reads five fields of the header, or four of the trailer, and the hash's block. Whatever is
    /// unexpected (another length, magic, version, hash or seed, a filter without whole keys, a
    /// pass-all filter) is answered "maybe"; nothing is an error and nothing panics. **No checksum
    /// is verified**: the container of the bytes must have one, and must have checked it.
    ///
    /// Cost: in the cache twice that of [`contains_hash`](Self::contains_hash) of an opened filter;
    /// opening the filter for each lookup would take eleven times as long as this
    /// (`benches/engine.rs`). From memory it reads two cache lines, of the header and of the block.
    /// Keep a filter open where you can. [`to_compact_bytes`](Self::to_compact_bytes) has an
    /// example.
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
        // Version, probe scheme and hash id, then probes and flags, and two reserved bytes.
        // Prefixes beside the keys do no harm.
        const PROBES_AND_PREFIXES: u64 = 0xff << 32 | (FLAG_PREFIXES as u64) << 40;
        let fields = word(8);
        let expected = u64::from(VERSION)
            | u64::from(PROBE_SCHEME) << 16
            | id << 24
            | u64::from(FLAG_WHOLE_KEYS) << 40;
        if word(0) != u64::from_le_bytes(MAGIC)
            || fields & !PROBES_AND_PREFIXES != expected
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

/// Whether the hash's block has all its bits; "maybe" for a shape that no filter has.
#[inline]
fn contains(blocks: &[Block], probes: u8, hash: u64) -> bool {
    let probes = u32::from(probes);
    if !(1..=MAX_PROBES).contains(&probes) {
        return true;
    }
    // No filter has a count that does not fit; cut off, it would lead to a wrong block.
    let Ok(count) = u32::try_from(blocks.len()) else { return true };
    match blocks.get(block_index(hash, count) as usize) {
        Some(block) => Kernel::default().contains_one(block, probes, hash),
        None => true,
    }
}
