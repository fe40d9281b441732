//! A link: one classical filter of a chain. Sizing, its part of the header, and the positions of a
//! key's bits.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use super::error::{RedisError, check_range};
use super::hash::RedisHash;
use super::log::ln;
use crate::classical::{Scheme, Walk};
use crate::{ClassicalFilter, ClassicalShape};

/// Bytes of the header per link.
pub(super) const LINK_BYTES: usize = 53;

/// Options of a chain: link sizes are not rounded up to a power of two; `entries` is the logarithm
/// of the bits; hashes have 64 bits; there is only one link.
pub(super) const NO_ROUND: u32 = 1;
pub(super) const ENTRIES_IS_BITS: u32 = 2;
pub(super) const FORCE_64: u32 = 4;
pub(super) const NO_SCALING: u32 = 8;

/// The natural logarithm of 2 and its square, with as many digits as in RedisBloom.
#[expect(clippy::approx_constant, reason = "one digit less than a number of 64 bits can have")]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;

/// Bits per entry are below this: the smallest error rate of an `f64` takes 1,551.
const MAX_BITS_PER_ENTRY: f64 = 1552.0;

/// One filter of a chain.
///
/// ```
/// use blocked_bloom_formats::redis::RedisFilter;
/// let mut filter = RedisFilter::new(100, 0.01, Some(2))?;
/// filter.insert("apple")?;
/// let link = &filter.links()[0];
/// assert_eq!((link.size(), link.entries()), (1, 100));
/// assert_eq!((link.shape().probes(), link.shape().bits()), (8, 1152));
/// // Half of the reserved rate, since later links add to it.
/// assert_eq!(link.error_rate(), 0.005);
/// # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
/// ```
pub type Link<D = Vec<u8>> = ClassicalFilter<LinkScheme, D>;

/// All values of a link in the header.
pub(super) type Facts = ClassicalShape<LinkScheme>;

/// The values of a link in the header except probes and bits, and the width of its hashes.
///
/// ```
/// use blocked_bloom_formats::ClassicalShape;
/// use blocked_bloom_formats::redis::{LinkScheme, RedisFilter};
/// let filter = RedisFilter::new(100, 0.01, None)?;
/// let shape: ClassicalShape<LinkScheme> = filter.links()[0].shape();
/// assert!(shape.false_positive_rate(100) < 0.01);
/// # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkScheme {
    size: u64,
    error: f64,
    bits_per_entry: f64,
    entries: u64,
    /// The logarithm of the number of bits that probes use, or 0 for all bits.
    n2: u8,
    /// Whether hashes have 64 bits instead of 32.
    is_64: bool,
}

impl Facts {
    /// Returns the link that RedisBloom creates for this many entries and this error rate.
    fn reserve(entries: u64, error: f64, options: u32) -> Result<Self, RedisError> {
        if !(error > 0.0 && error < 1.0) {
            return Err(RedisError::Rate { offset: None, field: "error", found: error });
        }
        check_range(None, "capacity", entries, 1, u64::MAX)?;
        let bits_per_entry = -ln(error) / LN_2_SQUARED;
        let (mut entries, mut n2) = (entries, 0);
        let wanted = entries as f64 * bits_per_entry;
        let bits = if options & ENTRIES_IS_BITS != 0 {
            check_range(None, "capacity", entries, 1, 62)?;
            n2 = entries as u8;
            entries = ((1_u64 << n2) as f64 / bits_per_entry) as u64;
            1 << n2
        } else if options & NO_ROUND != 0 {
            (wanted as u64).max(1)
        } else {
            // One more than the exponent of `wanted`. Numbers below 1 have the exponent 0 too.
            let exponent = if wanted < 2.0 { 0 } else { (wanted as u64).ilog2() };
            n2 = (exponent + 1).min(63) as u8;
            let bits = 1_u64 << n2;
            let spare = (bits as f64 - wanted).max(0.0) as u64;
            entries = entries.saturating_add((spare as f64 / bits_per_entry) as u64);
            bits
        };
        if bits > 1 << 62 {
            return Err(AllocError::new(bits / 8).into());
        }
        let is_64 = options & FORCE_64 != 0;
        let scheme = LinkScheme { size: 0, error, bits_per_entry, entries, n2, is_64 };
        Ok(scheme.with_bits(bits.next_multiple_of(64)))
    }

