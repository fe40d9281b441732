//! A classical bit array: where the bits of a key are, whether they are set, and setting them.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use super::batch;

/// Filters up to this many bytes stay in the second-level cache, where prefetching only costs.
const PREFETCH_THRESHOLD: usize = 256 << 10;

/// Keys between the prefetch of their lines and the setting of their bits.
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
const DISTANCE: usize = 16;

/// Where the bits of a key are in an array of this size.
pub(crate) trait Scheme: Copy {
    /// What the positions are computed from.
    type Hash: Copy;

    /// Bits per key, at least 1.
    fn probes(self) -> u32;

    /// Bits that probes may fall on: no more than the array has.
    fn bits(self) -> u64;

    /// The numbers that the positions of a key are computed from.
    fn walk(self, hash: Self::Hash) -> Walk;

    /// The position of a number of the walk: bit `position % 8` of byte `position / 8`, below the array's bits.
    fn position(self, number: u64) -> u64;
}

/// The numbers that the positions of a key are computed from: an arithmetic sequence modulo 2^64. All these formats use double hashing
/// (Kirsch and Mitzenmacher 2006).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    pub(crate) next: u64,
    pub(crate) step: u64,
}

impl Walk {
    #[inline]
    fn next(&mut self) -> u64 {
        let number = self.next;
        self.next = number.wrapping_add(self.step);
        number
    }
}

/// The bits of a filter, borrowed, and where in them those of a key are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitArray<'a, S> {
    /// At least `scheme.bits()` bits.
    bytes: &'a [u8],
    scheme: S,
}

impl<'a, S: Scheme> BitArray<'a, S> {
    /// `bytes` has at least as many bits as the scheme.
    pub(crate) fn new(bytes: &'a [u8], scheme: S) -> Self {
        debug_assert!(bytes.len() as u64 * 8 >= scheme.bits());
        BitArray { bytes, scheme }
    }

    #[cfg(any(feature = "guava", feature = "spark"))]
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn scheme(self) -> S {
        self.scheme
    }

    /// One probe after the other. Testing the first two at once took present keys in cache 1.4 times as long, and gained a tenth for absent
    /// ones from memory, which a batch looks up five times as fast.
    #[inline]
    pub(crate) fn contains(self, hash: S::Hash) -> bool {
        let mut walk = self.scheme.walk(hash);
        (0..self.scheme.probes()).all(|_| self.is_set(self.next(&mut walk)))
    }

    /// Writes bit `i % 64` of `words[i / 64]` for hash `i`; there is one word per 64 hashes.
    #[inline]
    pub(crate) fn contains_all(self, mut hashes: impl Iterator<Item = S::Hash>, words: &mut [u64]) {
        if self.bytes.len() > PREFETCH_THRESHOLD {
            return batch::contains_all(self, hashes, words);
        }
        for word in words {
            let answers = hashes.by_ref().take(64).map(|hash| self.contains(hash));
            *word = answers.enumerate().fold(0, |word, (i, hit)| word | u64::from(hit) << i);
        }
    }

    /// The position of the walk's next probe.
    #[inline]
    fn next(self, walk: &mut Walk) -> u64 {
        self.scheme.position(walk.next())
    }

    /// The positions of the first two probes, taken off the walk; twice the same where a key has one.
    #[inline]
    pub(super) fn first(self, walk: &mut Walk) -> [u64; 2] {
        let first = self.next(walk);
        if self.scheme.probes() == 1 {
            return [first, first];
        }
        [first, self.next(walk)]
    }

    /// The positions after the first two.
    #[inline]
    pub(super) fn rest(self, mut walk: Walk) -> impl Iterator<Item = u64> {
        (2..self.scheme.probes()).map(move |_| self.next(&mut walk))
    }

    #[inline]
    pub(super) fn is_set(self, position: u64) -> bool {
        self.bytes[(position / 8) as usize] >> (position % 8) & 1 == 1
    }

