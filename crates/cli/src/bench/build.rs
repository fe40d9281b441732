//! Building whole filters: from hashes and from keys, by one thread and by all.

use benches::clock::Case;
use benches::workload::{Key, filled, hash, key};
use blocked_bloom::{
    BloomFilter, BloomFilterBuilder, BuildError, FilterOptions, KeyHash, KeyHasher,
};
use rayon::prelude::*;

use super::rows::{Group, Row, Setting};
use crate::failure::Failure;
use crate::threads;

pub(super) const EXPLANATION: &str = "\
build   load_lines: the memory-bound baseline; copy_list: copying the hashes; hash_loop, slices_loop: hashing
        16-byte keys one by one, alone; hashes_to_filter: from the builder's list; and_verified: finish_verified;
        keys_to_filter, slices_to_filter: through a builder, by insert_batch; one_by_one: a call for each key;
        known_count: par_insert_batch; threads
        share the inserting from 8.4 million keys on
";

/// Hashes that a thread copies at a time.
const PIECE: usize = 1 << 16;

pub(super) fn measure(setting: &Setting) -> Result<Vec<Row>, Failure> {
    let count = setting.keys as usize;
    let filter = filled(setting.params, setting.keys).map_err(Failure::new)?;
    let hashes = &(0..setting.keys).map(hash).collect::<Vec<u64>>();
    let keys = &(0..setting.keys).map(key).collect::<Vec<Key>>();
    let slices: &Vec<&[u8]> = &keys.iter().map(|key| key.as_slice()).collect();
    let builder = || builder(setting);
    let mut collected = builder();
    for &hash in hashes {
        collected.insert_hash(hash).map_err(Failure::new)?;
    }
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let pools = [threads::pool(Some(1))?, threads::pool(Some(all))?];
    let used = if all == 1 { &pools[..1] } else { &pools[..] };

    let mut group = Group::beside_baseline("load_lines", "-", count, filter.blocks(), hashes);
    let kernel = filter.kernel().name();
    group.add("hash_loop", "-", 1, Case::new(count, |_| hash_all(keys)));
    group.add("slices_loop", "-", 1, Case::new(count, |_| hash_all(slices)));
    let from_slices = Case::new(count, |_| from_keys(builder(), slices));
    group.add("slices_to_filter", kernel, 1, from_slices);
    let one_by_one = Case::new(count, |_| {
        let mut builder = builder();
        keys.iter().try_for_each(|key| builder.insert(key))?;
        builder.finish()
    });
    group.add("one_by_one", kernel, 1, one_by_one);
    for pool in used {
        let threads = pool.current_num_threads();
        let clone = |_| collected.clone();
        // The bandwidth of so many threads: reordering the list by cuts reads and writes it once.
        let mut copy = vec![0; count];
        let copied = Case::in_pool(pool, count, move |_| {
            let pieces = copy.par_chunks_mut(PIECE).zip(hashes.par_chunks(PIECE));
            pool.install(|| pieces.for_each(|(copy, piece)| copy.copy_from_slice(piece)));
        });
        group.add("copy_list", "-", threads, copied);
        let finish = |builder: BloomFilterBuilder| pool.install(|| builder.par_finish());
        group.add(
            "hashes_to_filter",
            kernel,
            threads,
            Case::in_pool_with_setup(pool, count, clone, finish),
        );
        let verified = |builder: BloomFilterBuilder| pool.install(|| builder.par_finish_verified());
        group.add(
            "and_verified",
            kernel,
            threads,
            Case::in_pool_with_setup(pool, count, clone, verified),
        );
        let from_keys = move |mut builder: BloomFilterBuilder| match threads {
            1 => pool.install(|| from_keys(builder, keys)),
            _ => pool.install(|| {
                builder.par_extend(keys)?;
                builder.par_finish()
            }),
        };
        let case = Case::in_pool(pool, count, move |_| from_keys(builder()));
        group.add("keys_to_filter", kernel, threads, case);
        let known_count = || {
            let mut filter = BloomFilter::new(setting.params, KeyHash::default())?;
            filter.par_insert_batch(keys)?;
            Ok::<_, BuildError>(filter)
        };
        let case = Case::in_pool(pool, count, move |_| pool.install(known_count));
        group.add("known_count", kernel, threads, case);
    }
    Ok(group.rows(setting.rounds))
}

fn builder(setting: &Setting) -> BloomFilterBuilder {
    FilterOptions::new(setting.sizing).with_probes(setting.params.probes()).builder()
}

fn hash_all<K: AsRef<[u8]>>(keys: &[K]) -> u64 {
    let hasher = KeyHasher::default();
    keys.iter().fold(0, |sum, key| sum ^ hasher.hash(key))
}

fn from_keys<K: AsRef<[u8]>>(
    mut builder: BloomFilterBuilder,
    keys: &[K],
) -> Result<BloomFilter, BuildError> {
    builder.insert_batch(keys)?;
    builder.finish()
}
