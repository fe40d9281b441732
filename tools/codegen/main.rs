//! `codegen CASE KERNEL PROBES ROUNDS`: one hot loop, `ROUNDS` times over 4096 keys.
//!
//! Two runs with different numbers of rounds differ only by the cost of the loop. `pinned.txt`
//! lists the loops that `tools/codegen.sh` checks, and their instructions per key.

use std::hint::black_box;

use blocked_bloom::{Bitmask, BloomFilter, Filter, FilterOptions, Kernel, Sizing};
use blocked_bloom_split::SplitBlockFilter;

/// Keys of a filter, and of a round; half of these are in the filter.
const KEYS: u64 = 4096;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, kernel, probes, rounds] = arguments.as_slice() else {
        return Err("usage: codegen CASE KERNEL PROBES ROUNDS".into());
    };
    let kernel = Kernel::supported()
        .find(|found| found.name() == kernel)
        .ok_or_else(|| format!("this CPU has no kernel {kernel}"))?;
    let (probes, rounds) = (probes.parse()?, 0..rounds.parse::<u32>()?);
    // 5 KiB, or more than any kernel takes to fit the cache: then it prefetches.
    let expected = if case == "query-ahead" { KEYS << 10 } else { KEYS };
    let filter = filled(expected, probes, kernel)?;
    let lookups: Vec<u64> = hashes(KEYS / 2).collect();
    let mut words = [0; KEYS as usize / 64];
    match case.as_str() {
        "query" | "query-ahead" => {
            for _ in rounds {
                filter.contains_hashes_into(black_box(&lookups), &mut words)?;
            }
        }
        // Eight keys a call.
        "few" => {
            for _ in rounds {
                for hashes in black_box(&lookups).chunks(8) {
                    filter.contains_hashes_into(hashes, &mut words[..1])?;
                    black_box(&words);
                }
            }
        }
        // 16 bytes each, hashing included.
        "keys" => {
            let keys: Vec<[u8; 16]> =
                lookups.iter().map(|&hash| u128::from(hash).to_le_bytes()).collect();
            for _ in rounds {
                filter.contains_batch_into(black_box(&keys), &mut words)?;
            }
        }
        "insert" => {
            let mut filter = filter;
            for _ in rounds {
                filter.insert_hashes(black_box(&lookups))?;
            }
        }
        "insert-new" => {
            let (mut filter, mut new) = (filter, Bitmask::new());
            for _ in rounds {
                filter.insert_hashes_new(black_box(&lookups), &mut new)?;
            }
        }
        "single" => {
            for _ in rounds {
                black_box(count_one_by_one(&filter, black_box(&lookups)));
            }
        }
        // Each key in 20 filters.
        "tables" => {
            let filters = vec![filter; 20];
            for _ in rounds {
                for &hash in black_box(&lookups) {
                    let tests = filters.iter().map(|filter| {
                        let (block, probes) = filter.block_and_probes(hash).expect("whole keys");
                        (block, hash, probes)
                    });
                    black_box(kernel.test_blocks(tests));
                }
            }
        }
        "split-query" => {
            let mut filter = SplitBlockFilter::with_blocks(1024)?.with_kernel(kernel);
            filter.insert_hashes(&hashes(0).collect::<Vec<_>>());
            for _ in rounds {
                filter.contains_hashes_into(black_box(&lookups), &mut words)?;
            }
        }
        "split-insert" => {
            let mut filter = SplitBlockFilter::with_blocks(1024)?.with_kernel(kernel);
            for _ in rounds {
                filter.insert_hashes(black_box(&lookups));
            }
        }
        _ => return Err(format!("no case {case}").into()),
    }
    black_box(words);
    Ok(())
}

/// The first `KEYS` keys, in a filter for `expected`.
fn filled(expected: u64, probes: u32, kernel: Kernel) -> Result<BloomFilter, Failure> {
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_probes(probes);
    let mut filter = options.empty_filter(expected)?.with_kernel(kernel);
    filter.insert_hashes(&hashes(0).collect::<Vec<_>>())?;
    Ok(filter)
}

/// Hashes of `KEYS` keys from key `first` on.
fn hashes(first: u64) -> impl Iterator<Item = u64> {
    (first..first + KEYS).map(|key| (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[inline(never)]
fn count_one_by_one(filter: &BloomFilter, hashes: &[u64]) -> usize {
    hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count()
}
