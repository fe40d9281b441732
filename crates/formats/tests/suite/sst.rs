//! A writer of small SST files with valid checksums around arbitrary blocks.
#![allow(dead_code, reason = "each test file uses a part")]

use blocked_bloom_formats::FileRanges;
use blocked_bloom_formats::rocksdb::{RocksdbError, SstFilter};
use xxhash_rust::xxh3::xxh3_64;

/// The blocks so far.
#[derive(Default)]
pub(crate) struct Sst(pub(crate) Vec<u8>);

impl Sst {
    /// Adds a block with its trailer; returns its handle.
    pub(crate) fn block(&mut self, bytes: &[u8]) -> [u64; 2] {
        self.block_of_type(bytes, 0)
    }

    pub(crate) fn block_of_type(&mut self, bytes: &[u8], compression: u8) -> [u64; 2] {
        let handle = [self.0.len() as u64, bytes.len() as u64];
        self.0.extend_from_slice(bytes);
        self.0.push(compression);
        self.0.extend_from_slice(&checksum(bytes, compression).to_le_bytes());
        handle
    }

    /// Appends the properties, a metaindex with these names, and a footer of `format_version` 5.
    pub(crate) fn finish(
        mut self,
        names: &[(&str, [u64; 2])],
        properties: Option<&[(&str, &[u8])]>,
    ) -> Vec<u8> {
        let mut names: Vec<(&str, Vec<u8>)> =
            names.iter().map(|&(name, place)| (name, handle(place))).collect();
        if let Some(properties) = properties {
            let properties: Vec<_> =
                properties.iter().map(|&(name, value)| (name, value.to_vec())).collect();
            names.push(("rocksdb.properties", handle(self.block(&entries(&properties)))));
        }
        let metaindex = self.block(&entries(&names));
        self.footer(metaindex)
    }

    pub(crate) fn footer(mut self, metaindex: [u64; 2]) -> Vec<u8> {
        let mut footer = vec![4];
        footer.extend(handle(metaindex));
        footer.extend(handle([0, 0]));
        footer.resize(41, 0);
        footer.extend_from_slice(&5_u32.to_le_bytes());
        footer.extend_from_slice(&0x88e2_41b7_85f4_cff7_u64.to_le_bytes());
        self.0.extend_from_slice(&footer);
        self.0
    }
}

/// XXH3 as RocksDB uses it.
pub(crate) fn checksum(bytes: &[u8], last: u8) -> u32 {
    (xxh3_64(bytes) as u32) ^ u32::from(last).wrapping_mul(0x6b90_83d9)
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub(crate) fn handle([offset, size]: [u64; 2]) -> Vec<u8> {
    [varint(offset), varint(size)].concat()
}

/// Opens a file with only the requested ranges loaded.
pub(crate) fn open_by_ranges(bytes: &[u8]) -> Result<SstFilter<&[u8]>, RocksdbError> {
    let mut ranges = FileRanges::new(bytes.len() as u64);
    loop {
        match SstFilter::open_ranges(&ranges) {
            Err(RocksdbError::NotLoaded { offset, length }) => {
                let loaded = ranges.loaded();
                ranges.insert(offset, &bytes[offset as usize..][..length as usize]);
                assert!(ranges.loaded() > loaded, "{length} bytes from {offset} are loaded");
            }
            opened => return opened,
        }
    }
}

/// A block of entries that share nothing, with one restart point.
pub(crate) fn entries(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (key, value) in entries {
        block.extend([varint(0), varint(key.len() as u64), varint(value.len() as u64)].concat());
        block.extend_from_slice(key.as_bytes());
        block.extend_from_slice(value);
    }
    block.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    block
}

/// A partition index with a restart point every `interval` entries.
pub(crate) fn index(entries: &[(Vec<u8>, [u64; 2])], interval: usize, delta: bool) -> Vec<u8> {
    let (mut block, mut restarts) = (Vec::new(), Vec::new());
    let mut last: (&[u8], [u64; 2]) = (&[], [0, 0]);
    for (i, (key, place)) in entries.iter().enumerate() {
        if i % interval == 0 {
            restarts.push(block.len() as u32);
            last.0 = &[];
        }
        let shared = key.iter().zip(last.0).take_while(|(a, b)| a == b).count();
        let difference = place[1] as i64 - last.1[1] as i64;
        let value = match delta && shared > 0 {
            true => varint((difference << 1 ^ difference >> 63) as u64),
            false => handle(*place),
        };
        block.extend([varint(shared as u64), varint((key.len() - shared) as u64)].concat());
        if !delta {
            block.extend(varint(value.len() as u64));
        }
        block.extend_from_slice(&key[shared..]);
        block.extend(value);
        last = (key, *place);
    }
    let count = restarts.len() as u32;
    restarts.into_iter().chain([count]).for_each(|word| block.extend(word.to_le_bytes()));
    block
}
