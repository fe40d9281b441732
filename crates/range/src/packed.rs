//! Sorted codes in buckets of 27 to 48, each an Elias-Fano list: the unary code of the high parts,
//! then the low parts. A directory has the rank of each bucket's first code.
//!
//! Lookups accept any bytes. A position outside of them is `None`, which means "maybe".

use blocked_bloom::parts::prefetch;

use crate::space::PART_BITS;

/// Bytes of zeros after the bits, so that a lookup can read more bits than it needs.
pub(crate) const PADDING: usize = 32;

/// Longest run of codes in a part that is compared without branches.
const FAST_RUN: u32 = 4;

const PARTS: u64 = 1 << PART_BITS;

/// The directory and the bits of a filter.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'b> {
    pub(crate) ranks: &'b [u8],
    pub(crate) bits: &'b [u8],
    /// At most 29, so that a word holds two low parts.
    pub(crate) low_bits: u32,
}

/// A bucket: positions of its bits, and the number of its codes.
struct Bucket {
    unary: u64,
    low: u64,
    codes: u64,
}

/// Returns the position of bit `k` (from 0) among the ones of a word, without branches.
#[inline]
fn select(word: u64, k: u32) -> u32 {
    const BYTES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * BYTES;
    // Ones up to and including each byte, then the number of bytes that end before the bit.
    let pairs = word - ((word >> 1) & (0x55 * BYTES));
    let nibbles = (pairs & (0x33 * BYTES)) + ((pairs >> 2) & (0x33 * BYTES));
    let sums = ((nibbles + (nibbles >> 4)) & (0x0f * BYTES)).wrapping_mul(BYTES);
    let ended = |sums: u64, k: u64| {
        let is_ended = (((k * BYTES) | HIGH) - sums) & HIGH;
        (is_ended >> 7).wrapping_mul(BYTES) >> 56
    };
    let at = 8 * ended(sums, u64::from(k)) as u32;
    let k = u64::from(k) - (((sums << 8) >> at) & 0xff);
    // The same with the bits of the byte, each spread to a byte.
    let spread = (((word >> at) & 0xff) * BYTES) & 0x8040_2010_0804_0201;
    let ones = ((spread | ((spread | HIGH) - BYTES)) >> 7) & BYTES;
    at + ended(ones.wrapping_mul(BYTES), k) as u32
}

/// Returns the number of bits of this many codes in buckets.
pub(crate) fn bit_count(codes: u64, buckets: u64, low_bits: u32) -> u64 {
    codes * u64::from(low_bits + 1) + buckets * PARTS
}

/// Writes sorted codes to a zeroed directory and zeroed bits.
pub(crate) fn pack(codes: &[u64], low_bits: u32, ranks: &mut [u8], bits: &mut [u8]) {
    let (bucket_bits, mut rank) = (low_bits + PART_BITS, 0);
    let mut put = |at: u64, value: u64| {
        let word = &mut bits[at as usize / 8..][..8];
        let all = u64::from_le_bytes(word.try_into().expect("eight bytes")) | value << (at % 8);
        word.copy_from_slice(&all.to_le_bytes());
    };
    let ranks = ranks.as_chunks_mut().0;
    let buckets = ranks.len() - 1;
    for (bucket, stored) in ranks.iter_mut().enumerate() {
        *stored = (rank as u32).to_le_bytes();
        let rest = &codes[rank..];
        let end = if bucket < buckets { (bucket as u64 + 1) << bucket_bits } else { 0 };
        let codes = &rest[..rest.iter().take_while(|&&code| code < end).count()];
        let unary = rank as u64 * u64::from(low_bits + 1) + bucket as u64 * PARTS;
        let low = unary + codes.len() as u64 + PARTS;
        for (i, code) in (0..).zip(codes) {
            put(unary + (code >> low_bits) % PARTS + i, 1);
            put(low + i * u64::from(low_bits), code & ((1 << low_bits) - 1));
        }
        rank += codes.len();
    }
}

