//! Tests which kernel each operation runs in, and that it prefetches the lines that it reads later.

use alloc::vec;
use alloc::vec::Vec;
use std::format;

use blocked_bloom::{Block, Filter, Kernel, KeyHasher};

use super::driver::{KEYS, Places, for_each_eight};
use super::{contains, insert, remove};
use crate::tags::Place;
use crate::watch::{Event, events, kernels, lines, note};

fn hashes(count: u64) -> Vec<u64> {
    (0..count).map(|key| KeyHasher::default().hash(key.to_le_bytes())).collect()
}

/// The kernels of a lookup and of an insertion or removal, determined without `table`.
fn expected(kernel: Kernel) -> [&'static [&'static str]; 2] {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if !(std::is_x86_feature_detected!("bmi1") && std::is_x86_feature_detected!("popcnt"))
        && kernel.name().starts_with("avx")
    {
        return [&[]; 2];
    }
    match kernel.name() {
        "avx512" => [&["avx512"], &["avx2"]],
        "avx2" => [&["avx2"]; 2],
        "neon" => [&["neon"], &["portable"]],
        "portable" => [&["portable"]; 2],
        _ => [&[]; 2],
    }
}

/// The cache lines of both lines of each hash: two per line if lines straddle cache lines. The last
/// hash is repeated to fill eight.
fn read(memory: &[Block], hashes: &[u64]) -> Vec<usize> {
    let start = memory.as_ptr().addr();
    let last = hashes[hashes.len() - 1];
    let padded = hashes.iter().copied().chain([last; KEYS]);
    let mut read = Vec::new();
    for hash in padded.take(hashes.len().next_multiple_of(KEYS)) {
        let Place { first, second, .. } = Place::new(hash, memory.len() as u32);
        for line in [first, second] {
            let line = start + 64 * line as usize;
            read.push(line / 64);
            if !line.is_multiple_of(64) {
                read.push(line / 64 + 1);
            }
        }
    }
    read
}

/// Every operation runs in the loops of its kernel. If the filter exceeds the cache, it prefetches
/// the lines that it reads, in the order of the keys. Otherwise it prefetches nothing.
#[test]
fn operations_run_in_their_kernel_and_prefetch_what_they_read() {
    for kernel in Kernel::supported() {
        let [lookup_kernels, change_kernels] = expected(kernel);
        let threshold = kernel.prefetch_threshold() / 64;
        for (count, outgrows) in [(threshold, false), (threshold + 1, true)] {
            let mut bytes = vec![[0_u8; 64]; count + 2];
            let to_line = bytes.as_ptr().addr().wrapping_neg() % 64;
            for (shift, straddles) in [(to_line, false), (to_line + 1, true)] {
                for keys in [1, 8, 9, 203] {
                    let about = format!("{kernel}, {count} lines, {keys} keys, {straddles}");
                    let hashes = hashes(keys);
                    let blocks = &mut bytes.as_flattened_mut()[shift..][..64 * count];
                    let blocks: &mut [Block] = blocks.as_chunks_mut().0;
                    let prefetched = |ran: &[Event], kernels: &[&str]| {
                        // The scalar kernel does not prefetch, and neither do calls of up to eight
                        // keys.
                        outgrows && !kernels.is_empty() && {
                            assert!(keys <= 8 || !lines(ran).is_empty(), "{about}");
                            keys > 8
                        }
                    };
                    let mut words = vec![0; hashes.len().div_ceil(64)];
                    let found = events(|| contains(kernel, blocks, &hashes, &mut words));
                    assert_eq!(kernels(&found), lookup_kernels, "{about}");
                    match prefetched(&found, lookup_kernels) {
                        true => assert_eq!(lines(&found), read(blocks, &hashes), "{about}"),
                        false => assert!(lines(&found).is_empty(), "{about}"),
                    }
                    // Memory that is written is always aligned.
                    if straddles {
                        continue;
                    }
                    let added =
                        events(|| assert_eq!(insert(kernel, blocks, &hashes), hashes.len()));
                    let removed = events(|| {
                        assert_eq!(remove(kernel, blocks, &hashes, &mut words), hashes.len());
                    });
                    for found in [added, removed] {
                        assert_eq!(kernels(&found), change_kernels, "{about}");
                        match prefetched(&found, change_kernels) {
                            true => assert_eq!(lines(&found), read(blocks, &hashes), "{about}"),
                            false => assert!(lines(&found).is_empty(), "{about}"),
                        }
                    }
                }
            }
        }
    }
}

/// The lines of eight keys are prefetched four iterations before they are used, and only once.
#[test]
fn lines_are_prefetched_some_iterations_before_they_are_read() {
    let memory = vec![[0_u8; 64]; 1_000];
    for count in [1, 8, 30, 40, 41, 200] {
        let hashes = hashes(count);
        let all = events(|| {
            for_each_eight::<1, _>(memory.as_slice(), &hashes, Places::scalar, |_, _, _, _| {
                note(Event::Ran("visit"));
                true
            });
        });
        let visits = all.iter().enumerate().filter(|(_, event)| **event == Event::Ran("visit"));
        let eights = hashes.len().div_ceil(KEYS);
        assert_eq!(visits.clone().count(), eights);
        for (i, (at, _)) in visits.enumerate() {
            let prefetched = lines(&all[..at]).len();
            assert_eq!(prefetched, 2 * KEYS * (i + 5).min(eights), "{count} keys, {i}");
        }
        assert_eq!(lines(&all).len(), 2 * KEYS * eights);
    }
}

/// Readers prefetch like the core: 64 keys ahead, in order, each key once. `prefetch_hash`
/// prefetches one key.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[test]
fn readers_prefetch_what_they_read() {
    use blocked_bloom::parts::PrefetchAhead;

    const DISTANCE: usize = PrefetchAhead::<u64, fn(&u64)>::DISTANCE;
    let threshold = Kernel::default().prefetch_threshold() as u64;
    for (keys, outgrows) in [(threshold / 8, false), (threshold, true)] {
        let options = crate::RemovableOptions::new(keys);
        let filter = options.empty_filter().unwrap();
        assert_eq!(filter.memory_bytes() > threshold, outgrows);
        let hashes = hashes(203);
        let both = |view: &[Block], hash: u64| read(view, &[hash])[..2].to_vec();
        for &hash in &hashes {
            let found = lines(&events(|| filter.prefetch_hash(hash)));
            let twice = both(filter.lines(), hash).into_iter().flat_map(|line| [line; 2]);
            assert!(found.iter().copied().eq(twice));
        }
        let expected: Vec<usize> =
            hashes.iter().flat_map(|&hash| both(filter.lines(), hash)).collect();
        // Nothing is copied, so the lines keep their addresses.
        let writer = filter.into_writer();
        let reader = writer.reader();
        let prefetched_singly =
            lines(&events(|| hashes.iter().for_each(|&hash| reader.prefetch_hash(hash))));
        assert_eq!(prefetched_singly, expected);
        let mut hits = blocked_bloom::Bitmask::new();
        let all = events(|| reader.contains_hashes(&hashes, &mut hits));
        if !outgrows {
            assert!(lines(&all).is_empty());
            continue;
        }
        assert_eq!(lines(&all), expected);
        let looked_up = all.iter().enumerate().filter(|(_, event)| **event == Event::Ran("reader"));
        assert_eq!(looked_up.clone().count(), hashes.len());
        for (i, (at, _)) in looked_up.enumerate() {
            let prefetched = lines(&all[..at]).len() / 2;
            assert_eq!(prefetched, (i + 1 + DISTANCE).min(hashes.len()), "key {i}");
        }
    }
}
