//! The references for lookups: the memory-bound baseline, and the probe scheme as many programs
//! write it.
//!
//! The baseline is two loops that load a line per key and test nothing. The faster is a reference,
//! not a bound: other orders of the same loads can be faster, and the library's batches are in some
//! sizes. `cargo bench -p blocked-bloom-benches --bench prefetch` tries other hints, distances and
//! groups.
#![expect(unsafe_code, reason = "loops as fast as the machine allows, to measure kernels against")]

use blocked_bloom::Block;
use blocked_bloom::probe::{bits, block_index};

use crate::timing::Timing;

/// Names of the two loops of the baseline, and whether they prefetch.
pub const BASELINES: [(&str, bool); 2] = [("baseline", false), ("baseline_ahead", true)];

/// Prefetch distance, in keys.
pub const DISTANCE: usize = 128;

/// The baseline: the faster of its two loops.
pub fn faster(plain: Timing, ahead: Timing) -> Timing {
    Timing { median: plain.median.min(ahead.median), min: plain.min.min(ahead.min), ..plain }
}

/// A loop of the baseline: loads the line of every hash with the widest available loads, and ORs
/// the lines together. `ahead` selects prefetching. `blocks` must not be empty.
pub fn load_lines(blocks: &[Block], hashes: &[u64], ahead: bool) -> u64 {
    assert!(!blocks.is_empty() && u32::try_from(blocks.len()).is_ok());
    for &hash in hashes.iter().take(if ahead { DISTANCE } else { 0 }) {
        prefetch(line(blocks, hash));
    }
    // SAFETY: `widest` found the instructions; the number of blocks was checked.
    unsafe { widest(ahead)(blocks, hashes) }
}

type Load = unsafe fn(&[Block], &[u64]) -> u64;

fn widest(ahead: bool) -> Load {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return if ahead { load_avx512::<DISTANCE> } else { load_avx512::<0> };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return if ahead { load_avx2::<DISTANCE> } else { load_avx2::<0> };
        }
    }
    if ahead { load::<DISTANCE> } else { load::<0> }
}

/// Where the line of a hash is.
#[inline(always)]
pub fn line(blocks: &[Block], hash: u64) -> *const Block {
    blocks.as_ptr().wrapping_add(block_index(hash, blocks.len() as u32) as usize)
}

/// Prefetches the line of the key that is [`DISTANCE`] keys after the one at `i`.
#[inline(always)]
fn prefetch_next<const DISTANCE: usize>(blocks: &[Block], hashes: &[u64], i: usize) {
    if DISTANCE > 0
        && let Some(&later) = hashes.get(i + DISTANCE)
    {
        prefetch(line(blocks, later));
    }
}

/// # Safety
///
/// `1 <= blocks.len() < 2^32`.
#[inline(always)]
unsafe fn load<const DISTANCE: usize>(blocks: &[Block], hashes: &[u64]) -> u64 {
    let mut all = [0_u64; 8];
    for (i, &hash) in hashes.iter().enumerate() {
        prefetch_next::<DISTANCE>(blocks, hashes, i);
        // SAFETY: `block_index` returns an index below the number of blocks, which is not 0; eight
        // words are as long as a block.
        let words = unsafe { line(blocks, hash).cast::<[u64; 8]>().read_unaligned() };
        for (all, word) in all.iter_mut().zip(words) {
            *all |= word;
        }
    }
    all.iter().fold(0, |all, word| all | word)
}

/// # Safety
///
/// There is AVX2, and `1 <= blocks.len() < 2^32`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn load_avx2<const DISTANCE: usize>(blocks: &[Block], hashes: &[u64]) -> u64 {
    // SAFETY: the caller's promise about the number of blocks.
    unsafe { load::<DISTANCE>(blocks, hashes) }
}

/// # Safety
///
/// There is AVX-512, and `1 <= blocks.len() < 2^32`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn load_avx512<const DISTANCE: usize>(blocks: &[Block], hashes: &[u64]) -> u64 {
    use core::arch::x86_64::*;
    // By intrinsics, since the compiler uses registers of half the width.
    let mut all = _mm512_setzero_si512();
    for (i, &hash) in hashes.iter().enumerate() {
        prefetch_next::<DISTANCE>(blocks, hashes, i);
        // SAFETY: the index is below the number of blocks.
        all = _mm512_or_si512(all, unsafe { _mm512_loadu_si512(line(blocks, hash).cast()) });
    }
    _mm512_reduce_or_epi64(all) as u64
}

/// Prefetches a line: on x86 into the second-level cache, on aarch64 into the first. It reads
/// nothing, so any address is allowed.
#[inline(always)]
pub fn prefetch<T>(line: *const T) {
    // The baseline at 100 M keys (Zen 4) took 9.8 ns with T0 64 keys ahead, 4.5 with T1, 3.8 with
    // T1 128 keys ahead, and 4.6 in groups of 64; at 10 M keys 4.8, 3.2, 2.2 and 2.5. RocksDB's
    // `prefetcht2` is as fast there. Nothing was measured on aarch64.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a prefetch reads nothing.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch reads nothing.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{line}]",
            line = in(reg) line,
            options(nostack, readonly)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

/// The probe scheme of this library tested probe by probe, stopping at the first bit that is not
/// set. Counts hits.
pub fn early_exit(blocks: &[Block], probes: u32, hashes: &[u64]) -> usize {
    let contains = |&&hash: &&u64| {
        let block = &blocks[block_index(hash, blocks.len() as u32) as usize];
        bits(hash, probes).all(|bit| block[(bit / 8) as usize] >> (bit % 8) & 1 == 1)
    };
    hashes.iter().filter(contains).count()
}