    /// Prefetches the cache line of a position.
    #[inline]
    pub(super) fn prefetch(self, position: u64) {
        crate::prefetch(self.bytes, (position / 8) as usize);
    }

    /// Prefetches the cache lines of all of a key's bits, if the array outgrows the cache.
    #[inline]
    pub(crate) fn prefetch_all(self, hash: S::Hash) {
        if self.bytes.len() <= PREFETCH_THRESHOLD {
            return;
        }
        let mut walk = self.scheme.walk(hash);
        (0..self.scheme.probes()).for_each(|_| self.prefetch(self.next(&mut walk)));
    }

    /// Fraction of the array's bits that are set, 0 to 1. Cost: reads every byte.
    pub(crate) fn fill_ratio(self) -> f64 {
        let (words, rest) = self.bytes.as_chunks();
        let ones = words.iter().map(|&word| u64::from(u64::from_ne_bytes(word).count_ones()));
        let rest = rest.iter().map(|byte| u64::from(byte.count_ones()));
        ones.chain(rest).sum::<u64>() as f64 / (8 * self.bytes.len() as u64) as f64
    }

    /// Estimate of the distinct keys, from the bits: `-(m / k) ln(1 - fill)` for `k` probes and `m` bits; none if no bit is zero.
    #[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
    pub(crate) fn estimated_keys(self) -> Option<u64> {
        let bits_per_probe = self.scheme.bits() as f64 / f64::from(self.scheme.probes());
        let keys = -libm::log1p(-self.fill_ratio()) * bits_per_probe;
        keys.is_finite().then(|| libm::round(keys) as u64)
    }

    /// False-positive rate of the bits: `fill^k` for `k` probes.
    pub(crate) fn estimated_false_positive_rate(self) -> f64 {
        libm::pow(self.fill_ratio(), self.scheme.probes().into())
    }
}

/// A header, and as many zero bytes.
pub(crate) fn zeroed(header: &[u8], bytes: u64) -> Result<Vec<u8>, AllocError> {
    let total = bytes.saturating_add(header.len() as u64);
    let error = AllocError::new(total);
    let total = usize::try_from(total).map_err(|_| error)?;
    let mut file = Vec::new();
    file.try_reserve_exact(total).map_err(|_| error)?;
    file.extend_from_slice(header);
    file.resize(total, 0);
    Ok(file)
}

/// Sets the bits of a key in an array of the scheme's size. Returns true if at least one was not set.
#[inline]
pub(crate) fn insert<S: Scheme>(bytes: &mut [u8], scheme: S, hash: S::Hash) -> bool {
    let mut walk = scheme.walk(hash);
    let mut is_new = false;
    for _ in 0..scheme.probes() {
        let position = scheme.position(walk.next());
        let (byte, bit) = (&mut bytes[(position / 8) as usize], 1 << (position % 8));
        is_new |= *byte & bit == 0;
        *byte |= bit;
    }
    is_new
}

/// Sets the bits of every key; where the array outgrows the cache, the lines of later keys are prefetched.
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
pub(crate) fn insert_all<S: Scheme>(bytes: &mut [u8], scheme: S, hashes: &[S::Hash]) {
    if bytes.len() <= PREFETCH_THRESHOLD {
        return hashes.iter().for_each(|&hash| _ = insert(bytes, scheme, hash));
    }
    let (first, _) = hashes.split_at(DISTANCE.min(hashes.len()));
    first.iter().for_each(|&hash| BitArray::new(bytes, scheme).prefetch_all(hash));
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(i + DISTANCE) {
            BitArray::new(bytes, scheme).prefetch_all(later);
        }
        insert(bytes, scheme, hash);
    }
}

/// Sets the bits that are set in another array of the same length and scheme.
#[cfg(any(feature = "guava", feature = "spark"))]
pub(crate) fn merge(bytes: &mut [u8], other: &[u8]) {
    for (byte, other) in bytes.iter_mut().zip(other) {
        *byte |= other;
    }
}
