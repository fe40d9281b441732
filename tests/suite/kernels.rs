//! Every kernel has the answers of the scalar probe scheme, for every length, number of probes,
//! number of blocks and alignment.

use crate::common::{Random, empty, filled, kernels};
use blocked_bloom::{Bitmask, Block, BloomFilter, Filter, Kernel, KeyHash, ParamsError, probe};

/// The expected answers of a batch, computed with the public probe scheme.
fn oracle(blocks: &[Block], probes: u32, hashes: &[u64]) -> Vec<bool> {
    let index = |hash| probe::block_index(hash, blocks.len() as u32) as usize;
    hashes.iter().map(|&hash| probe::contains(&blocks[index(hash)], hash, probes)).collect()
}

/// Blocks of a filter that every kernel prefetches.
fn outgrows_the_cache() -> u32 {
    (Kernel::default().prefetch_threshold() / 64) as u32 + 1
}

/// Half present, half random, so that hits and misses are mixed.
fn mixed(present: &[u64], count: usize, random: &mut Random) -> Vec<u64> {
    let mut pick = |i: usize| {
        if i.is_multiple_of(2) {
            random.next()
        } else {
            present[random.next() as usize % present.len()]
        }
    };
    (0..count).map(&mut pick).collect()
}

/// Looks up by every method and compares with the probe scheme.
fn check(filter: BloomFilter<&[Block]>, hashes: &[u64], hits: &mut Bitmask) {
    let expected = oracle(filter.blocks(), filter.params().probes(), hashes);
    let context = || format!("{filter:?}, {} hashes", hashes.len());

    filter.contains_hashes(hashes, hits);
    assert_eq!(hits.len(), hashes.len());
    assert_eq!(hits.words().len(), hashes.len().div_ceil(64));
    let answers: Vec<bool> = (0..hashes.len()).map(|i| hits.get(i).unwrap()).collect();
    assert_eq!(answers, expected, "batch, {}", context());
    if !hashes.len().is_multiple_of(64) {
        let tail = hits.words().last().unwrap() >> (hashes.len() % 64);
        assert_eq!(tail, 0, "bits past the last key, {}", context());
    }

    let mut words = vec![u64::MAX; hashes.len().div_ceil(64)];
    filter.contains_hashes_into(hashes, &mut words).unwrap();
    assert_eq!(words, hits.words(), "words, {}", context());

    for (&hash, &expected) in hashes.iter().zip(&expected) {
        assert_eq!(filter.contains_hash(hash), expected, "single {hash:#x}, {}", context());
    }
}

/// Otherwise, every test in this file would test only the fastest kernel.
#[test]
fn a_kernel_that_is_chosen_is_the_one_that_is_used() {
    let stored = empty(1, 6).to_bytes();
    for kernel in kernels() {
        let filter = empty(1, 6).with_kernel(kernel);
        let bytes = BloomFilter::from_bytes_any_hash(&stored).unwrap().with_kernel(kernel);
        let used = [
            filter.kernel(),
            filter.clone().kernel(),
            BloomFilter::from_bytes_any_hash(&stored).unwrap().with_kernel(kernel).kernel(),
            bytes.kernel(),
        ];
        assert_eq!(used.map(|used| used.instructions()), [kernel.instructions(); 4]);
    }
    let all = kernels();
    for (i, one) in all.iter().enumerate() {
        for (j, other) in all.iter().enumerate() {
            assert_eq!((one == other, one.name() == other.name()), (i == j, i == j));
        }
    }
    assert_eq!(all.last().map(|kernel| kernel.name()), Some("scalar"));
}

/// One test for each number of blocks, which the harness runs in parallel: they take most of the
/// time on an emulated machine.
mod lengths_and_probe_counts {
    use super::check_every_length_and_probe_count;

    #[test]
    fn one_block() {
        check_every_length_and_probe_count(1);
    }

    #[test]
    fn two_blocks() {
        check_every_length_and_probe_count(2);
    }

    #[test]
    fn seven_blocks() {
        check_every_length_and_probe_count(7);
    }

    #[test]
    fn thousand_blocks() {
        check_every_length_and_probe_count(1000);
    }

    #[test]
    fn more_than_65_536_blocks() {
        check_every_length_and_probe_count(70_001);
    }
}

