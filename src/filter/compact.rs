//! The compact stored form: the blocks and a trailer of eight bytes, for containers that have a
//! checksum. `docs/format.md` is normative.
//!
//! The length of the full form is a multiple of 64 and that of the compact form never is, so that
//! readers can distinguish them.

use alloc::vec::Vec;

use super::parts::Blocks;
use super::{BloomFilter, FormatError, Meta};
use crate::hash::KeyHash;
use crate::header::{Header, HeaderError, MAGIC};
use crate::prefix::FilterContents;
use crate::probe::{BLOCK_BYTES, Block, MAX_PROBES};
use crate::stored::Stored;

pub(super) const COMPACT_KIND: u8 = 0xbc;
pub(super) const COMPACT_VERSION: u8 = 1;
pub(super) const FLAGS: u8 = 1;
const FLAGS_PASS_ALL: u8 = 5;

/// Length of the trailer in bytes: kind, version, probes, flags, keys inserted.
const TRAILER_BYTES: usize = 8;

impl<D: Blocks> BloomFilter<D> {
    /// Returns the compact form: the blocks and eight bytes, 56 bytes fewer than
    /// [`to_bytes`](Self::to_bytes). For small filters in a container that has a checksum: 20 keys
    /// with 10 bits each take 72 bytes.
    ///
    /// The eight bytes do not record the hash or the contents, so the filter must hold whole keys
    /// hashed with XXH3-64 and seed 0. Only [`from_compact_bytes`](BloomFilter::from_compact_bytes)
    /// and [`contains_hash_in`](BloomFilter::contains_hash_in) read this form.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotCompact`] for another hash or seed, prefixes, or 2^32 or more keys.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilter, FilterOptions, Sizing};
    /// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    /// let mut builder = options.builder();
    /// builder.extend((0..20_u32).map(u32::to_le_bytes))?;
    /// let compact = builder.finish()?.to_compact_bytes()?;
    /// assert_eq!(compact.len(), 72);
    ///
    /// let hash = options.hasher()?.hash(7_u32.to_le_bytes());
    /// assert!(BloomFilter::contains_hash_in(&compact, options.key_hash(), hash));
    /// assert!(BloomFilter::from_compact_bytes(compact, options.key_hash())?.contains_hash(hash));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_compact_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let Meta { key_hash, keys_inserted, probes, pass_all, contents } = self.meta;
        let error = FormatError::NotCompact { key_hash, contents, keys_inserted };
        if (key_hash, contents) != (KeyHash::default(), FilterContents::WholeKeys) {
            return Err(error);
        }
        let keys = u32::try_from(keys_inserted).map_err(|_| error)?;
        let flags = if pass_all { FLAGS_PASS_ALL } else { FLAGS };
        let kind = [COMPACT_KIND, COMPACT_VERSION, probes, flags];
        Ok([self.blocks().as_flattened(), &kind, &keys.to_le_bytes()].concat())
    }
}

impl<B: AsRef<[u8]>> BloomFilter<Stored<B>> {
    /// Opens the compact form. The bytes may have any alignment. `key_hash` is the hash that
    /// lookups use; the compact form requires XXH3-64 with seed 0.
    ///
    /// **No checksum is verified, since the form has none**: the container must have verified the
    /// bytes. The caller must know that they are in this form.
    ///
    /// Cost: reads eight bytes, and the block of a pass-all filter.
    ///
    /// # Errors
    ///
    /// [`FormatError::Header`] for bytes that are not a compact filter, including the full form,
    /// and for another `key_hash` ([`HeaderError::HashMismatch`]).
    pub fn from_compact_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, FormatError> {
        Self::read(Stored::with_blocks_at(0, bytes), |bytes| open(bytes, key_hash))
    }
}

/// Checks the trailer. `expected` is the hash that lookups use.
fn open(bytes: &[u8], expected: KeyHash) -> Result<Meta, HeaderError> {
    let Some((blocks, [kind, version, probes, flags, keys @ ..])) = split(bytes) else {
        if let (true, Some(version)) = (bytes.starts_with(&MAGIC), bytes.get(8)) {
            let field = "a filter in the full form, version";
            return Err(HeaderError::field(8, field, *version, "open it with from_bytes"));
        }
        // The next larger valid length, or the largest one.
        let blocks = bytes.len().saturating_sub(TRAILER_BYTES).div_ceil(BLOCK_BYTES) as u64;
        let blocks = blocks.clamp(1, u32::MAX.into());
        let (found, expected) = (bytes.len() as u64, 64 * blocks + 8);
        return Err(HeaderError::Length { found, expected });
    };
    let start = blocks.as_flattened().len();
    let pass_all = flags == FLAGS_PASS_ALL;
    let wrong = if kind != COMPACT_KIND {
        Some((0, "kind of a compact filter", kind, "must be 188"))
    } else if version != COMPACT_VERSION {
        Some((1, "unsupported version", version, "supported: 1"))
    } else if !(1..=MAX_PROBES).contains(&probes.into()) {
        Some((2, "number of probes", probes, "allowed: 1 to 30"))
    } else if flags != FLAGS && !pass_all {
        Some((3, "flags", flags, "allowed: 1 and 5"))
    } else if pass_all && (probes, blocks) != (1, &[[0xff; BLOCK_BYTES]]) {
        Some((3, "flags", flags, "must be 1, except with one probe and one block of ones"))
    } else {
        None
    };
    if let Some((at, field, found, expected)) = wrong {
        return Err(HeaderError::field(start + at, field, found, expected));
    }
    let (key_hash, contents) = (KeyHash::default(), FilterContents::WholeKeys);
    // The kind of the trailer implies the hash.
    Header::check_key_hash(start, key_hash, expected)?;
    let keys_inserted = u32::from_le_bytes(keys).into();
    Ok(Meta { key_hash, keys_inserted, probes, pass_all, contents })
}

/// Returns the blocks, 1 to 2^32 - 1, and the trailer.
#[inline]
pub(super) fn split(bytes: &[u8]) -> Option<(&[Block], [u8; TRAILER_BYTES])> {
    let (blocks, trailer) = bytes.split_last_chunk()?;
    let (blocks, rest) = blocks.as_chunks();
    (rest.is_empty() && !blocks.is_empty() && u32::try_from(blocks.len()).is_ok())
        .then_some((blocks, *trailer))
}
