//! The calls of an engine that looks up one key: prefetching by hash, lookups in stored bytes
//! without opening them, building in one call.

use crate::common::{Random, filled};
use blocked_bloom::{
    BloomFilter, BuildError, Filter, FilterOptions, KeyError, KeyHash, ParamsError,
    PrefixExtractor, Sizing,
};

const XXH3: KeyHash = KeyHash::Xxh3 { seed: 0 };

/// The answers equal those of the opened filter, at every alignment, for every number of probes.
/// Catches a wrong block, a wrong field, and an aligned load of unaligned bytes.
#[test]
fn stored_bytes_answer_as_the_opened_filter_does() {
    for probes in 1..=30 {
        for blocks in [1, 2, 3, 61] {
            let (filter, hashes) = filled(blocks, probes, u64::from(probes));
            let stored = filter.to_bytes();
            let mut moved = vec![0; stored.len() + 64];
            let offset = (probes as usize * 7 + blocks as usize) % 64;
            moved[offset..][..stored.len()].copy_from_slice(&stored);
            let bytes = &moved[offset..][..stored.len()];
            let mut absent = 0;
            for hash in hashes.iter().copied().chain(Random(99).hashes(500)) {
                let expected = filter.contains_hash(hash);
                assert_eq!(BloomFilter::contains_hash_in(bytes, XXH3, hash), expected);
                absent += u32::from(!expected);
            }
            assert!(absent > 50, "{absent} absent of 500");
        }
    }
}

#[test]
fn stored_bytes_of_every_hash_answer_and_of_another_are_maybe() {
    let all =
        [XXH3, KeyHash::Xxh3 { seed: 7 }, KeyHash::Caller { tag: 0 }, KeyHash::Caller { tag: 7 }];
    let hashes = Random(3).hashes(300);
    for of in all {
        let options = FilterOptions::new(Sizing::BitsPerKey(16.0)).with_key_hash(of);
        let stored = BloomFilter::from_hashes(&options, &hashes).unwrap().to_bytes();
        for expected in all {
            let absent = Random(4)
                .hashes(1_000)
                .into_iter()
                .filter(|&hash| !BloomFilter::contains_hash_in(&stored, expected, hash))
                .count();
            assert_eq!(
                absent > 900,
                expected == of,
                "{of} looked up by {expected}: {absent} absent"
            );
            assert!(expected == of || absent == 0);
        }
        for &hash in &hashes {
            assert!(BloomFilter::contains_hash_in(&stored, of, hash));
        }
    }
}

/// Any other length, and any changed bit of the fields that identify the filter, returns "maybe".
/// Catches a field that is not compared, and a panic.
#[test]
fn unexpected_bytes_answer_maybe() {
    let (filter, _) = filled(5, 7, 1);
    let stored = filter.to_bytes();
    let hashes = Random(8).hashes(64);
    let all_maybe =
        |bytes: &[u8]| hashes.iter().all(|&hash| BloomFilter::contains_hash_in(bytes, XXH3, hash));
    assert!(!all_maybe(&stored));
    for length in 0..stored.len() {
        assert!(all_maybe(&stored[..length]), "{length} bytes");
    }
    for more in [1, 63, 64] {
        let mut longer = stored.clone();
        longer.resize(stored.len() + more, 0);
        assert!(all_maybe(&longer), "{more} bytes more");
    }
    // Magic, version, probe scheme, hash; flags and reserved bytes; seed; number of blocks.
    for at in (0..12).chain(13..16).chain(16..24).chain(24..32) {
        for bit in 0..8 {
            // Additional prefixes change nothing for keys.
            if (at, bit) == (13, 1) {
                continue;
            }
            let mut other = stored.clone();
            other[at] ^= 1 << bit;
            assert!(all_maybe(&other), "bit {bit} of byte {at}");
        }
    }
    for probes in [0, 31, 32, 64, 255] {
        let mut other = stored.clone();
        other[12] = probes;
        assert!(all_maybe(&other), "{probes} probes");
    }
}

/// Prefixes next to keys change no answer for keys; a filter of prefixes alone cannot answer for
/// keys.
#[test]
fn stored_filters_of_prefixes_answer_for_their_keys() {
    let options = FilterOptions::new(Sizing::BitsPerKey(20.0));
    let both = options.clone().with_prefixes(PrefixExtractor::fixed(2));
    let only = options.with_only_prefixes(PrefixExtractor::fixed(2));
    for (options, answers) in [(both, true), (only, false)] {
        let mut builder = options.builder();
        builder.extend((0_u32..500).map(u32::to_be_bytes)).unwrap();
        let filter = builder.finish().unwrap();
        let (stored, hasher) = (filter.to_bytes(), filter.hasher().unwrap());
        let mut absent = 0;
        for key in 0_u32..2_000 {
            let hash = hasher.hash(key.to_be_bytes());
            let found = BloomFilter::contains_hash_in(&stored, XXH3, hash);
            assert_eq!(found, filter.contains_hash(hash));
            absent += u32::from(!found);
        }
        assert_eq!(absent > 1_000, answers);
        assert!(answers || absent == 0);
    }

    let pass_all = BloomFilter::pass_all(XXH3).to_bytes();
    for hash in Random(1).hashes(100) {
        assert!(BloomFilter::contains_hash_in(&pass_all, XXH3, hash));
    }
}