fn check_every_length_and_probe_count(blocks: u32) {
    let kernels = kernels();
    let mut random = Random(u64::from(blocks));
    let mut hits = Bitmask::new();
    for probes in 1..=30 {
        let (filter, present) = filled(blocks, probes, u64::from(probes));
        let hashes = mixed(&present, 130, &mut random);
        for &kernel in &kernels {
            for length in 0..=130 {
                let filter = filter.view().with_kernel(kernel);
                check(filter, &hashes[..length], &mut hits);
            }
        }
    }
}

#[test]
fn every_alignment_of_a_borrowed_buffer_ending_at_its_allocation() {
    let kernels = kernels();
    let mut random = Random(2);
    let mut hits = Bitmask::new();
    for blocks in [1, 7, 100] {
        for probes in [1, 6, 8, 9, 16, 17, 30] {
            let (filter, present) = filled(blocks, probes, 5);
            let stored = filter.to_bytes();
            let hashes = mixed(&present, 200, &mut random);
            for offset in 0..64 {
                // Exactly as long as needed, so that a sanitizer detects a kernel that reads past
                // the last block.
                let mut bytes = vec![0xff; offset].into_boxed_slice().into_vec();
                bytes.reserve_exact(stored.len());
                bytes.extend_from_slice(&stored);
                let bytes = bytes.into_boxed_slice();
                let view = BloomFilter::from_bytes_any_hash(&bytes[offset..]).unwrap();
                for &kernel in &kernels {
                    for length in [1, 2, 3, 9, 16, 17, 33, 200] {
                        // As long as needed, too.
                        let hashes: Box<[u64]> = hashes[..length].into();
                        check(view.view().with_kernel(kernel), &hashes, &mut hits);
                    }
                }
            }
        }
    }
}

#[test]
fn long_batches_and_reused_masks() {
    let mut random = Random(3);
    let mut hits = Bitmask::new();
    // Filters of at least seven times the size prefetch groups; filters of up to six times the size
    // prefetch later keys.
    for blocks in [10, outgrows_the_cache(), 7 * outgrows_the_cache()] {
        let (filter, present) = filled(blocks, 6, 7);
        // At an odd address, every block straddles two lines.
        let stored = [&[0; 3][..], &filter.to_bytes()].concat();
        let straddling = BloomFilter::from_bytes_trusted_any_hash(&stored[3..]).unwrap();
        for kernel in kernels() {
            for length in [4095, 4096, 4097, 10_000, 0, 63, 64, 65, 127, 128, 129, 191, 192, 193] {
                let hashes = mixed(&present, length, &mut random);
                check(filter.view().with_kernel(kernel), &hashes, &mut hits);
                check(straddling.view().with_kernel(kernel), &hashes, &mut hits);
            }
        }
    }
}

/// Keys are hashed in groups, some of which are smaller than the prefetch distance.
#[test]
fn batches_of_keys_are_answered_as_their_hashes() {
    let hasher = blocked_bloom::KeyHasher::default();
    let long = [7; 300];
    let keys: Vec<&[u8]> = (0..1200).map(|i| &long[..i % 300]).collect();
    let fixed: Vec<[u8; 16]> = (0..1200_u128).map(u128::to_le_bytes).collect();
    let (mut hashes, mut hits, mut expected) = (Vec::new(), Bitmask::new(), Bitmask::new());
    // At an offset of one byte, each block straddles two cache lines.
    for (blocks, offset) in [(10, 0), (outgrows_the_cache(), 0), (outgrows_the_cache(), 1)] {
        let mut filter = empty(blocks, 6);
        keys.iter().step_by(3).for_each(|key| _ = filter.insert(key).unwrap());
        fixed.iter().step_by(3).for_each(|key| _ = filter.insert(key).unwrap());
        let mut stored = vec![0; offset];
        stored.extend(filter.to_bytes());
        let filter = BloomFilter::from_bytes_any_hash(&stored[offset..]).unwrap();
        for filter in kernels().into_iter().map(|kernel| filter.view().with_kernel(kernel)) {
            for length in (0..=520).chain([640, 767, 768, 769, 1200]) {
                hasher.hash_batch(&keys[..length], &mut hashes);
                filter.contains_hashes(&hashes, &mut expected);
                filter.contains_batch(&keys[..length], &mut hits);
                assert_eq!(hits.words(), expected.words(), "{filter:?}, {length} keys");
                hasher.hash_batch(&fixed[..length], &mut hashes);
                filter.contains_hashes(&hashes, &mut expected);
                filter.contains_batch(&fixed[..length], &mut hits);
                assert_eq!(hits.words(), expected.words(), "{filter:?}, {length} fixed keys");
                assert!((0..length).step_by(3).all(|i| hits.get(i) == Some(true)));
            }
        }
    }
}

