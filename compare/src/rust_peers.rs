//! Other packages, each as its documentation recommends it for speed.

use std::hash::{BuildHasher, Hasher};

use bloomfilter::Bloom;
use fastbloom_blocked::BloomFilter as Blocked;
use parquet::bloom_filter::Sbbf;
use sbbf_rs_safe::Filter as SbbfRs;
use xorf::{BinaryFuse8, Filter as _};

use crate::keys::{Key, hash_of, hashes_of};
use crate::peer::{Batch, Kind, Package, Peer, Role, Way};

pub(crate) const SBBF_RS: &str = "sbbf-rs-safe";

pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            id: SBBF_RS,
            package: Some(Package("sbbf-rs-safe", "0.3")),
            configuration: "`contains_hash`; finds AVX2 at run time by itself",
            role: Role::Package,
            ways: &[Way { name: SBBF_RS, batch: Batch::One }],
            of_hashes: |hashes, bits| Some(Box::new(sbbf_rs(hashes, bits))),
            of_keys: |keys, bits| Some(Box::new(sbbf_rs(&hashes_of(keys), bits))),
        },
        Kind {
            id: "fastbloom",
            package: Some(Package("fastbloom", "0.17")),
            configuration: "`BloomFilter::with_num_bits(..).expected_items(..)`, `contains_hash`; a classical \
                            filter",
            role: Role::Package,
            ways: &[Way { name: "fastbloom", batch: Batch::One }],
            of_hashes: |hashes, bits| Some(Box::new(fastbloom(hashes, bits))),
            of_keys: |keys, bits| Some(Box::new(fastbloom(&hashes_of(keys), bits))),
        },
        Kind {
            id: "fastbloom 0.6, blocks of 512",
            package: Some(Package("fastbloom", "0.6")),
            configuration: "`BloomFilter::with_num_bits` (blocks of 512 bits, several a key), with a hasher that passes hashes on",
            role: Role::Package,
            ways: &[Way { name: "fastbloom 0.6, blocks of 512", batch: Batch::One }],
            of_hashes: |hashes, bits| Some(Box::new(blocked(hashes, bits))),
            of_keys: |keys, bits| Some(Box::new(blocked(&hashes_of(keys), bits))),
        },
        Kind {
            id: "parquet Sbbf",
            package: Some(Package("parquet", "60")),
            configuration: "`Sbbf::new` of the exact size, `check`; takes no hashes: XXH64 of the value (8 bytes \
                            where others get a hash) is in its times",
            role: Role::Package,
            ways: &[Way { name: "parquet Sbbf †", batch: Batch::One }],
            of_hashes: |hashes, bits| Some(Box::new(ParquetHashes(parquet(hashes, bits)))),
            of_keys: |keys, bits| Some(Box::new(ParquetKeys(parquet_of_keys(keys, bits)))),
        },
        Kind {
            id: "bloomfilter",
            package: Some(Package("bloomfilter", "3.")),
            configuration: "`Bloom::new_with_seed`, `check`; takes no hashes: SipHash-1-3 of the value (8 bytes \
                            where others get a hash) is in its times; a classical filter",
            role: Role::Package,
            ways: &[Way { name: "bloomfilter †", batch: Batch::One }],
            of_hashes: |hashes, bits| Some(Box::new(BloomHashes(bloom(hashes, bits)))),
            of_keys: |keys, bits| Some(Box::new(BloomKeys(bloom(keys, bits)))),
        },
        Kind {
            id: "xorf BinaryFuse8",
            package: Some(Package("xorf", "0.13")),
            configuration: "`BinaryFuse8::try_from`, `contains`; about 9 bits per key, whatever is wanted; needs all keys at once",
            role: Role::Package,
            ways: &[Way { name: "xorf BinaryFuse8", batch: Batch::One }],
            of_hashes: |hashes, _| Some(Box::new(fuse(hashes))),
            of_keys: |keys, _| Some(Box::new(fuse(&hashes_of(keys)))),
        },
    ]
}

/// Bits for this many keys.
fn bits_for(keys: usize, bits_per_key: f64) -> usize {
    (keys as f64 * bits_per_key).ceil() as usize
}

fn sbbf_rs(hashes: &[u64], bits: f64) -> SbbfRs {
    // One bit per key and as many keys as bits: its numbers are whole.
    let mut filter = SbbfRs::new(1, bits_for(hashes.len(), bits));
    for &hash in hashes {
        filter.insert_hash(hash);
    }
    filter
}

impl Peer for SbbfRs {
    fn bytes(&self) -> usize {
        self.as_bytes().len()
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&&hash| self.contains_hash(hash)).count()
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        keys.iter().filter(|key| self.contains_hash(hash_of(key))).count()
    }
}

