//! What is measured: filters of a number of keys, and questions about them.
//!
//! Included by the command and by the criterion benches.

use blocked_bloom::{AllocError, BloomFilter, KeyHash, Params};

/// The key hashes of a measurement, well mixed: key `i` of a filter is `key(i)`.
pub(crate) fn key(i: u64) -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection: hashes of other numbers are other hashes.
    let mut word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Calls `take` with the hashes of keys `0 .. keys`, 65,536 at a time.
pub(crate) fn for_all_keys(keys: u64, mut take: impl FnMut(&[u64])) {
    let mut hashes = Vec::new();
    for start in (0..keys).step_by(1 << 16) {
        hashes.clear();
        hashes.extend((start..keys.min(start + (1 << 16))).map(key));
        take(&hashes);
    }
}

/// A filter with keys `0 .. keys`.
pub(crate) fn filled(params: Params, keys: u64) -> Result<BloomFilter, AllocError> {
    let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    for_all_keys(keys, |hashes| filter.insert_hashes(hashes));
    Ok(filter)
}

/// Which keys a filter is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    Absent,
    Half,
    Present,
}

impl Mix {
    pub(crate) const ALL: [Mix; 3] = [Mix::Absent, Mix::Half, Mix::Present];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mix::Absent => "absent",
            Mix::Half => "half",
            Mix::Present => "present",
        }
    }

    /// `count` hashes to ask a filter of keys `0 .. keys`, in no order.
    pub(crate) fn questions(self, keys: u64, count: usize) -> Vec<u64> {
        let question = |i: u64| {
            let is_present = match self {
                Mix::Absent => false,
                Mix::Half => key(i).is_multiple_of(2),
                Mix::Present => true,
            };
            key(if is_present { key(!i) % keys } else { keys + i })
        };
        (0..count as u64).map(question).collect()
    }
}

/// Questions for a filter of so many keys: few enough to stay in the second-level cache while the filter does, and enough to
/// touch it all over when it does not.
pub(crate) fn question_count(keys: u64) -> usize {
    if keys <= 1_000_000 { 1 << 14 } else { 1 << 20 }
}
