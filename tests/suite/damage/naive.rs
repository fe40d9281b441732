//! `docs/format.md` read once more, step by step and without the crate, and the probe schemes of the filters of other systems.

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

/// Parquet's probe scheme: a block of eight words, a bit in each.
pub(crate) fn split_block(bitset: &[u8], hash: u64) -> bool {
    const SALT: [u32; 8] = [
        0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947,
        0x5c6bfb31,
    ];
    let block = ((hash >> 32) * (bitset.len() as u64 / 32)) >> 32;
    let block = &bitset[block as usize * 32..][..32];
    (0..8).all(|i| u32_at(block, 4 * i) >> ((hash as u32).wrapping_mul(SALT[i]) >> 27) & 1 == 1)
}

/// A filter that passed the checks of the document.
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
        self.flags & 1 == 0 || self.has(key)
    }

    /// `rule` is the name of the extractor.
    pub(crate) fn contains_prefix(&self, rule: &str, prefix: &[u8]) -> bool {
        self.flags & 2 == 0 || self.extractor != xxh3_64(rule.as_bytes()) || self.has(prefix)
    }

    fn has(&self, key: &[u8]) -> bool {
        self.hash == 0
            || probe_scheme_1(self.blocks, self.probes, xxh3_64_with_seed(key, self.seed))
    }
}

/// "Index of a partitioned filter".
pub(crate) struct Index<'a> {
    seed: u64,
    flags: u8,
    /// Checksum of the partition's header, its begin and end, and its separator.
    entries: Vec<(u64, u64, u64, &'a [u8])>,
}

impl<'a> Index<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 64 || bytes[..8] != *b"\x89BBPART\n" || u16_at(bytes, 8) != 1 {
            return None;
        }
        let (hash, flags, count) = (bytes[10], bytes[11], u32_at(bytes, 12));
        let separators = u64_at(bytes, 32);
        let legal = u64_at(bytes, 56) == xxh3_64(&bytes[..56])
            && hash == 1
            && (1..=3).contains(&flags)
            && count >= 1
            && (u64_at(bytes, 40) != 0) == (flags > 1)
            && bytes.len() as u128 == 64 + 24 * u128::from(count) + u128::from(separators)
            && u64_at(bytes, 48) == xxh3_64(&bytes[64..]);
        if !legal {
            return None;
        }
        let (entries, separators) = bytes[64..].split_at(24 * count as usize);
        let mut read: Vec<(u64, u64, u64, &[u8])> = Vec::new();
        let (mut begin, mut from) = (0, 0);
        for entry in entries.chunks(24) {
            let (end, to) = (u64_at(entry, 8), u64_at(entry, 16));
            if end <= begin || to < from || to > separators.len() as u64 {
                return None;
            }
            let separator = &separators[from as usize..to as usize];
            let blocks = (end - begin) / 64 - u64::from(end - begin >= 64);
            let in_order = match read.last() {
                None => separator.is_empty(),
                Some(before) => separator > before.3,
            };
            if !(end - begin).is_multiple_of(64) || !(1..1 << 32).contains(&blocks) || !in_order {
                return None;
            }
            read.push((u64_at(entry, 0), begin, end, separator));
            (begin, from) = (end, to);
        }
        (from == separators.len() as u64).then_some(Index {
            seed: u64_at(bytes, 16),
            flags,
            entries: read,
        })
    }

    pub(crate) fn contains(&self, key: &[u8], partitions: &[u8]) -> bool {
        let place = self.entries.iter().rev().find(|(.., separator)| *separator <= key);
        let &(checksum, begin, end, _) = place.expect("the first separator is empty");
        let partition = if end <= partitions.len() as u64 {
            &partitions[begin as usize..end as usize]
        } else {
            &[]
        };
        match Filter::open(partition) {
            Some(filter) if u64_at(partition, 56) == checksum => {
                self.flags & 1 == 0
                    || (filter.hash, filter.seed) != (1, self.seed)
                    || filter.contains(key)
            }
            _ => true,
        }
    }
}

/// "Growing filter".
pub(crate) struct Growing<'a>(Vec<Filter<'a>>);

impl<'a> Growing<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 64 || bytes[..8] != *b"\x89BBGROW\n" || u16_at(bytes, 8) != 1 {
            return None;
        }
        let (rate, tightening) =
            (f64::from_bits(u64_at(bytes, 24)), f64::from_bits(u64_at(bytes, 32)));
        let legal = u64_at(bytes, 56) == xxh3_64(&bytes[..56])
            && bytes[10] <= 1
            && rate > 0.0
            && rate <= 1.0
            && (0.05..=0.95).contains(&tightening)
            && (2..=16).contains(&bytes[11])
            && u64_at(bytes, 48) >= 1;
        if !legal {
            return None;
        }
        let (mut links, mut sums, mut rest) = (Vec::new(), Vec::new(), &bytes[64..]);
        for _ in 0..u32_at(bytes, 12) {
            let length = 64 + 64 * u64::from(u32_at(rest.get(..28)?, 24));
            let (link, after) = rest.split_at_checked(length.try_into().ok()?)?;
            let filter = Filter::open(link)?;
            if (filter.hash, filter.seed) != (bytes[10], u64_at(bytes, 16)) {
                return None;
            }
            links.push(filter);
            sums.extend_from_slice(&link[56..64]);
            rest = after;
        }
        (rest.is_empty() && u64_at(bytes, 40) == xxh3_64(&sums)).then_some(Growing(links))
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.0.iter().any(|link| link.contains(key))
    }
}
