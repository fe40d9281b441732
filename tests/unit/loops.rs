//! Unit tests of `src/kernel.rs`: the kernel loops that each operation runs, and the prefetches of
//! insertions, which must be for the blocks that are written several keys later. A module of
//! `kernel.rs` in this folder.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use std::format;

use super::super::tuning::{TUNINGS, Tuning, tuning};
use super::super::{GROUP, Kernel, PrefetchAhead, Tile};
use crate::hash::{HashIntegers, HashKeys, KernelHash};
use crate::probe::{Block, block_index};
use crate::watch::{Event, events, kernels, lines, tune};
use crate::{BloomFilter, Filter, KeyHash, KeyHasher, Sizing};

const DISTANCE: usize = PrefetchAhead::<u64, fn(&u64)>::DISTANCE;

fn hashes(count: u64) -> Vec<u64> {
    (0..count).map(|key| KeyHasher::default().hash(key.to_le_bytes())).collect()
}

fn filter(blocks: usize, probes: u32, kernel: Kernel) -> BloomFilter {
    let params = Sizing::MaxBytes(64 + 64 * blocks as u64).params(1 << 40).unwrap();
    let params = params.with_probes(probes).unwrap();
    assert_eq!(params.blocks() as usize, blocks);
    BloomFilter::with_params(params, KeyHash::default()).unwrap().with_kernel(kernel)
}

/// The loops that run if the kernel has its own.
fn expected_names(kernel: Kernel) -> Vec<&'static str> {
    match kernel.name() {
        // Scalar lookups are not recorded.
        "scalar" => Vec::new(),
        name => vec![name],
    }
}

/// Every lookup and insertion, with few keys and many, and filters of every size: catches a kernel
/// that is never used.
#[test]
fn each_operation_runs_in_its_kernel() {
    let all = hashes(300);
    for kernel in Kernel::supported() {
        let threshold = kernel.prefetch_threshold() / 64;
        for blocks in [3, threshold + 1] {
            for probes in [1, 6, 8, 9, 16, 17, 30] {
                let about = format!("{kernel}, {blocks} blocks, {probes} probes");
                let mut filter = filter(blocks, probes, kernel);
                // With fewer than four keys, the portable kernel has no loop; NEON uses one for
                // all.
                let simd = matches!(kernel.name(), "avx512" | "avx2");
                for count in [1, 2, 3, 4, 8, 9, 40, 64, 65, 300] {
                    let mut words = vec![0; all[..count].len().div_ceil(64)];
                    let ran = kernels(&events(|| {
                        filter.contains_hashes_into(&all[..count], &mut words).unwrap();
                    }));
                    let expected = match kernel.name() {
                        "portable" if count < 4 => Vec::new(),
                        _ => expected_names(kernel),
                    };
                    assert_eq!(ran, expected, "{about}, {count} keys");
                    let ran = kernels(&events(|| filter.insert_hashes(&all[..count]).unwrap()));
                    let expected = match kernel.name() {
                        // Fewer than four keys are inserted probe by probe.
                        "avx512" if count < 4 => "scalar",
                        "avx2" if probes > 16 => "scalar",
                        "avx512" | "avx2" => kernel.name(),
                        _ => "scalar",
                    };
                    assert_eq!(ran, [expected], "{about}, {count} keys");
                }
                let ran = kernels(&events(|| assert!(filter.contains_hash(all[0]))));
                #[cfg(not(target_feature = "avx2"))]
                assert_eq!(ran, if simd { expected_names(kernel) } else { Vec::new() }, "{about}");
                #[cfg(target_feature = "avx2")]
                let _ = (ran, simd);
            }
        }
    }
}

