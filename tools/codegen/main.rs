//! `codegen CASE KERNEL PROBES ROUNDS`: one hot loop, `ROUNDS` times over 4096 keys or pairs of a key and a filter.
//!
//! Two runs that differ in rounds differ by what the loop takes and nothing else. This file owns which loops `tools/codegen.sh` can
//! count; which it does, and what they may take, is in `pinned.txt`.

use std::hint::black_box;

use blocked_bloom::interop::parquet::SplitBlockFilter;
use blocked_bloom::{BloomFilter, BloomFilterRef, FilterSet, Kernel, KeyHash, Sizing};

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
    // 5 KiB, or more than any kernel takes to fit the cache: then it requests lines ahead.
    let room = if case == "query-ahead" { KEYS << 10 } else { KEYS };
    let filter = filled(room, probes, kernel)?;
    let asked: Vec<u64> = hashes(KEYS / 2).collect();
    let mut words = [0; KEYS as usize / 64];
    match case.as_str() {
        "query" | "query-ahead" => {
            for _ in rounds {
                filter.view().contains_hashes_into(black_box(&asked), &mut words)?;
            }
        }
        // 16 bytes each, hashing included.
        "keys" => {
            let keys: Vec<[u8; 16]> =
                asked.iter().map(|&hash| u128::from(hash).to_le_bytes()).collect();
            for _ in rounds {
                filter.view().contains_batch_into(black_box(&keys), &mut words)?;
            }
        }
        "insert" => {
            let mut filter = filter;
            for _ in rounds {
                filter.insert_hashes(black_box(&asked));
            }
        }
        "single" => {
            for _ in rounds {
                black_box(count_one_by_one(filter.view(), black_box(&asked)));
            }
        }
        "set-1" => ask_set::<1>(filter.view(), kernel, rounds.len(), &asked)?,
        "set-64" => ask_set::<64>(filter.view(), kernel, rounds.len(), &asked)?,
        "split-query" => {
            let mut filter = SplitBlockFilter::with_blocks(1024)?.with_kernel(kernel);
            filter.insert_hashes(&hashes(0).collect::<Vec<_>>());
            for _ in rounds {
                filter.view().contains_hashes_into(black_box(&asked), &mut words)?;
            }
        }
        "split-insert" => {
            let mut filter = SplitBlockFilter::with_blocks(1024)?.with_kernel(kernel);
            for _ in rounds {
                filter.insert_hashes(black_box(&asked));
            }
        }
        _ => return Err(format!("no case {case}").into()),
    }
    black_box(words);
    Ok(())
}

/// The first `KEYS` keys, in a filter with room for `room`.
fn filled(room: u64, probes: u32, kernel: Kernel) -> Result<BloomFilter, Failure> {
    let params = Sizing::BitsPerKey(10.0).params(room)?.with_probes(probes)?;
    let mut filter = BloomFilter::with_params(params, KeyHash::default())?.with_kernel(kernel);
    filter.insert_hashes(&hashes(0).collect::<Vec<_>>());
    Ok(filter)
}

/// Hashes of `KEYS` keys from key `first` on.
fn hashes(first: u64) -> impl Iterator<Item = u64> {
    (first..first + KEYS).map(|key| (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[inline(never)]
fn count_one_by_one(view: BloomFilterRef<'_>, hashes: &[u64]) -> usize {
    hashes.iter().filter(|&&hash| view.contains_hash(hash)).count()
}

/// One key after the other against `FILTERS` filters: 4096 pairs a round.
fn ask_set<const FILTERS: usize>(
    view: BloomFilterRef<'_>,
    kernel: Kernel,
    rounds: usize,
    hashes: &[u64],
) -> Result<(), Failure> {
    let set = FilterSet::new(KeyHash::default(), [view; FILTERS])?.with_kernel(kernel);
    let mut word = [0];
    for _ in 0..rounds {
        for &hash in &hashes[..KEYS as usize / FILTERS] {
            set.contains_hash_into(black_box(hash), &mut word)?;
        }
    }
    black_box(word);
    Ok(())
}
