//! Unit tests of `src/kernel.rs`, which includes this file: which kernel each operation runs in,
//! and that it prefetches the blocks that it reads later.

use alloc::vec;
use alloc::vec::Vec;
use std::format;

use blocked_bloom::parts::PrefetchAhead;
use blocked_bloom::{Bitmask, Filter, Kernel};

use super::{CACHE_FACTOR, contains, for_each_ahead, for_each_block, for_each_word, insert};
use crate::split_block::{SPLIT_BLOCK_BYTES, SplitBlock, block_index};
use crate::watch::{Event, events, kernels, lines, note};
use crate::{AtomicSplitBlockFilter, SplitBlockFilter, hash_value};

const DISTANCE: usize = PrefetchAhead::<u64, fn(&u64)>::DISTANCE;

fn hashes(count: u64) -> Vec<u64> {
    (0..count).map(|key| blocked_bloom::KeyHasher::default().hash(key.to_le_bytes())).collect()
}

/// The kernels of a lookup and of an insertion, determined by name instead of with `table`.
fn expected(kernel: Kernel) -> [&'static [&'static str]; 2] {
    match kernel.name() {
        "avx512" => [&["avx512"], &["avx2"]],
        "avx2" => [&["avx2"]; 2],
        "neon" => [&["neon"], &[]],
        "portable" => [&["portable"], &[]],
        _ => [&[]; 2],
    }
}

/// The cache lines of each hash's block, two per block if that many are prefetched.
fn read(blocks: &[SplitBlock], hashes: &[u64], lines: usize) -> Vec<usize> {
    let start = blocks.as_ptr().addr();
    let block = |&hash: &u64| {
        let first = start + SPLIT_BLOCK_BYTES * block_index(hash, blocks.len() as u32) as usize;
        [first / 64, (first + SPLIT_BLOCK_BYTES - 1) / 64].into_iter().take(lines)
    };
    hashes.iter().flat_map(block).collect()
}

#[test]
fn operations_run_in_their_kernel_and_prefetch_what_they_read() {
    for kernel in Kernel::supported() {
        let [of_lookups, of_inserts] = expected(kernel);
        let threshold = kernel.prefetch_threshold() / SPLIT_BLOCK_BYTES;
        for (count, outgrows) in [(threshold, false), (threshold + 1, true)] {
            let mut bytes = vec![[0_u8; 64]; count / 2 + 4];
            let to_line = bytes.as_ptr().addr().wrapping_neg() % 64;
            for (shift, prefetched) in [(to_line, 1), (to_line + 1, 2)] {
                let prefetched = if outgrows { prefetched } else { 0 };
                for keys in [1, 7, 8, 64, 203] {
                    let about = format!("{kernel}, {count} blocks, {keys} keys, {shift}");
                    let hashes = hashes(keys);
                    let blocks = &mut bytes.as_flattened_mut()[shift..];
                    let blocks: &mut [SplitBlock] = &mut blocks.as_chunks_mut().0[..count];
                    let mut words = vec![0; hashes.len().div_ceil(64)];
                    let found = events(|| contains(kernel.into(), blocks, &hashes, &mut words));
                    assert_eq!(kernels(&found), of_lookups, "{about}");
                    assert_eq!(lines(&found), read(blocks, &hashes, prefetched), "{about}");
                    // Memory that is written is always aligned.
                    if shift == to_line {
                        let found = events(|| insert(kernel.into(), blocks, &hashes));
                        assert_eq!(kernels(&found), of_inserts, "{about}");
                        assert_eq!(lines(&found), read(blocks, &hashes, prefetched), "{about}");
                    }
                }
            }
        }
    }
}

/// Checks that the prefetches before key `i` are at least the distance ahead, and at most `at_once`
/// more. The tested code records an event for each key.
fn check_distance(all: &[Event], hashes: usize, at_once: usize, distance: usize, about: &str) {
    let worked = all.iter().enumerate().filter(|(_, event)| **event == Event::Ran("key"));
    assert_eq!(worked.clone().count(), hashes, "{about}");
    for (i, (at, _)) in worked.enumerate() {
        let prefetched = lines(&all[..at]).len();
        let iterations = (i / at_once + 1) * at_once;
        assert_eq!(prefetched, (iterations + distance).min(hashes), "{about}, key {i}");
    }
}

#[test]
fn blocks_are_prefetched_some_keys_before_they_are_read() {
    let near = CACHE_FACTOR * Kernel::default().prefetch_threshold() / SPLIT_BLOCK_BYTES;
    for (blocks, distance) in
        [(1_000, DISTANCE), (near, DISTANCE), (near + CACHE_FACTOR, 2 * DISTANCE)]
    {
        check_distances(&mut vec![[0_u8; SPLIT_BLOCK_BYTES]; blocks], distance);
    }
}

