//! Unit tests of `src/builder.rs`, which includes this file.

use alloc::vec::Vec;

use super::*;
use crate::scheme::{Shards, Source};

fn hashes(first: u64, count: u64) -> Vec<u64> {
    let hasher = blocked_bloom::KeyHasher::default();
    (first..first + count).map(|key| hasher.hash(key.to_le_bytes())).collect()
}

/// One seed in twenty fails: the next seed is tried before a shard gets more slots, so that no
/// filter is larger than planned.
#[test]
fn seeds_are_tried_before_slots_are_added() {
    let mut rows = Rows::default();
    let mut seeds = Vec::new();
    for shard in 0..300 {
        let mut rests = hashes(10_000 * u64::from(shard), 3_900);
        let (slots, seed) = seed_of(&mut rows, &mut rests, shard).unwrap();
        assert_eq!(slots, sizing::slots(3_900), "shard {shard}");
        seeds.push(seed);
    }
    let others = seeds.iter().filter(|&&seed| seed != 0).count();
    assert!((2..60).contains(&others), "{seeds:?}");
    // The first seed that solves it.
    for (shard, &seed) in (0_u32..).zip(&seeds).filter(|(_, seed)| **seed != 0) {
        let rests = hashes(10_000 * u64::from(shard), 3_900);
        let mut solves = |seed: &u8| rows.add_all(&rests, *seed, sizing::slots(3_900)).unwrap();
        assert_eq!((0..=u8::MAX).find(&mut solves), Some(seed), "shard {shard}");
    }
}

/// Buckets of one, two, four and eight shards: every shard is solved once, from its own hashes.
#[test]
fn buckets_of_several_shards() {
    for (shards, bits) in [(1, 0), (256, 0), (257, 1), (512, 1), (513, 2), (1_025, 3)] {
        let plan = Plan::new(shards, 7, 0.5);
        assert_eq!(plan.bucket_bits, bits, "{shards} shards");
        let mut keys = hashes(1, 40 * u64::from(shards));
        let solved = plan.solve(&mut keys, Threads::One).unwrap();
        assert_eq!(
            solved.iter().map(|solved| solved.entries.len()).sum::<usize>(),
            shards as usize
        );
        let (mut directory, mut words) = (Vec::new(), Vec::new());
        for solved in &solved {
            let before = words.len() as u32;
            let place = |entry: &Entry| Entry { offset: before + entry.offset, ..*entry }.to_word();
            directory.extend(solved.entries.iter().map(place));
            words.extend(&solved.words);
        }
        let filter = Shards { directory: &directory, words: &words, columns: 7 };
        assert!(keys.iter().all(|&hash| filter.contains(hash)), "{shards} shards");
        let absent = hashes(1 << 40, 10_000);
        let found = absent.iter().filter(|&&hash| filter.contains(hash)).count();
        assert!((60..300).contains(&found), "{shards} shards: {found}");
    }
}

/// Both threads of a pool take part in all of the shared work.
#[cfg(feature = "rayon")]
#[test]
fn threads_of_the_pool_take_part() {
    use crate::rocksdb::RibbonBlockOptions;
    use crate::watch::shared_by_threads;

    let keys: Vec<[u8; 8]> = (0..2_200_000_u64).map(u64::to_le_bytes).collect();
    let mut builder = RibbonOptions::new(0.1).builder();
    assert_eq!(shared_by_threads(|| builder.par_extend(&keys).unwrap()), ["hash"]);
    let finished = shared_by_threads(|| {
        builder.par_finish().unwrap();
    });
    assert_eq!(finished, ["order", "solve"]);
    let hashes = hashes(0, 200_000);
    let block = shared_by_threads(|| {
        RibbonBlockOptions::new(10.0).unwrap().par_build(&hashes).unwrap();
    });
    assert_eq!(block, ["buckets", "rows"]);
}

/// Keys of any chunk, of the first too, that a filter lacks are counted.
#[test]
fn missing_keys_are_counted_in_every_chunk() {
    let all = hashes(0, 3 * CHUNK_KEYS as u64);
    let build = |hashes: &[u64]| {
        let mut builder = RibbonOptions::new(1e-4).builder();
        builder.insert_hashes(hashes);
        builder
    };
    let builder = build(&all);
    assert_eq!(builder.verify(&builder.clone().finish().unwrap()), Ok(()));
    for chunk in 0..3 {
        let (start, end) = (chunk * CHUNK_KEYS, (chunk + 1) * CHUNK_KEYS);
        let filter = build(&[&all[..start], &all[end..]].concat()).finish().unwrap();
        let error = builder.verify(&filter).unwrap_err();
        let RibbonError::KeysMissing { missing, keys } = error else { panic!("{error}") };
        assert_eq!(keys, all.len() as u64);
        assert!((4_000..=CHUNK_KEYS as u64).contains(&missing), "{missing} of chunk {chunk}");
    }
}

#[test]
fn a_hash_that_changes_in_memory_is_noticed() {
    let mut builder = RibbonOptions::new(0.01).builder();
    builder.insert_hashes(&hashes(0, 1_000));
    for bit in 0..64 {
        let mut changed = builder.clone();
        changed.hashes[567] ^= 1 << bit;
        let error = changed.finish_verified().unwrap_err();
        let RibbonError::HashesChanged { expected, .. } = error else { panic!("{error}") };
        assert_eq!(expected, builder.sum, "bit {bit}");
    }
}
