//! The concurrent split-block filter and selection vectors: the bits and rows of the scalar probe
//! scheme.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_split::{AtomicSplitBlockFilter, SplitBlockFilter, split_block};

use crate::common::{Random, kernels};

/// Inserts these hashes one after the other with the probe scheme.
fn scalar(blocks: u32, hashes: &[u64]) -> Vec<[u8; 32]> {
    let mut all = vec![[0; 32]; blocks as usize];
    for &hash in hashes {
        split_block::insert(&mut all[split_block::block_index(hash, blocks) as usize], hash);
    }
    all
}

fn is_set(blocks: &[[u8; 32]], hash: u64) -> bool {
    let index = split_block::block_index(hash, blocks.len() as u32);
    split_block::contains(&blocks[index as usize], hash)
}

/// 2^16 blocks (2 MiB) exceed every kernel's prefetch threshold, so they are prefetched.
const BLOCKS: [u32; 6] = [1, 2, 4, 64, 1 << 10, 1 << 16];

#[test]
fn threads_fill_the_bits_of_one_thread() {
    for blocks in BLOCKS {
        let hashes = Random(u64::from(blocks)).hashes((blocks as usize * 26).min(400_000));
        let expected = scalar(blocks, &hashes);
        for threads in [1, 2, 5] {
            let filter = AtomicSplitBlockFilter::with_blocks(blocks).unwrap();
            thread::scope(|scope| {
                for i in 0..threads {
                    let (filter, hashes) = (&filter, &hashes);
                    // Neighbours overlap by half, so that two threads insert the same hashes
                    // concurrently.
                    let part = hashes.len() / threads;
                    let end = (i * part + part + part / 2).min(hashes.len());
                    let end = if i + 1 == threads { hashes.len() } else { end };
                    let lengths = [1_usize, 63, 64, 65, 1_000, 0];
                    scope.spawn(move || {
                        let (mut rest, mut batch) = (&hashes[i * part..end], i);
                        while !rest.is_empty() {
                            let length = lengths[batch % lengths.len()].min(rest.len());
                            let (now, later) = rest.split_at(length);
                            filter.insert_hashes(now);
                            // The thread finds its own insertions.
                            assert!(now.iter().all(|&hash| filter.contains_hash(hash)));
                            (rest, batch) = (later, batch + 1);
                        }
                    });
                }
            });
            assert!(filter.into_filter().view().blocks() == expected, "{blocks}, {threads}");
        }
    }
}

/// Blocks in which two threads insert at the same moment: a power of two.
const RACED: usize = if cfg!(miri) { 64 } else { 1 << 17 };

/// Returns a hash for each of the first `RACED` blocks.
fn hashes_of_blocks(seed: u64) -> Vec<u64> {
    let low = Random(seed).hashes(RACED).into_iter().map(|hash| hash >> 32).enumerate();
    // The top bits select the block.
    low.map(|(i, low)| (i as u64) << (64 - RACED.ilog2()) | low).collect()
}

/// Inserts in two threads, which wait for each other for a moment before each block. Returns the
/// answers.
fn race(filter: &AtomicSplitBlockFilter, hashes: [&[u64]; 2]) -> [Vec<bool>; 2] {
    let arrived = AtomicUsize::new(0);
    let insert = |(i, &hash): (usize, &u64)| {
        arrived.fetch_add(1, Relaxed);
        // Not longer, since the other thread may not be running.
        for _ in 0..100 {
            if arrived.load(Relaxed) > 2 * i + 1 {
                break;
            }
            std::hint::spin_loop();
        }
        filter.insert_hash(hash)
    };
    thread::scope(|scope| {
        let threads =
            hashes.map(|own| scope.spawn(move || own.iter().enumerate().map(insert).collect()));
        threads.map(|thread| thread.join().unwrap())
    })
}

/// Finds a bit that is lost because another thread writes the word at the same time.
#[test]
fn two_threads_in_one_block_lose_no_bit() {
    let [first, second] = [8, 9].map(hashes_of_blocks);
    let filter = AtomicSplitBlockFilter::with_blocks(RACED as u32).unwrap();
    race(&filter, [&first, &second]);
    assert!(first.iter().chain(&second).all(|&hash| filter.contains_hash(hash)));
}

