//! Unit tests of `src/kernel.rs`, which includes this file.

use alloc::vec;
use alloc::vec::Vec;

#[cfg(feature = "std")]
#[path = "loops.rs"]
mod loops;

use super::tuning::{TUNINGS, Tuning, place, tuning};
use super::{Kernel, Prefetch, PrefetchPlan, Tile, choose};
use crate::probe::{self, MAX_PROBES};

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
    // Unless the tests set it, the size of this machine's cache: from a phone's to a server's.
    #[cfg(feature = "std")]
    if std::env::var(super::PREFETCH_VARIABLE).is_err() {
        assert!((64 << 10..=64 << 20).contains(&threshold), "{threshold}");
    }
    assert!(Kernel::supported().all(|kernel| kernel.prefetch_threshold() == threshold));
    let below = vec![[0_u8; 64]; threshold / 64];
    let above = vec![[0_u8; 64]; threshold / 64 + 1];
    assert!(
        Prefetch::for_blocks(&below) == Prefetch::Off
            && Prefetch::for_blocks(&above) != Prefetch::Off
    );
}

/// The rows of the table, and rows for no CPU: every kind of prefetching.
fn tunings() -> Vec<&'static Tuning> {
    const EXTRA: [Tuning; 4] = [
        Tuning { short_calls: 1, long_calls: 1, groups: 1, distance: 64, level: 1 },
        Tuning { short_calls: 9, long_calls: 3, groups: 3, distance: 192, level: 2 },
        Tuning { short_calls: 2, long_calls: 7, groups: 2, distance: 256, level: 1 },
        Tuning { short_calls: 1, long_calls: 0, groups: 9, distance: 128, level: 2 },
    ];
    static EXTRA_TUNINGS: [Tuning; 4] = EXTRA;
    TUNINGS.iter().map(|(.., tuning)| tuning).chain(&EXTRA_TUNINGS).collect()
}

#[test]
fn each_cpu_has_its_row() {
    for (.., tuning) in &TUNINGS {
        assert!(tuning.short_calls > 0 && tuning.distance > 0 && [1, 2].contains(&tuning.level));
    }
    // Leaf 1 of `cpuid` for each kind of processor.
    for (vendor, version, groups, many) in [
        ("AuthenticAMD", 0x00a0_0f11, usize::MAX, 1), // Zen 3: EPYC 7003, family 25 model 1
        ("AuthenticAMD", 0x00a2_0f10, usize::MAX, 1), // Zen 3: Ryzen 5000, model 33
        ("AuthenticAMD", 0x00a5_0f00, usize::MAX, 1), // Zen 3: Ryzen 5000G, model 80
        ("AuthenticAMD", 0x00a1_0f11, 6, 1),          // Zen 4: EPYC 9004, model 17
        ("AuthenticAMD", 0x00a6_0f12, 6, 1),          // Zen 4: Ryzen 7000, model 97
        ("AuthenticAMD", 0x00aa_0f02, 6, 1),          // Zen 4: EPYC 97x4, model 160
        ("AuthenticAMD", 0x00b0_0f21, 6, 2),          // Zen 5: EPYC 9005, family 26 model 2
        ("AuthenticAMD", 0x0083_0f10, 6, 1),          // Zen 2: not measured
        ("GenuineIntel", 0x00a0_0f11, 6, 1),          // the vendor counts
        ("GenuineIntel", 0x0005_0657, usize::MAX, 1), // Cascade Lake: family 6 model 85
        ("GenuineIntel", 0x000c_06f2, 6, 1),          // not measured
        ("", 0, 6, 1),                                // no `cpuid`
    ] {
        let (.., tuning) = &TUNINGS[place(vendor.as_bytes(), version)];
        assert_eq!((tuning.groups, tuning.long_calls), (groups, many), "{vendor} {version:#x}");
    }
    let chosen = tuning();
    assert!(TUNINGS.iter().any(|(.., of)| core::ptr::eq(of, chosen)));
}

