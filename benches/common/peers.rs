//! Filters of two other engines, written after their descriptions, to see what a point lookup in them costs. No line of theirs is copied.

/// RocksDB's filters of format version 5 and later, whose blocks are those of this library.
#[cfg(target_arch = "x86_64")]
pub mod rocksdb {
    #![expect(unsafe_code, reason = "to call what needs AVX2")]

    use blocked_bloom::{Block, BloomFilter, probe};

    use crate::rocksdb_loop::may_match;

    /// How many filters may have the key with this hash, looked up one after the other by RocksDB's loop, inlined; `None` without AVX2.
    pub fn count(filters: &[BloomFilter<&[Block]>], hashes: &[u64]) -> Option<usize> {
        // SAFETY: AVX2 was found.
        std::arch::is_x86_feature_detected!("avx2").then(|| unsafe { count_avx2(filters, hashes) })
    }

    #[target_feature(enable = "avx2")]
    fn count_avx2(filters: &[BloomFilter<&[Block]>], hashes: &[u64]) -> usize {
        let mut hits = 0;
        for &hash in hashes {
            for filter in filters {
                let blocks = filter.blocks();
                let block = &blocks[probe::block_index(hash, blocks.len() as u32) as usize];
                hits +=
                    usize::from(may_match((hash >> 32) as u32, filter.params().probes(), block));
            }
        }
        hits
    }
}

/// The standard filter of lsm-tree, as its documentation describes it: a classical filter, whose probes are found by double hashing with
/// a division each.
#[derive(Debug)]
pub struct LsmTreeFilter {
    bits: Vec<u8>,
    probes: u64,
}

impl LsmTreeFilter {
    /// A filter of these hashes in this many bits.
    pub fn new(hashes: &[u64], bits: usize) -> Self {
        let probes = (bits as f64 / hashes.len() as f64 * core::f64::consts::LN_2) as u64;
        let mut filter = LsmTreeFilter { bits: vec![0; bits.div_ceil(8)], probes: probes.max(1) };
        for &hash in hashes {
            let places: Vec<u64> = filter.places(hash).collect();
            places.iter().for_each(|&place| filter.bits[(place / 8) as usize] |= 1 << (place % 8));
        }
        filter
    }

    fn places(&self, mut hash: u64) -> impl Iterator<Item = u64> + use<> {
        let bits = 8 * self.bits.len() as u64;
        let mut step = (hash >> 32).wrapping_mul(0x517c_c1b7_2722_0a95);
        (1..=self.probes).map(move |i| {
            let place = hash % bits;
            hash = hash.wrapping_add(step);
            step = step.wrapping_mul(i);
            place
        })
    }

    /// Whether the key with this hash may be present.
    #[inline]
    pub fn contains(&self, hash: u64) -> bool {
        self.places(hash).all(|place| self.bits[(place / 8) as usize] >> (place % 8) & 1 == 1)
    }
}
