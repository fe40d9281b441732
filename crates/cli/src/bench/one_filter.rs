//! One filter, one thread: lookups of hashes and of keys, in batches and one by one, and inserts.

use std::cell::Cell;

use benches::baseline::early_exit;
use benches::split_block::SplitBlocks;
use benches::workload::{Key, Mix, for_all_hashes, key, lookup_count};
use blocked_bloom::{Bitmask, BloomFilter, Kernel, KeyHash, KeyHasher};

use super::rows::{Group, Row, Setting};
use crate::failure::Failure;

/// The rows of the loop for split blocks, where there is one.
pub(super) fn add_split_blocks<'a>(
    group: &mut Group<'a>,
    blocks: &'a SplitBlocks,
    hashes: &'a [u64],
) {
    if blocks.count_hits(&[], false).is_some() {
        for (name, ahead) in [("split_block", false), ("split_block_ahead", true)] {
            group.add_batches(name, hashes, move |hashes| blocks.count_hits(hashes, ahead));
        }
    }
}

/// Split blocks of the same size and keys.
pub(super) fn split_blocks(setting: &Setting) -> Result<SplitBlocks, Failure> {
    let mut blocks = SplitBlocks::new(setting.params.blocks()).map_err(Failure::new)?;
    for_all_hashes(setting.keys, |hashes| blocks.insert_hashes(hashes));
    Ok(blocks)
}

/// Batches of hashes by every kernel, and by other loops.
pub(super) fn query(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let view = filter.view();
    let blocks = view.blocks();
    let split_blocks = split_blocks(setting)?;
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        for mix in Mix::ALL {
            let hashes = &mix.lookups(setting.keys, lookup_count(setting.keys)).all;
            let mut group =
                Group::beside_baseline("contains_hashes", mix.name(), batch, blocks, hashes);
            for kernel in Kernel::supported() {
                let view = view.with_kernel(kernel);
                let mut hits = Bitmask::new();
                group.add_batches(kernel.name(), hashes, move |hashes| {
                    view.contains_hashes(hashes, &mut hits);
                });
            }
            group.add_batches("one_by_one", hashes, move |hashes| {
                hashes.iter().filter(|&&hash| view.contains_hash(hash)).count()
            });
            group.add_batches("early_exit", hashes, move |hashes| {
                early_exit(blocks, setting.params.probes(), hashes)
            });
            add_split_blocks(&mut group, &split_blocks, hashes);
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
        let hashes = &mix.lookups(setting.keys, lookup_count(setting.keys)).all;
        let mut group =
            Group::beside_baseline("contains_hash", mix.name(), 1, view.blocks(), hashes);
        for kernel in Kernel::supported() {
            let view = view.with_kernel(kernel);
            group.add_batches(kernel.name(), hashes, move |hashes| view.contains_hash(hashes[0]));
        }
        rows.extend(group.rows(setting.rounds));
    }
    rows
}

/// Keys of 16 bytes, of 8, and integers, all absent: hashed alone; hashed and looked up in one call, or in two. `hash_loop` calls
/// `KeyHasher::hash` for each key, which the compiler may vectorise as it likes.
pub(super) fn whole_keys(setting: &Setting, filter: &BloomFilter) -> Vec<Row> {
    let view = filter.view();
    let count = lookup_count(setting.keys);
    let absent = setting.keys..setting.keys + count as u64;
    let keys: Vec<Key> = absent.map(key).collect();
    let slices: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    let integers: Vec<u64> = Mix::Absent.lookups(setting.keys, count).all;
    let eights: Vec<[u8; 8]> = integers.iter().map(|key| key.to_le_bytes()).collect();
    let hasher = KeyHasher::default();
    let kernel = view.kernel().name();
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group = Group::new("", "absent", batch);
        // A case with space for hashes and answers.
        macro_rules! add {
            ($op:literal, $kernel:expr, $keys:ident, |$batch:ident, $hashes:ident, $hits:pat_param| $run:expr) => {{
                let (mut $hashes, mut hits) = (Vec::<u64>::new(), Bitmask::new());
                group.op($op).add_batches($kernel, &$keys, move |$batch| {
                    let ($hashes, $hits) = (&mut $hashes, &mut hits);
                    $run;
                });
            }};
        }
        add!("hash_loop", "-", keys, |keys, hashes, _| hash_loop(keys, hashes));
        add!("hash_batch", kernel, keys, |keys, hashes, _| hasher.hash_batch(keys, hashes));
        add!("hash_slices", kernel, slices, |keys, hashes, _| hasher.hash_batch(keys, hashes));
        add!("hash_loop_8", "-", eights, |keys, hashes, _| hash_loop(keys, hashes));
        add!("hash_batch_8", kernel, eights, |keys, hashes, _| hasher.hash_batch(keys, hashes));
        add!("hash_u64s", kernel, integers, |keys, hashes, _| {
            hashes.resize(keys.len(), 0);
            // As many hashes as keys.
            _ = hasher.hash_u64s(keys, hashes);
        });
        add!("loop, contains", kernel, keys, |keys, hashes, hits| {
            hash_loop(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        add!("hash, contains", kernel, keys, |keys, hashes, hits| {
            hasher.hash_batch(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        add!("contains_batch", kernel, keys, |keys, _hashes, hits| view.contains_batch(keys, hits));
        add!("loop_8, contains", kernel, eights, |keys, hashes, hits| {
            hash_loop(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        add!("contains_u64s", kernel, integers, |keys, _hashes, hits| view
            .contains_u64s(keys, hits));
        rows.extend(group.rows_beside(setting.rounds, |_, _| None));
    }
    rows
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
    let hashes = &Mix::Absent.lookups(setting.keys, lookup_count(setting.keys)).all;
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group = Group::beside_baseline("insert_hashes", "absent", batch, lines, hashes);
        for kernel in Kernel::supported() {
            group.add_batches(kernel.name(), hashes, move |hashes| {
                filter.set(filter.take().map(|filter| {
                    let mut filter = filter.with_kernel(kernel);
                    // A filter of keys takes every hash.
                    _ = filter.insert_hashes(hashes);
                    filter
                }));
            });
        }
        group.add_batches("one_by_one", hashes, |hashes| {
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
