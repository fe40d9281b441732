//! Every kernel returns the answers of the definition and leaves its lines, for every length,
//! number of lines and alignment.

use blocked_bloom::{Bitmask, Block, Filter, Kernel, KeyHash, LengthError};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions, tags};

use crate::common::{Random, kernels};
use crate::naive::Naive;

/// An empty filter with exactly this many lines.
fn empty(lines: usize, kernel: Kernel) -> RemovableFilter {
    let options = RemovableOptions::new(lines as u64 * 32).with_slack(0.0);
    let options = options.with_key_hash(KeyHash::Caller { tag: 1 });
    let filter = options.empty_filter().unwrap().with_kernel(kernel);
    assert_eq!(filter.lines().len(), lines);
    filter
}

/// Hashes: some share lines, and some share lines and tags.
fn hashes(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut hashes: Vec<u64> = Vec::with_capacity(count);
    for i in 0..count {
        let hash = match i % 4 {
            // Tags 0 and 1 are the same tag.
            1 => random.next() & 0x0001_ffff_ffff_ffff,
            2 if random.next().is_multiple_of(2) => hashes[random.next() as usize % i],
            _ => random.next(),
        };
        hashes.push(hash);
    }
    hashes
}

/// Present and random hashes, alternately.
fn queries(present: &[u64], count: usize) -> Vec<u64> {
    let mut random = Random(9);
    let pick = |i: usize| match i % 2 {
        0 => random.next(),
        _ => present[random.next() as usize % present.len()],
    };
    (0..count).map(pick).collect()
}

fn check(filter: RemovableFilter<&[Block]>, naive: &Naive, hashes: &[u64], hits: &mut Bitmask) {
    filter.contains_hashes(hashes, hits);
    assert_eq!(hits.words().len(), hashes.len().div_ceil(64));
    for (i, &hash) in hashes.iter().enumerate() {
        let expected = naive.contains(hash);
        assert_eq!(hits.get(i), Some(expected), "{filter:?}, {i} of {}", hashes.len());
    }
    if !hashes.len().is_multiple_of(64) {
        assert_eq!(hits.words().last().unwrap() >> (hashes.len() % 64), 0, "bits past the last");
    }
    let mut words = vec![u64::MAX; hashes.len().div_ceil(64)];
    filter.contains_hashes_into(hashes, &mut words).unwrap();
    assert_eq!(words, hits.words());
    let error = filter.contains_hashes_into(hashes, &mut vec![0; words.len() + 1]).unwrap_err();
    let LengthError { words: found, expected, .. } = error;
    assert_eq!((found, expected), (words.len() + 1, words.len()));
}

/// Inserts and removes the same hashes with every kernel and in the naive lines; returns the
/// latter.
fn filled(lines: usize, seed: u64) -> (Naive, Vec<u64>, RemovableFilter) {
    let hashes = hashes(lines * 28, seed);
    let mut naive = Naive::new(lines);
    let mut filter = empty(lines, Kernel::default());
    for &hash in &hashes {
        assert_eq!(naive.insert(hash), filter.insert_hash(hash).is_ok());
    }
    assert_eq!(naive.bytes(), filter.lines().as_flattened());
    assert_eq!(naive.len(), filter.keys_inserted());
    (naive, hashes, filter)
}

#[test]
fn queries_of_every_length_and_number_of_lines() {
    let kernels = kernels();
    let mut hits = Bitmask::new();
    // 20,011 lines (1.3 MB) exceed every kernel's prefetch threshold, so lines are prefetched.
    for lines in [1, 2, 3, 7, 64, 1_000, 20_011] {
        let (naive, present, filter) = filled(lines, lines as u64);
        let hashes = queries(&present, 200);
        for &kernel in &kernels {
            let view = filter.view().with_kernel(kernel);
            assert_eq!(view.kernel(), kernel);
            for length in 0..=200 {
                check(view, &naive, &hashes[..length], &mut hits);
            }
            for &hash in &hashes {
                assert_eq!(view.contains_hash(hash), naive.contains(hash), "{kernel}");
            }
        }
    }
}

