//! Portable SIMD through the crate `wide`: one probe of four keys in a register, for SSE2,
//! WebAssembly and all other targets that `wide` supports.
//!
//! Only the bit positions are computed together. The bits are tested one by one, since SSE2 has
//! neither a lookup in 64 bytes nor a shift by different counts. `wide` selects instructions at
//! compile time, so on x86 this kernel serves CPUs without AVX2.

use wide::u32x4;

use super::InstructionSet;
use super::driver::for_each_word;
use super::prefetch::Prefetch;
use super::scalar;
use super::table::Table;
use crate::probe::{Block, MULTIPLIER, block_index};

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Portable,
    is_supported: || true,
    group,
    batch,
    ..scalar::TABLE
};

/// Keys per iteration.
const KEYS: usize = 4;

fn group(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    if hashes.len() < KEYS {
        return scalar::group(blocks, probes, hashes);
    }
    let mut word = [0];
    batch(blocks, Prefetch::Off, probes, hashes, &mut word);
    word[0]
}

fn batch(blocks: &[Block], prefetch: Prefetch, probes: u32, hashes: &[u64], hits: &mut [u64]) {
    match prefetch {
        Prefetch::Off => with_lines::<0>(blocks, probes, hashes, hits),
        Prefetch::OneLine => with_lines::<1>(blocks, probes, hashes, hits),
        Prefetch::TwoLines => with_lines::<2>(blocks, probes, hashes, hits),
    }
}

fn with_lines<const LINES: usize>(blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
    // A loop of known length takes 0.75 of the time. These cover 7 to 16 bits per key.
    match probes {
        5 => batch_of::<LINES, 5>(blocks, probes, hashes, hits),
        6 => batch_of::<LINES, 6>(blocks, probes, hashes, hits),
        7 => batch_of::<LINES, 7>(blocks, probes, hashes, hits),
        8 => batch_of::<LINES, 8>(blocks, probes, hashes, hits),
        9 => batch_of::<LINES, 9>(blocks, probes, hashes, hits),
        _ => batch_of::<LINES, 0>(blocks, probes, hashes, hits),
    }
}

/// Tests `PROBES` probes, or `probes` if `PROBES` is 0, and prefetches `LINES` lines per key.
fn batch_of<const LINES: usize, const PROBES: u32>(
    blocks: &[Block],
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let probes = if PROBES > 0 { PROBES } else { probes };
    let line = |hash| &blocks[block_index(hash, blocks.len() as u32) as usize];
    for_each_word::<KEYS, LINES>(blocks, hashes, hits, |keys| {
        watch!(ran("portable"));
        test_four(keys.map(line), keys, probes)
    });
}

/// Returns one bit per key, set if the key may be present.
#[inline]
fn test_four(lines: [&Block; KEYS], hashes: &[u64; KEYS], probes: u32) -> u64 {
    let mut products = u32x4::new(hashes.map(|hash| (hash >> 32) as u32));
    let multiplier = u32x4::splat(MULTIPLIER);
    let mut all = [1; KEYS];
    for _ in 0..probes {
        let bits = (products >> 23_u32).to_array();
        for ((all, line), bit) in all.iter_mut().zip(lines).zip(bits) {
            let (words, _) = line.as_chunks();
            *all &= u64::from_le_bytes(words[(bit / 64 % 8) as usize]) >> (bit % 64);
        }
        // Not `*=`, which `wide` lacks before 1.6.
        products = multiplier * products;
    }
    all.iter().rev().fold(0, |bits, all| bits << 1 | all & 1)
}
