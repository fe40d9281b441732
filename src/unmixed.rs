//! A check of caller-supplied hashes. If hashes differ in a few bits only, such as 32-bit hashes
//! widened to 64 bits, nearly every absent key passes the filter, and its bits do not show that.

use crate::error::ensure;
use crate::hash::KeyHash;
use crate::probe::MULTIPLIER;

/// Number of bins that the halves of hashes are sorted into, and the largest sample.
const BINS: usize = 4096;

/// Error of building a filter from caller-supplied hashes that are not well mixed: absent keys
/// would pass the filter far more often than its false-positive rate says.
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

/// Checks a sample of a filter's hashes if the caller supplies them (`key_hash`). For authors of
/// filters.
///
/// The sample has at most 4,096 hashes. Each half of a hash selects one of 4,096 bins; well-mixed
/// halves of 4,096 hashes fall into about 2,589 bins. The check fails if there are fewer than half
/// as many bins as hashes. Repeated hashes count once, and up to 12 different hashes always pass.
/// Random hashes fail with a probability below 1e-30.
///
/// Cost: reads one hash in 64, at least 256 and at most 1,024; if many of those are equal, 4,096.
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
    // 1,024 random hashes fall into 906 +- 9 bins.
    let [count, low_bins, high_bins] = bins(sample((len / 64).clamp(256, 1024)));
    if 16 * low_bins.min(high_bins) >= 13 * count { Ok(()) } else { check_distinct(sample(BINS)) }
}

/// Checks at most [`BINS`] hashes and counts repeated hashes once.
#[cold]
#[inline(never)]
fn check_distinct(sample: impl Iterator<Item = u64>) -> Result<(), UnmixedHashes> {
    let mut hashes = [0; BINS];
    let count = hashes.iter_mut().zip(sample).map(|(to, hash)| *to = hash).count();
    hashes[..count].sort_unstable();
    let distinct = hashes[..count].chunk_by(|a, b| a == b).map(|equal| equal[0]);
    let [hashes, low_bins, high_bins] = bins(distinct);
    let is_mixed = 2 * (low_bins.min(high_bins) + 5) >= hashes;
    ensure(is_mixed, UnmixedHashes { hashes, low_bins, high_bins })
}

/// Returns the number of hashes, and the numbers of bins that their low and high halves fall into.
fn bins(hashes: impl Iterator<Item = u64>) -> [u32; 3] {
    let mut seen = [[0_u64; BINS / 64]; 2];
    let mut count = 0;
    for hash in hashes {
        // The top bits of the low half select the block; all bits of the high half select its bits.
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

impl_error!(UnmixedHashes;
    Self { hashes, low_bins, high_bins } => (
        "the supplied hashes are not well mixed: {hashes} different hashes fall into {low_bins} of \
         {BINS} bins by their low halves and into {high_bins} by their high halves, at least {} \
         expected: mix all 64 bits (a 32-bit hash needs more than a cast), or insert keys",
        hashes.div_ceil(2).saturating_sub(5)
    ),
);
