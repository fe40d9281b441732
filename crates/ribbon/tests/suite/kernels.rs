//! Every kernel returns the answers of the scalar definition, for batches and single hashes, for
//! every length of a batch, number of columns and alignment, in bytes that end with their
//! allocation.

use blocked_bloom::{Bitmask, Filter, Kernel, KeyHash};
use blocked_bloom_ribbon::RibbonFilter;
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};

use crate::common::{Random, kernels};
use crate::sharded::built;

/// The definitions.
fn scalar() -> Kernel {
    kernels().into_iter().find(|kernel| kernel.name() == "scalar").unwrap()
}

#[test]
fn every_length_and_number_of_columns() {
    let kernels = kernels();
    let hashes = Random(1).hashes(9_000);
    let mut queries = Random(2).hashes(400);
    queries.extend(&hashes[..200]);
    let mut hits = Bitmask::new();
    for columns in 1..=32 {
        // Exactly this many columns, and between two numbers.
        for rate in [0.5_f64.powi(columns), 0.7 * 0.5_f64.powi(columns - 1)] {
            if !(0.5_f64.powi(32)..=0.5).contains(&rate) {
                continue;
            }
            let filter = built(rate, &hashes);
            assert_eq!(filter.columns(), columns as u32);
            let expected = filter.view().with_kernel(scalar());
            for &kernel in &kernels {
                let filter = filter.view().with_kernel(kernel);
                for length in (0..70).chain([127, 128, 129, 600]) {
                    let queries = &queries[600 - length..];
                    filter.contains_hashes(queries, &mut hits);
                    assert_eq!(hits.words().len(), length.div_ceil(64));
                    for (i, &hash) in queries.iter().enumerate() {
                        let what = (kernel, columns, length);
                        let found = [hits.get(i), Some(filter.contains_hash(hash))];
                        assert_eq!(found, [Some(expected.contains_hash(hash)); 2], "{what:?}");
                    }
                    assert_eq!(hits.count_hits(), hits.hits().filter(|&i| i < length).count());
                }
                filter.contains_hashes(&hashes, &mut hits);
                assert_eq!(hits.count_misses(), 0);
            }
        }
    }
}

#[test]
fn filters_without_keys() {
    let mut hits = Bitmask::new();
    let queries = Random(5).hashes(100);
    for rate in [0.5, 0.01] {
        let filter = built(rate, &[]);
        for kernel in kernels() {
            let filter = filter.view().with_kernel(kernel);
            assert!(!queries.iter().any(|&hash| filter.contains_hash(hash)), "{kernel} {rate}");
            for length in 1..=queries.len() {
                filter.contains_hashes(&queries[..length], &mut hits);
                assert_eq!(hits.count_hits(), 0, "{kernel} {rate}, {length} a call");
            }
        }
    }
}

#[test]
fn every_number_of_columns_of_rocksdbs() {
    let kernels = kernels();
    let hashes = Random(1).hashes(2_000);
    let queries = [Random(2).hashes(300), hashes.clone()].concat();
    let mut hits = Bitmask::new();
    let mut seen = [false; 33];
    for tenths in 5..460 {
        let options = RibbonBlockOptions::new(f64::from(tenths) / 10.0).unwrap();
        let BuiltBlock::Ribbon(block) = options.build(&hashes).unwrap() else { panic!() };
        let filter = RibbonBlock::from_bytes(&block).unwrap();
        if std::mem::replace(&mut seen[filter.columns() as usize], true) && tenths % 16 != 0 {
            continue;
        }
        let expected = filter.with_kernel(scalar());
        for &kernel in &kernels {
            let filter = filter.with_kernel(kernel);
            for length in [1, 7, 8, 9, 63, 64, 65, 2_300] {
                let queries = &queries[2_300 - length..];
                filter.contains_hashes(queries, &mut hits);
                for (i, &hash) in queries.iter().enumerate() {
                    let found = [hits.get(i), Some(filter.contains_hash(hash))];
                    let expected = [Some(expected.contains_hash(hash)); 2];
                    assert_eq!(found, expected, "{kernel} {tenths}");
                }
            }
            assert_eq!(hits.iter().skip(300).filter(|hit| !hit).count(), 0);
        }
    }
    assert!(seen[1..24].iter().all(|&seen| seen), "{seen:?}");
}

