//! A second implementation of `docs/format.md`, step by step and without the crate, and of the
//! probe schemes of other systems' filters.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Probe scheme 1.
pub(crate) fn probe_scheme_1(blocks: &[u8], probes: u8, hash: u64) -> bool {
    let (lo, mut hi) = (hash & 0xffff_ffff, (hash >> 32) as u32);
    let block = (lo * (blocks.len() as u64 / 64)) >> 32;
    (0..probes).all(|_| {
        let bit = hi / (1 << 23);
        hi = hi.wrapping_mul(0x9e37_79b9);
        blocks[block as usize * 64 + bit as usize / 8] & 1 << (bit % 8) != 0
    })
}

/// Parquet's probe scheme: a block of eight words, with one bit in each.
pub(crate) fn split_block(bitset: &[u8], hash: u64) -> bool {
    const SALT: [u32; 8] = [
        0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947,
        0x5c6bfb31,
    ];
    let block = ((hash >> 32) * (bitset.len() as u64 / 32)) >> 32;
    let block = &bitset[block as usize * 32..][..32];
    (0..8).all(|i| u32_at(block, 4 * i) >> ((hash as u32).wrapping_mul(SALT[i]) >> 27) & 1 == 1)
}

/// A filter that passed the checks in the document.
pub(crate) struct Filter<'a> {
    pub(crate) hash: u8,
    pub(crate) seed: u64,
    probes: u8,
    flags: u8,
    extractor: u64,
    blocks: &'a [u8],
}

impl<'a> Filter<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 64 || bytes[..8] != *b"\x89BBLOOM\n" || u16_at(bytes, 8) != 1 {
            return None;
        }
        let [scheme, hash, probes, flags] = bytes[10..14].try_into().unwrap();
        let (blocks, extractor) = (u64::from(u32_at(bytes, 24)), u64_at(bytes, 40));
        let pass_all = flags == 5;
        let legal = u64_at(bytes, 56) == xxh3_64(&bytes[..56])
            && scheme == 1
            && hash <= 1
            && (1..=30).contains(&probes)
            && [1, 2, 3, 5].contains(&flags)
            && u16_at(bytes, 14) == 0
            && u32_at(bytes, 28) == 0
            && (extractor != 0) == (flags == 2 || flags == 3)
            && blocks >= 1
            && (!pass_all || (blocks, probes) == (1, 1))
            && bytes.len() as u64 == 64 + 64 * blocks
            && (!pass_all || bytes[64..] == [0xff; 64])
            && u64_at(bytes, 48) == xxh3_64(&bytes[64..]);
        let (seed, blocks) = (u64_at(bytes, 16), &bytes[64..]);
        legal.then_some(Filter { hash, seed, probes, flags, extractor, blocks })
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.flags & 1 == 0 || self.has_bits(key)
    }

    /// `rule` is the name of the extractor.
    pub(crate) fn contains_prefix(&self, rule: &str, prefix: &[u8]) -> bool {
        self.flags & 2 == 0 || self.extractor != xxh3_64(rule.as_bytes()) || self.has_bits(prefix)
    }

    fn has_bits(&self, key: &[u8]) -> bool {
        self.hash == 0
            || probe_scheme_1(self.blocks, self.probes, xxh3_64_with_seed(key, self.seed))
    }
}
