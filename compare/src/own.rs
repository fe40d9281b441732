//! The kinds that are no other project's package: this library, the loops re-created here, and the memory-bound baseline.

use std::hint::black_box;

use blocked_bloom::{Block, BloomFilter, Filter, FilterOptions, LengthError, Sizing, Stored};

use crate::baseline::load_lines;
use crate::keys::{Key, hash_of, hashes_of};
use crate::memory::{Lines, Pages};
use crate::peer::{Batch, Kind, Peer, Role, Way};
#[cfg(target_arch = "x86_64")]
use crate::{rocksdb::FastLocalBloom, split_block::SplitBlocks};

pub(crate) const OURS: &str = "blocked-bloom";

/// This library, one key at a time.
pub(crate) const OURS_SINGLE: &str = "blocked-bloom, one key a call";

/// The rows of the memory-bound baseline.
pub(crate) const BASELINE: &str = "memory-bound baseline: one line a key";
pub(crate) const BASELINE_AHEAD: &str = "memory-bound baseline, prefetched 128 keys ahead";

/// The rows of the loops written anew.
pub(crate) const ROCKSDB: &str = "RocksDB's loop, one key";
pub(crate) const ROCKSDB_BATCH: &str = "RocksDB's loop, batches of 32";
pub(crate) const SPLIT: &str = "32-byte split blocks, AVX2";
pub(crate) const SPLIT_AHEAD: &str = "split blocks, prefetched 128 keys ahead";

/// The most keys that [`Peer::count`] is given at once.
pub(crate) const MOST: usize = 4096;

pub(crate) fn kinds() -> Vec<Kind> {
    let mut kinds = vec![
        Kind {
            id: "memory-bound baseline",
            package: None,
            configuration: "widest loads, all ORed; the lines of blocked-bloom, huge pages",
            role: Role::Baseline,
            ways: &[
                Way { name: BASELINE, batch: Batch::Any },
                Way { name: BASELINE_AHEAD, batch: Batch::Any },
            ],
            of_hashes: |hashes, bits| Some(Box::new(Baseline::of(hashes.len(), bits))),
            of_keys: |keys, bits| Some(Box::new(Baseline::of(keys.len(), bits))),
        },
        Kind {
            id: OURS,
            package: None,
            configuration: "default kernel, `contains_hashes_into` and `contains_batch_into`, \
                            `contains_hash` and `contains`; its own memory (huge pages)",
            role: Role::Ours,
            ways: &[
                Way { name: OURS, batch: Batch::Any },
                Way { name: OURS_SINGLE, batch: Batch::One },
            ],
            of_hashes: |hashes, bits| Some(Box::new(filled(hashes, bits))),
            of_keys: |keys, bits| Some(Box::new(filled_with_keys(keys, bits))),
        },
        Kind {
            id: "blocked-bloom, small pages",
            package: None,
            configuration: "the same filter, read from its stored bytes in memory without huge pages, as a \
                            mapped file is",
            role: Role::Ours,
            ways: &[Way { name: "blocked-bloom, small pages", batch: Batch::Any }],
            of_hashes: |hashes, bits| Some(Box::new(stored(&filled(hashes, bits)))),
            of_keys: |keys, bits| Some(Box::new(stored(&filled_with_keys(keys, bits)))),
        },
    ];
    #[cfg(target_arch = "x86_64")]
    kinds.extend([
        Kind {
            id: "RocksDB's loop",
            package: None,
            configuration: "re-creation of FastLocalBloom's AVX2 loop; aligned lines in huge pages",
            role: Role::Loop,
            ways: &[
                Way { name: ROCKSDB, batch: Batch::One },
                Way { name: ROCKSDB_BATCH, batch: Batch::Any },
            ],
            of_hashes: |hashes, bits| rocksdb(hashes, bits),
            of_keys: |keys, bits| rocksdb(&hashes_of(keys), bits),
        },
        Kind {
            id: "32-byte split blocks",
            package: None,
            configuration: "inlined AVX2 loop, hits only counted; huge pages",
            role: Role::Loop,
            ways: &[
                Way { name: SPLIT, batch: Batch::One },
                Way { name: SPLIT_AHEAD, batch: Batch::Any },
            ],
            of_hashes: |hashes, bits| split_blocks(hashes, bits),
            of_keys: |keys, bits| split_blocks(&hashes_of(keys), bits),
        },
    ]);
    kinds
}

/// An empty filter of this library.
pub(crate) fn empty(keys: usize, bits: f64) -> BloomFilter {
    let options = FilterOptions::new(Sizing::BitsPerKey(bits));
    options.empty_filter(keys as u64).expect("bits per key in range, memory for the filter")
}

fn filled(hashes: &[u64], bits: f64) -> BloomFilter {
    let mut filter = empty(hashes.len(), bits);
    filter.insert_hashes(hashes).expect("a filter of whole keys");
    filter
}

