//! Plain Rust for SSE2, WebAssembly and other targets: each probe of four keys is one step, so that
//! the compiler can vectorise it and the CPU can overlap four chains of multiplications.
//!
//! The compiler chooses the instructions for the target, so on x86 this kernel is for machines
//! without AVX2. The vectors of the crate `wide` were 1.06 to 1.15 times slower with SSE2, and
//! compiling `wide` took more than half of the whole build.

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

/// Keys an iteration.
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
    // A loop of known length is a quarter faster: from 7 to 16 bits per key.
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

/// One bit per key, set if it may be present.
#[inline]
fn test_four(lines: [&Block; KEYS], hashes: &[u64; KEYS], probes: u32) -> u64 {
    let mut products = hashes.map(|hash| (hash >> 32) as u32);
    let mut all = [1; KEYS];
    for _ in 0..probes {
        for ((all, line), product) in all.iter_mut().zip(lines).zip(&mut products) {
            let bit = *product >> 23;
            let (words, _) = line.as_chunks();
            *all &= u64::from_le_bytes(words[(bit / 64 % 8) as usize]) >> (bit % 64);
            *product = product.wrapping_mul(MULTIPLIER);
        }
    }
    all.iter().rev().fold(0, |bits, all| bits << 1 | all & 1)
}