/// The CPU's row decides whether long calls prefetch not at all, between tests, or in groups. All
/// three return the same answers.
#[test]
fn long_calls_prefetch_as_is_chosen_for_the_cpu() {
    let hashes: Vec<u64> = (0..203).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for tuning in tunings() {
        let fits = 64 * 10;
        for count in [1, 10, 11, 30, 31, 60, 61, 70, 71, 90, 91, 400] {
            let mut memory = vec![[0_u8; 64]; count + 1];
            let to_line = memory.as_ptr().addr().wrapping_neg() % 64;
            for (shift, straddles) in [(to_line, false), (to_line + 1, true)] {
                let blocks = memory.as_flattened_mut()[shift..].as_chunks_mut::<64>().0;
                let blocks = &mut blocks[..count];
                for &hash in &hashes[..100] {
                    let block = probe::block_index(hash, count as u32) as usize;
                    probe::insert(&mut blocks[block], hash, 6);
                }
                let plan = PrefetchPlan::new(tuning, fits, blocks);
                let lines = if straddles { Prefetch::TwoLines } else { Prefetch::OneLine };
                match plan {
                    PrefetchPlan::PerKey(Prefetch::Off) => assert!(count <= 10 * tuning.long_calls),
                    PrefetchPlan::PerKey(prefetch) => {
                        assert!(
                            count > 10 * tuning.long_calls
                                && count <= tuning.groups.saturating_mul(10)
                        );
                        assert!(prefetch == lines);
                    }
                    PrefetchPlan::Groups(prefetch, of) => {
                        assert!(
                            count > 10 * tuning.long_calls
                                && count > tuning.groups.saturating_mul(10)
                        );
                        assert!(prefetch == lines && core::ptr::eq(of, tuning));
                    }
                }
                for kernel in Kernel::supported() {
                    for length in [65, 128, 192, 193, 203] {
                        let mut words = vec![u64::MAX; hashes[..length].len().div_ceil(64)];
                        kernel.look_up_by(plan, blocks, 6, &hashes[..length], &mut words);
                        for (i, word) in words.iter().enumerate() {
                            for bit in 0..64 {
                                let expected =
                                    hashes[..length].get(64 * i + bit).is_some_and(|&hash| {
                                        let block = probe::block_index(hash, count as u32) as usize;
                                        probe::contains(&blocks[block], hash, 6)
                                    });
                                assert_eq!(
                                    word >> bit & 1 == 1,
                                    expected,
                                    "{kernel}, {tuning:?}, {count} blocks, hash {}",
                                    64 * i + bit
                                );
                            }
                        }
                    }
                }
            }
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

/// Calls of every length into blocks at any alignment, in which some keys repeat an earlier one at
/// every distance, compared with single keys.
#[test]
fn every_kernel_says_which_hashes_were_new() {
    for probes in 1..=30 {
        for length in (0..=70).chain([127, 128, 129, 300]) {
            // The repeated key is 1 to 64 places before.
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

/// The check that keeps a kernel's writes inside its slice.
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

/// Blocks with one test, and blocks with different ones. Finds a mask that is kept although the
/// hash or the number of probes changed, a bit of another block, and a wrong word of a block.
#[test]
fn every_kernel_tests_a_hash_in_blocks_of_many_filters() {
    let word = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ i;
    let mut answers = [0; 2];
    for kernel in Kernel::supported() {
        let counts = [0, 1, 2, 20, 63, 64];
        for (count, is_same) in counts.into_iter().flat_map(|n| [(n, false), (n, true)]) {
            for probes in 1..=30 {
                let tests: Vec<_> = (0..count)
                    .map(|i| {
                        let seed = word(1_000 * count + i);
                        // The same hash and probes for a while, then another of either.
                        let number = if is_same { probes.into() } else { seed % 64 / 40 + i / 24 };
                        // The low half selects the block, which is given.
                        let hash = word(number) ^ (seed & 0xffff);
                        let is_own = !is_same && i % 16 >= 11;
                        let probes = if is_own { 1 + (seed % 30) as u32 } else { probes };
                        let mut block = [0_u8; 64];
                        probe::insert(&mut block, hash, probes);
                        let bits: Vec<u32> = probe::bits(hash, probes).collect();
                        // A block that holds the hash, or lacks one of its bits.
                        if seed % 3 == 0 {
                            let bit = bits[(seed >> 20) as usize % bits.len()];
                            block = [0xff; 64];
                            block[bit as usize / 8] ^= 1 << (bit % 8);
                        }
                        (block, hash, probes)
                    })
                    .collect();
                let found = kernel.test_blocks(tests.iter().map(|(b, h, p)| (b, *h, *p)));
                for (i, (block, hash, probes)) in tests.iter().enumerate() {
                    let expected = probe::contains(block, *hash, *probes);
                    answers[usize::from(expected)] += 1;
                    assert_eq!(found >> i & 1 == 1, expected, "{kernel}: {i} of {count}");
                }
                assert_eq!(found.checked_shr(count as u32).unwrap_or_default(), 0, "{kernel}");
            }
        }
    }
    assert!(answers[0] > 1_000 && answers[1] > 1_000, "{answers:?}");
}

/// More probes than a filter can have neither take long nor test other bits.
#[test]
fn blocks_are_tested_with_at_most_30_probes() {
    let hash = 0x9e37_79b9_7f4a_7c15;
    let mut block = [0; 64];
    probe::insert(&mut block, hash, MAX_PROBES);
    for kernel in Kernel::supported() {
        for probes in [MAX_PROBES, MAX_PROBES + 1, u32::MAX] {
            for last in [probes, 1] {
                let tests = [(&block, hash, probes), (&block, hash, last)];
                assert_eq!(kernel.test_blocks(tests.into_iter()), 0b11, "{kernel}");
            }
        }
    }
}

/// Finds a test that is taken for that of all blocks although only the hash is the same.
#[test]
fn one_hash_is_tested_with_the_probes_of_each_filter() {
    let hash = 0x9e37_79b9_7f4a_7c15;
    for kernel in Kernel::supported() {
        for (few, many) in [(1, 2), (2, 4), (6, 7), (8, 9), (16, 17), (6, 30)] {
            let mut block = [0; 64];
            probe::insert(&mut block, hash, few);
            assert!(!probe::contains(&block, hash, many));
            let tests = [(&block, hash, few), (&block, hash, many), (&block, hash, few)];
            assert_eq!(kernel.test_blocks(tests.into_iter()), 0b101, "{kernel}: {few}, {many}");
        }
    }
}