#[test]
fn hashes_at_the_edges_of_every_range() {
    let edges = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
    let hashes: Vec<u64> = edges.iter().flat_map(|hi| edges.map(|lo| hi << 32 | lo)).collect();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        for blocks in [1, 2, 3, 1000] {
            for probes in 1..=30 {
                let mut filter = empty(blocks, probes).with_kernel(kernel);
                filter.insert_hashes(&hashes[..hashes.len() / 2]).unwrap();
                check(filter.view(), &hashes, &mut hits);
                assert!((0..hashes.len() / 2).all(|i| hits.get(i) == Some(true)));
            }
        }
    }
}

#[test]
fn every_kernel_inserts_the_same_bits() {
    let mut random = Random(4);
    for probes in 1..=30 {
        for blocks in [1, 7, 1000, outgrows_the_cache()] {
            let hashes = random.hashes((blocks as usize * 10).min(100_000) + 3);
            let mut expected = vec![[0; 64]; blocks as usize];
            for &hash in &hashes {
                let index = probe::block_index(hash, blocks) as usize;
                probe::insert(&mut expected[index], hash, probes);
            }
            let mut one_by_one = empty(blocks, probes);
            for &hash in &hashes {
                one_by_one.insert_hash(hash).unwrap();
            }
            assert_eq!(one_by_one.blocks(), expected);
            for kernel in kernels() {
                let mut batch = empty(blocks, probes).with_kernel(kernel);
                batch.insert_hashes(&hashes).unwrap();
                assert_eq!(batch, one_by_one, "{kernel:?}, {probes} probes, {blocks} blocks");
                let mut bare = vec![[0; 64]; blocks as usize];
                insert_bare(kernel, &mut bare, probes, &hashes).unwrap();
                assert_eq!(bare, expected, "{kernel:?}, {probes} probes, {blocks} blocks");
            }
        }
    }
}

/// Inserts into borrowed blocks.
fn insert_bare(
    kernel: Kernel,
    blocks: &mut [Block],
    probes: u32,
    hashes: &[u64],
) -> Result<(), ParamsError> {
    let filter = BloomFilter::from_blocks(blocks, probes, KeyHash::Caller { tag: 3 })?;
    filter.with_kernel(kernel).insert_hashes(hashes).expect("a filter of whole keys");
    Ok(())
}

/// Calls of every length, into blocks at any alignment. Keys occur twice in a call, adjacent and
/// apart.
#[test]
fn every_length_of_a_call_inserts_the_same_bits() {
    let mut random = Random(8);
    let check = |blocks: usize, probes, hashes: &[u64]| {
        let mut expected = vec![[0; 64]; blocks];
        for &hash in hashes {
            let index = probe::block_index(hash, blocks as u32) as usize;
            probe::insert(&mut expected[index], hash, probes);
        }
        for kernel in kernels() {
            for offset in [0, 1, 40] {
                let mut bytes = vec![0; offset + 64 * blocks];
                let (inserted, _) = bytes[offset..].as_chunks_mut::<64>();
                let hashes: Box<[u64]> = hashes.into();
                insert_bare(kernel, inserted, probes, &hashes).unwrap();
                let context = (kernel, probes, blocks, hashes.len(), offset);
                assert!(*inserted == expected[..], "{context:?}");
            }
        }
    };
    for probes in 1..=30 {
        let mut hashes = random.hashes(200);
        for i in [1, 2, 9, 40, 41, 64] {
            hashes[i] = hashes[i - 1];
            hashes[2 * i + 33] = hashes[i];
        }
        for length in (0..=90).chain([191, 192, 193, 200]) {
            check(1, probes, &hashes[200 - length..]);
            check(5, probes, &hashes[..length]);
        }
        for length in [3, 4, 31, 33, 200] {
            check(outgrows_the_cache() as usize, probes, &hashes[..length]);
        }
    }
}