fn check_distances(blocks: &mut [SplitBlock], distance: usize) {
    let bytes = size_of_val(blocks);
    for count in [1, 8, 63, 64, 65, 72, 128, 130, 203, 300] {
        let hashes = hashes(count);
        let mut words = vec![0; hashes.len().div_ceil(64)];
        let about = format!("{count} keys");
        let eights = events(|| {
            let test = |keys: &[u64; 8]| {
                keys.iter().for_each(|_| note(Event::Ran("key")));
                0
            };
            let rest = |keys: &[u64]| {
                keys.iter().for_each(|_| note(Event::Ran("key")));
                0
            };
            for_each_word::<8, 1>(blocks, &hashes, &mut words, test, rest);
        });
        // The rest of a word has fewer than eight hashes. It is at the end of the batch, where all
        // are prefetched.
        let whole = hashes.len() - hashes.len() % 8;
        let at_end = lines(&eights).len();
        let worked = eights.iter().enumerate().filter(|(_, event)| **event == Event::Ran("key"));
        for (i, (at, _)) in worked.enumerate().take(whole) {
            let prefetched = lines(&eights[..at]).len();
            assert_eq!(prefetched, (i / 8 * 8 + 8 + distance).min(at_end), "{about}, key {i}");
        }
        assert_eq!(lines(&eights), read(blocks, &hashes, 1));
        let set = events(|| {
            for_each_block::<1>(blocks, &hashes, |_, _| note(Event::Ran("key")));
        });
        check_distance(&set, hashes.len(), 8, distance, &about);
        assert_eq!(lines(&set), read(blocks, &hashes, 1));
        let visited = events(|| {
            let prefetch = |&hash: &u64| note(Event::Line(hash as usize));
            for_each_ahead(&hashes, bytes, true, prefetch, |_, _| note(Event::Ran("key")));
        });
        check_distance(&visited, hashes.len(), 8, distance, &about);
        assert!(lines(&visited).iter().zip(&hashes).all(|(&line, &hash)| line == hash as usize));
        let none = events(|| {
            let prefetch = |&hash: &u64| note(Event::Line(hash as usize));
            for_each_ahead(&hashes, bytes, false, prefetch, |_, _| ());
        });
        assert!(none.is_empty());
    }
}

#[test]
fn filters_prefetch_by_hand_and_where_they_are_shared() {
    let threshold = Kernel::default().prefetch_threshold();
    let hashes = hashes(203);
    let mut hits = Bitmask::new();
    // Numbers of blocks are powers of two.
    let keys: Vec<[u8; 8]> = (0..300).map(u64::to_le_bytes).collect();
    let values: Vec<u64> = keys.iter().map(hash_value).collect();
    let far = (CACHE_FACTOR + 1) * threshold;
    for (bytes, outgrows) in [(threshold / 2, false), (2 * threshold, true), (far, true)] {
        let blocks = (bytes / SPLIT_BLOCK_BYTES) as u32;
        let blocks = if outgrows { blocks.next_power_of_two() } else { 1 << blocks.ilog2() };
        let filter = SplitBlockFilter::with_blocks(blocks).unwrap();
        let prefetched = |hash: u64| lines(&events(|| filter.prefetch_hash(hash)));
        for &hash in &hashes {
            assert_eq!(prefetched(hash), read(filter.blocks(), &[hash], 2));
        }
        // Lookups by key also prefetch each block once, in either way.
        for count in [1, 8, 9, 64, 65, 203, 300] {
            let found = lines(&events(|| filter.contains_batch(&keys[..count], &mut hits)));
            let expected = read(filter.blocks(), &values[..count], usize::from(outgrows));
            assert_eq!(found, expected, "{bytes} bytes, {count} keys");
        }
        // Nothing is copied, so the blocks keep their addresses.
        let expected = read(filter.blocks(), &hashes, 1);
        let shared = AtomicSplitBlockFilter::from(filter);
        let singly = events(|| hashes.iter().for_each(|&hash| shared.prefetch_hash(hash)));
        assert_eq!(lines(&singly), expected);
        let expected = if outgrows { expected } else { Vec::new() };
        let looked_up = lines(&events(|| shared.contains_hashes(&hashes, &mut hits)));
        assert_eq!(looked_up, expected);
        assert_eq!(lines(&events(|| shared.insert_hashes(&hashes))), expected);
    }
}
