//! RocksDB's blocks: 400 blocks from RocksDB 7.8.3 with its answers, read by every kernel and
//! written again; six larger blocks by their hash; and blocks that no writer produces.

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_ribbon::rocksdb::{BloomReason, BuiltBlock, RibbonBlock, RibbonBlockOptions};
use xxhash_rust::xxh3::xxh3_64;

use crate::common::{Random, kernels};
use crate::fixtures::external;

/// RocksDB's hash (XXPH3) of a key of eight bytes.
fn hash_of_eight(key: u64) -> u64 {
    let word = key ^ 0xbe4b_a423_396c_feb8;
    let mixed = (word ^ (word >> 51)).wrapping_mul(0x9e37_79b1).wrapping_add(8);
    let hash = (mixed ^ (mixed >> 47)).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let hash = (hash ^ (hash >> 37)).wrapping_mul(0x1656_67b1_9e37_79f9);
    hash ^ (hash >> 32)
}

/// The hashes of the generator's keys with this salt.
fn hashes(count: u64, salt: u64) -> Vec<u64> {
    (0..count).map(|i| hash_of_eight(Random(i + (salt << 40)).next())).collect()
}

/// A block as listed in the index.
struct Case {
    keys: u64,
    bits_per_key: f64,
    optimize_for_memory: bool,
    block: Vec<u8>,
    answers: Vec<u8>,
    is_ribbon: bool,
}