/// Hashing: slices and arrays of the lengths that vectors support, and integers; other keys one by
/// one.
#[test]
fn batches_are_hashed_by_the_kernels_vectors() {
    let bytes = [7_u8; 17];
    let hasher = KeyHasher::default();
    for kernel in Kernel::supported() {
        let most = match kernel.name() {
            "avx512" => 16,
            "avx2" => 8,
            _ => 0,
        };
        for length in [0, 3, 4, 7, 8, 9, 16, 17] {
            let vectors = (4..=most).contains(&length);
            let expected = if vectors { vec![kernel.name()] } else { Vec::new() };
            for count in [32, 100, 1_000] {
                let (keys, mut hashes) = (vec![&bytes[..length]; count], vec![0; count]);
                let ran = kernels(&events(|| hasher.hash_by(kernel, &keys, &mut hashes)));
                assert_eq!(ran, expected, "{kernel}, {count} keys of {length} bytes");
                // The public methods use the default kernel.
                if kernel == Kernel::default() {
                    let ran = kernels(&events(|| hasher.hash_batch(&keys, &mut hashes)));
                    assert_eq!(ran, expected, "{count} keys of {length} bytes");
                }
            }
        }
        let expected = if most > 0 { vec![kernel.name()] } else { Vec::new() };
        let (keys, mut hashes) = (vec![1; 100], vec![0; 100]);
        let mut memory = [const { MaybeUninit::uninit() }; 100];
        let ran = kernels(&events(|| {
            HashIntegers::new(hasher, kernel).hash_keys(&keys, &mut memory);
        }));
        assert_eq!(ran, expected, "{kernel}");
        if kernel == Kernel::default() {
            let ran = kernels(&events(|| hasher.hash_u64s(&keys, &mut hashes).unwrap()));
            assert_eq!(ran, expected);
            let fixed = |ran: &mut dyn FnMut()| kernels(&events(ran));
            let mut of_eight = || hasher.hash_fixed(&[[1; 8]; 100], &mut hashes).unwrap();
            assert_eq!(fixed(&mut of_eight), expected);
            let mut of_sixteen = || hasher.hash_fixed(&[[1; 16]; 100], &mut hashes).unwrap();
            assert_eq!(fixed(&mut of_sixteen), if most == 16 { expected } else { Vec::new() });
        }
    }
}

/// If a lookup is the first call of a process, it detects the size of the cache.
#[test]
fn the_first_call_of_a_process_finds_out_what_fits() {
    const CHILD: &str = "BLOCKED_BLOOM_TEST_FIRST_CALL";
    if std::env::var_os(CHILD).is_none() {
        let thread = std::thread::current();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", thread.name().unwrap()]).env(CHILD, "1");
        let status = child.status().unwrap();
        return assert!(status.success());
    }
    let memory = vec![[0; 64]; 100];
    let filter = BloomFilter::from_blocks(&memory[..], 6, KeyHash::default()).unwrap();
    let mut hits = crate::Bitmask::new();
    let keys: Vec<u64> = (0..32).collect();
    assert!(lines(&events(|| filter.contains_u64s(&keys, &mut hits))).is_empty());
}

/// Returns the line of each hash's block.
fn read<B>(blocks: &[B], hashes: &[u64]) -> Vec<usize> {
    let count = blocks.len() as u32;
    hashes
        .iter()
        .map(|&hash| blocks.as_ptr().addr() / 64 + block_index(hash, count) as usize)
        .collect()
}

/// Insertion into a filter larger than the cache prefetches the line of every key once, in order,
/// and at the usual distance. Insertion into a smaller filter does not prefetch.
#[test]
fn inserts_prefetch_the_blocks_that_they_write() {
    for kernel in Kernel::supported() {
        let threshold = kernel.prefetch_threshold() / 64;
        for (blocks, outgrows) in [(threshold, false), (threshold + 1, true)] {
            for probes in [1, 6, 8, 16, 30] {
                for count in [1, 3, 4, 8, 64, 65, 203] {
                    let about = format!("{kernel}, {blocks} blocks, {probes} probes, {count}");
                    let hashes = hashes(count);
                    let mut memory = vec![[0; 64]; blocks];
                    let expected = if outgrows { read(&memory, &hashes) } else { Vec::new() };
                    let tile = Tile { blocks: &mut memory, first: 0, total: blocks as u32 };
                    let all = events(|| kernel.insert_into(tile, probes, &hashes, &mut []));
                    assert!(lines(&all) == expected, "{about}");
                    if !outgrows {
                        continue;
                    }
                    // Each iteration records that it ran before it writes its keys; AVX-512 has
                    // eight keys per iteration.
                    let keys = if kernels(&all) == ["avx512"] { 8 } else { 1 };
                    let iterations = all.iter().enumerate();
                    let iterations = iterations.filter(|(_, event)| matches!(event, Event::Ran(_)));
                    assert_eq!(iterations.clone().count(), hashes.len().div_ceil(keys), "{about}");
                    for (i, (at, _)) in iterations.enumerate() {
                        let prefetched = lines(&all[..at]).len();
                        let reached = ((i + 1) * keys + DISTANCE).min(hashes.len());
                        assert_eq!(prefetched, reached, "{about}, iteration {i}");
                    }
                }
            }
        }
        // A part of a filter, like the one of each thread: its own blocks.
        let (first, total) = (threshold as u32, 3 * threshold as u32);
        let mut part = vec![[0; 64]; threshold + 1];
        let mut hashes = hashes(3_000);
        let index = |hash| block_index(hash, total).wrapping_sub(first) as usize;
        hashes.retain(|&hash| index(hash) < part.len());
        let start = part.as_ptr().addr() / 64;
        let expected: Vec<usize> = hashes.iter().map(|&hash| start + index(hash)).collect();
        let tile = Tile { blocks: &mut part, first, total };
        assert!(
            lines(&events(|| kernel.insert_into(tile, 6, &hashes, &mut []))) == expected,
            "{kernel}"
        );
    }
}

