//! The parts that kernels share: the loop over words of answers with prefetching of later keys, and
//! the selection of the loop for a kind of prefetching and a number of probes. Each instruction set
//! has its own arithmetic.

use super::prefetch::prefetcher;
use crate::probe::Block;

/// Tests `KEYS` hashes at a time with `test`, which returns one bit per hash. Prefetches `LINES`
/// cache lines for each of the same number of later keys.
///
/// Always inlined, so that `test` is compiled for the instruction set of the caller.
#[cfg_attr(not(feature = "portable"), allow(dead_code, reason = "for the SIMD kernels"))]
#[inline(always)]
pub(super) fn for_each_word<const KEYS: usize, const LINES: usize>(
    blocks: &[Block],
    hashes: &[u64],
    hits: &mut [u64],
    test: impl Fn(&[u64; KEYS]) -> u64,
) {
    let mut ahead = prefetcher::<LINES>(blocks, hashes);
    for (keys, word) in hashes.chunks(64).zip(hits) {
        let mut bits = 0;
        let (whole, rest) = keys.as_chunks::<KEYS>();
        for (i, keys) in whole.iter().enumerate() {
            if LINES > 0 {
                ahead.advance(KEYS);
            }
            bits |= test(keys) << (i * KEYS);
        }
        if !rest.is_empty() {
            let mut keys = [rest[0]; KEYS];
            keys[..rest.len()].copy_from_slice(rest);
            let used = (1 << rest.len()) - 1;
            bits |= (test(&keys) & used) << (whole.len() * KEYS);
        }
        *word = bits;
    }
}

/// Tests up to 64 hashes one by one. Always inlined, for the same reason as the loop above.
#[inline(always)]
pub(super) fn for_each_of_few(hashes: &[u64], test: impl Fn(&u64) -> bool) -> u64 {
    let bit = |hash| u64::from(test(hash));
    let (fours, rest) = hashes.as_chunks();
    let mut word = 0;
    // Four keys per iteration: in a loop over ten single keys, the CPU mispredicts the last jump,
    // which costs as much time as eight more keys.
    for (i, [a, b, c, d]) in fours.iter().enumerate() {
        word |= (bit(a) | bit(b) << 1 | bit(c) << 2 | bit(d) << 3) << (4 * i);
    }
    // Not a loop: with one, a call of two hashes took 1.3 of the time (Cascade Lake).
    let last = match rest {
        [a, b, c] => bit(a) | bit(b) << 1 | bit(c) << 2,
        [a, b] => bit(a) | bit(b) << 1,
        _ => rest.first().map_or(0, bit),
    };
    word | last.unbounded_shl(4 * fours.len() as u32)
}

/// Calls the instance `$batch::<LINES, N>` for a kind of prefetching and a number of probes: `N` is
/// `$low` for up to 8 probes, `$middle` for up to 16, and `$high` for more. Each instance has its
/// own arm, since a call through a pointer would be one more jump to predict.
#[allow(unused_macros, reason = "not every machine has a SIMD kernel")]
macro_rules! batch_for {
    (
        $batch:ident, [$low:literal, $middle:literal, $high:literal],
        $blocks:ident, $prefetch:ident, $probes:ident, $hashes:ident, $hits:ident
    ) => {
        match ($prefetch, $probes) {
            (Prefetch::Off, ..=8) => $batch::<0, $low>($blocks, $probes, $hashes, $hits),
            (Prefetch::Off, ..=16) => $batch::<0, $middle>($blocks, $probes, $hashes, $hits),
            (Prefetch::Off, _) => $batch::<0, $high>($blocks, $probes, $hashes, $hits),
            (Prefetch::OneLine, ..=8) => $batch::<1, $low>($blocks, $probes, $hashes, $hits),
            (Prefetch::OneLine, ..=16) => $batch::<1, $middle>($blocks, $probes, $hashes, $hits),
            (Prefetch::OneLine, _) => $batch::<1, $high>($blocks, $probes, $hashes, $hits),
            (Prefetch::TwoLines, ..=8) => $batch::<2, $low>($blocks, $probes, $hashes, $hits),
            (Prefetch::TwoLines, ..=16) => $batch::<2, $middle>($blocks, $probes, $hashes, $hits),
            (Prefetch::TwoLines, _) => $batch::<2, $high>($blocks, $probes, $hashes, $hits),
        }
    };
}
#[allow(unused_imports, reason = "not every machine has a SIMD kernel")]
pub(super) use batch_for;