impl Packed<'_> {
    #[inline]
    fn rank(&self, bucket: u64) -> Option<u64> {
        let rank = self.ranks.get(4 * bucket as usize..)?.first_chunk()?;
        Some(u64::from(u32::from_le_bytes(*rank)))
    }

    /// Returns the 64 bits that start at this position.
    #[inline]
    fn word(&self, at: u64) -> Option<u64> {
        let bytes = self.bits.get((at / 8) as usize..)?.first_chunk()?;
        Some((u128::from_le_bytes(*bytes) >> (at % 8)) as u64)
    }

    #[inline]
    fn bucket(&self, index: u64) -> Option<Bucket> {
        let rank = self.rank(index)?;
        let codes = self.rank(index + 1)?.checked_sub(rank)?;
        let unary = rank * u64::from(self.low_bits + 1) + index * PARTS;
        Some(Bucket { unary, low: unary + codes + PARTS, codes })
    }

    /// Prefetches the rank of the bucket of a code.
    #[inline]
    pub(crate) fn prefetch_rank(&self, code: u64) {
        prefetch(self.ranks, 4 * (code >> (self.low_bits + PART_BITS)) as usize);
    }

    /// Prefetches the bucket of a code, and its low part if the bucket's codes are evenly spread.
    #[inline]
    pub(crate) fn prefetch_bits(&self, code: u64) {
        let bucket_bits = self.low_bits + PART_BITS;
        let Some(bucket) = self.bucket(code >> bucket_bits) else { return };
        let rank = ((code & ((1 << bucket_bits) - 1)) >> self.low_bits) * bucket.codes / PARTS;
        prefetch(self.bits, (bucket.unary / 8) as usize);
        prefetch(self.bits, ((bucket.low + rank * u64::from(self.low_bits)) / 8) as usize);
    }

    /// Returns where a part starts in its bucket's unary code: after as many zeros as parts.
    #[inline]
    fn part(&self, bucket: &Bucket, part: u64) -> Option<u64> {
        // A zero before the first bit stands for the start of the first part. Of the two words that
        // nearly always hold the bucket, one is chosen without a branch.
        let [first, second] = [!(self.word(bucket.unary)? << 1), !self.word(bucket.unary + 63)?];
        let (zeros, part) = (first.count_ones(), part as u32);
        let is_second = part >= zeros;
        let mut word = if is_second { second } else { first };
        let mut part = part - if is_second { zeros } else { 0 };
        let mut at = if is_second { 64 } else { 0 };
        while part >= word.count_ones() {
            part -= word.count_ones();
            at += 64;
            word = !self.word(bucket.unary + at - 1)?;
        }
        Some(at + u64::from(select(word, part)))
    }

    /// Returns the two low parts that start at this code of the bucket.
    #[inline]
    fn low_pair(&self, bucket: &Bucket, code: u64) -> Option<[u64; 2]> {
        let word = self.word(bucket.low + code * u64::from(self.low_bits))?;
        Some([word, word >> self.low_bits].map(|low| low & ((1 << self.low_bits) - 1)))
    }

    /// Whether a code of this range is stored. `None` if the bytes do not say.
    #[inline]
    pub(crate) fn contains(&self, first: u64, last: u64) -> Option<bool> {
        let bucket_bits = self.low_bits + PART_BITS;
        let mask = (1 << bucket_bits) - 1;
        let (bucket, end) = (first >> bucket_bits, last >> bucket_bits);
        if bucket == end {
            return self.bucket_contains(bucket, first & mask, last & mask);
        }
        // A piece is no longer than a bucket, so that there is none between.
        let starts_before_end = self.bucket_contains(bucket, first & mask, mask)?;
        Some(starts_before_end || self.bucket_contains(end, 0, last & mask)?)
    }

    #[inline]
    fn bucket_contains(&self, index: u64, first: u64, last: u64) -> Option<bool> {
        let bucket = self.bucket(index)?;
        let part = first >> self.low_bits;
        let start = self.part(&bucket, part)?;
        let run = self.word(bucket.unary + start)?.trailing_ones();
        if last >> self.low_bits != part || run > FAST_RUN {
            return self.search(&bucket, start, first, last);
        }
        let (code, low) = (start - part, first & ((1 << self.low_bits) - 1));
        let [a, b] = self.low_pair(&bucket, code)?;
        let [c, d] = self.low_pair(&bucket, code + 2)?;
        let hit = |value: u64, i: u32| u32::from(value.wrapping_sub(low) <= last - first) << i;
        Some((hit(a, 0) | hit(b, 1) | hit(c, 2) | hit(d, 3)) & ((1 << run) - 1) != 0)
    }

    /// The same for ranges of several parts, and parts with many codes. The part of `first` starts
    /// at this position of the unary code.
    #[cold]
    fn search(&self, bucket: &Bucket, start: u64, first: u64, last: u64) -> Option<bool> {
        let ([from, to], mask) =
            ([first, last].map(|code| code >> self.low_bits), (1 << self.low_bits) - 1);
        let mut end = start;
        while self.word(bucket.unary + end)? == u64::MAX {
            end += 64;
        }
        end += u64::from(self.word(bucket.unary + end)?.trailing_ones());
        // The first code of the part that is at least `first`, or the next code after the part.
        let (mut code, mut size) = (start - from, end - start);
        while size > 0 {
            let half = size / 2;
            match self.low_pair(bucket, code + half)?[0] < first & mask {
                true => (code, size) = (code + half + 1, size - half - 1),
                false => size = half,
            }
        }
        // A zero for each part that ends before the next code. A bucket has 32 zeros, so that after
        // its last code the part is at least 32, which is above `to`.
        let part = match code + from < end {
            true => from,
            false => from + u64::from(self.word(bucket.unary + end)?.trailing_zeros()),
        };
        Some(part < to || part == to && self.low_pair(bucket, code)?[0] <= last & mask)
    }

    /// Checks that the ranks ascend from 0 to the number of codes, and that every bucket has as
    /// many ones as codes, ends with a zero, and has its codes in ascending order. Returns the
    /// index of the first wrong rank or bucket.
    pub(crate) fn check(&self, codes: u32) -> Result<(), u64> {
        let buckets = (self.ranks.len() / 4) as u64 - 1;
        if self.rank(0) != Some(0) {
            return Err(0);
        }
        match (0..buckets).find(|&index| self.is_sound(index) != Some(true)) {
            Some(index) => Err(index),
            None if self.rank(buckets) != Some(u64::from(codes)) => Err(buckets),
            None => Ok(()),
        }
    }

    fn is_sound(&self, index: u64) -> Option<bool> {
        let bucket = self.bucket(index)?;
        let (bits, mut found, mut previous) = (bucket.codes + PARTS, 0, None);
        for at in (0..bits).step_by(64) {
            let unused = (at + 64).saturating_sub(bits);
            let mut word = self.word(bucket.unary + at)? << unused >> unused;
            while word != 0 {
                let part = (at + u64::from(word.trailing_zeros())).checked_sub(found)?;
                let code = Some((part, self.low_pair(&bucket, found)?[0]));
                if code <= previous {
                    return Some(false);
                }
                (found, previous) = (found + 1, code);
                word &= word - 1;
            }
        }
        let last = self.word(bucket.unary + bits - 1)? & 1;
        Some(found == bucket.codes && last == 0)
    }
}
