//! Building whole filters: from hashes and from keys, by one thread and by all.

use blocked_bloom::{
    BloomFilter, BloomFilterBuilder, BuildError, FilterOptions, KeyHash, KeyHasher,
};
use rayon::prelude::*;

use super::baseline::load_lines;
use super::measure::{Case, interleaved};
use super::rows::{BASELINES, Row, Setting, baseline};
use super::workload::{filled, key};
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

/// Keys of 16 bytes.
type Key = [u8; 16];

pub(super) fn measure(setting: &Setting) -> Result<Vec<Row>, Failure> {
    let count = setting.keys as usize;
    let filter = filled(setting.params, setting.keys).map_err(Failure::new)?;
    let hashes: Vec<u64> = (0..setting.keys).map(key).collect();
    let keys: Vec<Key> = hashes.iter().map(|&hash| bytes(hash)).collect();
    let slices: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    let builder = || builder(setting);
    let collected = {
        let mut builder = builder();
        for &hash in &hashes {
            builder.insert_hash(hash).map_err(Failure::new)?;
        }
        builder
    };
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let pools = [threads::pool(Some(1))?, threads::pool(Some(all))?];
    let used = if all == 1 { &pools[..1] } else { &pools[..] };

    let (mut names, mut cases) = (Vec::new(), Vec::new());
    let blocks = filter.blocks();
    let kernel = filter.kernel().name();
    let mut add = |op, kernel, threads, case| {
        names.push((op, kernel, threads));
        cases.push(case);
    };
    let hashes = &hashes;
    for (name, ahead) in BASELINES {
        add("load_lines", name, 1, Case::new(count, move || load_lines(blocks, hashes, ahead)));
    }
    add("hash_loop", "-", 1, Case::new(count, || hash(&keys)));
    add("slices_loop", "-", 1, Case::new(count, || hash(&slices)));
    add("slices_to_filter", kernel, 1, Case::new(count, || from_keys(builder(), &slices)));
    add("one_by_one", kernel, 1, {
        let keys = &keys;
        Case::new(count, move || {
            let mut builder = builder();
            keys.iter().try_for_each(|key| builder.insert(key))?;
            builder.finish()
        })
    });
    for pool in used {
        let threads = pool.current_num_threads();
        // The bandwidth of so many threads: reordering the list by cuts reads and writes it once.
        add("copy_list", "-", threads, {
            let mut copy = vec![0; count];
            Case::new(count, move || {
                let pieces = copy.par_chunks_mut(PIECE).zip(hashes.par_chunks(PIECE));
                pool.install(|| pieces.for_each(|(copy, piece)| copy.copy_from_slice(piece)));
            })
        });
        let clone = || collected.clone();
        add("hashes_to_filter", kernel, threads, {
            Case::with_setup(count, clone, move |builder| pool.install(|| builder.par_finish()))
        });
        add("and_verified", kernel, threads, {
            Case::with_setup(count, clone, move |builder| {
                pool.install(|| builder.par_finish_verified())
            })
        });
        let keys = &keys;
        add("keys_to_filter", kernel, threads, {
            Case::new(count, move || {
                if threads == 1 {
                    return from_keys(builder(), keys);
                }
                pool.install(|| {
                    let mut builder = builder();
                    builder.par_extend(keys)?;
                    builder.par_finish()
                })
            })
        });
        add("known_count", kernel, threads, {
            Case::new(count, move || pool.install(|| known_count(setting, keys)))
        });
    }
    let times = interleaved(&mut cases, setting.rounds);
    let baseline = Some(baseline(&times));
    let rows = names.into_iter().zip(times).map(|((op, kernel, threads), time)| Row {
        op,
        mix: "-",
        kernel,
        threads,
        batch: count,
        time,
        baseline,
    });
    Ok(rows.collect())
}

fn builder(setting: &Setting) -> BloomFilterBuilder {
    FilterOptions::new(setting.sizing).with_probes(setting.params.probes()).builder()
}

fn bytes(hash: u64) -> Key {
    (u128::from(hash) << 64 | u128::from(!hash)).to_le_bytes()
}

fn hash<K: AsRef<[u8]>>(keys: &[K]) -> u64 {
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

fn known_count(setting: &Setting, keys: &[Key]) -> Result<BloomFilter, BuildError> {
    let mut filter = BloomFilter::new(setting.params, KeyHash::default())?;
    filter.par_insert_batch(keys)?;
    Ok(filter)
}
