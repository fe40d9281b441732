//! One filter, one thread: lookups of hashes and of keys, in batches and one by one, and inserts.

use std::cell::Cell;
use std::hint::black_box;

use blocked_bloom::{Bitmask, Block, BloomFilter, Kernel, KeyHash, KeyHasher};

use super::baseline::{SplitBlock, early_exit};
use super::measure::{Case, interleaved};
use super::rows::{Group, Row, Setting};
use super::workload::{Mix, for_all_keys, lookup_count};
use crate::failure::Failure;

/// Batches of hashes by every kernel, and by other loops.
pub(super) fn query(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let view = filter.view();
    let blocks = view.blocks();
    let mut split_block = SplitBlock::new(setting.params.blocks()).map_err(Failure::new)?;
    for_all_keys(setting.keys, |hashes| split_block.insert_hashes(hashes));
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        for mix in Mix::ALL {
            let hashes = mix.lookups(setting.keys, lookup_count(setting.keys));
            let mut group = Group::new("contains_hashes", mix.name(), batch, blocks, &hashes);
            for kernel in Kernel::supported() {
                let view = view.with_kernel(kernel);
                let mut hits = Bitmask::new();
                group.add_batches(kernel.name(), &hashes, move |hashes| {
                    view.contains_hashes(hashes, &mut hits);
                });
            }
            group.add_batches("one_by_one", &hashes, move |hashes| count_one_by_one(view, hashes));
            group.add_batches("early_exit", &hashes, move |hashes| {
                early_exit(blocks, setting.params.probes(), hashes)
            });
            if split_block.count_hits(&[], false).is_some() {
                let split_block = &split_block;
                for (name, ahead) in [("split_block", false), ("split_block_ahead", true)] {
                    group.add_batches(name, &hashes, move |hashes| {
                        split_block.count_hits(hashes, ahead)
                    });
                }
            }
            rows.extend(group.rows(setting.rounds));
        }
    }
    Ok(rows)
}

/// One hash a call, by every kernel.
pub(super) fn single(setting: &Setting, filter: &BloomFilter) -> Vec<Row> {
    let view = filter.view();
    let mut rows = Vec::new();
    for mix in Mix::ALL {
        let hashes = mix.lookups(setting.keys, lookup_count(setting.keys));
        let mut group = Group::new("contains_hash", mix.name(), 1, view.blocks(), &hashes);
        for kernel in Kernel::supported() {
            let view = view.with_kernel(kernel);
            group.add_batches(kernel.name(), &hashes, move |hashes| view.contains_hash(hashes[0]));
        }
        rows.extend(group.rows(setting.rounds));
    }
    rows
}

fn count_one_by_one(view: BloomFilter<&[Block]>, hashes: &[u64]) -> usize {
    hashes.iter().filter(|&&hash| view.contains_hash(hash)).count()
}