/// Filters of every type, empty, pass-all and filled: catches an address outside of the blocks.
#[test]
fn prefetching_changes_nothing() {
    let hashes = Random(5).hashes(2_000);
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let filter = BloomFilter::from_hashes(&options, &hashes).unwrap();
    let stored = filter.to_bytes();
    let bytes = BloomFilter::from_bytes_any_hash(stored.as_slice()).unwrap();
    let shared = options.atomic_filter(2_000).unwrap();
    shared.insert_hashes(&hashes).unwrap();
    let pass_all = BloomFilter::pass_all(XXH3);
    for hash in [0, u64::MAX].into_iter().chain(hashes.iter().copied()) {
        filter.prefetch_hash(hash);
        filter.view().prefetch_hash(hash);
        bytes.prefetch_hash(hash);
        shared.prefetch_hash(hash);
        pass_all.prefetch_hash(hash);
    }
    assert_eq!(filter.to_bytes(), stored);
    for &hash in &hashes {
        assert!(filter.contains_hash(hash) && shared.contains_hash(hash));
    }
}

/// One call has the result of a builder: catches repeats that are counted differently, and dropped
/// options.
#[test]
fn hashes_in_one_call_make_the_filter_of_a_builder() {
    for (sizing, key_hash) in [
        (Sizing::BitsPerKey(10.0), XXH3),
        (Sizing::FalsePositiveRate(0.003), KeyHash::Caller { tag: 5 }),
        (Sizing::BitsPerKey(0.0), XXH3),
        (Sizing::MaxBytes(4_096), KeyHash::Xxh3 { seed: 9 }),
    ] {
        let options = FilterOptions::new(sizing).with_key_hash(key_hash);
        for count in [0, 1, 2, 20, 3_276, 40_000] {
            let mut hashes = Random(count as u64).hashes(count);
            // Adjacent repeats, like the sorted versions of a table's keys, and repeats that are
            // apart.
            hashes.extend_from_within(..count / 2);
            if count > 2 {
                hashes.insert(1, hashes[0]);
            }
            let mut builder = options.builder();
            hashes.iter().for_each(|&hash| builder.insert_hash(hash).unwrap());
            let expected = builder.finish().unwrap();
            let filter = BloomFilter::from_hashes(&options, &hashes).unwrap();
            assert_eq!(filter.to_bytes(), expected.to_bytes(), "{options:?} of {count} keys");
        }
    }
}

#[test]
fn from_hashes_rejects_invalid_options() {
    let options = FilterOptions::new(Sizing::BitsPerKey(101.0));
    let error = BloomFilter::from_hashes(&options, &[1, 2]).unwrap_err();
    let expected = ParamsError::BitsPerKeyOutOfRange { bits_per_key: 101.0 };
    assert_eq!(error, BuildError::Params(expected));
    let options =
        FilterOptions::new(Sizing::BitsPerKey(10.0)).with_prefixes(PrefixExtractor::fixed(2));
    let error = BloomFilter::from_hashes(&options, &[1, 2]).unwrap_err();
    assert!(matches!(error, BuildError::Key(KeyError::NoPrefix { .. })), "{error}");
}

/// More blocks than a filter can have, in reserved memory that is never used. Catches a count
/// truncated to 32 bits, with which every hash is looked up in the first blocks, which are empty.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn stored_bytes_of_too_many_blocks_are_maybe() {
    let header = filled(1, 6, 1).0.to_bytes();
    for blocks in [1 << 32, (1 << 32) + 1, (1 << 32) + 5_u64] {
        let mut map = memmap2::MmapOptions::new()
            .len(64 + 64 * blocks as usize)
            .no_reserve_swap()
            .map_anon()
            .expect("256 GiB of addresses without memory");
        map[..64].copy_from_slice(&header[..64]);
        map[24..32].copy_from_slice(&blocks.to_le_bytes());
        for hash in Random(2).hashes(100) {
            assert!(BloomFilter::contains_hash_in(&map, XXH3, hash), "{blocks} blocks");
        }
    }
}