#[test]
fn every_alignment_of_a_buffer_that_ends_at_its_allocation() {
    let kernels = kernels();
    let mut hits = Bitmask::new();
    for (lines, offsets) in [(1, 0..64), (7, 0..64), (20_011, 29..34)] {
        let (naive, present, filter) = filled(lines, 3);
        let stored = filter.to_bytes();
        let hashes = queries(&present, 150);
        for offset in offsets {
            // Exactly as long as needed, so that a sanitizer detects a read past the last line.
            let mut bytes = Vec::with_capacity(offset + stored.len());
            bytes.resize(offset, 0xff);
            bytes.extend_from_slice(&stored);
            let bytes = bytes.into_boxed_slice();
            let view = RemovableFilter::from_bytes_any_hash(&bytes[offset..]).unwrap();
            for &kernel in &kernels {
                check(view.view().with_kernel(kernel), &naive, &hashes, &mut hits);
            }
        }
    }
}

#[test]
fn long_batches_and_the_edges_of_every_range() {
    let mut hits = Bitmask::new();
    let edges = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
    let edges: Vec<u64> = edges.iter().flat_map(|hi| edges.map(|lo| hi << 32 | lo)).collect();
    for lines in [1, 2, 3, 1_000, 20_011] {
        let (mut naive, present, mut filter) = filled(lines, 5);
        for &hash in edges.iter().step_by(2) {
            assert_eq!(naive.insert(hash), filter.insert_hash(hash).is_ok());
        }
        for kernel in kernels() {
            let view = filter.view().with_kernel(kernel);
            check(view, &naive, &edges, &mut hits);
            for length in [4_095, 4_097, 65, 0, 64] {
                check(view, &naive, &queries(&present, length), &mut hits);
            }
        }
    }
}

/// Batches of every length, into lines that fill up and empty again. Compares the lines, the number
/// inserted, and the bits of the removed hashes.
#[test]
fn every_kernel_adds_and_removes_as_the_definition() {
    let kernels = kernels();
    let mut found = Bitmask::new();
    for lines in [1, 2, 3, 5, 64, 1_000, 20_011] {
        let all = hashes(lines * 40 + 300, lines as u64);
        for &kernel in &kernels {
            let mut filter = empty(lines, kernel);
            let (mut naive, mut rest, mut length) = (Naive::new(lines), &all[..], 0);
            while !rest.is_empty() {
                let (batch, later) = rest.split_at(length.min(rest.len()));
                let added = batch.iter().take_while(|&&hash| naive.insert(hash)).count();
                match filter.insert_hashes(batch) {
                    Ok(()) => assert_eq!(added, batch.len(), "{kernel}"),
                    Err(RemovableError::Full { inserted, taken, capacity, .. }) => {
                        assert_eq!(inserted, added, "{kernel}");
                        assert_eq!((taken, capacity), (naive.len(), 32 * lines as u64));
                    }
                    Err(error) => panic!("{error}"),
                }
                assert!(filter.lines().as_flattened() == naive.bytes(), "{kernel}, {length}");
                assert_eq!(filter.keys_inserted(), naive.len());
                rest = later;
                // Every length once, then a few long ones.
                length = if length < 70 { length + 1 } else { all.len() / 3 };
            }
            (rest, length) = (&all[..], 0);
            while !rest.is_empty() {
                let (batch, later) = rest.split_at(length.min(rest.len()));
                let expected: Vec<bool> = batch.iter().map(|&hash| naive.remove(hash)).collect();
                let removed = filter.remove_hashes(batch, &mut found);
                assert_eq!(removed, expected.iter().filter(|&&was_there| was_there).count());
                assert!(found.iter().eq(expected), "{kernel}, {length}");
                if !length.is_multiple_of(64) && !batch.is_empty() {
                    let past = found.words().last().unwrap() >> (batch.len() % 64);
                    assert!(batch.len().is_multiple_of(64) || past == 0, "bits past the last");
                }
                assert!(filter.lines().as_flattened() == naive.bytes(), "{kernel}, {length}");
                assert_eq!(filter.keys_inserted(), naive.len());
                rest = later;
                length = if length < 70 { length + 1 } else { all.len() / 3 };
            }
            assert!(filter.is_empty() == (naive.len() == 0));
        }
    }
}

