//! The stored form; `docs/format.md` is normative.

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError};

use crate::key::VALUE_BYTES;
use crate::packed::{self, PADDING, Packed};
use crate::space::{PART_BITS, Space};

/// The first bytes of a stored filter.
pub const MAGIC: [u8; 8] = *b"\x89BBRANG\n";
const VERSION: u16 = 1;

/// The only scheme: XXH3-64 of blocks, codes in buckets of 32 parts.
const SCHEME: u8 = 1;

/// Offsets of the header's fields.
mod field {
    use core::ops::Range;

    pub(super) const SCHEME: usize = 10;
    pub(super) const LOW_BITS: usize = 11;
    pub(super) const BLOCK_BITS: usize = 12;
    pub(super) const DROPPED: usize = 13;
    pub(super) const SHORTEST: usize = 14;
    pub(super) const LONGEST: usize = 15;
    pub(super) const STARTS: usize = 16;
    pub(super) const CODES: usize = 24;
    pub(super) const PREFIX: usize = 28;
    pub(super) const KEYS: usize = 32;
    pub(super) const RESERVED: Range<usize> = 40..48;
    pub(super) const BODY_CHECKSUM: usize = 48;
}

/// The fields of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) space: Space,
    /// 1 to 29.
    pub(crate) low_bits: u32,
    /// Number of low bits of values that units do not have, at most 127.
    pub(crate) dropped: u32,
    /// Length of the shortest key without the prefix, at most 16.
    pub(crate) shortest: usize,
    /// Length of the longest key without the prefix; 17 for all lengths above 16.
    pub(crate) longest: usize,
    /// Number of distinct codes.
    pub(crate) codes: u32,
    /// Length of the common prefix of all keys, below 2^16.
    pub(crate) prefix: u32,
    pub(crate) keys: u64,
}

/// A header and the lengths of the parts of the body, which have the length of the bytes.
pub(crate) struct Parts<'b> {
    pub(crate) packed: Packed<'b>,
    pub(crate) prefix: &'b [u8],
}

impl Meta {
    /// Returns the number of buckets, below 2^57.
    fn buckets(&self) -> u64 {
        ((self.space.codes() - 1) >> (self.low_bits + PART_BITS)) + 1
    }

    fn rank_bytes(&self) -> u64 {
        4 * (self.buckets() + 1)
    }

    fn bit_count(&self) -> u64 {
        packed::bit_count(u64::from(self.codes), self.buckets(), self.low_bits)
    }

    fn bit_bytes(&self) -> u64 {
        self.bit_count().div_ceil(8) + PADDING as u64
    }