fn cases() -> Vec<Case> {
    let folder = external("rocksdb/ribbon").expect("the folder of fixtures");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (blocks, answers) = (read("blocks.bin"), read("answers.bin"));
    let index = String::from_utf8(read("index.csv")).unwrap();
    let case = |(i, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |cell: usize| cells[cell].parse::<usize>().unwrap();
        assert_eq!(number(1), 1, "the salt");
        Case {
            keys: number(0) as u64,
            bits_per_key: cells[2].parse().unwrap(),
            optimize_for_memory: number(3) == 1,
            block: blocks[number(4)..][..number(5)].to_vec(),
            answers: answers[500 * i..][..500].to_vec(),
            is_ribbon: cells[6] == "ribbon",
        }
    };
    let cases: Vec<Case> = index.lines().skip(1).enumerate().map(case).collect();
    assert_eq!(cases.len(), 400);
    cases
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn every_kernel_gives_rocksdbs_answers() {
    let absent = hashes(4_000, 1_001);
    let mut hits = Bitmask::new();
    let mut read = 0;
    for case in cases() {
        let Ok(filter) = RibbonBlock::from_bytes(&case.block) else {
            assert!(!case.is_ribbon);
            continue;
        };
        read += 1;
        let added = hashes(case.keys, 1);
        assert!(added.iter().all(|&hash| filter.contains_hash(hash)));
        let expected = |i: usize| case.answers[i / 8] >> (i % 8) & 1 == 1;
        assert!((0..4_000).all(|i| filter.contains_hash(absent[i]) == expected(i)));
        for kernel in kernels() {
            let filter = filter.with_kernel(kernel);
            filter.contains_hashes(&added, &mut hits);
            assert_eq!(hits.count_misses(), 0, "{kernel}");
            filter.contains_hashes(&absent, &mut hits);
            assert!(hits.iter().enumerate().all(|(i, hit)| hit == expected(i)), "{kernel}");
        }
    }
    assert_eq!(read, 314);
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn the_builder_writes_rocksdbs_bytes() {
    for case in cases() {
        let hashes = hashes(case.keys, 1);
        let options = RibbonBlockOptions::new(case.bits_per_key).unwrap();
        let built = match case.optimize_for_memory {
            false => options.build(&hashes),
            true => options.build_with_length(&hashes, case.block.len()),
        };
        let what = (case.keys, case.bits_per_key, case.optimize_for_memory);
        match built.unwrap() {
            BuiltBlock::Ribbon(block) => {
                assert!(case.is_ribbon && block == case.block, "{what:?}");
                if !case.optimize_for_memory {
                    assert_eq!(options.block_bytes(case.keys as u32, hashes[0]), block.len());
                }
            }
            other => {
                assert!(!case.is_ribbon, "{what:?}: {other:?}");
                assert_eq!(other, BuiltBlock::Bloom(BloomReason::Smaller));
            }
        }
    }
}

/// Blocks of 200,000 and 1,000,000 keys, by length and hash.
#[test]
fn large_blocks() {
    let blocks = [
        (200_000, 10.0, 176_181, 0xa09a_6358_1e05_32bf),
        (200_000, 16.0, 269_429, 0xea2c_db8c_01ab_6927),
        (200_000, 20.0, 327_429, 0xf3d4_40d8_fb02_f5c6),
        (1_000_000, 10.0, 887_797, 0x4454_2609_e2f1_eed2),
        (1_000_000, 16.0, 1_357_669, 0x0b13_0706_98ab_9428),
        (1_000_000, 20.0, 1_649_941, 0x9597_d86f_f4f5_b3e2),
    ];
    for (keys, bits_per_key, bytes, hash) in blocks {
        let options = RibbonBlockOptions::new(bits_per_key).unwrap();
        let hashes = hashes(keys, 1);
        let check = |built: BuiltBlock| {
            let BuiltBlock::Ribbon(block) = built else { panic!("{keys} keys") };
            assert_eq!((block.len(), xxh3_64(&block)), (bytes, hash), "{keys} {bits_per_key}");
        };
        check(options.build(&hashes).unwrap());
        #[cfg(feature = "rayon")]
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            check(pool.install(|| options.par_build(&hashes)).unwrap());
        }
        // The solution depends only on the set of keys and on the first key.
        let mut others = hashes.clone();
        others[1..].reverse();
        check(options.build(&others).unwrap());
    }
}

/// Trailers and lengths that no writer produces: every kernel returns the scalar answer, at every
/// alignment, in bytes that end with their allocation.
#[test]
fn hostile_trailers_and_lengths() {
    let hashes = Random(7).hashes(130);
    let kernels = kernels();
    let mut hits = Bitmask::new();
    let (mut opened, mut maybe) = (0, 0);
    for length in (0..700).chain([1_000, 4_096, 70_000]) {
        let bits: Vec<u8> =
            Random(9).hashes(length / 8 + 1).into_iter().flat_map(u64::to_le_bytes).collect();
        for blocks in [0_u32, 1, 2, 3, 5, 8, 9, 40, 255, 256, 4_097, 0xff_ffff] {
            let [low, middle, high, _] = blocks.to_le_bytes();
            let seed = (length % 256) as u8;
            let block =
                [&bits[..length], &[0xfe, seed, low, middle, high]].concat().into_boxed_slice();
            let Ok(filter) = RibbonBlock::from_bytes(&block) else {
                assert!(blocks < 2 || length < 16);
                maybe += 1;
                continue;
            };
            opened += 1;
            hashes.iter().for_each(|&hash| filter.prefetch_hash(hash));
            assert!(filter.columns() <= 32 && filter.expected_false_positive_rate() <= 1.0);
            for &kernel in &kernels {
                let selected = filter.with_kernel(kernel);
                selected.contains_hashes(&hashes, &mut hits);
                for (i, &hash) in hashes.iter().enumerate() {
                    let found = [hits.get(i), Some(selected.contains_hash(hash))];
                    let expected = [Some(filter.contains_hash(hash)); 2];
                    assert_eq!(found, expected, "{kernel} {length} {blocks}");
                }
            }
        }
    }
    assert!(opened > 6_000 && maybe > 1_000);
    for bytes in [&[][..], &[0xfe], &[0xfe, 0, 2, 0, 0], &[0, 0, 0, 0, 0, 0xff, 0, 6, 0, 0]] {
        assert_eq!(RibbonBlock::from_bytes(bytes).unwrap_err(), bytes);
    }
}

#[test]
fn rejects_few_or_unmixed_hashes() {
    let options = RibbonBlockOptions::new(10.0).unwrap();
    assert_eq!(options.build(&[]).unwrap(), BuiltBlock::Ribbon(Vec::new()));
    assert_eq!(options.build(&unsolvable()).unwrap(), BuiltBlock::Bloom(BloomReason::NoSeed));
    // A Bloom filter of 450 bits would have the same length, one cache line. It is only written if
    // it is shorter.
    let short = RibbonBlockOptions::new(1.0).unwrap();
    let BuiltBlock::Ribbon(block) = short.build(&hashes(450, 1)).unwrap() else { panic!() };
    assert_eq!(block.len(), 64 + 5);
    // One key a thousand times is one equation.
    let twice: Vec<u64> = hashes_with_copies();
    let BuiltBlock::Ribbon(block) = options.build(&twice).unwrap() else { panic!() };
    let filter = RibbonBlock::from_bytes(&block).unwrap();
    assert!(twice.iter().all(|&hash| filter.contains_hash(hash)));
    assert!(RibbonBlockOptions::new(0.4).is_err() && RibbonBlockOptions::new(f64::NAN).is_err());
}

/// Hashes with two hundred equations over the same 140 unknowns under each seed: no seed has a
/// solution.
fn unsolvable() -> Vec<u64> {
    const REHASH: u64 = 0x6193_d459_236a_3a0d;
    // Newton's iteration doubles the number of correct bits.
    let inverse = (0..6).fold(REHASH, |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(REHASH.wrapping_mul(inverse)))
    });
    assert_eq!(REHASH.wrapping_mul(inverse), 1);
    let hashes_for_seed = |seed: u64| {
        let product = seed.wrapping_mul(0xc782_19a2_3eea_dd03);
        let raw = u64::from((product ^ ((product & 0xf0f0_f0f0_f0f0_f0f0) >> 4)) as u32);
        // Within a few slots, so there are fewer unknowns than hashes.
        let seeded = |i: u64| (1 << 63) + (i << 43) + (Random(i).next() >> 24);
        (0..200).map(move |i| seeded(i).wrapping_mul(inverse) ^ raw)
    };
    (0..256).flat_map(hashes_for_seed).collect()
}

fn hashes_with_copies() -> Vec<u64> {
    let hashes = Random(3).hashes(50);
    (0..2_000).map(|i| hashes[i % 50]).collect()
}
