//! What is measured: the keys of a filter, and those that are looked up. Every peer gets the same.

use xxhash_rust::xxh3::xxh3_64;

/// A key as an engine has it.
pub(crate) type Key = [u8; 16];

/// The hash of key `i` for peers that take hashes: the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection.
pub(crate) fn hash(i: u64) -> u64 {
    let mut word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The 16 bytes of key `i`.
pub(crate) fn key(i: u64) -> Key {
    let word = hash(i);
    (u128::from(word) << 64 | u128::from(!word)).to_le_bytes()
}

/// The hash of 16-byte keys for all peers that take hashes: XXH3-64, the fastest at hand, inlined for a known length.
#[inline]
pub(crate) fn hash_of(key: &Key) -> u64 {
    xxh3_64(key)
}

/// The hashes of all these keys.
pub(crate) fn hashes_of(keys: &[Key]) -> Vec<u64> {
    keys.iter().map(hash_of).collect()
}

/// Which keys are looked up.
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

    /// The number of the key that query `i` looks up in a filter of keys `0 .. keys`.
    fn number(self, keys: u64, i: u64) -> u64 {
        let is_present = match self {
            Mix::Absent => false,
            Mix::Half => hash(i).is_multiple_of(2),
            Mix::Present => true,
        };
        if is_present { hash(!i) % keys } else { keys + i }
    }
}

/// Queries of one mix, handed out a pass at a time, so that no branch predictor can learn their answers by heart.
#[derive(Debug)]
pub(crate) struct Queries<Q> {
    all: Vec<Q>,
    pass: usize,
}

/// Different passes; the queries start over afterwards.
const PASSES: usize = 8;

impl<Q> Queries<Q> {
    pub(crate) fn new(mix: Mix, keys: u64, pass: usize, query: impl Fn(u64) -> Q) -> Self {
        let numbers = (0..(pass * PASSES) as u64).map(|i| mix.number(keys, i));
        Queries { all: numbers.map(query).collect(), pass }
    }

    pub(crate) fn pass(&self, number: usize) -> &[Q] {
        let start = number % PASSES * self.pass;
        &self.all[start..start + self.pass]
    }
}

/// Queries in a pass: a pass touches a filter nearly all over, up to half of 10 million keys.
pub(crate) fn pass_length(keys: u64) -> usize {
    (keys as usize / 16).next_power_of_two().clamp(1 << 14, 1 << 18)
}