/// Blocks of other packages: an invalid shape is rejected, and nothing is written.
#[test]
fn bare_blocks_are_filled_and_looked_up_by_every_kernel() {
    let (mut random, mut hits) = (Random(7), Bitmask::new());
    let key_hash = KeyHash::Caller { tag: 3 };
    for kernel in kernels() {
        assert_eq!(
            (kernel.to_string(), format!("{kernel:>9}|")),
            (kernel.name().into(), format!("{:>9}|", kernel.name()))
        );
        assert!(kernel.prefetch_threshold() > 0);
        for (blocks, probes) in [(1, 1), (3, 6), (100, 30), (outgrows_the_cache() as usize, 7)] {
            let hashes = random.hashes(blocks * 20);
            let mut bare = vec![[0; 64]; blocks];
            insert_bare(kernel, &mut bare, probes, &[]).unwrap();
            assert!(bare.as_flattened().iter().all(|&byte| byte == 0));
            insert_bare(kernel, &mut bare, probes, &hashes).unwrap();
            let filter = BloomFilter::from_blocks(&bare[..], probes, key_hash).unwrap();
            assert_eq!((filter.params().probes(), filter.keys_inserted()), (probes, 0));
            assert_eq!((filter.key_hash(), filter.is_pass_all()), (key_hash, false));
            assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
            check(filter.with_kernel(kernel), &mixed(&hashes, 300, &mut random), &mut hits);
        }
        for probes in [0, 31, u32::MAX] {
            let mut bare = [[7; 64]; 2];
            let refused = ParamsError::ProbesOutOfRange { probes };
            assert_eq!(insert_bare(kernel, &mut bare, probes, &[1]), Err(refused));
            assert_eq!(bare, [[7; 64]; 2]);
            assert_eq!(BloomFilter::from_blocks(&bare, probes, key_hash), Err(refused));
        }
        let refused = ParamsError::BlocksOutOfRange { blocks: 0 };
        assert_eq!(insert_bare(kernel, &mut [], 6, &[1]), Err(refused));
        assert_eq!(BloomFilter::from_blocks(&[][..], 6, key_hash), Err(refused));
    }
    assert_eq!(Kernel::supported().next(), Some(kernels()[0]));
}

/// A prefetch reads nothing, so any offset is allowed.
#[test]
fn any_offset_can_be_prefetched() {
    for bytes in [&[][..], &[0; 1], &[0; 4_096]] {
        for offset in [0, 1, 63, 64, 4_095, 4_096, usize::MAX / 2, usize::MAX] {
            blocked_bloom::parts::prefetch(bytes, offset);
        }
    }
}

