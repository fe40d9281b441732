//! Unit tests of `src/kernel.rs`, which includes this file.

use alloc::vec;
use alloc::vec::Vec;

use super::{Kernel, Prefetch, Tile, choose};
use crate::probe;

#[test]
fn a_name_chooses_if_there_is_such_a_kernel() {
    let fastest = Kernel::supported().next().unwrap();
    assert_eq!(choose(None), fastest);
    for kernel in Kernel::supported() {
        assert_eq!(choose(Some(kernel.name())), kernel);
    }
    for unknown in ["", "AVX2", "avx1024", "scalar "] {
        assert_eq!(choose(Some(unknown)), fastest);
    }
}

#[test]
fn filters_up_to_a_part_of_the_cache_are_not_prefetched() {
    let threshold = Kernel::default().prefetch_threshold();
    // Unless somebody set it for the tests: from a phone's cache to a server's.
    #[cfg(feature = "std")]
    if std::env::var(super::PREFETCH_VARIABLE).is_err() {
        assert!((64 << 10..=64 << 20).contains(&threshold), "{threshold}");
    }
    assert!(Kernel::supported().all(|kernel| kernel.prefetch_threshold() == threshold));
    let below = vec![[0_u8; 64]; threshold / 64];
    let above = vec![[0_u8; 64]; threshold / 64 + 1];
    assert!(Prefetch::of(&below) == Prefetch::No && Prefetch::of(&above) != Prefetch::No);
}

/// Few hashes by a group wherever they are prefetched; many only into filters that are much larger
/// than the cache.
#[test]
fn long_calls_are_prefetched_by_groups_in_large_filters() {
    let threshold = Kernel::default().prefetch_threshold() / 64;
    for (blocks, few, many) in
        [(threshold, false, false), (threshold + 1, true, false), (8 * threshold + 8, true, true)]
    {
        let blocks = vec![[0_u8; 64]; blocks];
        for (hashes, by_groups) in [(1, few), (64, few), (65, many), (10_000, many)] {
            let prefetch = Prefetch::of_groups(&blocks, hashes);
            assert_eq!(prefetch.is_some(), by_groups, "{} blocks, {hashes}", blocks.len());
        }
    }
}

/// The low halves of hashes whose blocks are the last `blocks` of `total`.
fn last(blocks: u32, total: u32) -> impl Iterator<Item = u64> {
    let lowest = (u64::from(total - blocks) << 32).div_ceil(u64::from(total));
    let step = ((1 << 32) - lowest) / 500 + 1;
    (lowest..1 << 32).rev().step_by(step as usize)
}

#[test]
fn tiles_at_the_end_of_the_largest_filters() {
    for (blocks, total) in [(8, u32::MAX), (7, 1 << 31), (9, (1 << 31) + 1), (3, 3)] {
        let hashes: Vec<u64> = last(blocks, total)
            .enumerate()
            .map(|(i, lo)| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) << 32 | lo)
            .collect();
        let first = total - blocks;
        for probes in 1..=30 {
            let mut expected = vec![[0; 64]; blocks as usize];
            for &hash in &hashes {
                let index = probe::block_index(hash, total) - first;
                probe::insert(&mut expected[index as usize], hash, probes);
            }
            assert!(expected.iter().all(|block| *block != [0; 64]));
            for kernel in Kernel::supported() {
                for mut new in [vec![], vec![u64::MAX; hashes.len().div_ceil(64)]] {
                    let mut inserted = vec![[0; 64]; blocks as usize];
                    let tile = Tile { blocks: &mut inserted, first, total };
                    kernel.insert_into(tile, probes, &hashes, &mut new);
                    assert!(inserted == expected, "{kernel:?}, {probes} probes, {total} blocks");
                }
            }
        }
    }
}

/// Calls of every length into blocks at any alignment, of keys of which some come twice at every
/// distance, against one key at a time.
#[test]
fn every_kernel_says_which_hashes_were_new() {
    for probes in 1..=30 {
        for length in (0..=70).chain([127, 128, 129, 300]) {
            // The key that a later one repeats is one to 64 places before it.
            let mut hashes: Vec<u64> = (1..=length as u64)
                .map(|i| {
                    ((i + u64::from(probes)) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i << 25
                })
                .collect();
            for i in (0..length).filter(|i| i % 3 == 0) {
                hashes[i] = hashes[i - i.min((i / 3 * 5 + length) % 64 + 1)];
            }
            let mut expected = [[0; 64]; 40];
            let mut answers = vec![0; length.div_ceil(64)];
            for (i, &hash) in hashes.iter().enumerate() {
                let block = &mut expected[probe::block_index(hash, 40) as usize];
                answers[i / 64] |= u64::from(probe::insert(block, hash, probes)) << (i % 64);
            }
            for kernel in Kernel::supported() {
                for offset in [0, 1, 40] {
                    let mut bytes = vec![0; offset + 64 * 40];
                    let (blocks, _) = bytes[offset..].as_chunks_mut();
                    let mut new = vec![u64::MAX; length.div_ceil(64)];
                    kernel.insert_into(
                        Tile { blocks, first: 0, total: 40 },
                        probes,
                        &hashes,
                        &mut new,
                    );
                    let context = (kernel, probes, length, offset);
                    assert_eq!(new, answers, "{context:?}");
                    assert!(bytes[offset..] == *expected.as_flattened(), "{context:?}");
                }
            }
        }
    }
}

/// What keeps a kernel's writes inside the slice it was given.
#[cfg(all(feature = "std", panic = "unwind"))]
#[test]
fn a_hash_of_another_tile_panics() {
    for kernel in Kernel::supported() {
        for probes in [1, 6, 8, 9, 16, 17, 30] {
            for position in [0, 7, 8, 15, 16, 19] {
                // Blocks 10 to 12 of 100; the stray hash belongs to block 9, 13 or 99.
                for stray in [9, 13, 99] {
                    let lo = |block: u64| (block << 32).div_ceil(100);
                    let mut hashes = [lo(11); 20];
                    hashes[position] = lo(stray);
                    for new in [&mut [][..], &mut [0]] {
                        let outcome =
                            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                                let mut blocks = [[0; 64]; 3];
                                let tile = Tile { blocks: &mut blocks, first: 10, total: 100 };
                                kernel.insert_into(tile, probes, &hashes, new);
                            }));
                        assert!(outcome.is_err(), "{kernel:?}, {probes} probes, at {position}");
                    }
                }
            }
        }
    }
}
