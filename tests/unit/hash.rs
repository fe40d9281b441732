//! Unit tests of `src/hash/batch.rs`, which includes this file: the vectors of every kernel hash
//! batches of keys, and each hash is that of the single key.

use alloc::vec::Vec;
use alloc::{format, string::ToString, vec};
use std::eprintln;

use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{HashError, HashIntegers, HashKeys, KernelHash, KeyHasher, overwritten};
use crate::kernel::Kernel;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        xxh3_64_with_seed(&self.0.to_le_bytes(), 1)
    }
}

fn hashes(random: &mut Random, count: usize) -> Vec<u64> {
    (0..count).map(|_| random.next()).collect()
}

/// The multiplier of the test vectors, which contains different bytes, and values that overflow
/// when it is added or subtracted.
const PRIME: u64 = 0x9e37_79b1_85eb_ca8d;
const SEEDS: [u64; 7] = [0, 1, u64::MAX, 1 << 63, 0xffff_ffff, 0xffff_ffff_0000_0000, PRIME];

fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
    let words = hashes(random, length.div_ceil(8));
    words.into_iter().flat_map(u64::to_le_bytes).take(length).collect()
}

/// Hashes every key with this kernel and with the default one. Memory after the last hash is not
/// written.
fn check<K: AsRef<[u8]>>(kernel: Kernel, seed: u64, keys: &[K], about: &str) {
    let hasher = KeyHasher::with_seed(seed);
    let expected: Vec<u64> = keys.iter().map(|key| xxh3_64_with_seed(key.as_ref(), seed)).collect();
    let mut hashes = vec![7; keys.len() + 2];
    hasher.hash_by(kernel, keys, &mut hashes);
    assert_eq!(hashes[..keys.len()], expected, "{}, seed {seed}, {about}", kernel);
    assert_eq!(hashes[keys.len()..], [7, 7], "{}, {about}", kernel);
    hashes.truncate(keys.len());
    hashes.fill(7);
    hasher.hash_batch_into(keys, &mut hashes).unwrap();
    assert_eq!(hashes, expected, "seed {seed}, {about}");
}

#[test]
fn every_length_with_every_seed() {
    let mut random = Random(1);
    let mut hashed = 0;
    for kernel in Kernel::supported() {
        for seed in SEEDS {
            for length in 0..=300 {
                let keys: Vec<Vec<u8>> = (0..70).map(|_| bytes(&mut random, length)).collect();
                check(kernel, seed, &keys, &format!("{length} bytes"));
                hashed += keys.len();
            }
        }
    }
    eprintln!("{hashed} hashes compared");
}

/// Mixtures of lengths that are staged differently: all of one class, two classes, few and many
/// keys of other lengths, a single one.
#[test]
fn lengths_that_mix() {
    let mut random = Random(2);
    for kernel in Kernel::supported() {
        for (i, lengths) in [4..=8, 5..=7, 9..=16, 4..=16, 8..=9, 3..=16, 4..=17, 0..=20, 4..=24]
            .into_iter()
            .enumerate()
        {
            let (least, most) = lengths.into_inner();
            for count in [31, 32, 33, 64, 65, 127, 128, 200, 1_000] {
                let seed = SEEDS[(i + count) % SEEDS.len()];
                let keys: Vec<Vec<u8>> = (0..count)
                    .map(|_| {
                        let length = least + random.next() as usize % (most - least + 1);
                        bytes(&mut random, length)
                    })
                    .collect();
                let about = format!("{least} to {most} bytes");
                check(kernel, seed, &keys, &about);
            }
        }
        for (usual, other) in [(16, 17), (16, 0), (16, 3), (8, 9), (8, 300), (4, 3), (24, 16)] {
            for at in 0..128 {
                let keys: Vec<Vec<u8>> = (0..128)
                    .map(|i| bytes(&mut random, if i == at { other } else { usual }))
                    .collect();
                let about = format!("{usual} bytes, key {at} of {other}");
                check(kernel, PRIME, &keys, &about);
            }
        }
    }
}

/// As arrays, as slices at every alignment in a buffer that ends with its allocation, as integers,
/// and by offsets.
#[test]
fn every_batch_length_and_alignment() {
    let mut random = Random(3);
    for kernel in Kernel::supported() {
        for count in 0..=200 {
            fixed::<1>(kernel, &mut random, count);
            fixed::<4>(kernel, &mut random, count);
            fixed::<5>(kernel, &mut random, count);
            fixed::<8>(kernel, &mut random, count);
            fixed::<12>(kernel, &mut random, count);
            fixed::<16>(kernel, &mut random, count);
            fixed::<20>(kernel, &mut random, count);
        }
    }
}

