//! The workload: the keys of a filter, and the keys that are looked up.

use blocked_bloom::{BloomFilter, BuildError, KeyHash, Params};

/// A key as an engine has it.
pub type Key = [u8; 16];

/// The hash of key `i`: the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection.
pub fn hash(i: u64) -> u64 {
    let mut word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The 16 bytes of key `i`.
pub fn key(i: u64) -> Key {
    let word = hash(i);
    (u128::from(word) << 64 | u128::from(!word)).to_le_bytes()
}

/// Calls `take` with the hashes of keys `0 .. keys`, 65,536 at a time.
pub fn visit_hashes(keys: u64, mut take: impl FnMut(&[u64])) {
    let mut hashes = Vec::new();
    for start in (0..keys).step_by(1 << 16) {
        hashes.clear();
        hashes.extend((start..keys.min(start + (1 << 16))).map(hash));
        take(&hashes);
    }
}

/// A filter with the hashes of keys `0 .. keys`.
pub fn filled(params: Params, keys: u64) -> Result<BloomFilter, BuildError> {
    let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    let mut inserted = Ok(());
    visit_hashes(keys, |hashes| inserted = inserted.and_then(|()| filter.insert_hashes(hashes)));
    inserted?;
    Ok(filter)
}

/// Which keys are looked up in a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// None of them in the filter.
    Absent,
    /// Half of them in the filter, in no order.
    Half,
    /// All of them in the filter.
    Present,
}

impl Mix {
    /// Every mix.
    pub const ALL: [Mix; 3] = [Mix::Absent, Mix::Half, Mix::Present];

    /// As rows are named.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Absent => "absent",
            Mix::Half => "half",
            Mix::Present => "present",
        }
    }

    /// The number of the key that is looked up as the `i`th in a filter of keys `0 .. keys`.
    pub fn number(self, keys: u64, i: u64) -> u64 {
        let is_present = match self {
            Mix::Absent => false,
            Mix::Half => hash(i).is_multiple_of(2),
            Mix::Present => true,
        };
        if is_present { hash(!i) % keys } else { keys + i }
    }

    /// `count` hashes to look up in a filter of keys `0 .. keys`, in no order.
    pub fn lookups(self, keys: u64, count: usize) -> Vec<u64> {
        (0..count as u64).map(|i| hash(self.number(keys, i))).collect()
    }
}

/// Lookups for a filter of this many keys: few enough to stay in the second-level cache while the
/// filter does, and enough to touch it all over when it does not.
pub fn lookup_count(keys: u64) -> usize {
    if keys <= 1_000_000 { 1 << 14 } else { 1 << 20 }
}
