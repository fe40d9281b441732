//! The size of a filter: how Cassandra gets from an estimated number of partitions and a chance to probes and words. Its table of
//! probabilities is computed here, not listed.

use super::error::CassandraError;
use super::limits::{HEADER_BYTES, LOWEST_CHANCE, MAX_HASH_COUNT, MAX_WORDS, WORD_BITS};
use crate::classical;

/// The most bits per key in the table, which starts at 2.
const MAX_BITS_PER_KEY: u32 = 20;
/// Bits beyond those per key.
const EXCESS_BITS: u64 = 20;

/// Probes per key and 64-bit words: what the header of a `Filter.db` says.
///
/// ```
/// use blocked_bloom_formats::cassandra::Shape;
/// let shape = Shape::for_partitions(1_000, 0.01)?.expect("a chance below 1 has a filter");
/// assert_eq!((shape.hash_count(), shape.words()), (5, 157));
/// assert_eq!(shape.stored_bytes(), 8 + 157 * 8);
/// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// 1 to 21.
    hash_count: u32,
    /// 1 to 2^31 - 1.
    words: u32,
}

impl Shape {
    /// A shape of these probes per key and words.
    ///
    /// # Errors
    ///
    /// [`CassandraError::HashCount`] unless there are 1 to 21 probes, [`CassandraError::WordCount`] unless there are 1 to 2^31 - 1
    /// words. Cassandra stores both as signed 32-bit integers.
    pub fn new(hash_count: i32, words: i32) -> Result<Self, CassandraError> {
        let shape = Shape { hash_count: hash_count as u32, words: words as u32 };
        if !(1..=MAX_HASH_COUNT).contains(&shape.hash_count) {
            return Err(CassandraError::HashCount { found: hash_count });
        }
        if !(1..=MAX_WORDS).contains(&shape.words) {
            return Err(CassandraError::WordCount { found: words });
        }
        Ok(shape)
    }

    /// The shape that Cassandra gives a filter of this many partitions and a table's `bloom_filter_fp_chance` (0.01 unless set).
    /// None at a chance of 1: such a table has no filter.
    ///
    /// Cassandra takes the number of partitions from an estimate, so its own files are often larger than the partitions in them
    /// need. The rate that a shape really has is [`false_positive_rate`](Self::false_positive_rate); it is mostly lower than the
    /// chance given, but higher above 0.4, where Cassandra gives one bit per key and two probes.
    ///
    /// # Errors
    ///
    /// [`CassandraError::ChanceOutOfRange`] unless the chance is above 0 and up to 1; [`CassandraError::ChanceUnreachable`] below
    /// 0.0000671; [`CassandraError::TooManyWords`] if more than 2^31 - 1 would be needed.
    ///
    /// ```
    /// use blocked_bloom_formats::cassandra::Shape;
    /// assert_eq!(Shape::for_partitions(64, 0.1)?, Some(Shape::new(3, 6)?));
    /// assert_eq!(Shape::for_partitions(64, 1.0)?, None);
    /// assert!(Shape::for_partitions(64, 0.00006).is_err());
    /// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
    /// ```
    pub fn for_partitions(partitions: u64, fp_chance: f64) -> Result<Option<Self>, CassandraError> {
        if !(fp_chance > 0.0 && fp_chance <= 1.0) {
            return Err(CassandraError::ChanceOutOfRange { fp_chance });
        }
        if fp_chance < LOWEST_CHANCE {
            return Err(CassandraError::ChanceUnreachable { fp_chance });
        }
        if fp_chance == 1.0 {
            return Ok(None);
        }
        let (hash_count, bits_per_key) = hash_count_and_bits(fp_chance);
        let bits = partitions.saturating_mul(u64::from(bits_per_key)).saturating_add(EXCESS_BITS);
        let words = bits.div_ceil(WORD_BITS);
        match u32::try_from(words) {
            Ok(words) if words <= MAX_WORDS => Ok(Some(Shape { hash_count, words })),
            _ => Err(CassandraError::TooManyWords { words }),
        }
    }

    /// Probes per key, 1 to 21.
    #[inline]
    pub fn hash_count(self) -> u32 {
        self.hash_count
    }

    /// Words of 64 bits, 1 to 2^31 - 1.
    #[inline]
    pub fn words(self) -> u32 {
        self.words
    }

    /// Bits that probes may fall on: all of the words'.
    #[inline]
    pub fn bits(self) -> u64 {
        u64::from(self.words) * WORD_BITS
    }

    /// Bytes of a `Filter.db` of this shape: 8 and 8 per word, at most 16 GiB.
    #[inline]
    pub fn stored_bytes(self) -> u64 {
        HEADER_BYTES as u64 + self.bits() / 8
    }

    /// The false-positive rate with this many distinct keys, 0 to 1: `(1 - e^(-k n / m))^k` for `k` probes, `n` keys and `m` bits
    /// (Bloom 1970, with the usual approximation). Filters of a few words have more.
    pub fn false_positive_rate(self, keys: u64) -> f64 {
        classical::false_positive_rate(self.hash_count, self.bits(), keys)
    }
}

/// The probes and bits per key of the first row of the table that is good enough, with as few probes as will do.
fn hash_count_and_bits(fp_chance: f64) -> (u32, u32) {
    if fp_chance >= table(2, best(2)) {
        // Where Cassandra means two bits and one probe, it passes them in the wrong order.
        return (2, best(2));
    }
    let mut bits_per_key = 2;
    while bits_per_key < MAX_BITS_PER_KEY && table(bits_per_key, best(bits_per_key)) > fp_chance {
        bits_per_key += 1;
    }
    let mut hash_count = best(bits_per_key);
    while hash_count > 1 && table(bits_per_key, hash_count - 1) <= fp_chance {
        hash_count -= 1;
    }
    (hash_count, bits_per_key)
}

/// The best number of probes for so many bits per key.
fn best(bits_per_key: u32) -> u32 {
    libm::round(f64::from(bits_per_key) * core::f64::consts::LN_2) as u32
}

/// Cassandra's table, which lists the chance of a classical filter to three significant digits: `(1 - e^(-k/b))^k`. One of its 157
/// entries is rounded further.
fn table(bits_per_key: u32, hash_count: u32) -> f64 {
    if (bits_per_key, hash_count) == (5, 3) {
        return 0.092;
    }
    let (k, b) = (f64::from(hash_count), f64::from(bits_per_key));
    let exact = libm::pow(-libm::expm1(-k / b), k);
    let mut scale = 1.0;
    while exact * scale < 100.0 {
        scale *= 10.0;
    }
    // A whole number divided by a power of ten is the very number that the decimal digits stand for.
    libm::round(exact * scale) / scale
}
