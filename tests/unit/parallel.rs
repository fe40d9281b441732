//! Unit tests of `src/parallel.rs`, which includes this file.

use alloc::vec;
use alloc::vec::Vec;

use super::{PIECE, SEQUENTIAL_BELOW, insert_by_cut, partition};
use crate::{BloomFilter, KeyHash, KeyHasher, Sizing};

#[test]
fn every_cut_gives_the_same_bytes() {
    let hashes: Vec<u64> =
        (0..30_000_u64).map(|key| KeyHasher::default().hash(key.to_le_bytes())).collect();
    // With 70,000 blocks and 5,000 tasks, MAX_CUTS decides; with 9,001 blocks and one task,
    // CUT_BLOCKS; otherwise the tasks.
    for blocks in [1, 2, 3, 7, 8, 1_000, 9_001, 70_000] {
        let params = Sizing::MaxBytes(64 + 64 * blocks).params(1_000_000).unwrap();
        let empty = BloomFilter::with_params(params, KeyHash::default()).unwrap();
        let mut expected = empty.clone();
        for &hash in &hashes {
            expected.insert_hash(hash).unwrap();
        }
        for (tasks, chunk) in
            [(1, 30_000), (2, 30_000), (3, 7_000), (8, 1), (64, 999), (5_000, 999)]
        {
            let mut chunks: Vec<_> = hashes.chunks(chunk).map(<[u64]>::to_vec).collect();
            let mut filter = empty.clone();
            insert_by_cut(&mut filter, &mut chunks, tasks).unwrap();
            assert_eq!(filter, expected, "{blocks} blocks, {tasks} tasks");
        }
        let mut nothing = empty.clone();
        insert_by_cut(&mut nothing, &mut [Vec::new()], 4).unwrap();
        assert_eq!(nothing, empty);
    }
}

#[test]
fn partitions_keep_every_hash_and_order_the_cuts() {
    for (len, cuts) in [(0, 1), (1, 1), (1, 5), (7, 3), (1000, 7), (1000, 64)] {
        let hashes: Vec<u64> = (0..len).map(|i| i * i * 7919 + 13).collect();
        let cut_of = |hash| (hash % cuts) as usize;
        let mut parts = vec![7; hashes.len()];
        let mut starts = vec![0; cuts as usize + 1];
        partition(&hashes, &mut parts, &mut starts, cut_of);
        assert_eq!(starts[0], 0);
        for (cut, bounds) in starts.windows(2).enumerate() {
            let part = bounds[0] as usize..bounds[1] as usize;
            assert!(parts[part].iter().all(|&hash| cut_of(hash) == cut));
        }
        assert_eq!(u64::from(*starts.last().unwrap()), len);
        let (mut before, mut after) = (hashes, parts);
        before.sort_unstable();
        after.sort_unstable();
        assert_eq!(before, after);
    }
}

/// Both threads of a pool take part in the work that the methods `par_*` share. Work of a single
/// thread has no name here.
#[test]
fn threads_of_the_pool_take_part() {
    use crate::watch::shared_by_threads;
    use crate::{FilterOptions, PrefixExtractor};
    use rayon::prelude::*;

    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let keys: Vec<[u8; 8]> = (0..SEQUENTIAL_BELOW as u64 + 1).map(u64::to_le_bytes).collect();
    let mut builder = options.builder();
    let shared = |work: &mut (dyn FnMut() + Send)| shared_by_threads(work);
    assert_eq!(shared(&mut || builder.par_extend(keys.par_iter()).unwrap()), ["keys"]);
    let mut filter = None;
    let mut finish = || filter = Some(builder.clone().par_finish_verified().unwrap());
    assert_eq!(shared(&mut finish), ["fill", "order", "verify", "zero"]);
    assert_eq!(
        shared(&mut || drop(builder.clone().par_finish().unwrap())),
        ["fill", "order", "zero"]
    );
    drop(builder);

    let mut filter = filter.unwrap();
    let all = ["fill", "order", "window"];
    assert_eq!(shared(&mut || filter.par_insert_batch(&keys).unwrap()), all);
    // Fewer keys are hashed by both threads, and inserted by one.
    let few = &keys[..2 * PIECE];
    assert_eq!(shared(&mut || filter.par_insert_batch(few).unwrap()), ["window"]);
    let hashes: Vec<u64> = keys.iter().map(|key| KeyHasher::default().hash(key)).collect();
    assert_eq!(shared(&mut || filter.par_insert_hashes(&hashes).unwrap()), all);
    assert_eq!(shared(&mut || filter.par_insert_hashes(&hashes[1..][..1_000]).unwrap()), [""; 0]);

    let mut builder = options.with_prefixes(PrefixExtractor::fixed(4)).builder();
    assert_eq!(shared(&mut || builder.par_extend(few.par_iter()).unwrap()), ["prefixes"]);
}
