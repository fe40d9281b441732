//! Small own filters as packed bytes, which answer and accept keys as they are.

use std::cell::Cell;

use blocked_bloom::parts::{BlockBuffer, Blocks};
use blocked_bloom::{Block, BloomFilter, FilterContents, KeyHash};

use super::{Blocked, One};

/// Length (2 bytes), growth and whether the filter grows (1), probes (1), keys that the link is for
/// (2), keys that it has (2), and the rate (8); then the blocks.
const FACTS: usize = 16;
const GROWS: u8 = 0x80;

/// The link of these facts.
#[inline]
fn link<D: Blocks>(facts: &[u8; FACTS], blocks: D) -> Option<BloomFilter<D>> {
    BloomFilter::from_blocks(blocks, facts[3].into(), KeyHash::default()).ok()
}

impl Blocked {
    /// Bytes of the packed filter; none if its facts are too large.
    pub(crate) fn packed_bytes(&self) -> Option<usize> {
        let One { link, .. } = &self.body else { return None };
        let is_small = self.keys <= u16::MAX.into()
            && link.keys_inserted() <= u16::MAX.into()
            && !link.is_pass_all()
            && link.key_hash() == KeyHash::default()
            && link.contents() == FilterContents::WholeKeys;
        is_small.then_some(FACTS + size_of_val(link.blocks()))
    }

    /// Appends a small filter to its length.
    pub(crate) fn pack(&self, packed: &mut Vec<u8>) {
        let One { link, rate } = &self.body else { return };
        packed.push(self.growth | if self.grows { GROWS } else { 0 });
        packed.push(link.params().probes() as u8);
        packed.extend((self.keys as u16).to_le_bytes());
        packed.extend((link.keys_inserted() as u16).to_le_bytes());
        packed.extend(rate.to_le_bytes());
        packed.extend(link.blocks().as_flattened());
    }

    /// The filter of packed bytes; none without memory for it.
    pub(crate) fn unpack(packed: &[u8]) -> Option<Self> {
        let (facts, blocks) = packed.split_first_chunk::<FACTS>()?;
        let [_, _, growth, _, a, b, c, d, rate @ ..] = *facts;
        let blocks = BlockBuffer::copy_of(blocks.as_chunks().0, false).ok()?;
        let has = u16::from_le_bytes([c, d]).into();
        let link = link(facts, blocks)?.with_facts(has, FilterContents::WholeKeys);
        Some(Blocked {
            body: One { link, rate: f64::from_le_bytes(rate) },
            dump: Cell::default(),
            keys: u16::from_le_bytes([a, b]).into(),
            growth: growth & !GROWS,
            grows: growth & GROWS != 0,
        })
    }

    /// The link of packed bytes.
    #[inline]
    pub(crate) fn packed_link(packed: &[u8]) -> Option<BloomFilter<&[Block]>> {
        let (facts, blocks) = packed.split_first_chunk()?;
        link(facts, blocks.as_chunks().0)
    }

    /// [`add_one`](Self::add_one) to packed bytes.
    #[inline]
    pub(crate) fn add_packed(packed: &mut [u8], key: &[u8]) -> Option<bool> {
        let (facts, blocks) = packed.split_first_chunk_mut::<FACTS>()?;
        let mut link = link(facts, blocks.as_chunks_mut().0)?;
        let hash = link.hasher().ok()?.hash(key);
        if link.contains_hash(hash) {
            return Some(false);
        }
        let [keys, has] = [4, 6].map(|at| u16::from_le_bytes([facts[at], facts[at + 1]]));
        if has >= keys {
            return None;
        }
        facts[6..8].copy_from_slice(&(has + 1).to_le_bytes());
        link.insert_hash(hash).ok()
    }
}