#[test]
fn every_alignment_of_bytes_that_end_with_their_allocation() {
    let hashes = Random(1).hashes(4_000);
    let (absent, mut hits) = (Random(2).hashes(2_000), Bitmask::new());
    let filter = built(0.004, &hashes);
    let BuiltBlock::Ribbon(block) = RibbonBlockOptions::new(10.0).unwrap().build(&hashes).unwrap()
    else {
        panic!()
    };
    for shift in 0..16 {
        let shifted =
            |bytes: &[u8]| [vec![0xaa; shift], bytes.to_vec()].concat().into_boxed_slice();
        let (ours, theirs) = (shifted(filter.as_bytes()), shifted(&block));
        for kernel in kernels() {
            let ours =
                RibbonFilter::from_bytes_any_hash(&ours[shift..]).unwrap().with_kernel(kernel);
            let theirs = RibbonBlock::from_bytes(&theirs[shift..]).unwrap().with_kernel(kernel);
            ours.contains_hashes(&absent, &mut hits);
            assert!(hits.iter().zip(&absent).all(|(hit, &hash)| hit == ours.contains_hash(hash)));
            theirs.contains_hashes(&absent, &mut hits);
            assert!(hits.iter().zip(&absent).all(|(hit, &hash)| hit == theirs.contains_hash(hash)));
        }
    }
}

/// Large enough that lines are prefetched.
#[test]
fn filters_that_outgrow_the_cache() {
    // At a rate of 1 %, a key takes 0.9 bytes.
    let keys = Kernel::default().prefetch_threshold() / 4 * 5;
    let hashes = Random(3).hashes(keys.max(100_000));
    let absent = Random(4).hashes(100_000);
    let filter = built(0.01, &hashes);
    let BuiltBlock::Ribbon(block) = RibbonBlockOptions::new(10.0).unwrap().build(&hashes).unwrap()
    else {
        panic!()
    };
    let theirs = RibbonBlock::from_bytes(&block).unwrap();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        let (ours, theirs) = (filter.view().with_kernel(kernel), theirs.with_kernel(kernel));
        assert!(filter.as_bytes().len() > kernel.prefetch_threshold());
        for (queries, misses) in [(&hashes, false), (&absent, true)] {
            ours.contains_hashes(queries, &mut hits);
            assert!(hits.iter().zip(queries).all(|(hit, &hash)| hit == ours.contains_hash(hash)));
            assert_eq!(hits.count_misses() > 0, misses);
            theirs.contains_hashes(queries, &mut hits);
            assert!(hits.iter().zip(queries).all(|(hit, &hash)| hit == theirs.contains_hash(hash)));
            assert_eq!(hits.count_misses() > 0, misses);
        }
    }
}

#[test]
fn words_of_another_number() {
    let filter = built(0.01, &Random(1).hashes(10));
    for keys in [0, 63, 64, 65] {
        assert_eq!(filter.contains_u64s_into(&vec![1; keys], &mut [7; 3]).unwrap_err().words, 3);
        let mut words = vec![u64::MAX; keys.div_ceil(64)];
        filter.contains_batch_into(&vec!["absent"; keys], &mut words).unwrap();
        assert!(words.iter().all(|&word| word == 0), "{keys}");
    }
    let error = filter.contains_hashes_into(&[1; 65], &mut [0; 1]).unwrap_err();
    assert_eq!((error.words, error.expected), (1, 2));
}

