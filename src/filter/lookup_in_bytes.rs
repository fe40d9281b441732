//! Looking up a key in stored bytes without opening them: for bytes just fetched from a block
//! cache, one lookup each.

use super::BloomFilter;
use super::compact::{self, COMPACT_KIND, COMPACT_VERSION, FLAGS};
use super::format::{PROBE_SCHEME, VERSION};
use crate::hash::KeyHash;
use crate::header::{HEADER_BYTES, MAGIC};
use crate::kernel::Kernel;
use crate::prefix::{FLAG_PREFIXES, FLAG_WHOLE_KEYS, PrefixExtractor};
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
        contains_in(bytes, key_hash, None, hash)
    }

    /// Whether a key may be present whose prefix by this rule has this hash, as
    /// [`contains_hash_in`](Self::contains_hash_in): false means certainly absent. Hash what
    /// [`PrefixExtractor::scan_prefix`] returns.
    ///
    /// If the filter holds no prefixes by this rule, or is in the compact form, the answer is true.
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
    // Keys next to the prefixes do no harm, nor do prefixes next to the keys.
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
