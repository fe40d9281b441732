//! The compact stored form: the blocks and a trailer of eight bytes, for containers with a checksum of their own. `docs/format.md` is
//! normative.
//!
//! Its length is never that of the full form, which is a multiple of 64, so neither is taken for the other.

use alloc::vec::Vec;

use super::lookup;
use super::view::{BloomFilterRef, Meta};
use crate::error::FormatError;
use crate::hash::KeyHash;
use crate::header::HeaderError;
use crate::kernel::Kernel;
use crate::prefix::FilterContents;
use crate::probe::{BLOCK_BYTES, Block, MAX_PROBES};

const KIND: u8 = 0xbc;
const VERSION: u8 = 1;
const FLAGS: u8 = 1;
const FLAGS_PASS_ALL: u8 = 5;

/// Bytes of the trailer: kind, version, probes, flags, keys inserted.
const TRAILER_BYTES: usize = 8;

impl<'a> BloomFilterRef<'a> {
    /// The compact form: the blocks and eight bytes, 56 fewer than [`to_bytes`](Self::to_bytes). For small filters in a container that has
    /// a checksum; a filter of 20 keys at 10 bits per key takes 72 bytes.
    ///
    /// Eight bytes cannot say which hash a filter has or what it holds, so it must be of whole keys and XXH3-64 with seed 0. Only
    /// [`open_compact`](Self::open_compact) and [`contains_hash_in_compact`](Self::contains_hash_in_compact) read this form.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotCompact`] for a filter of another hash or seed, of prefixes, or of 2^32 keys and more.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilterRef, FilterOptions, KeyHasher, Sizing};
    /// let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).builder();
    /// builder.extend((0..20_u32).map(u32::to_le_bytes))?;
    /// let compact = builder.finish()?.view().to_compact_bytes()?;
    /// assert_eq!(compact.len(), 72);
    ///
    /// assert!(BloomFilterRef::open_compact(&compact)?.contains(7_u32.to_le_bytes()));
    /// let hash = KeyHasher::default().hash(7_u32.to_le_bytes());
    /// assert!(BloomFilterRef::contains_hash_in_compact(&compact, hash));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_compact_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let Meta { key_hash, keys_inserted, probes, pass_all, contents } = self.meta();
        let keys = match u32::try_from(keys_inserted) {
            Ok(keys) if key_hash == KeyHash::default() && contents == FilterContents::WholeKeys => {
                keys
            }
            _ => return Err(FormatError::NotCompact { key_hash, contents, keys_inserted }),
        };
        let blocks = self.blocks().as_flattened();
        let mut bytes = Vec::with_capacity(blocks.len() + TRAILER_BYTES);
        bytes.extend_from_slice(blocks);
        bytes.extend([KIND, VERSION, probes, if pass_all { FLAGS_PASS_ALL } else { FLAGS }]);
        bytes.extend(keys.to_le_bytes());
        Ok(bytes)
    }

    /// Opens the compact form. Borrows the bytes, whatever their alignment.
    ///
    /// **No checksum is verified, since the form has none**: the container of the bytes must have one, and must have checked it. The caller
    /// knows that the bytes are of this form, and what was hashed with XXH3-64 and seed 0.
    ///
    /// Cost: reads eight bytes, and the block of a pass-all filter.
    ///
    /// # Errors
    ///
    /// [`FormatError::Header`] for bytes that are no compact filter, among them every filter in the full form.
    pub fn open_compact(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let Some((blocks, [kind, version, probes, flags, keys @ ..])) = split(bytes) else {
            // The next length of whole blocks and the trailer, or the longest there is.
            let blocks = bytes.len().saturating_sub(TRAILER_BYTES).div_ceil(BLOCK_BYTES) as u64;
            let blocks = blocks.clamp(1, u32::MAX.into());
            let (found, expected) = (bytes.len() as u64, 64 * blocks + 8);
            return Err(HeaderError::Length { found, expected }.into());
        };
        let start = blocks.as_flattened().len();
        let wrong = |at: usize, field, found: u8, expected| -> Result<Self, FormatError> {
            Err(HeaderError::field(start + at, field, found, expected).into())
        };
        if kind != KIND {
            return wrong(0, "kind of a compact filter", kind, "must be 188");
        }
        if version != VERSION {
            return wrong(1, "unsupported version", version, "supported: 1");
        }
        if !(1..=MAX_PROBES).contains(&probes.into()) {
            return wrong(2, "number of probes", probes, "allowed: 1 to 30");
        }
        let pass_all = flags == FLAGS_PASS_ALL;
        if flags != FLAGS && !pass_all {
            return wrong(3, "flags", flags, "allowed: 1 and 5");
        }
        if pass_all && (probes, blocks) != (1, &[[0xff; BLOCK_BYTES]]) {
            return wrong(3, "flags", flags, "must be 1 but for one block of ones and one probe");
        }
        let (key_hash, contents) = (KeyHash::default(), FilterContents::WholeKeys);
        let keys_inserted = u32::from_le_bytes(keys).into();
        let meta = Meta { key_hash, keys_inserted, probes, pass_all, contents };
        Ok(BloomFilterRef::new(blocks, meta, Kernel::default()))
    }

    /// Whether the key with this hash may be present in the compact filter in `bytes`: [`contains_hash_in`](Self::contains_hash_in) for
    /// this form. The hash must be XXH3-64 with seed 0.
    ///
    /// Whatever is unexpected is answered "maybe"; nothing is an error and nothing panics. **No checksum is verified**: the container of
    /// the bytes must have one, and must have checked it.
    ///
    /// Cost: the trailer and one block.
    #[inline]
    pub fn contains_hash_in_compact(bytes: &[u8], hash: u64) -> bool {
        match split(bytes) {
            Some((blocks, [KIND, VERSION, probes, FLAGS, ..])) => {
                lookup::contains(blocks, probes, hash)
            }
            _ => true,
        }
    }
}

/// The blocks, at least one and at most 2^32 - 1, and the trailer.
#[inline]
fn split(bytes: &[u8]) -> Option<(&[Block], [u8; TRAILER_BYTES])> {
    let (blocks, trailer) = bytes.split_last_chunk()?;
    let (blocks, rest) = blocks.as_chunks();
    (rest.is_empty() && !blocks.is_empty() && u32::try_from(blocks.len()).is_ok())
        .then_some((blocks, *trailer))
}