fn fixed<const N: usize>(kernel: Kernel, random: &mut Random, count: usize) {
    let before = random.next() as usize % 64;
    let buffer = bytes(random, before + N * count).into_boxed_slice();
    let slices: Vec<&[u8]> = buffer[before..].chunks(N).collect();
    check(kernel, PRIME, &slices, &format!("{count} slices of {N} bytes at {before}"));
    let (arrays, []) = buffer[before..].as_chunks::<N>() else { panic!() };
    check(kernel, PRIME, arrays, &format!("{count} arrays of {N} bytes at {before}"));

    let hasher = KeyHasher::with_seed(PRIME);
    let expected: Vec<u64> = slices.iter().map(|key| hasher.hash(key)).collect();
    let mut hashes = vec![7; count];
    hasher.hash_fixed(arrays, &mut hashes).unwrap();
    assert_eq!(hashes, expected);
    let offsets: Vec<usize> = (0..=count).map(|i| before + N * i).collect();
    hashes.fill(7);
    hasher.hash_offsets(&buffer, &offsets, &mut hashes).unwrap();
    assert_eq!(hashes, expected);
    let offsets: Vec<u32> = offsets.into_iter().map(|offset| offset as u32).collect();
    hashes.fill(7);
    hasher.hash_offsets(&buffer, &offsets, &mut hashes).unwrap();
    assert_eq!(hashes, expected);
    if N == 8 {
        let keys: Vec<u64> =
            slices.iter().map(|key| u64::from_le_bytes(key[..8].try_into().unwrap())).collect();
        let mut hashes = vec![7; count + 1];
        // SAFETY: `hash_keys` writes numbers and nothing else.
        let written = unsafe { overwritten(&mut hashes) };
        assert_eq!(HashIntegers::new(hasher, kernel).hash_keys(&keys, written), expected);
        assert_eq!((&hashes[..count], hashes[count]), (&expected[..], 7));
        hasher.hash_u64s(&keys, &mut hashes[..count]).unwrap();
        assert_eq!(hashes[..count], expected);
    }
}

/// The test vectors that the authors of XXH3 publish with it: length, seed, hash.
#[test]
fn published_vectors() {
    const VECTORS: [(usize, u64, u64); 16] = [
        (0, 0, 0x2d06_8005_38d3_94c2),
        (0, PRIME, 0xa8a6_b918_b2f0_364a),
        (1, 0, 0xc44b_dff4_074e_ecdb),
        (1, PRIME, 0x032b_e332_dd76_6ef8),
        (6, 0, 0x27b5_6a84_cd2d_7325),
        (6, PRIME, 0x8458_9c11_6ab5_9ab9),
        (12, 0, 0xa713_daf0_dfbb_77e7),
        (12, PRIME, 0xe730_3e1b_2336_de0e),
        (24, 0, 0xa3fe_70bf_9d35_10eb),
        (24, PRIME, 0x850e_80fc_35bd_d690),
        (48, 0, 0x397d_a259_ecba_1f11),
        (48, PRIME, 0xadc2_cbaa_44ac_c616),
        (80, 0, 0xbcde_fbbb_2c47_c90a),
        (80, PRIME, 0xc6dd_0cb6_9953_2e73),
        (195, 0, 0xcd94_217e_e362_ec3a),
        (195, PRIME, 0xba68_003d_370c_b3d9),
    ];
    let mut state = 2_654_435_761_u64;
    let bytes: Vec<u8> = (0..195)
        .map(|_| {
            let byte = (state >> 56) as u8;
            state = state.wrapping_mul(PRIME);
            byte
        })
        .collect();
    for kernel in Kernel::supported() {
        for (length, seed, expected) in VECTORS {
            for count in [1, 64, 100] {
                let mut hashes = vec![0; count];
                KeyHasher::with_seed(seed).hash_by(
                    kernel,
                    &vec![&bytes[..length]; count],
                    &mut hashes,
                );
                assert!(hashes.iter().all(|&hash| hash == expected), "{kernel}, {length} bytes");
            }
        }
    }
}