    /// Returns the size of the stored filter in bytes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.rank_bytes() + self.bit_bytes() + u64::from(self.prefix)
    }

    /// Returns the parts of the stored filter, unless its length changed.
    #[inline]
    pub(crate) fn parts<'b>(&self, bytes: &'b [u8]) -> Option<Parts<'b>> {
        let body = bytes.get(HEADER_BYTES..)?;
        let (ranks, body) = body.split_at_checked(self.rank_bytes() as usize)?;
        let (bits, prefix) = body.split_at_checked(self.bit_bytes() as usize)?;
        let packed = Packed { ranks, bits, low_bits: self.low_bits };
        (prefix.len() == self.prefix as usize).then_some(Parts { packed, prefix })
    }

    /// Writes sorted distinct codes, and the header, to zeroed bytes of the stored size.
    pub(crate) fn write(&self, codes: &[u64], prefix: &[u8], bytes: &mut [u8]) {
        let (head, body) = bytes.split_at_mut(HEADER_BYTES);
        let (ranks, rest) = body.split_at_mut(self.rank_bytes() as usize);
        let (bits, stored_prefix) = rest.split_at_mut(self.bit_bytes() as usize);
        packed::pack(codes, self.low_bits, ranks, bits);
        stored_prefix.copy_from_slice(prefix);
        let mut header = Header::new(MAGIC, VERSION);
        for (at, byte) in [
            (field::SCHEME, u32::from(SCHEME)),
            (field::LOW_BITS, self.low_bits),
            (field::BLOCK_BITS, self.space.block_bits),
            (field::DROPPED, self.dropped),
            (field::SHORTEST, self.shortest as u32),
            (field::LONGEST, self.longest as u32),
        ] {
            header.put(at, &[byte as u8]);
        }
        header.put(field::STARTS, &self.space.starts.to_le_bytes());
        header.put(field::CODES, &self.codes.to_le_bytes());
        header.put(field::PREFIX, &self.prefix.to_le_bytes());
        header.put(field::KEYS, &self.keys.to_le_bytes());
        header.put_body_checksum(field::BODY_CHECKSUM, body);
        head.copy_from_slice(&header.seal());
    }

    /// Checks a stored filter: header, length, checksum of the body, directory and buckets.
    pub(crate) fn verify(bytes: &[u8]) -> Result<Self, HeaderError> {
        let header = Header::read(bytes, MAGIC, VERSION)?;
        let byte = |at, field, most: u32, expected| match u32::from(header.u8_at(at)) {
            value if value <= most => Ok(value),
            value => Err(HeaderError::field(at, field, value, expected)),
        };
        let scheme = header.u8_at(field::SCHEME);
        if scheme != SCHEME {
            let error = (field::SCHEME, "unsupported range scheme", scheme, "supported: 1");
            return Err(HeaderError::field(error.0, error.1, error.2, error.3));
        }
        let low_bits = byte(field::LOW_BITS, "low bits", 29, "must be 1 to 29")?;
        if low_bits == 0 {
            return Err(HeaderError::field(field::LOW_BITS, "low bits", 0_u32, "must be 1 to 29"));
        }
        let most = low_bits + PART_BITS;
        let expected = "must be at most low bits + 5";
        let block_bits = byte(field::BLOCK_BITS, "block bits", most, expected)?;
        let dropped = byte(field::DROPPED, "dropped bits", 127, "must be at most 127")?;
        let shortest = byte(field::SHORTEST, "shortest key", VALUE_BYTES as u32, "at most 16")?;
        let longest = byte(field::LONGEST, "longest key", 1 + VALUE_BYTES as u32, "at most 17")?;
        if longest < shortest || dropped < (128_u32.saturating_sub(8 * longest)).min(127) {
            let expected = "shorter than the shortest key, or than the bits that are not dropped";
            return Err(HeaderError::field(field::LONGEST, "longest key", longest, expected));
        }
        let starts = header.u64_at(field::STARTS);
        if starts == 0 || starts > 1 << 62 {
            let expected = "must be 1 to 2^62";
            return Err(HeaderError::field(field::STARTS, "starts", starts, expected));
        }
        let prefix = header.u32_at(field::PREFIX);
        if prefix > u32::from(u16::MAX) {
            let expected = "must be below 2^16";
            return Err(HeaderError::field(field::PREFIX, "prefix length", prefix, expected));
        }
        header.check_zero(field::RESERVED)?;
        let meta = Meta {
            space: Space { starts, block_bits },
            low_bits,
            dropped,
            shortest: shortest as usize,
            longest: longest as usize,
            codes: header.u32_at(field::CODES),
            prefix,
            keys: header.u64_at(field::KEYS),
        };
        Header::check_length(bytes.len() as u64, meta.stored_bytes())?;
        header.check_body(field::BODY_CHECKSUM, &bytes[HEADER_BYTES..])?;
        meta.check_body(bytes)?;
        Ok(meta)
    }

    fn check_body(&self, bytes: &[u8]) -> Result<(), HeaderError> {
        let Some(Parts { packed, .. }) = self.parts(bytes) else { return Ok(()) };
        if let Err(rank) = packed.check(self.codes) {
            let at = HEADER_BYTES + 4 * rank as usize;
            let found = bytes[at..].first_chunk().copied().unwrap_or_default();
            let expected =
                "the codes of the bucket must be as many as its rank says, in ascending order";
            return Err(HeaderError::field(at, "rank", u32::from_le_bytes(found), expected));
        }
        let end = packed.bits.len() - PADDING;
        let unused = match self.bit_count() % 8 {
            0 => 0,
            used => packed.bits[end - 1] >> used,
        };
        match packed.bits[end..].iter().chain([&unused]).position(|&byte| byte != 0) {
            None => Ok(()),
            Some(at) => {
                let at = HEADER_BYTES + packed.ranks.len() + end + at % PADDING;
                Err(HeaderError::field(at, "padding", 1_u32, "must be 0"))
            }
        }
    }
}