/// Returns the line of each hash's block, or both lines if blocks straddle two.
fn lines_of(blocks: &[Block], hashes: &[u64]) -> Vec<usize> {
    let (start, count) = (blocks.as_ptr().addr(), blocks.len() as u32);
    let both = |&hash: &u64| {
        let first = start + 64 * block_index(hash, count) as usize;
        let lines = if first.is_multiple_of(64) { 1 } else { 2 };
        [first / 64, first.div_ceil(64)].into_iter().take(lines)
    };
    hashes.iter().flat_map(both).collect()
}

/// Whether a call with so many hashes, or so many keys, prefetches in a filter with so many blocks,
/// by this CPU's row.
fn prefetches(kernel: Kernel, blocks: usize, count: usize, from_keys: bool) -> bool {
    let Tuning { short_calls, long_calls, .. } = *tuning();
    let times = match count {
        65.. => long_calls,
        _ if count <= kernel.0.overlapped && !from_keys => return false,
        // The CPU overlaps the cache misses of several such calls.
        ..=2 if from_keys => return false,
        _ if count <= 2 * kernel.0.overlapped && from_keys => 1,
        _ if count <= kernel.0.short_calls => short_calls,
        _ => 1,
    };
    blocks > times * kernel.prefetch_threshold() / 64
}

/// Runs `work` with each row of the table in turn. The prefetching of short calls stays that of
/// this CPU's row, which is detected once.
fn with_each_tuning(work: impl Fn()) {
    let short_calls = tuning().short_calls;
    for (.., row) in &TUNINGS {
        tune(Some(Box::leak(Box::new(Tuning { short_calls, ..*row }))));
        work();
    }
    tune(None);
}

/// A lookup with prefetching prefetches the line of every key once, in order, and several keys
/// before the key is tested.
#[test]
fn lookups_prefetch_the_blocks_that_they_test() {
    with_each_tuning(lookups_prefetch);
}