#[test]
fn wrong_lengths_and_offsets_are_errors_and_write_nothing() {
    let hasher = KeyHasher::default();
    for (given, keys) in [(0, 1), (2, 1), (63, 64), (1, 0), (65, 64)] {
        let error = Err(HashError::Length { hashes: given, keys });
        let mut hashes = vec![7; given];
        assert_eq!(hasher.hash_batch_into(&vec!["a"; keys], &mut hashes), error);
        assert_eq!(hasher.hash_u64s(&vec![1; keys], &mut hashes), error);
        assert_eq!(hasher.hash_fixed(&vec![[1; 16]; keys], &mut hashes), error);
        assert_eq!(hasher.hash_offsets(b"", &vec![0_i32; keys + 1], &mut hashes), error);
        assert!(hashes.iter().all(|&hash| hash == 7));
    }
    let mut hashes = [7; 3];
    let bad = |index, offset, least| Err(HashError::Offset { index, offset, least, most: 9 });
    let mut check = |offsets: [i64; 4], error| {
        assert_eq!(hasher.hash_offsets(b"012345678", &offsets, &mut hashes), error);
        assert_eq!(hashes, [7; 3]);
    };
    check([-1, 0, 1, 2], bad(0, -1, 0));
    check([0, 5, 4, 9], bad(2, 4, 5));
    check([0, 5, 9, 10], bad(3, 10, 9));
    check([10, 10, 10, 10], bad(0, 10, 0));
    check([0, 1, i64::MIN, 9], bad(2, i64::MIN.into(), 1));
    check([0, 1, 2, i64::MAX], bad(3, i64::MAX.into(), 2));
    let most = hasher.hash_offsets(b"012345678", &[0, u64::MAX, 1, 1], &mut hashes);
    assert_eq!(most, bad(1, u64::MAX.into(), 0));
    let most = hasher.hash_offsets(b"012345678", &[0, 9, u128::MAX, 9], &mut hashes);
    assert_eq!(most, bad(2, i128::MAX, 9));

    // Without keys, there is one offset or none.
    assert_eq!(hasher.hash_offsets::<i32>(b"abc", &[], &mut []), Ok(()));
    assert_eq!(hasher.hash_offsets(b"abc", &[3_i32], &mut []), Ok(()));
    assert_eq!(hasher.hash_offsets(b"", &[0_i32, 0, 0, 0], &mut hashes), Ok(()));
    assert_eq!(hashes, [hasher.hash(""); 3]);
    assert_eq!(
        HashError::Offset { index: 2, offset: -4, least: 5, most: 9 }.to_string(),
        "offset 2 is -4, expected 5 to 9"
    );
}

#[test]
fn the_batch_replaces_what_the_vector_held() {
    let hasher = KeyHasher::default();
    let mut hashes = vec![1; 500];
    for count in [0, 1, 100, 64, 700, 3] {
        let keys: Vec<[u8; 8]> = (0..count).map(u64::to_le_bytes).collect();
        hasher.hash_batch(&keys, &mut hashes);
        let expected: Vec<u64> = keys.iter().map(|key| hasher.hash(key)).collect();
        assert_eq!(hashes, expected);
    }
}

/// Keys whose length changes each time they are read have meaningless hashes, but no other memory
/// is read.
#[test]
fn keys_that_change_their_length() {
    struct Key(std::cell::Cell<usize>, [u8; 40]);
    impl AsRef<[u8]> for Key {
        fn as_ref(&self) -> &[u8] {
            let length = self.0.get();
            self.0.set((length * 7 + 3) % 40);
            &self.1[..length]
        }
    }
    for kernel in Kernel::supported() {
        for length in 0..40 {
            let keys: Vec<Key> = (0..200)
                .map(|i| Key(std::cell::Cell::new((length + i / 50) % 40), [3; 40]))
                .collect();
            let mut hashes = vec![0; keys.len()];
            KeyHasher::default().hash_by(kernel, &keys, &mut hashes);
            assert_eq!(hashes.len(), keys.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_keys(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..300),
        least in 0..17_usize,
        most in 4..40_usize,
        seed: u64,
    ) {
        // Lengths of all classes, and truncated so that many are of one class.
        let cut = keys.iter().map(|key| &key[..key.len().min(most)]);
        let cut: Vec<&[u8]> = cut.filter(|key| key.len() >= least).collect();
        let (bytes, mut offsets) = (cut.concat(), vec![0_i32]);
        for key in &cut {
            offsets.push(offsets[offsets.len() - 1] + key.len() as i32);
        }
        for kernel in Kernel::supported() {
            check(kernel, seed, &keys, "any");
            check(kernel, seed, &cut, "cut");
        }
        let mut hashes = vec![0; cut.len()];
        let hasher = KeyHasher::with_seed(seed);
        prop_assert_eq!(hasher.hash_offsets(&bytes, &offsets, &mut hashes), Ok(()));
        for (key, hash) in cut.iter().zip(hashes) {
            prop_assert_eq!(hash, xxh3_64_with_seed(key, seed));
        }
    }
}
