//! Every kernel agrees with the probe scheme, for every length, number of blocks and alignment.
//! Folding and union are exact.

use blocked_bloom::{Bitmask, Filter, LengthError};
use blocked_bloom_split::{SplitBlock, SplitBlockError, SplitBlockFilter, hash_value, split_block};

use crate::common::{Random, kernels};

/// The probe scheme as Parquet defines it, in arithmetic that shares nothing with `split_block`:
/// the bytes and bits that a hash sets.
fn bits(hash: u64, bytes: usize) -> [(usize, u8); 8] {
    const SALTS: [u128; 8] = [
        0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947,
        0x5c6bfb31,
    ];
    let (low, high) = (u128::from(hash) % (1 << 32), u128::from(hash) / (1 << 32));
    let block = (high * (bytes as u128 / 32) / (1 << 32)) as usize;
    std::array::from_fn(|word| {
        let bit = (low * SALTS[word] % (1 << 32) / (1 << 27)) as usize;
        (32 * block + 4 * word + bit / 8, 1 << (bit % 8))
    })
}

fn naive_contains(bitset: &[u8], hash: u64) -> bool {
    bits(hash, bitset.len()).iter().all(|&(byte, bit)| bitset[byte] & bit != 0)
}

fn naive_insert(bitset: &mut [u8], hash: u64) {
    for (byte, bit) in bits(hash, bitset.len()) {
        bitset[byte] |= bit;
    }
}