fn fastbloom(hashes: &[u64], bits: f64) -> fastbloom::BloomFilter {
    let mut filter = fastbloom::BloomFilter::with_num_bits(bits_for(hashes.len(), bits))
        .seed(&0)
        .expected_items(hashes.len());
    for &hash in hashes {
        filter.insert_hash(hash);
    }
    filter
}

impl Peer for fastbloom::BloomFilter {
    fn bytes(&self) -> usize {
        self.num_bits() / 8
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&&hash| self.contains_hash(hash)).count()
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        keys.iter().filter(|key| self.contains_hash(hash_of(key))).count()
    }
}

/// Passes on what is a hash already.
#[derive(Clone, Copy, Default)]
struct PassOn(u64);

impl Hasher for PassOn {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are looked up");
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl BuildHasher for PassOn {
    type Hasher = PassOn;

    #[inline]
    fn build_hasher(&self) -> PassOn {
        PassOn(0)
    }
}

fn blocked(hashes: &[u64], bits: f64) -> Blocked<512, PassOn> {
    let mut filter = Blocked::with_num_bits(bits_for(hashes.len(), bits))
        .hasher(PassOn(0))
        .expected_items(hashes.len());
    for hash in hashes {
        filter.insert(hash);
    }
    filter
}

impl Peer for Blocked<512, PassOn> {
    fn bytes(&self) -> usize {
        self.as_slice().len() * 8
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| self.contains(hash)).count()
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        keys.iter().filter(|key| self.contains(&hash_of(key))).count()
    }
}

/// Filled with 8-byte values.
struct ParquetHashes(Sbbf);

/// Filled with 16-byte keys.
struct ParquetKeys(Sbbf);

fn parquet_empty(keys: usize, bits: f64) -> Sbbf {
    Sbbf::new(&vec![0; bits_for(keys, bits).div_ceil(256) * 32])
}

fn parquet(hashes: &[u64], bits: f64) -> Sbbf {
    let mut filter = parquet_empty(hashes.len(), bits);
    for hash in hashes {
        filter.insert(hash);
    }
    filter
}

fn parquet_of_keys(keys: &[Key], bits: f64) -> Sbbf {
    let mut filter = parquet_empty(keys.len(), bits);
    for key in keys {
        filter.insert(key.as_slice());
    }
    filter
}

impl Peer for ParquetHashes {
    fn bytes(&self) -> usize {
        self.0.num_blocks() * 32
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| self.0.check(hash)).count()
    }

    fn count_keys(&self, _way: usize, _keys: &[Key]) -> usize {
        unreachable!("filled with hashes")
    }
}

impl Peer for ParquetKeys {
    fn bytes(&self) -> usize {
        self.0.num_blocks() * 32
    }

    fn count(&self, _way: usize, _hashes: &[u64]) -> usize {
        unreachable!("filled with keys")
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        keys.iter().filter(|key| self.0.check(key.as_slice())).count()
    }
}

/// Filled with 8-byte values.
struct BloomHashes(Bloom<u64>);

/// Filled with 16-byte keys.
struct BloomKeys(Bloom<Key>);

fn bloom<T: std::hash::Hash>(items: &[T], bits: f64) -> Bloom<T> {
    let bytes = bits_for(items.len(), bits).div_ceil(8);
    // Its two SipHash keys are the halves of the seed, which must differ.
    let seed = std::array::from_fn(|i| i as u8);
    let mut filter =
        Bloom::new_with_seed(bytes, items.len(), &seed).expect("bits and keys are not 0");
    for item in items {
        filter.set(item);
    }
    filter
}

impl Peer for BloomHashes {
    fn bytes(&self) -> usize {
        self.0.len() as usize / 8
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| self.0.check(hash)).count()
    }

    fn count_keys(&self, _way: usize, _keys: &[Key]) -> usize {
        unreachable!("filled with hashes")
    }
}

impl Peer for BloomKeys {
    fn bytes(&self) -> usize {
        self.0.len() as usize / 8
    }

    fn count(&self, _way: usize, _hashes: &[u64]) -> usize {
        unreachable!("filled with keys")
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        keys.iter().filter(|&key| self.0.check(key)).count()
    }
}

fn fuse(hashes: &[u64]) -> BinaryFuse8 {
    BinaryFuse8::try_from(hashes).expect("the hashes are distinct")
}

impl Peer for BinaryFuse8 {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| self.contains(hash)).count()
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        keys.iter().filter(|key| self.contains(&hash_of(key))).count()
    }
}