/// The largest number of blocks, in reserved memory with only a few used pages.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn block_counts_up_to_the_last() {
    let header = empty(1, 6).to_bytes();
    let kernels = kernels();
    let mut random = Random(6);
    let mut hits = Bitmask::new();
    for blocks in [u32::MAX, u32::MAX - 1, (1 << 31) + 1, 1 << 31, (1 << 26) + 1] {
        let mut map = memmap2::MmapOptions::new()
            .len(64 + 64 * blocks as usize)
            .no_reserve_swap()
            .map_anon()
            .expect("256 GiB of addresses without memory");
        map[..64].copy_from_slice(&header[..64]);
        map[24..28].copy_from_slice(&blocks.to_le_bytes());
        let checksum = blocked_bloom::KeyHasher::default().hash(&map[..56]);
        map[56..64].copy_from_slice(&checksum.to_le_bytes());

        // The limits of the low half, and some values between them; the first and the last block
        // are among them.
        let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, 0xffff_ffff];
        let within = (0..16).map(|_| random.next() & 0xffff_ffff).collect::<Vec<u64>>();
        let lows = edges.into_iter().chain(within);
        let hashes: Vec<u64> = lows.map(|lo| random.next() << 32 | lo).collect();
        for &hash in hashes.iter().step_by(2) {
            let start = 64 + 64 * probe::block_index(hash, blocks) as usize;
            let block = (&mut map[start..start + 64]).try_into().unwrap();
            probe::insert(block, hash, 6);
        }
        let filter = BloomFilter::from_bytes_trusted_any_hash(&map).unwrap();
        assert_eq!(filter.blocks().len(), blocks as usize);
        // Calls with few keys, with a word of keys, and with more keys than the prefetch distance:
        // each computes offsets in its own way.
        let hashes: Vec<u64> = hashes.iter().copied().cycle().take(150).collect();
        for &kernel in &kernels {
            for length in [1, 3, 8, 24, 64, 150] {
                check(filter.view().with_kernel(kernel), &hashes[..length], &mut hits);
                assert!((0..length).step_by(2).all(|i| hits.get(i) == Some(true)));
            }
        }
        // Insertions write where lookups read: into blocks that were zeroed again, by each kernel,
        // with few and many keys.
        let bits = |map: &memmap2::MmapMut| -> u32 {
            let block = |hash: u64| 64 + 64 * probe::block_index(hash, blocks) as usize;
            let mut starts: Vec<usize> = hashes.iter().map(|&hash| block(hash)).collect();
            starts.sort_unstable();
            starts.dedup();
            starts.iter().flat_map(|&at| &map[at..at + 64]).map(|byte| byte.count_ones()).sum()
        };
        for &kernel in &kernels {
            for length in [2, 8, 24] {
                for &hash in &hashes {
                    let start = 64 + 64 * probe::block_index(hash, blocks) as usize;
                    map[start..start + 64].fill(0);
                }
                let (in_map, rest) = map[64..].as_chunks_mut::<64>();
                assert!(rest.is_empty());
                insert_bare(kernel, in_map, 6, &hashes[..length]).unwrap();
                let filter = BloomFilter::from_blocks(in_map, 6, KeyHash::default()).unwrap();
                assert!(
                    hashes[..length].iter().all(|&hash| filter.contains_hash(hash)),
                    "{kernel}"
                );
                let found = bits(&map) as usize;
                assert!((3 * length..=6 * length).contains(&found), "{kernel}, {length}: {found}");
            }
        }
    }
}

/// The probe scheme in `docs/format.md`, with arithmetic that shares no code with `probe.rs`.
#[test]
fn the_oracle_is_the_documented_probe_scheme() {
    let mut random = Random(5);
    for _ in 0..2000 {
        let (hash, blocks) = (random.next(), (random.next() >> 40) as u32 + 1);
        let (lo, hi) = (u128::from(hash) % (1 << 32), u128::from(hash) / (1 << 32));
        let block = lo * u128::from(blocks) / (1 << 32);
        assert_eq!(u128::from(probe::block_index(hash, blocks)), block);
        let bits: Vec<u32> = probe::bits(hash, 30).collect();
        let mut power = 1;
        for &bit in &bits {
            assert_eq!(u128::from(bit), hi * power % (1 << 32) / (1 << 23));
            power = power * 0x9e37_79b9 % (1 << 32);
        }
        let mut mask = [0; 64];
        probe::insert(&mut mask, hash, 30);
        for bit in 0..512_u32 {
            let set = mask[(bit / 8) as usize] / (1 << (bit % 8)) % 2 == 1;
            assert_eq!(set, bits.contains(&bit));
        }
    }
    assert_eq!(probe::block_index(u64::MAX, u32::MAX), u32::MAX - 1);
    assert_eq!(probe::block_index(0, u32::MAX), 0);
    assert_eq!(probe::block_index(u64::MAX, 1), 0);
}

/// The first and the last low half of every block, for many numbers of blocks, and for the first,
/// last and other blocks of large filters.
#[test]
fn the_index_steps_by_one_at_every_boundary_between_blocks() {
    let first = |block: u64, blocks: u32| (block << 32).div_ceil(blocks.into());
    let check = |block: u64, blocks: u32| {
        let (start, end) = (first(block, blocks), first(block + 1, blocks));
        assert!(start < end && end <= 1 << 32, "{block} of {blocks}");
        for low in [start, end - 1] {
            for high in [0, u64::MAX << 32] {
                let index = probe::block_index(high | low, blocks);
                assert_eq!(u64::from(index), block, "{low:#x} of {blocks}");
            }
        }
    };
    assert_eq!(probe::block_index(u64::MAX, 0), 0);
    for blocks in 1..=1500 {
        (0..u64::from(blocks)).for_each(|block| check(block, blocks));
        assert_eq!(first(blocks.into(), blocks), 1 << 32);
    }
    let mut random = Random(17);
    let around = (11..32).flat_map(|bits| [(1_u32 << bits) - 1, 1 << bits, (1 << bits) + 1]);
    for blocks in around.chain([u32::MAX - 1, u32::MAX]) {
        for i in 0..1000_u64 {
            check(i, blocks);
            check(u64::from(blocks) - 1 - i, blocks);
            check(random.next() % u64::from(blocks), blocks);
        }
    }
}