fn lookups_prefetch() {
    for kernel in Kernel::supported() {
        let threshold = kernel.prefetch_threshold() / 64;
        for count in [threshold, threshold + 1, 4 * threshold, 4 * threshold + 4, 8 * threshold] {
            let mut memory = vec![[0xff; 64]; count + 1];
            let to_line = memory.as_ptr().addr().wrapping_neg() % 64;
            for shift in [to_line, to_line + 1] {
                let blocks: &mut [Block] =
                    memory.as_flattened_mut()[shift..].as_chunks_mut::<64>().0;
                let blocks = &blocks[..count];
                for probes in [1, 6, 16, 30] {
                    let filter = BloomFilter::from_blocks(blocks, probes, KeyHash::default());
                    let filter = filter.unwrap().with_kernel(kernel);
                    for keys in [1, 2, 8, 9, 33, 64, 65, 203, 1_100] {
                        let about = format!("{kernel}, {count} blocks, {probes} probes, {keys}");
                        let (hashes, mut words) =
                            (hashes(keys), vec![0; keys.div_ceil(64) as usize]);
                        let expected = lines_of(blocks, &hashes);
                        let each = expected.len() / hashes.len();
                        let check = |all: &[Event]| {
                            let found = lines(all);
                            if !prefetches(kernel, count, hashes.len(), false) {
                                return assert!(found.is_empty(), "{about}");
                            }
                            assert!(found == expected, "{about}");
                            // When an iteration starts, the lines of the keys in the next 64 places
                            // are prefetched, with any number of keys per iteration.
                            let iterations: Vec<usize> = all
                                .iter()
                                .enumerate()
                                .filter(|(_, event)| matches!(event, Event::Ran(_)))
                                .map(|(at, _)| lines(&all[..at]).len() / each)
                                .collect();
                            for (i, &prefetched) in iterations.iter().enumerate() {
                                let first = i * hashes.len() / iterations.len();
                                let least = (first + DISTANCE).min(hashes.len());
                                assert!(prefetched >= least, "{about}, iteration {i}");
                            }
                            // Not all at once: the first lines would be evicted before they are
                            // used.
                            // (The scalar loop is not recorded.)
                            if hashes.len() > 1_000 && kernel.name() != "scalar" {
                                assert!(iterations[0] <= 4 * DISTANCE, "{about}");
                            }
                        };
                        let looked_up = events(|| {
                            filter.contains_hashes_into(&hashes, &mut words).unwrap();
                        });
                        check(&looked_up);
                        // The blocks are full. Not every CPU prefetches in groups, so other tests
                        // may not see these answers.
                        let found = words.iter().map(|word| u64::from(word.count_ones()));
                        assert_eq!(found.sum::<u64>(), keys, "{about}");
                        if keys > 64 {
                            continue;
                        }
                        let by_hand =
                            events(|| hashes.iter().for_each(|&hash| filter.prefetch_hash(hash)));
                        let twice = hashes.iter().flat_map(|&hash| {
                            let lines = lines_of(blocks, &[hash]);
                            [lines[0], lines[lines.len() - 1]]
                        });
                        assert!(lines(&by_hand).into_iter().eq(twice), "{about}");
                    }
                }
            }
        }
    }
}

/// If groups of hashes are prefetched, two groups are in flight besides the one being tested.
#[test]
fn groups_of_hashes_are_prefetched_without_a_gap() {
    // The first row, since not every CPU prefetches in groups.
    tune(Some(&TUNINGS[0].3));
    const GROUPS: usize = 20;
    for kernel in Kernel::supported().filter(|kernel| kernel.name() != "scalar") {
        let filter = filter(8 * kernel.prefetch_threshold() / 64, 6, kernel);
        let (hashes, mut words) = (hashes((GROUPS * GROUP) as u64), [0; GROUPS]);
        let all = events(|| filter.contains_hashes_into(&hashes, &mut words).unwrap());
        let tests = all.iter().enumerate().filter(|(_, event)| matches!(event, Event::Ran(_)));
        let of_a_group = tests.clone().count() / GROUPS;
        assert!(of_a_group > 0, "{kernel}");
        for (i, (at, _)) in tests.enumerate() {
            let group = i / of_a_group;
            let expected = ((group + 3) * GROUP).min(hashes.len());
            assert_eq!(lines(&all[..at]).len(), expected, "{kernel}, group {group}");
        }
    }
}

/// Also for keys and integers: prefetches the blocks of all keys in order, with any number of keys
/// hashed at a time.
#[test]
fn lookups_of_keys_prefetch_the_blocks_that_they_test() {
    with_each_tuning(lookups_of_keys_prefetch);
}

