//! Building whole filters: from hashes and from keys, by one thread and by all.

use blocked_bloom::{AllocError, BloomFilter, BloomFilterBuilder, BuildError, KeyHash, KeyHasher};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::limits::load_lines;
use super::measure::{Case, Timing, interleaved};
use super::workload::{filled, key};
use super::{Row, Setting};
use crate::failure::Failure;

pub(super) const EXPLANATION: &str = "\
build   load_lines: the limit; copy_list: what memory allows; hash_batch, hash_slices: hashing 16-byte
        keys, alone; hashes_to_filter: from the builder's list; and_verified: finish_verified;
        keys_to_filter, slices_to_filter: through a builder; known_count: par_insert_batch; threads
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
    let builder = || setting.builder();
    let collected = {
        let mut builder = builder();
        hashes.iter().for_each(|&hash| builder.insert_hash(hash));
        builder
    };
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let pools = [pool(1)?, pool(all)?];
    let used = if all == 1 { &pools[..1] } else { &pools[..] };

    let mut names = vec![("load_lines", "limit", 1), ("load_lines", "limit_ahead", 1)];
    let blocks = filter.view().blocks();
    let mut cases = vec![
        Case::new(count, || load_lines(blocks, &hashes, false)),
        Case::new(count, || load_lines(blocks, &hashes, true)),
    ];
    let kernel = filter.view().kernel().name();
    let mut add = |op, kernel, threads, case| {
        names.push((op, kernel, threads));
        cases.push(case);
    };
    add("hash_batch", "-", 1, Case::new(count, || hash(&keys)));
    add("hash_slices", "-", 1, Case::new(count, || hash(&slices)));
    add(
        "slices_to_filter",
        kernel,
        1,
        Case::new(count, || pools[0].install(|| from_keys(builder(), &slices))),
    );
    let hashes = &hashes;
    for pool in used {
        let threads = pool.current_num_threads();
        // What memory gives to so many threads: reordering the list by cuts reads and writes it once.
        add("copy_list", "-", threads, {
            let mut copy = vec![0; count];
            Case::new(count, move || {
                let pieces = copy.par_chunks_mut(PIECE).zip(hashes.par_chunks(PIECE));
                pool.install(|| pieces.for_each(|(copy, piece)| copy.copy_from_slice(piece)));
            })
        });
        let clone = || collected.clone();
        add("hashes_to_filter", kernel, threads, {
            Case::with_setup(count, clone, move |builder| pool.install(|| builder.finish()))
        });
        add("and_verified", kernel, threads, {
            Case::with_setup(count, clone, move |builder| {
                pool.install(|| builder.finish_verified())
            })
        });
        let keys = &keys;
        add("keys_to_filter", kernel, threads, {
            Case::new(count, move || {
                pool.install(|| {
                    if threads == 1 {
                        return from_keys(builder(), keys);
                    }
                    let mut builder = builder();
                    builder.par_extend(keys);
                    builder.finish()
                })
            })
        });
        add("known_count", kernel, threads, {
            Case::new(count, move || pool.install(|| known_count(setting, keys)))
        });
    }
    let times = interleaved(&mut cases, setting.rounds);
    let limit = Timing {
        median: times[0].median.min(times[1].median),
        min: times[0].min.min(times[1].min),
    };
    let rows = names.into_iter().zip(times).map(|((op, kernel, threads), time)| Row {
        op,
        mix: "-",
        kernel,
        threads,
        batch: count,
        time,
        limit: Some(limit),
    });
    Ok(rows.collect())
}

impl Setting {
    fn builder(&self) -> BloomFilterBuilder {
        BloomFilterBuilder::new(self.sizing).probes(self.params.probes())
    }
}

fn pool(threads: usize) -> Result<ThreadPool, Failure> {
    ThreadPoolBuilder::new().num_threads(threads).build().map_err(Failure::new)
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
    builder.extend(keys);
    builder.finish()
}

fn known_count(setting: &Setting, keys: &[Key]) -> Result<BloomFilter, AllocError> {
    let mut filter = BloomFilter::with_params(setting.params, KeyHash::default())?;
    filter.par_insert_batch(keys)?;
    Ok(filter)
}