/// Kernels compute the index themselves, some of them in vectors.
#[test]
fn every_kernel_uses_the_block_of_the_first_and_the_last_low_half() {
    for kernel in kernels() {
        for count in [1, 2, 3, 5, 63, 64, 65, 127, 1000, 1023, 4097_u64] {
            for probes in [6, 16, 30] {
                let ends = (1..=count).map(|block| (block << 32).div_ceil(count));
                let halves = ends.flat_map(|end| [end - 1, end % (1 << 32)]);
                let hashes: Vec<u64> = halves.map(|low| 0x9e37_79b9 << 32 | low).collect();
                let mut blocks = vec![[0; 64]; count as usize];
                insert_bare(kernel, &mut blocks, probes, &hashes).unwrap();
                let mut expected = [0; 64];
                probe::insert(&mut expected, hashes[0], probes);
                assert!(blocks.iter().all(|block| *block == expected), "{kernel}, {count}");
                // Without the block of each, its two hashes are absent and all others present.
                for block in [0, count / 2, count - 1] {
                    blocks[block as usize] = [0; 64];
                    let filter = BloomFilter::from_blocks(&blocks[..], probes, KeyHash::default());
                    let filter = filter.unwrap().with_kernel(kernel);
                    let mut hits = Bitmask::new();
                    filter.contains_hashes(&hashes, &mut hits);
                    for (i, &hash) in hashes.iter().enumerate() {
                        let present = u64::from(probe::block_index(hash, count as u32)) != block;
                        assert_eq!(hits.get(i), Some(present), "{kernel}, {count}, {hash:#x}");
                        assert_eq!(filter.contains_hash(hash), present, "{kernel}, {count}");
                    }
                    blocks[block as usize] = expected;
                }
            }
        }
    }
}

/// The environment is read once per process, so each value needs a process.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "an emulated process cannot start itself")]
#[allow(clippy::print_stdout, reason = "read by the parent")]
fn the_environment_sets_the_prefetch_threshold() {
    const CHILD: &str = "BLOCKED_BLOOM_TEST_PRINTS_THRESHOLD";
    if std::env::var_os(CHILD).is_some() {
        let thresholds: Vec<usize> =
            Kernel::supported().map(|kernel| kernel.prefetch_threshold()).collect();
        // On a separate line, with any output format of the harness.
        println!("\nthresholds {thresholds:?}\n");
        return;
    }
    let of = |set: Option<&str>| -> Vec<usize> {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "--nocapture",
            "kernels::the_environment_sets_the_prefetch_threshold",
        ]);
        child.env(CHILD, "1").env_remove(blocked_bloom::PREFETCH_VARIABLE);
        set.map(|bytes| child.env(blocked_bloom::PREFETCH_VARIABLE, bytes));
        let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
        let line = output.lines().find_map(|line| line.strip_prefix("thresholds "));
        let numbers = line.unwrap_or_else(|| panic!("{output}")).trim_matches(['[', ']']);
        numbers.split(", ").map(|number| number.parse().unwrap()).collect()
    };
    let usual = of(None);
    // The child may have more kernels: it runs natively even if this process is emulated.
    let kernels = usual.len();
    assert!(kernels > 0 && usual.iter().all(|&bytes| bytes == usual[0]));
    // Another size than this machine's.
    for bytes in [12_345, usual[0] + 1, 1 << 40] {
        assert_eq!(of(Some(&bytes.to_string())), vec![bytes; kernels]);
    }
    // The smallest size: every filter is prefetched.
    assert!(of(Some("0")).iter().all(|&bytes| bytes <= 1));
    for ignored in ["", "1 MiB", "-1", "1e6"] {
        assert_eq!(of(Some(ignored)), usual, "{ignored:?}");
    }
}
