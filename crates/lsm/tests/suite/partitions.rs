//! Partitioned filters for the tests, and their index parsed without the crate.

use std::collections::{BTreeMap, BTreeSet};

use blocked_bloom::{BloomFilter, FilterOptions, PrefixExtractor, Sizing, Stored};
use blocked_bloom_lsm::{PartitionIndex, PartitionLocation, PartitionedFilterBuilder};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) fn options() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(10.0))
}

/// A built filter: the index, the bytes of each partition, and all partitions one after another, as
/// in a file.
pub(crate) struct Built {
    pub(crate) index: Vec<u8>,
    pub(crate) partitions: Vec<Vec<u8>>,
    pub(crate) file: Vec<u8>,
}

impl Built {
    pub(crate) fn new<K: AsRef<[u8]>>(
        options: FilterOptions,
        bytes: u64,
        keys: impl IntoIterator<Item = K>,
    ) -> Self {
        let mut partitions = Vec::new();
        let mut builder = PartitionedFilterBuilder::new(options, bytes).unwrap();
        for key in keys {
            partitions.extend(builder.insert(key).unwrap().map(|full| full.to_bytes()));
        }
        let (last, index) = builder.finish().unwrap();
        partitions.push(last.to_bytes());
        Built { index, file: partitions.concat(), partitions }
    }

    pub(crate) fn open(&self) -> PartitionIndex<&[u8]> {
        PartitionIndex::from_bytes_any_hash(&self.index[..]).unwrap()
    }

    /// Reads from the file.
    pub(crate) fn load(&self, at: &PartitionLocation) -> &[u8] {
        &self.file[at.offset as usize..(at.offset + at.length) as usize]
    }

    /// The partition that contains a key, if any does.
    pub(crate) fn partition_for(&self, key: &[u8]) -> BloomFilter<Stored<&[u8]>> {
        let index = self.open();
        let at = index.locate(key);
        index.open(&at, self.load(&at)).unwrap()
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.partition_for(key).contains(key)
    }

    pub(crate) fn contains_prefix(&self, extractor: &PrefixExtractor, start: &[u8]) -> bool {
        self.partition_for(start).contains_prefix(extractor, start)
    }
}

/// Groups a batch by partition: the location of each needed partition, and the positions of its
/// keys.
pub(crate) fn group_by_partition<B: AsRef<[u8]>, K: AsRef<[u8]>>(
    index: &PartitionIndex<B>,
    keys: &[K],
) -> Vec<(PartitionLocation, Vec<usize>)> {
    let mut groups = BTreeMap::new();
    for (i, key) in keys.iter().enumerate() {
        let at = index.locate(key);
        groups.entry(at.partition).or_insert((at, Vec::new())).1.push(i);
    }
    groups.into_values().collect()
}

/// Keys of four bytes in ascending order, 51 of which fill a block.
pub(crate) fn numbers(count: u32) -> Vec<[u8; 4]> {
    (0..count).map(|number| (number * 7).to_be_bytes()).collect()
}

/// The index with other separators: `between` the last key of a partition and the first key of the
/// next.
pub(crate) fn separate(
    index: &[u8],
    keys: &BTreeSet<Vec<u8>>,
    between: impl Fn(&[u8], &[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let opened = PartitionIndex::from_bytes_any_hash(index).unwrap();
    let mut bytes = index[..64 + 24 * opened.partitions()].to_vec();
    let mut separators = Vec::new();
    for partition in 0..opened.partitions() {
        if partition > 0 {
            let last = keys.iter().rfind(|key| opened.locate(key).partition < partition).unwrap();
            let first = keys.iter().find(|key| opened.locate(key).partition == partition).unwrap();
            separators.extend(between(last, first));
        }
        let end = separators.len() as u64;
        bytes[64 + 24 * partition + 16..][..8].copy_from_slice(&end.to_le_bytes());
    }
    bytes[32..40].copy_from_slice(&(separators.len() as u64).to_le_bytes());
    bytes.extend(separators);
    seal(&mut bytes);
    bytes
}

/// Recomputes both checksums, as a hostile or buggy writer would.
pub(crate) fn seal(index: &mut [u8]) {
    let sum = xxh3_64(&index[64..]);
    index[48..56].copy_from_slice(&sum.to_le_bytes());
    let sum = xxh3_64(&index[..56]);
    index[56..64].copy_from_slice(&sum.to_le_bytes());
}
