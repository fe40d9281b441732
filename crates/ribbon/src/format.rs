//! The stored form of a sharded filter; `docs/format.md` is normative.

use blocked_bloom::KeyHash;
use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError};

use crate::error::RibbonError;
use crate::scheme::{Entry, MAX_COLUMNS, Shards, Word};

/// The first bytes of a stored filter.
pub const MAGIC: [u8; 8] = *b"\x89BBRIBN\n";
const VERSION: u16 = 1;

/// The only scheme: Ribbon filters with 64 coefficients, in shards.
const SCHEME: u8 = 1;

/// Offsets of the header's fields.
mod field {
    use core::ops::Range;

    pub(super) const SCHEME: usize = 10;
    pub(super) const HASH: usize = 11;
    pub(super) const COLUMNS: usize = 12;
    pub(super) const RESERVED: Range<usize> = 13..16;
    pub(super) const SEED: usize = 16;
    pub(super) const SHARDS: usize = 24;
    pub(super) const RESERVED_END: Range<usize> = 28..32;
    pub(super) const KEYS: usize = 32;
    pub(super) const WORDS: usize = 40;
    pub(super) const BODY_CHECKSUM: usize = 48;
}

/// The fields of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) key_hash: KeyHash,
    pub(crate) keys: u64,
    /// 1 to 32, or 0 for a pass-all filter, which has no stored form.
    pub(crate) columns: u32,
    pub(crate) shards: u32,
    /// At most 2^32 - 1.
    pub(crate) words: u32,
}

impl Meta {
    /// Returns the fields of a pass-all filter that replaces one of this many keys.
    pub(crate) fn pass_all(key_hash: KeyHash, keys: u64) -> Self {
        Meta { key_hash, keys, columns: 0, shards: 0, words: 0 }
    }

    /// Returns the size of the stored filter in bytes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + 8 * (u64::from(self.shards) + u64::from(self.words))
    }

    /// Returns the parts of the stored filter, unless it is a pass-all filter or its length
    /// changed.
    #[inline]
    pub(crate) fn parts<'b>(&self, bytes: &'b [u8]) -> Option<Shards<'b>> {
        if self.columns == 0 || bytes.len() as u64 != self.stored_bytes() {
            return None;
        }
        let (words, _): (&[Word], _) = bytes[HEADER_BYTES..].as_chunks();
        let (directory, words) = words.split_at(self.shards as usize);
        Some(Shards { directory, words, columns: self.columns })
    }

    /// Returns the header for this body.
    pub(crate) fn header(&self, body: &[u8]) -> [u8; HEADER_BYTES] {
        let mut header = Header::new(MAGIC, VERSION);
        header.put(field::SCHEME, &[SCHEME]);
        header.put_key_hash(field::HASH, field::SEED, self.key_hash);
        header.put(field::COLUMNS, &[self.columns as u8]);
        header.put(field::SHARDS, &self.shards.to_le_bytes());
        header.put(field::KEYS, &self.keys.to_le_bytes());
        header.put(field::WORDS, &u64::from(self.words).to_le_bytes());
        header.put_body_checksum(field::BODY_CHECKSUM, body);
        header.seal()
    }

    /// Checks header, length, body checksum and directory. `expected` is the required hash; `None`
    /// accepts any hash.
    pub(crate) fn verify(bytes: &[u8], expected: Option<KeyHash>) -> Result<Self, RibbonError> {
        let (header, meta) = Meta::read(bytes, expected)?;
        header.check_body(field::BODY_CHECKSUM, &bytes[HEADER_BYTES..])?;
        meta.check_directory(bytes)?;
        Ok(meta)
    }

    /// Checks the header and the length.
    pub(crate) fn read(
        bytes: &[u8],
        expected: Option<KeyHash>,
    ) -> Result<(Header, Self), RibbonError> {
        let header = Header::read(bytes, MAGIC, VERSION)?;
        let scheme = header.u8_at(field::SCHEME);
        if scheme != SCHEME {
            let error = HeaderError::field(
                field::SCHEME,
                "unsupported Ribbon scheme",
                scheme,
                "supported: 1",
            );
            return Err(error.into());
        }
        let key_hash = header.key_hash_at(field::HASH, field::SEED, expected)?;
        let columns = u32::from(header.u8_at(field::COLUMNS));
        if !(1..=MAX_COLUMNS).contains(&columns) {
            return Err(
                HeaderError::field(field::COLUMNS, "columns", columns, "must be 1 to 32").into()
            );
        }
        header.check_zero(field::RESERVED)?;
        header.check_zero(field::RESERVED_END)?;
        let words = header.u64_at(field::WORDS);
        let Ok(words) = u32::try_from(words) else {
            let error = HeaderError::field(field::WORDS, "words", words, "must be below 2^32");
            return Err(error.into());
        };
        let (shards, keys) = (header.u32_at(field::SHARDS), header.u64_at(field::KEYS));
        if (shards == 0) != (keys == 0) {
            let expected = "must be 0 if and only if there are no keys";
            return Err(HeaderError::field(field::SHARDS, "shards", shards, expected).into());
        }
        let meta = Meta { key_hash, keys, columns, shards, words };
        Header::check_length(bytes.len() as u64, meta.stored_bytes())?;
        Ok((header, meta))
    }

    /// Checks that each shard begins where the previous one ends, and that the last one ends with
    /// the words.
    fn check_directory(&self, bytes: &[u8]) -> Result<(), RibbonError> {
        let shards = self.parts(bytes).map_or(&[][..], |shards| shards.directory);
        let mut expected = 0_u64;
        for (i, &word) in shards.iter().enumerate() {
            let entry = Entry::from_word(word);
            let error = |field, found, expected| {
                let offset = HEADER_BYTES as u64 + 8 * i as u64;
                Err(RibbonError::Shard { offset, field, found, expected })
            };
            if u64::from(entry.offset) != expected {
                return error("words before the shard", entry.offset.into(), expected);
            }
            // A shard has whole blocks.
            if entry.starts % 64 != 1 {
                return error("starts modulo 64", u64::from(entry.starts % 64), 1);
            }
            if u32::from(entry.short) > entry.blocks() {
                return error("short blocks above", entry.short.into(), entry.blocks().into());
            }
            expected += u64::from(entry.words(self.columns));
        }
        let found = u64::from(self.words);
        if found != expected {
            let error =
                RibbonError::Shard { offset: field::WORDS as u64, field: "words", found, expected };
            return Err(error);
        }
        Ok(())
    }
}