fn lookups_of_keys_prefetch() {
    for kernel in Kernel::supported().filter(|kernel| kernel.name() != "scalar") {
        let threshold = kernel.prefetch_threshold() / 64;
        for count in [threshold, threshold + 1, 4 * threshold, 4 * threshold + 4, 8 * threshold] {
            let mut filter = filter(count, 6, kernel);
            filter.insert_hashes(&hashes(3_008)).unwrap();
            let mut hits = crate::Bitmask::new();
            for keys in [2, 3, 4, 5, 8, 16, 17, 64, 65, 203, 3_008_u64] {
                let integers: Vec<u64> = (0..keys).collect();
                let keys: Vec<[u8; 8]> = integers.iter().map(|key| key.to_le_bytes()).collect();
                let expected = match prefetches(kernel, count, keys.len(), true) {
                    true => lines_of(filter.blocks(), &hashes(keys.len() as u64)),
                    false => Vec::new(),
                };
                let of_keys = events(|| filter.contains_batch(&keys, &mut hits));
                // Not every CPU prefetches in groups, so other tests may not see these answers.
                assert_eq!(hits.count_hits(), keys.len(), "{kernel}, {count} blocks");
                let integers = events(|| filter.contains_u64s(&integers, &mut hits));
                assert_eq!(hits.count_hits(), keys.len(), "{kernel}, {count} blocks");
                for all in [of_keys, integers] {
                    assert!(
                        lines(&all) == expected,
                        "{kernel}, {count} blocks, {} keys",
                        keys.len()
                    );
                }
            }
        }
    }
}

/// If groups of keys are prefetched, two are always in flight, even if the batch has more keys than
/// are hashed at a time otherwise.
#[test]
fn groups_of_keys_are_prefetched_without_a_gap() {
    // The first row, since not every CPU prefetches in groups.
    tune(Some(&TUNINGS[0].3));
    const GROUPS: usize = 48;
    for kernel in Kernel::supported().filter(|kernel| kernel.name() != "scalar") {
        let filter = filter(kernel.prefetch_threshold() / 8 + 1, 6, kernel);
        // So long that vectors do not hash them, whose loops would be recorded too.
        let key = |i: u64| {
            let mut key = [0; 17];
            key[..8].copy_from_slice(&i.to_le_bytes());
            key
        };
        let keys: Vec<_> = (0..(GROUPS * GROUP) as u64).map(key).collect();
        let hashes: Vec<u64> = keys.iter().map(|key| KeyHasher::default().hash(key)).collect();
        let mut hits = crate::Bitmask::new();
        let all = events(|| filter.contains_batch(&keys, &mut hits));
        assert!(lines(&all) == lines_of(filter.blocks(), &hashes), "{kernel}");
        let tests = all.iter().enumerate().filter(|(_, event)| matches!(event, Event::Ran(_)));
        let of_a_group = tests.clone().count() / GROUPS;
        assert!(of_a_group > 0, "{kernel}");
        for (i, (at, _)) in tests.enumerate() {
            let group = i / of_a_group;
            let expected = ((group + 3) * GROUP).min(keys.len());
            assert_eq!(lines(&all[..at]).len(), expected, "{kernel}, group {group}");
        }
    }
}

/// Filters that threads share: batches of lookups and of insertions, and a single key.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[test]
fn shared_filters_prefetch_what_they_read() {
    let threshold = Kernel::default().prefetch_threshold() / 64;
    let hashes = hashes(203);
    let mut hits = crate::Bitmask::new();
    for (blocks, outgrows) in [(threshold, false), (threshold + 1, true)] {
        let filter = filter(blocks, 6, Kernel::default());
        // Nothing is copied, so the blocks keep their address.
        let expected = read(filter.blocks(), &hashes);
        let shared = crate::AtomicBloomFilter::from(filter);
        let by_hand = events(|| hashes.iter().for_each(|&hash| shared.prefetch_hash(hash)));
        assert!(lines(&by_hand) == expected);
        let expected = if outgrows { expected } else { Vec::new() };
        let looked_up = events(|| shared.contains_hashes(&hashes, &mut hits));
        assert!(lines(&looked_up) == expected, "{blocks} blocks");
        let added = events(|| shared.insert_hashes(&hashes).unwrap());
        assert!(lines(&added) == expected, "{blocks} blocks");
        for all in [looked_up, added] {
            let keys = all.iter().enumerate().filter(|(_, event)| **event == Event::Ran("shared"));
            assert_eq!(keys.clone().count(), hashes.len());
            for (i, (at, _)) in keys.enumerate().filter(|_| outgrows) {
                assert_eq!(
                    lines(&all[..at]).len(),
                    (i + 1 + DISTANCE).min(hashes.len()),
                    "key {i}"
                );
            }
        }
    }
}