/// Keys of 16 bytes, of 8, and integers, all absent: hashed alone; hashed and looked up in one call, or in two. `hash_loop` calls
/// `KeyHasher::hash` for each key, which the compiler may vectorise as it likes.
pub(super) fn whole_keys(setting: &Setting, filter: &BloomFilter) -> Vec<Row> {
    let view = filter.view();
    let count = lookup_count(setting.keys);
    let keys: Vec<[u8; 16]> = (0..count as u128).map(|i| (i << 64 | i).to_le_bytes()).collect();
    let slices: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    let integers: Vec<u64> = Mix::Absent.lookups(setting.keys, count);
    let eights: Vec<[u8; 8]> = integers.iter().map(|key| key.to_le_bytes()).collect();
    let hasher = KeyHasher::default();
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut keys_rows = Keys { cases: Vec::new(), names: Vec::new(), batch };
        let kernel = view.kernel().name();
        keys_rows.add("hash_loop", "-", &keys, |keys, hashes, _| hash_loop(keys, hashes));
        keys_rows.add("hash_batch", kernel, &keys, |keys, hashes, _| {
            hasher.hash_batch(keys, hashes);
        });
        keys_rows.add("hash_slices", kernel, &slices, |keys, hashes, _| {
            hasher.hash_batch(keys, hashes);
        });
        keys_rows.add("hash_loop_8", "-", &eights, |keys, hashes, _| hash_loop(keys, hashes));
        keys_rows.add("hash_batch_8", kernel, &eights, |keys, hashes, _| {
            hasher.hash_batch(keys, hashes);
        });
        keys_rows.add("hash_u64s", kernel, &integers, |keys, hashes, _| {
            hashes.resize(keys.len(), 0);
            // As many hashes as keys.
            _ = hasher.hash_u64s(keys, hashes);
        });
        keys_rows.add("loop, contains", kernel, &keys, |keys, hashes, hits| {
            hash_loop(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        keys_rows.add("hash, contains", kernel, &keys, |keys, hashes, hits| {
            hasher.hash_batch(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        keys_rows.add("contains_batch", kernel, &keys, |keys, _, hits| {
            view.contains_batch(keys, hits);
        });
        keys_rows.add("loop_8, contains", kernel, &eights, |keys, hashes, hits| {
            hash_loop(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        keys_rows.add("contains_u64s", kernel, &integers, |keys, _, hits| {
            view.contains_u64s(keys, hits);
        });
        let Keys { mut cases, names, .. } = keys_rows;
        let times = interleaved(&mut cases, setting.rounds);
        for ((op, kernel), time) in names.into_iter().zip(times) {
            rows.push(Row { op, mix: "absent", kernel, threads: 1, batch, time, baseline: None });
        }
    }
    rows
}

/// Cases of keys, with what their rows say.
struct Keys<'a> {
    cases: Vec<Case<'a>>,
    names: Vec<(&'static str, &'static str)>,
    batch: usize,
}

impl<'a> Keys<'a> {
    /// A case that calls `run` with batch after batch, and with space for hashes and answers.
    fn add<K>(
        &mut self,
        op: &'static str,
        kernel: &'static str,
        keys: &'a [K],
        run: impl Fn(&[K], &mut Vec<u64>, &mut Bitmask) + 'a,
    ) {
        self.names.push((op, kernel));
        let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
        let batch = self.batch;
        self.cases.push(Case::new(keys.len(), move || {
            for keys in keys.chunks(batch) {
                run(black_box(keys), &mut hashes, &mut hits);
                black_box((&hashes, &hits));
            }
        }));
    }
}

/// Hashes key after key.
fn hash_loop<K: AsRef<[u8]>>(keys: &[K], hashes: &mut Vec<u64>) {
    let hasher = KeyHasher::default();
    hashes.clear();
    hashes.extend(keys.iter().map(|key| hasher.hash(key)));
}

/// Keys that were not in the filter when it was made: bits that are set already cost the same, since no kernel tests them.
pub(super) fn insert(setting: &Setting) -> Result<Vec<Row>, Failure> {
    let filter = BloomFilter::new(setting.params, KeyHash::default()).map_err(Failure::new)?;
    let lines = filter.clone();
    let lines = lines.blocks();
    // All kernels insert into one filter, interleaved.
    let filter = &Cell::new(Some(filter));
    let hashes = Mix::Absent.lookups(setting.keys, lookup_count(setting.keys));
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group = Group::new("insert_hashes", "absent", batch, lines, &hashes);
        for kernel in Kernel::supported() {
            group.add_batches(kernel.name(), &hashes, move |hashes| {
                filter.set(filter.take().map(|filter| {
                    let mut filter = filter.with_kernel(kernel);
                    // A filter of keys takes every hash.
                    _ = filter.insert_hashes(hashes);
                    filter
                }));
            });
        }
        group.add_batches("one_by_one", &hashes, |hashes| {
            filter.set(filter.take().map(|mut filter| {
                for &hash in hashes {
                    _ = filter.insert_hash(hash);
                }
                filter
            }));
        });
        rows.extend(group.rows(setting.rounds));
    }
    Ok(rows)
}
