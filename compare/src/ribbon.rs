//! This project's Ribbon filters, with the rate that a blocked Bloom filter of the same bits per key has: they take fewer.

use blocked_bloom::{Filter, Sizing};
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};
use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};

use crate::keys::{Key, hash_of, hashes_of};
use crate::own::{MOST, batch_hits};
use crate::peer::{Batch, Kind, Package, Peer, Role, Way};

type Pleat = pleat::filter::Ribbon<7>;

pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            id: "sharded Ribbon",
            package: None,
            configuration: "`RibbonOptions` of the rate that blocked-bloom has; fewer bits per key; needs all keys at once",
            role: Role::Ours,
            ways: &[Way { name: "sharded Ribbon", batch: Batch::Any }],
            of_hashes: sharded,
            of_keys: |keys, bits| sharded(&hashes_of(keys), bits),
        },
        Kind {
            id: "RocksDB's Ribbon",
            package: None,
            configuration: "`RibbonBlockOptions` of these bits per key, byte for byte RocksDB's block; fewer bits per key; needs all keys \
                            at once",
            role: Role::Ours,
            ways: &[Way { name: "RocksDB's Ribbon", batch: Batch::Any }],
            of_hashes: block,
            of_keys: |keys, bits| block(&hashes_of(keys), bits),
        },
        Kind {
            id: "pleat",
            package: Some(Package("pleat", "0.1.")),
            configuration: "`Ribbon::<7>::from_keys_pleated`, about 0.8 % of false positives whatever the bits; needs all keys at once",
            role: Role::Package,
            ways: &[
                Way { name: "pleat Ribbon", batch: Batch::Any },
                Way { name: "pleat Ribbon, one key", batch: Batch::One },
            ],
            of_hashes: |hashes, _| Some(Box::new(Pleat::from_keys_pleated(hashes))),
            of_keys: |keys, _| Some(Box::new(Pleat::from_keys_pleated(&hashes_of(keys)))),
        },
    ]
}

fn sharded(hashes: &[u64], bits: f64) -> Option<Box<dyn Peer>> {
    let rate = Sizing::BitsPerKey(bits).params(hashes.len() as u64).ok()?.false_positive_rate();
    let mut builder = RibbonOptions::new(rate.min(0.5)).builder();
    hashes.iter().for_each(|&hash| builder.insert_hash(hash));
    Some(Box::new(builder.finish().ok()?))
}

fn block(hashes: &[u64], bits: f64) -> Option<Box<dyn Peer>> {
    match RibbonBlockOptions::new(bits).ok()?.build(hashes).ok()? {
        BuiltBlock::Ribbon(block) => Some(Box::new(Block(block))),
        _ => None,
    }
}

impl Peer for Pleat {
    fn bytes(&self) -> usize {
        self.size_bytes()
    }

    fn count(&self, way: usize, hashes: &[u64]) -> usize {
        if way == 1 {
            return hashes.iter().filter(|&&hash| self.contains(hash)).count();
        }
        let mut answers = [false; MOST];
        let answers = &mut answers[..hashes.len()];
        self.contains_batch(hashes, answers);
        answers.iter().filter(|&&answer| answer).count()
    }

    fn count_keys(&self, way: usize, keys: &[Key]) -> usize {
        self.count(way, &hashes_of(keys))
    }
}

/// A block in memory without huge pages, as one in a block cache is.
struct Block(Vec<u8>);

fn hits_of_keys(filter: &impl Filter, keys: &[Key]) -> usize {
    let mut hashes = [0; MOST];
    let hashes = &mut hashes[..keys.len()];
    hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = hash_of(key));
    batch_hits(filter, hashes)
}

impl Peer for RibbonFilter {
    fn bytes(&self) -> usize {
        self.as_bytes().len()
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        batch_hits(self, hashes)
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        hits_of_keys(self, keys)
    }
}

impl Peer for Block {
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn count(&self, _way: usize, hashes: &[u64]) -> usize {
        batch_hits(&RibbonBlock::from_bytes(&self.0).expect("just built"), hashes)
    }

    fn count_keys(&self, _way: usize, keys: &[Key]) -> usize {
        hits_of_keys(&RibbonBlock::from_bytes(&self.0).expect("just built"), keys)
    }
}
