//! Lookups in stored bytes without opening the filter, for bytes that were just fetched from a
//! block cache.

use super::BloomFilter;
use super::compact::{self, COMPACT_KIND, COMPACT_VERSION, FLAGS};
use super::format::{PROBE_SCHEME, VERSION};
use crate::hash::KeyHash;
use crate::header::{HEADER_BYTES, MAGIC};
use crate::kernel::Kernel;
use crate::prefix::{FLAG_PREFIXES, FLAG_WHOLE_KEYS, PrefixExtractor};
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
        contains_in(bytes, key_hash, None, hash)
    }

    /// Whether keys whose prefix has this hash may be present in a stored filter, like
    /// [`contains_hash_in`](Self::contains_hash_in): false means certainly absent. Pass the hash of
    /// the prefix that [`PrefixExtractor::scan_prefix`] returns.
    ///
    /// Returns true if the filter holds no prefixes by this rule, or is in the compact form.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilter, FilterOptions, PrefixExtractor, Sizing};
    /// let tenant = PrefixExtractor::fixed(4);
    /// let options = FilterOptions::new(Sizing::BitsPerKey(16.0)).with_prefixes(tenant.clone());
    /// let mut builder = options.builder();
    /// builder.insert("abcd/1")?;
    /// let bytes = builder.finish()?.to_bytes();
    ///
    /// let (key_hash, hasher) = (options.key_hash(), options.hasher()?);
    /// let contains =
    ///     |p| BloomFilter::contains_prefix_hash_in(&bytes, key_hash, &tenant, hasher.hash(p));
    /// assert!(contains("abcd") && !contains("wxyz"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains_prefix_hash_in(
        bytes: &[u8],
        key_hash: KeyHash,
        extractor: &PrefixExtractor,
        hash: u64,
    ) -> bool {
        contains_in(bytes, key_hash, Some(extractor.id()), hash)
    }
}

/// Looks up the hash of a key, or of a prefix by the rule with this id.
#[inline]
fn contains_in(bytes: &[u8], key_hash: KeyHash, extractor: Option<u64>, hash: u64) -> bool {
    let Some((header, blocks)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return true };
    let (blocks, rest) = blocks.as_chunks();
    if !rest.is_empty() {
        return extractor.is_some() || contains_in_compact(bytes, key_hash, hash);
    }
    let word = |offset: usize| u64::from_le_bytes(core::array::from_fn(|i| header[offset + i]));
    let (id, seed) = match key_hash {
        KeyHash::Caller { tag } => (0, tag),
        KeyHash::Xxh3 { seed } => (1, seed),
    };
    // A filter may hold both whole keys and prefixes.
    let (flag, allowed) = match extractor {
        None => (FLAG_WHOLE_KEYS, FLAG_PREFIXES),
        Some(_) => (FLAG_PREFIXES, FLAG_WHOLE_KEYS),
    };
    // Version, probe scheme and hash id, then probes and flags, and two reserved bytes.
    let fields = word(8);
    let ignored = 0xff << 32 | u64::from(allowed) << 40;
    let expected =
        u64::from(VERSION) | u64::from(PROBE_SCHEME) << 16 | id << 24 | u64::from(flag) << 40;
    if word(0) != u64::from_le_bytes(MAGIC)
        || fields & !ignored != expected
        || word(16) != seed
        || word(24) != blocks.len() as u64
        || extractor.is_some_and(|id| word(40) != id)
    {
        return true;
    }
    contains(blocks, (fields >> 32) as u8, hash)
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