/// A bitset of this many blocks with ten bits per key, and its hashes.
fn filled(blocks: usize, seed: u64) -> (Vec<u8>, Vec<u64>) {
    let mut bitset = vec![0; 32 * blocks];
    let hashes = Random(seed).hashes(blocks * 26);
    hashes.iter().for_each(|&hash| naive_insert(&mut bitset, hash));
    (bitset, hashes)
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

fn check(filter: SplitBlockFilter<&[SplitBlock]>, hashes: &[u64], hits: &mut Bitmask) {
    let bitset = filter.blocks().as_flattened();
    filter.contains_hashes(hashes, hits);
    assert_eq!(hits.words().len(), hashes.len().div_ceil(64));
    for (i, &hash) in hashes.iter().enumerate() {
        let expected = naive_contains(bitset, hash);
        assert_eq!(hits.get(i), Some(expected), "{filter:?}, {i} of {}", hashes.len());
        assert_eq!(filter.contains_hash(hash), expected, "{filter:?}, {hash:#x} alone");
    }
    if !hashes.len().is_multiple_of(64) {
        assert_eq!(hits.words().last().unwrap() >> (hashes.len() % 64), 0, "bits past the last");
    }
    let one_by_one = filter.with_lookup(|lookup| -> Vec<bool> {
        hashes.iter().map(|&hash| lookup.contains_hash(hash)).collect()
    });
    assert!(hits.iter().eq(one_by_one), "{filter:?}, by one dispatch");
    let mut words = vec![u64::MAX; hashes.len().div_ceil(64)];
    filter.contains_hashes_into(hashes, &mut words).unwrap();
    assert_eq!(words, hits.words());
    let error = filter.contains_hashes_into(hashes, &mut vec![0; words.len() + 1]).unwrap_err();
    let LengthError { words: found, expected, .. } = error;
    assert_eq!((found, expected), (words.len() + 1, words.len()));
}

#[test]
fn every_length_and_number_of_blocks() {
    let kernels = kernels();
    let mut hits = Bitmask::new();
    // 100,003 blocks (3.2 MB) exceed the prefetch threshold, so they are prefetched.
    for blocks in [1, 2, 3, 7, 64, 1_000, 100_003] {
        let (bitset, present) = filled(blocks, blocks as u64);
        let hashes = queries(&present, 200);
        let filter = SplitBlockFilter::from_bitset(&bitset).unwrap();
        for &kernel in &kernels {
            for length in 0..=200 {
                check(filter.with_kernel(kernel), &hashes[..length], &mut hits);
            }
        }
    }
}

#[test]
fn every_alignment_of_a_buffer_that_ends_at_its_allocation() {
    let kernels = kernels();
    let mut hits = Bitmask::new();
    for (blocks, offsets) in [(1, 0..64), (7, 0..64), (100_003, 29..34)] {
        let (bitset, present) = filled(blocks, 3);
        let hashes = queries(&present, 150);
        for offset in offsets {
            // Exactly as long as needed, so that a sanitizer detects a read past the last block.
            let mut bytes = Vec::with_capacity(offset + bitset.len());
            bytes.resize(offset, 0xff);
            bytes.extend_from_slice(&bitset);
            let bytes = bytes.into_boxed_slice();
            let filter = SplitBlockFilter::from_bitset(&bytes[offset..]).unwrap();
            for &kernel in &kernels {
                check(filter.with_kernel(kernel), &hashes, &mut hits);
            }
        }
    }
}

#[test]
fn long_batches_and_the_edges_of_every_range() {
    let mut hits = Bitmask::new();
    let edges = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
    let edges: Vec<u64> = edges.iter().flat_map(|hi| edges.map(|lo| hi << 32 | lo)).collect();
    for blocks in [1, 2, 3, 1_000, 100_003] {
        let (mut bitset, present) = filled(blocks, 5);
        edges.iter().step_by(2).for_each(|&hash| naive_insert(&mut bitset, hash));
        let filter = SplitBlockFilter::from_bitset(&bitset).unwrap();
        for kernel in kernels() {
            check(filter.with_kernel(kernel), &edges, &mut hits);
            for length in [4_095, 4_097, 65, 0, 64] {
                check(filter.with_kernel(kernel), &queries(&present, length), &mut hits);
            }
        }
    }
}

#[test]
fn batches_of_keys_are_answered_as_their_hashes() {
    let long = [7; 300];
    let keys: Vec<&[u8]> = (0..700).map(|i| &long[..i % 300]).collect();
    let hashes: Vec<u64> = keys.iter().map(hash_value).collect();
    let (mut hits, mut expected) = (Bitmask::new(), Bitmask::new());
    // Blocks in 8 MiB are prefetched while keys are hashed.
    for blocks in [16, 65_536, 262_144] {
        let mut filter = SplitBlockFilter::with_blocks(blocks).unwrap();
        keys.iter().step_by(3).for_each(|key| _ = filter.insert(key));
        for kernel in kernels() {
            let filter = filter.view().with_kernel(kernel);
            for length in (0..=520).chain([640, 700]) {
                filter.contains_hashes(&hashes[..length], &mut expected);
                filter.contains_batch(&keys[..length], &mut hits);
                assert_eq!(hits, expected, "{filter:?}, {length} keys");
                assert!((0..length).step_by(3).all(|i| hits.get(i) == Some(true)));
            }
        }
    }
}

#[test]
fn every_kernel_inserts_the_bits_of_the_probe_scheme() {
    for blocks in [1, 2, 8, 1_024, 65_536] {
        for length in [0, 1, 3, 63, 64, 65, 200, 5_000] {
            let hashes = Random(u64::from(blocks)).hashes(length);
            let mut expected = vec![0; 32 * blocks as usize];
            hashes.iter().for_each(|&hash| naive_insert(&mut expected, hash));
            let mut one_by_one = SplitBlockFilter::with_blocks(blocks).unwrap();
            for &hash in &hashes {
                let new = !one_by_one.view().contains_hash(hash);
                assert_eq!(one_by_one.insert_hash(hash), new);
            }
            assert!(one_by_one.view().blocks().as_flattened() == expected);
            for kernel in kernels() {
                let mut batch = SplitBlockFilter::with_blocks(blocks).unwrap().with_kernel(kernel);
                batch.insert_hashes(&hashes);
                assert_eq!(batch, one_by_one, "{kernel:?}");
            }
        }
    }
}

#[test]
fn the_oracle_is_the_documented_probe_scheme() {
    let mut random = Random(6);
    for _ in 0..2_000 {
        let (hash, blocks) = (random.next(), (random.next() >> 40) as u32 + 1);
        let block = split_block::block_index(hash, blocks) as usize;
        let expected = bits(hash, 32 * blocks as usize);
        assert!(expected.iter().all(|(byte, _)| byte / 32 == block));
        let mut block = [0; 32];
        split_block::insert(&mut block, hash);
        for (byte, bit) in expected {
            assert_eq!(block[byte % 32], bit);
            assert!(split_block::contains(&block, hash));
            block[byte % 32] = 0;
            assert!(!split_block::contains(&block, hash));
            block[byte % 32] = bit;
        }
    }
}

#[test]
fn folding_gives_the_filter_of_the_smaller_size() {
    for blocks in [1, 2, 64, 8_192] {
        for keys in [0, 1, 40, 3_000] {
            let hashes = Random(keys as u64).hashes(keys);
            for rate in [0.0, 1e-9, 0.001, 0.01, 0.3, 1.0] {
                let mut filter = SplitBlockFilter::with_blocks(blocks).unwrap();
                filter.insert_hashes(&hashes);
                let fill = filter.view().fill_ratio();
                let divisor = filter.shrink_to_false_positive_rate(rate);
                assert_eq!(blocks % divisor, 0);
                let left = blocks / divisor;
                assert_eq!(left as usize, filter.view().blocks().len());
                let mut made = SplitBlockFilter::with_blocks(left).unwrap();
                made.insert_hashes(&hashes);
                assert_eq!(filter, made, "{blocks} blocks, {keys} keys, {rate}");
                assert_eq!(filter.to_bytes(), made.to_bytes());
                // The smallest size that is estimated to keep the rate.
                let estimate = |folded: u32| (1.0 - (1.0 - fill).powf(folded.into())).powi(8);
                if left < blocks {
                    assert!(estimate(blocks / left) <= rate * 1.000_001);
                }
                if left > 1 {
                    assert!(estimate(2 * blocks / left) > rate * 0.999_999);
                }
                filter.insert_hash(7);
                assert!(filter.view().contains_hash(7));
            }
        }
    }
    let mut filter = SplitBlockFilter::with_blocks(8).unwrap();
    filter.insert("one");
    assert_eq!(filter.shrink_to_false_positive_rate(f64::NAN), 1);
    assert_eq!(filter.view().blocks().len(), 8);
    // A rate that is just the estimate of half the blocks is kept by them.
    let unset = 1.0 - filter.view().fill_ratio();
    let half = (1.0 - unset * unset).powi(2).powi(2).powi(2);
    for (rate, divisor) in [(half.next_down(), 1), (half, 2)] {
        assert_eq!(filter.clone().shrink_to_false_positive_rate(rate), divisor);
    }
    // An empty filter keeps every rate, even an invalid one.
    for rate in [f64::NAN, -1.0] {
        let mut empty = SplitBlockFilter::with_blocks(8).unwrap();
        assert_eq!(empty.shrink_to_false_positive_rate(rate), 8, "{rate}");
    }
}

#[test]
fn filters_tell_their_kernel_whether_they_are_empty_and_each_other() {
    for kernel in kernels() {
        let mut filter = SplitBlockFilter::with_blocks(2).unwrap().with_kernel(kernel);
        let empty = filter.clone();
        assert!(empty.view().is_empty());
        assert_eq!(filter, empty);
        filter.insert_hash(7);
        assert!(!filter.view().is_empty());
        assert!(filter != empty && filter.view() != empty.view());
        assert_eq!(filter.view(), filter.clone().view());
        assert_eq!(filter.view().kernel().name(), kernel.name());
        let stored = filter.to_bytes();
        let view = SplitBlockFilter::from_bytes(&stored).unwrap().with_kernel(kernel);
        assert_eq!(view.kernel().name(), kernel.name());
    }
}

#[test]
fn unions_hold_the_values_of_both() {
    let (mine, others) = (Random(1).hashes(100), Random(2).hashes(100));
    for (blocks, others_blocks) in [(1, 1), (1, 2), (8, 8), (8, 64)] {
        let mut filter = SplitBlockFilter::with_blocks(blocks).unwrap();
        filter.insert_hashes(&mine);
        let mut other = SplitBlockFilter::with_blocks(others_blocks).unwrap();
        other.insert_hashes(&others);
        filter.union_with(&other).unwrap();
        let mut both = SplitBlockFilter::with_blocks(blocks).unwrap();
        both.insert_hashes(&mine);
        both.insert_hashes(&others);
        assert_eq!(filter, both);
    }
    let mut filter = SplitBlockFilter::with_blocks(8).unwrap();
    let unchanged = filter.clone();
    // Fewer blocks, and more that are not a multiple.
    for found in [3, 4, 9, 12, 15] {
        let bitset = vec![0xff; 32 * found as usize];
        let other = SplitBlockFilter::from_bitset(&bitset).unwrap();
        let error = SplitBlockError::NotAMultiple { found, expected: 8 };
        assert_eq!(filter.union_with(&other), Err(error));
        assert_eq!(filter, unchanged);
    }
}

/// A stored filter may have any number of blocks. Its copy accepts values, folds and merges.
#[test]
fn copies_of_any_number_of_blocks_are_added_to_and_folded() {
    for blocks in [1, 3, 5, 6, 12, 96, 100, 1_000] {
        let empty = vec![0; 32 * blocks];
        let empty = SplitBlockFilter::from_bitset(&empty).unwrap().to_filter().unwrap();
        let hashes = Random(blocks as u64).hashes(20 * blocks);
        let naive = |blocks: usize| {
            let mut bitset = vec![0; 32 * blocks];
            hashes.iter().for_each(|&hash| naive_insert(&mut bitset, hash));
            bitset
        };
        for kernel in kernels() {
            let mut filter = empty.clone().with_kernel(kernel);
            filter.insert_hashes(&hashes);
            assert!(filter.blocks().as_flattened() == naive(blocks), "{kernel}, {blocks}");
            assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
            let opened = filter.to_bytes();
            assert!(SplitBlockFilter::from_bytes(&opened[..]).unwrap() == filter);
            for divisor in (1..=blocks).filter(|&divisor| blocks.is_multiple_of(divisor)) {
                let bitset = vec![0; 32 * (blocks / divisor)];
                let fewer = SplitBlockFilter::from_bitset(&bitset).unwrap();
                let mut fewer = fewer.to_filter().unwrap();
                fewer.union_with(&filter).unwrap();
                assert!(fewer.blocks().as_flattened() == naive(blocks / divisor));
            }
            let divisor = filter.shrink_to_false_positive_rate(1.0);
            assert_eq!(divisor, 1 << blocks.trailing_zeros());
            assert!(filter.blocks().as_flattened() == naive(blocks >> blocks.trailing_zeros()));
            filter.insert_hashes(&Random(9).hashes(100));
        }
    }
}

/// The rate of the bits equals the measured rate. The writers' estimate is lower.
#[test]
fn the_estimated_rate_is_the_measured_one() {
    let (bitset, _) = filled(4_000, 8);
    let filter = SplitBlockFilter::from_bitset(&bitset).unwrap();
    let mut hits = Bitmask::new();
    filter.contains_hashes(&Random(77).hashes(4_000_000), &mut hits);
    let (measured, estimated) =
        (hits.count_hits() as f64 / 4e6, filter.estimated_false_positive_rate());
    assert!(
        (measured / estimated - 1.0).abs() < 0.03,
        "{measured} measured, {estimated} estimated"
    );
    assert!(filter.fill_ratio().powi(8) < 0.8 * measured);
}