#[test]
fn the_definition_is_the_documented_one() {
    let mut random = Random(6);
    for lines in [1, 2, 3, 10, 501] {
        let (mut naive, mut plain) = (Naive::new(lines), vec![[0; 64]; lines]);
        for _ in 0..3_000 {
            let hash = random.next() & 0x0007_ffff_ffff_ffff;
            match random.next() % 3 {
                0 => assert_eq!(tags::remove(&mut plain, hash), naive.remove(hash)),
                _ => assert_eq!(tags::insert(&mut plain, hash), naive.insert(hash)),
            }
            assert_eq!(tags::contains(&plain, hash), naive.contains(hash));
            assert_eq!(plain.as_flattened(), naive.bytes());
        }
        assert!(naive.len() > 0);
    }
}

#[test]
fn keys_are_the_hashes_of_their_bytes() {
    let keys: Vec<Vec<u8>> = (0..3_000_u32).map(|i| vec![i as u8; i as usize % 40]).collect();
    for kernel in kernels() {
        let mut filled_with_keys =
            RemovableOptions::new(5_000).empty_filter().unwrap().with_kernel(kernel);
        let mut filled_with_hashes = filled_with_keys.clone();
        let hasher = filled_with_keys.hasher().unwrap();
        let hashes: Vec<u64> = keys.iter().map(|key| hasher.hash(key)).collect();
        // The empty key occurs 75 times; 64 copies fit.
        let (a, b) =
            (filled_with_keys.insert_batch(&keys), filled_with_hashes.insert_hashes(&hashes));
        assert_eq!(a, b);
        assert_eq!(filled_with_keys, filled_with_hashes);
        let keys = &keys[..1_500];
        let (mut hits, mut expected) = (Bitmask::new(), Bitmask::new());
        filled_with_keys.contains_batch(keys, &mut hits);
        filled_with_hashes.contains_hashes(&hashes[..1_500], &mut expected);
        assert_eq!(hits, expected);
        let removed = filled_with_keys.remove_batch(keys, &mut hits).unwrap();
        assert_eq!(removed, filled_with_hashes.remove_hashes(&hashes[..1_500], &mut expected));
        assert_eq!(hits, expected);
        assert_eq!(filled_with_keys, filled_with_hashes);
        assert_eq!(filled_with_keys.keys_inserted(), filled_with_hashes.keys_inserted());
    }
}

/// A tag in only one lane, among tags that differ from it slightly: no lane is missed or mistaken.
#[test]
fn every_lane_of_both_lines_is_compared() {
    let lines = 5;
    let stored = empty(lines, Kernel::default()).to_bytes();
    let mut random = Random(4);
    let mut hits = Bitmask::new();
    for tag in [1_u16, 0x00ff, 0x0100, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff] {
        let naive = Naive::new(lines);
        let hash = loop {
            let hash = u64::from(tag) << 48 | random.next() >> 16;
            if naive.place(hash).0 != naive.place(hash).1 {
                break hash;
            }
        };
        let (first, second, found) = naive.place(hash);
        assert_eq!(found, tag);
        let near = [tag ^ 1, tag ^ 0x100, tag ^ 0x8000, tag ^ 0x8001, 0, !tag];
        let full: [u16; 32] = std::array::from_fn(|lane| near[lane % near.len()]);
        for line in [first, second] {
            for lane in 0..32 {
                for others in [[0; 32], full] {
                    for present in [false, true] {
                        let mut naive = Naive(vec![others; lines]);
                        if present {
                            naive.0[line][lane] = tag;
                        }
                        let bytes = [&stored[..64], &naive.bytes()].concat();
                        let view = RemovableFilter::from_bytes_trusted_any_hash(&bytes).unwrap();
                        for kernel in Kernel::supported() {
                            for batch in [&[hash][..], &[hash; 9]] {
                                view.with_kernel(kernel).contains_hashes(batch, &mut hits);
                                let expected = if present { batch.len() } else { 0 };
                                assert_eq!(
                                    hits.count_hits(),
                                    expected,
                                    "{kernel}, {tag:#x}, {lane}"
                                );
                            }
                        }
                        assert_eq!(view.contains_hash(hash), present);
                    }
                }
            }
        }
    }
}
