//! A check of hashes that the caller supplies: a filter of hashes that differ in a few bits only, such
//! as 32-bit hashes widened to 64 bits, lets nearly every absent key pass, and nothing in its bits
//! shows that.

use core::fmt::{self, Display, Formatter};

use crate::hash::KeyHash;
use crate::probe::MULTIPLIER;

/// Bins that the halves of hashes are sorted into, and the most hashes that are sampled.
const BINS: usize = 4096;

/// The hashes that a caller supplied are not well mixed: absent keys would pass the filter far more
/// often than its rate says.
///
/// ```
/// use blocked_bloom::parts::check_mixed;
/// use blocked_bloom::KeyHash;
/// let widened: Vec<u64> = (0..100_u32).map(|i| i.wrapping_mul(0x9e37_79b9).into()).collect();
/// let error = check_mixed(KeyHash::Caller { tag: 1 }, &[widened]).unwrap_err();
/// assert_eq!((error.hashes, error.high_bins), (100, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmixedHashes {
    /// Number of different hashes in the sample.
    pub hashes: u32,
    /// Number of bins, of 4,096, that their low halves fall into.
    pub low_bins: u32,
    /// The same for their high halves.
    pub high_bins: u32,
}

/// Checks that the hashes of a filter are well mixed, if the caller supplies them (`key_hash`), from
/// a sample of at most 4,096 different hashes. For authors of filters.
///
/// Each half of a hash selects one of 4,096 bins. Well-mixed halves of 4,096 hashes fall into about
/// 2,589 bins; fewer than half as many bins as hashes are an error. Repeated hashes count once, and
/// up to 12 different hashes are never an error. The chance that random hashes are an error is below
/// 1e-30 for any number of hashes.
///
/// Cost: reads one hash in 64, 256 to 1,024 in all; 4,096 if many of those are equal.
///
/// # Errors
///
/// [`UnmixedHashes`] with the numbers of bins.
pub fn check_mixed(key_hash: KeyHash, lists: &[impl AsRef<[u64]>]) -> Result<(), UnmixedHashes> {
    let len = lists.iter().map(|list| list.as_ref().len()).sum::<usize>();
    if len == 0 || !matches!(key_hash, KeyHash::Caller { .. }) {
        return Ok(());
    }
    // Evenly spaced, since hashes may come sorted.
    let sample = |most: usize| {
        lists.iter().flat_map(|list| list.as_ref()).copied().step_by(len.div_ceil(most))
    };
    let few = sample((len / 64).clamp(256, 1024));
    // Of 1,024 random hashes 906 +- 9 select a bin of their own.
    let [count, low_bins, high_bins] = bins(few);
    if 16 * low_bins.min(high_bins) >= 13 * count { Ok(()) } else { check_distinct(sample(BINS)) }
}

/// The check of at most [`BINS`] hashes, each counted once.
#[cold]
#[inline(never)]
fn check_distinct(sample: impl Iterator<Item = u64>) -> Result<(), UnmixedHashes> {
    let mut hashes = [0; BINS];
    let count = hashes.iter_mut().zip(sample).map(|(to, hash)| *to = hash).count();
    hashes[..count].sort_unstable();
    let distinct = hashes[..count].chunk_by(|a, b| a == b).map(|equal| equal[0]);
    match bins(distinct) {
        [hashes, low_bins, high_bins] if 2 * (low_bins.min(high_bins) + 5) < hashes => {
            Err(UnmixedHashes { hashes, low_bins, high_bins })
        }
        _ => Ok(()),
    }
}

/// The number of hashes, and the numbers of bins that their low and high halves fall into.
fn bins(hashes: impl Iterator<Item = u64>) -> [u32; 3] {
    let mut seen = [[0_u64; BINS / 64]; 2];
    let mut count = 0;
    for hash in hashes {
        // The block depends on the top bits of the low half, the bits on all bits of the high half.
        let halves = [hash as u32, ((hash >> 32) as u32).wrapping_mul(MULTIPLIER)];
        for (seen, half) in seen.iter_mut().zip(halves) {
            let bin = (half >> 20) as usize;
            seen[bin / 64] |= 1 << (bin % 64);
        }
        count += 1;
    }
    let [low, high] = seen.map(|seen| seen.iter().map(|word| word.count_ones()).sum());
    [count, low, high]
}

impl Display for UnmixedHashes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let UnmixedHashes { hashes, low_bins, high_bins } = *self;
        write!(
            f,
            "the supplied hashes are not well mixed: {hashes} different hashes fall into {low_bins} \
             of {BINS} bins by their low halves and into {high_bins} by their high halves, at least \
             {} expected: mix all 64 bits (a 32-bit hash needs more than a cast), or insert keys",
            hashes / 2 - 5
        )
    }
}

impl core::error::Error for UnmixedHashes {}
