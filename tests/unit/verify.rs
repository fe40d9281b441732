//! Unit tests of `src/builder/verify.rs`, which includes this file.

use super::{BloomFilterBuilder, Threads, mix, sum_of};
use crate::{BloomFilter, BuildError, FilterOptions, KeyHash, Sizing};

const OPTIONS: FilterOptions = FilterOptions::new(Sizing::BitsPerKey(10.0));

fn add(builder: &mut BloomFilterBuilder, keys: impl IntoIterator<Item = u64>) {
    keys.into_iter().for_each(|key| builder.insert_hash(mix(key)).unwrap());
}

fn builder(options: FilterOptions, keys: u64) -> BloomFilterBuilder {
    let mut builder = options.builder();
    add(&mut builder, 1..=keys);
    builder
}

#[test]
fn a_hash_that_changes_in_memory_is_noticed() {
    for bit in 0..64 {
        let mut builder = builder(OPTIONS, 1_000);
        builder.chunks[3][5] ^= 1 << bit;
        let sum = builder.sum;
        let error = builder.finish_verified().unwrap_err();
        assert!(
            matches!(error, BuildError::HashesChanged { expected, .. } if expected == sum),
            "bit {bit}: {error}"
        );
    }
    let mut swapped = builder(OPTIONS, 1_000);
    let (a, b) = (swapped.chunks[0][1], swapped.chunks[2][1]);
    (swapped.chunks[0][1], swapped.chunks[2][1]) = (b, a);
    assert!(swapped.finish_verified().is_ok(), "another order of the keys is not a fault");
}

#[test]
fn missing_keys_are_noticed() {
    let builder = builder(OPTIONS, 1_000);
    let params = builder.params().unwrap();
    let mut incomplete = BloomFilter::with_params(params, KeyHash::default()).unwrap();
    (1..=990).for_each(|key| _ = incomplete.insert_hash(mix(key)).unwrap());
    incomplete.count(10);
    let absent = (991..=1_000).filter(|&key| !incomplete.contains_hash(mix(key))).count() as u64;
    assert!(absent > 0);
    let error = builder.verify(&incomplete, Threads::One).unwrap_err();
    assert_eq!(error, BuildError::KeysMissing { missing: absent, keys: 1_000 });
}

#[test]
fn flushed_keys_are_verified_too() {
    let mut builder = builder(OPTIONS.with_memory_limit(0).with_expected_items(1_000), 10);
    add(&mut builder, 11..=1_000);
    assert!(builder.filling.is_some());
    assert!(builder.clone().finish_verified().is_ok());
    let mut changed = builder.clone();
    changed.chunks[0][0] ^= 1;
    let error = changed.finish_verified().unwrap_err();
    assert!(matches!(error, BuildError::HashesChanged { .. }));
    let mut incomplete = builder;
    incomplete.filling.as_mut().unwrap().found.missing += 1;
    let error = incomplete.finish_verified().unwrap_err();
    assert_eq!(error, BuildError::KeysMissing { missing: 1, keys: 1_000 });
}

/// A plain sum or XOR of hashes would not detect these.
#[test]
fn sums_tell_repeated_and_shifted_hashes_apart() {
    assert_ne!(sum_of(&[5, 5]), sum_of(&[]));
    assert_ne!(sum_of(&[1, 4]), sum_of(&[2, 3]));
    assert_ne!(sum_of(&[1 << 32, 4 << 32]), sum_of(&[2 << 32, 3 << 32]));
}

/// The remaining bytes of a limit may suffice for one hash only: flushing that often would be slow.
#[test]
fn the_largest_chunk_collects_what_is_flushed_next() {
    for hashes in 16_000..16_300 {
        let builder =
            builder(OPTIONS.with_memory_limit(8 * hashes).with_expected_items(20_000), hashes + 1);
        assert!(builder.filling.is_some());
        let (chunks, room) = (builder.chunks.len(), builder.chunks[0].capacity());
        assert!(chunks == 1 && room > 800, "{hashes} hashes: {chunks} chunks, {room}");
        // A clone has no spare capacity.
        let mut clone = builder.clone();
        add(&mut clone, 1..=200);
        assert_eq!(clone.chunks.len(), 1);
    }
}
