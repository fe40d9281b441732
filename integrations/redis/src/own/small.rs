//! Small filters of one link as bytes: a key of few items then takes no more memory than
//! RedisBloom's.

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{Block, BloomFilter, FilterContents, KeyHash};

use super::{One, Own};
use crate::slot::MOST_BYTES;
use std::cell::Cell;

/// Growth and whether the filter grows (1 byte), probes (1), keys that the link is for (2), keys
/// that it has (2), and the rate (8); then the blocks.
const FACTS: usize = 14;
const GROWS: u8 = 0x80;

impl Own {
    /// Bytes of [`pack`](Self::pack); none if the filter is too large.
    pub(crate) fn packed_bytes(&self) -> Option<usize> {
        let One { link, .. } = &self.body else { return None };
        let bytes = size_of_val(link.blocks());
        let is_small = bytes <= MOST_BYTES
            && self.keys <= u16::MAX.into()
            && link.keys_inserted() <= u16::MAX.into()
            && !link.is_pass_all()
            && link.key_hash() == KeyHash::default()
            && link.contents() == FilterContents::WholeKeys;
        is_small.then_some(FACTS + bytes)
    }

    /// Appends a small filter to `packed`.
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
        let [growth, probes, a, b, c, d, rate @ ..] = *facts;
        let blocks: &[Block] = blocks.as_chunks().0;
        let blocks = BlockBuffer::copy_of(blocks, false).ok()?;
        let link = BloomFilter::from_blocks(blocks, probes.into(), KeyHash::default()).ok()?;
        let has = u16::from_le_bytes([c, d]).into();
        let link = link.with_facts(has, FilterContents::WholeKeys);
        Some(Own {
            body: One { link, rate: f64::from_le_bytes(rate) },
            dump: Cell::default(),
            keys: u16::from_le_bytes([a, b]).into(),
            growth: growth & !GROWS,
            grows: growth & GROWS != 0,
        })
    }
}