    /// Reads the link at this offset of a header with these options. It checks RedisBloom's
    /// conditions, and that bits per entry and bits are possible numbers.
    pub(super) fn read(
        bytes: &[u8; LINK_BYTES],
        offset: u64,
        options: u32,
    ) -> Result<Self, RedisError> {
        let number = |at: usize| {
            let (bytes, _) = bytes[at..].split_first_chunk().unwrap_or((&[0; 8], &[]));
            u64::from_le_bytes(*bytes)
        };
        let check = |at: u64, field, found, least, most| {
            check_range(Some(offset + at), field, found, least, most)
        };
        let rate = |at: usize, field, most: f64| match f64::from_bits(number(at)) {
            found if found > 0.0 && found < most => Ok(found),
            found => Err(RedisError::Rate { offset: Some(offset + at as u64), field, found }),
        };
        let (stored, bits) = (number(0), number(8));
        check(0, "bytes", stored, 1, 1 << 60)?;
        check(8, "bits", bits, stored * 8, stored * 8)?;
        let error = rate(24, "error", 1.0)?;
        let bits_per_entry = rate(32, "bpe", MAX_BITS_PER_ENTRY)?;
        let expected = hashes(bits_per_entry);
        // Four bytes at offset 40; the entries follow at 44.
        let stored_hashes = number(40) as u32;
        check(40, "hashes", stored_hashes.into(), expected.into(), expected.into())?;
        let n2 = bytes[LINK_BYTES - 1];
        check(52, "n2", n2.into(), 0, bits.ilog2().into())?;
        let (size, entries, is_64) = (number(16), number(44), options & FORCE_64 != 0);
        let scheme = LinkScheme { size, error, bits_per_entry, entries, n2, is_64 };
        Ok(scheme.with_bits(bits))
    }

    pub(super) fn write(self) -> [u8; LINK_BYTES] {
        let mut bytes = [0; LINK_BYTES];
        let LinkScheme { size, error, bits_per_entry, entries, n2, .. } = self.scheme;
        let fields = [
            (0, self.stored_bytes()),
            (8, self.bits()),
            (16, size),
            (24, error.to_bits()),
            (32, bits_per_entry.to_bits()),
            // The entries overwrite its upper half.
            (40, self.probes().into()),
            (44, entries),
        ];
        for (at, number) in fields {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[LINK_BYTES - 1] = n2;
        bytes
    }

    pub(super) fn size(self) -> u64 {
        self.scheme.size
    }
}

fn hashes(bits_per_entry: f64) -> u32 {
    libm::ceil(LN_2 * bits_per_entry) as u32
}

impl LinkScheme {
    /// Sets the bits, a multiple of 8 up to 2^63.
    fn with_bits(self, bits: u64) -> Facts {
        let used = if self.n2 == 0 { bits } else { 1 << self.n2 };
        Facts::from_parts(self, hashes(self.bits_per_entry), bits, used)
    }
}

/// Probe `i` is the first hash plus `i` times the second, modulo the bits. For some links
/// RedisBloom computes it in 32 bits with the same result, since those have a power of two of bits
/// below 2^32.
impl Scheme for LinkScheme {
    type Hash = RedisHash;

    #[inline]
    fn header_bytes(self) -> usize {
        0
    }

    #[inline]
    fn hash_key(self, key: &[u8]) -> RedisHash {
        RedisHash::hash(key, self.is_64)
    }

    #[inline]
    fn walk(self, hash: RedisHash) -> Walk {
        Walk { next: hash.first(), step: hash.second() }
    }

    #[inline]
    fn dividend(self, number: u64) -> u64 {
        number
    }

    #[inline]
    fn byte_flip(self) -> u64 {
        0
    }

    #[inline]
    fn added(&mut self) {
        self.size = self.size.saturating_add(1);
    }
}

impl Link {
    pub(super) fn reserve(entries: u64, error: f64, options: u32) -> Result<Self, RedisError> {
        Ok(ClassicalFilter::empty(Facts::reserve(entries, error, options)?, &[])?)
    }
}

impl<D> Link<D> {
    /// Checks that the bits suffice for the entries. Otherwise the next link, a multiple of this
    /// one, could take memory out of proportion to the dump.
    pub(super) fn check_entries(&self) -> Result<(), RedisError> {
        let LinkScheme { entries, bits_per_entry, .. } = self.shape.scheme;
        let most = ((self.shape.bits() as f64 + 64.0) / bits_per_entry) as u64;
        check_range(None, "capacity", entries, 0, most)
    }

    /// Returns whether the link contains as many keys as it is sized for.
    pub(super) fn is_full(&self) -> bool {
        self.size() >= self.entries()
    }

    /// Returns the number of keys inserted, without keys that were, or seemed, present.
    pub fn size(&self) -> u64 {
        self.shape.scheme.size
    }

    /// Returns the number of keys that the link is sized for.
    pub fn entries(&self) -> u64 {
        self.shape.scheme.entries
    }

    /// Returns the false-positive rate that the link is sized for: half of that of the previous
    /// link. The first link's is half of the reserved rate, unless the filter does not scale.
    pub fn error_rate(&self) -> f64 {
        self.shape.scheme.error
    }
}