/// One bit of each block is clear. Finds an insertion that reports a bit that another one set.
#[test]
fn one_of_two_threads_sets_the_last_bit() {
    let hashes = hashes_of_blocks(10);
    let mut bitset = vec![0xff_u8; 32 * RACED];
    for (i, (&hash, block)) in hashes.iter().zip(bitset.as_chunks_mut::<32>().0).enumerate() {
        let bit = split_block::bits(hash)[i % 8] as usize;
        block[i % 8 * 4 + bit / 8] ^= 1 << (bit % 8);
    }
    let filter = SplitBlockFilter::from_bitset(&bitset).unwrap().to_filter().unwrap();
    let [first, second] = race(&filter.into(), [&hashes, &hashes]);
    assert!(first.iter().zip(&second).all(|(first, second)| first ^ second));
}

#[test]
fn an_insertion_says_whether_a_bit_is_new() {
    for blocks in [1, 2, 64] {
        let filter = AtomicSplitBlockFilter::with_blocks(blocks).unwrap();
        let mut plain = vec![[0; 32]; blocks as usize];
        for hash in Random(7).hashes(blocks as usize * 200) {
            let index = split_block::block_index(hash, blocks) as usize;
            let is_new = split_block::insert(&mut plain[index], hash);
            assert_eq!(filter.insert_hash(hash), is_new);
            assert!(!filter.insert_hash(hash) && filter.contains_hash(hash));
        }
        assert!(SplitBlockFilter::from(filter).view().blocks() == plain);
    }
}

#[test]
fn batches_of_the_shared_filter_are_those_of_the_scalar_scheme() {
    for blocks in BLOCKS {
        let hashes = Random(3).hashes((blocks as usize * 20).min(200_000));
        let plain = scalar(blocks, &hashes);
        let filter = AtomicSplitBlockFilter::with_blocks(blocks).unwrap();
        filter.insert_hashes(&hashes);
        let queries: Vec<u64> =
            Random(4).hashes(150).into_iter().chain(hashes.into_iter().cycle()).take(300).collect();
        let mut hits = Bitmask::new();
        for length in 0..=queries.len() {
            filter.contains_hashes(&queries[..length], &mut hits);
            let expected = queries[..length].iter().map(|&hash| is_set(&plain, hash));
            assert!(hits.iter().eq(expected), "{length} of {blocks} blocks");
        }
        assert!(filter.contains_hashes_into(&queries, &mut [0; 4]).is_err());
    }
}

#[test]
fn conversions_keep_the_blocks_where_they_are() {
    let mut filter = SplitBlockFilter::new(100_000, 0.01).unwrap();
    filter.insert("apple");
    let start = filter.view().blocks().as_ptr();
    let shared = AtomicSplitBlockFilter::from(filter);
    let shared = std::sync::Arc::new(shared);
    let filter = std::sync::Arc::into_inner(shared).unwrap().into_filter();
    assert_eq!(filter.view().blocks().as_ptr(), start);
    assert!(filter.contains("apple"));
}

#[test]
fn selected_rows_are_the_hits_of_the_scalar_scheme() {
    let mut rows = vec![99; 10];
    for kernel in kernels() {
        for blocks in BLOCKS {
            let added = Random(5).hashes((blocks as usize * 13).min(100_000));
            let plain = scalar(blocks, &added);
            let mut filter = SplitBlockFilter::with_blocks(blocks).unwrap().with_kernel(kernel);
            filter.insert_hashes(&added);
            let absent = Random(6).hashes(5_000);
            // None, some, and every row of a word.
            let mixes: [Vec<u64>; 3] = [
                absent.clone(),
                absent.iter().zip(added.iter().cycle()).flat_map(|(a, b)| [*a, *b]).collect(),
                added.iter().cycle().take(9_000).copied().collect(),
            ];
            for queries in mixes {
                let lengths = (0..200).chain([4_095, 4_096, 4_097, 5_000]).chain([queries.len()]);
                for length in lengths {
                    let queries = &queries[..length];
                    filter.select_hashes(queries, &mut rows).unwrap();
                    let hits =
                        queries.iter().enumerate().filter(|(_, hash)| is_set(&plain, **hash));
                    assert!(rows.iter().copied().eq(hits.map(|(row, _)| row as u32)), "{length}");
                }
            }
        }
    }
}