/// Shards at the start, around 4 GiB and at the end of the maximum number of words, in memory that
/// is reserved and mostly unused. Detects offsets in words or bytes that are cut to 32 bits.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn shards_up_to_the_last_word() {
    use xxhash_rust::xxh3::xxh3_64;

    let hashes = Random(1).hashes(7 * 3_900);
    let absent = Random(2).hashes(150);
    let mut hits = Bitmask::new();
    for rate in [0.5, 0.01, 1e-4, 1e-9] {
        let small = built(rate, &hashes);
        let stored = small.as_bytes();
        let entry = |shard: usize| stored[64 + 8 * shard..][..8].try_into().unwrap();
        let entries: [u64; 7] = std::array::from_fn(|shard| u64::from_le_bytes(entry(shard)));
        let words_of = |shard: usize| {
            let words = u64::from(small.columns()) * ((entries[shard] >> 32 & 0xffff).div_ceil(64));
            words - (entries[shard] >> 48 & 0xff)
        };
        let words = u64::from(u32::MAX);
        let mut map = memmap2::MmapOptions::new()
            .len(64 + 8 * (7 + words as usize))
            .no_reserve_swap()
            .map_anon()
            .expect("32 GiB of addresses without memory");
        map[..64].copy_from_slice(&stored[..64]);
        map[40..48].copy_from_slice(&words.to_le_bytes());
        let checksum = xxh3_64(&map[..56]);
        map[56..64].copy_from_slice(&checksum.to_le_bytes());
        // Around 4, 8, 16 and 32 GiB, with the last shard at the very end.
        let places =
            [0, (1 << 29) - 1_000, (1 << 29) + 5_000, 1 << 30, 1 << 31, (1 << 31) + 77_777, words];
        for (shard, place) in places.into_iter().enumerate() {
            let place = place.min(words - words_of(shard));
            let moved = entries[shard] >> 32 << 32 | place;
            map[64 + 8 * shard..][..8].copy_from_slice(&moved.to_le_bytes());
            let bytes = 8 * words_of(shard) as usize;
            let from = 64 + 8 * (7 + (entries[shard] as u32) as usize);
            map[64 + 8 * (7 + place as usize)..][..bytes]
                .copy_from_slice(&stored[from..from + bytes]);
        }
        let large = RibbonFilter::from_bytes_trusted(&map, KeyHash::default()).unwrap();
        for kernel in kernels() {
            let large = large.view().with_kernel(kernel);
            for count in [1, 8, 64, hashes.len()] {
                large.contains_hashes(&hashes[..count], &mut hits);
                assert_eq!(hits.count_misses(), 0, "{kernel} {rate}");
            }
            large.contains_hashes(&absent, &mut hits);
            for (hit, &hash) in hits.iter().zip(&absent) {
                let found = [hit, large.contains_hash(hash)];
                assert_eq!(found, [small.contains_hash(hash); 2], "{kernel} {rate}");
            }
            assert!(hashes.iter().all(|&hash| large.contains_hash(hash)));
        }
    }
}

/// Filters of one to a few keys: fewer starts than a register has lanes, and columns that fit one
/// register. Compares single lookups of each kernel with batches.
#[test]
fn the_smallest_filters() {
    let (hashes, queries) = (Random(6).hashes(40), Random(7).hashes(150));
    let mut hits = Bitmask::new();
    let queries = [queries, hashes.clone()].concat();
    for count in (1..12).chain([40]) {
        let keys = &hashes[..count];
        for columns in 1..=32 {
            let ours = built(0.5_f64.powi(columns), keys);
            let expected = ours.view().with_kernel(scalar());
            assert!(keys.iter().all(|&hash| expected.contains_hash(hash)));
            for kernel in kernels() {
                let filter = ours.view().with_kernel(kernel);
                filter.contains_hashes(&queries, &mut hits);
                for (hit, &hash) in hits.iter().zip(&queries) {
                    let found = [hit, filter.contains_hash(hash)];
                    let what = (kernel, count, columns, hash);
                    assert_eq!(found, [expected.contains_hash(hash); 2], "{what:?}");
                }
            }
        }
        for bits_per_key in [0.5, 1.0, 2.0, 4.0, 5.5, 10.0, 13.3, 20.0, 30.0] {
            let options = RibbonBlockOptions::new(bits_per_key).unwrap();
            // RocksDB writes Bloom blocks for the smallest.
            let BuiltBlock::Ribbon(block) = options.build(keys).unwrap() else { continue };
            let theirs = RibbonBlock::from_bytes(&block).unwrap();
            let expected = theirs.with_kernel(scalar());
            assert!(keys.iter().all(|&hash| expected.contains_hash(hash)));
            for kernel in kernels() {
                let filter = theirs.with_kernel(kernel);
                filter.contains_hashes(&queries, &mut hits);
                for (hit, &hash) in hits.iter().zip(&queries) {
                    let found = [hit, filter.contains_hash(hash)];
                    let what = (kernel, count, bits_per_key, hash);
                    assert_eq!(found, [expected.contains_hash(hash); 2], "{what:?}");
                }
            }
        }
    }
}