fn filled_with_keys(keys: &[Key], bits: f64) -> BloomFilter {
    let mut filter = empty(keys.len(), bits);
    filter.insert_batch(keys).expect("a filter that hashes keys");
    filter
}

pub(crate) fn batch_hits(filter: &impl Filter, hashes: &[u64]) -> usize {
    hits(hashes.len(), |words| filter.contains_hashes_into(hashes, words))
}

/// The hits of a call for this many keys.
fn hits(keys: usize, look_up: impl FnOnce(&mut [u64]) -> Result<(), LengthError>) -> usize {
    // A long call zeroes 512 bytes, as long as some keys take: up to 64 keys have one word. The target has no `popcnt`, and `count_ones` takes some
    // twenty instructions: below eight keys hits are counted bit by bit, which is predicted while most words are 0.
    if keys <= 64 {
        let mut word = [0];
        look_up(&mut word).expect("a word for 64 keys");
        let [mut word] = word;
        if keys >= 8 {
            return word.count_ones() as usize;
        }
        let mut hits = 0;
        while word != 0 {
            word &= word - 1;
            hits += 1;
        }
        return hits;
    }
    let mut words = [0; MOST / 64];
    let words = &mut words[..keys.div_ceil(64)];
    look_up(words).expect("a word for 64 keys");
    words.iter().map(|word| word.count_ones() as usize).sum()
}

impl<D: AsRef<[Block]> + Send + Sync> Peer for BloomFilter<D> {
    fn bytes(&self) -> usize {
        self.memory_bytes() as usize
    }

    fn count(&self, way: usize, hashes: &[u64]) -> usize {
        if way == 1 {
            return hashes.iter().filter(|&&hash| self.contains_hash(hash)).count();
        }
        batch_hits(self, hashes)
    }

    fn count_keys(&self, way: usize, keys: &[Key]) -> usize {
        if way == 1 {
            return keys.iter().filter(|&key| self.contains(key)).count();
        }
        hits(keys.len(), |words| self.contains_batch_into(keys, words))
    }
}

fn stored(filter: &BloomFilter) -> BloomFilter<Stored<Lines>> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("a vector takes all");
    let lines = Lines::copy_of(bytes.as_chunks().0, Pages::Small);
    BloomFilter::from_bytes(lines).expect("just written")
}

/// Lines to load, of a filter without keys.
struct Baseline(BloomFilter);

impl Baseline {
    fn of(keys: usize, bits: f64) -> Self {
        Baseline(empty(keys, bits))
    }
}

impl Peer for Baseline {
    fn bytes(&self) -> usize {
        self.0.memory_bytes() as usize
    }

    fn count(&self, way: usize, hashes: &[u64]) -> usize {
        black_box(load_lines(self.0.blocks(), hashes, way == 1));
        0
    }

    fn count_keys(&self, way: usize, keys: &[Key]) -> usize {
        let mut hashes = [0; MOST];
        let hashes = &mut hashes[..keys.len()];
        hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = hash_of(key));
        self.count(way, hashes)
    }
}

#[cfg(target_arch = "x86_64")]
fn rocksdb(hashes: &[u64], bits: f64) -> Option<Box<dyn Peer>> {
    // The library's size and number of probes, so that false positives are the same.
    let params = Sizing::BitsPerKey(bits).params(hashes.len() as u64).ok()?;
    let mut filter = FastLocalBloom::new(params.blocks() as usize, params.probes())?;
    filter.add_all(hashes);
    Some(Box::new(filter))
}

#[cfg(target_arch = "x86_64")]
impl Peer for FastLocalBloom {
    fn bytes(&self) -> usize {
        self.lines().as_flattened().len()
    }

    fn count(&self, way: usize, hashes: &[u64]) -> usize {
        match way {
            0 => self.count_one_by_one(hashes, |&hash| hash),
            _ => self.count_by_batches(hashes, |&hash| hash),
        }
    }

    fn count_keys(&self, way: usize, keys: &[Key]) -> usize {
        match way {
            0 => self.count_one_by_one(keys, hash_of),
            _ => self.count_by_batches(keys, hash_of),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn split_blocks(hashes: &[u64], bits: f64) -> Option<Box<dyn Peer>> {
    let params = Sizing::BitsPerKey(bits).params(hashes.len() as u64).ok()?;
    let mut filter = SplitBlocks::new(params.blocks() as usize)?;
    filter.add_all(hashes);
    Some(Box::new(filter))
}

#[cfg(target_arch = "x86_64")]
impl Peer for SplitBlocks {
    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn count(&self, way: usize, hashes: &[u64]) -> usize {
        self.count(hashes, way == 1)
    }

    fn count_keys(&self, way: usize, keys: &[Key]) -> usize {
        let mut hashes = [0; MOST];
        let hashes = &mut hashes[..keys.len()];
        hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = hash_of(key));
        self.count(hashes, way == 1)
    }
}
