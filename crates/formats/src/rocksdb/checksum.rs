//! The checksums of an SST file's blocks: five kinds, and the bytes that each covers.
//!
//! An unknown kind is an error, since an unverified block must not answer "absent".

use core::fmt::{self, Display, Formatter};

use crc::{CRC_32_ISCSI, Crc, Table};
use xxhash_rust::{xxh3::xxh3_64, xxh32::xxh32, xxh64::xxh64};

/// The kind of checksum of an SST file's blocks.
///
/// ```
/// use blocked_bloom_formats::rocksdb::ChecksumKind;
/// assert_eq!(ChecksumKind::Xxh3.to_string(), "XXH3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChecksumKind {
    /// None: damage to such a file cannot be detected.
    None,
    /// CRC-32C, masked; the default before RocksDB 6.27.
    Crc32c,
    /// XXH32.
    Xxh32,
    /// The low half of XXH64.
    Xxh64,
    /// The low half of XXH3-64 of all bytes except the last, mixed with the last. The default
    /// since.
    Xxh3,
}

impl ChecksumKind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        let kinds = [Self::None, Self::Crc32c, Self::Xxh32, Self::Xxh64, Self::Xxh3];
        kinds.get(usize::from(byte)).copied()
    }

    pub(super) fn compute(self, bytes: &[u8]) -> u32 {
        match self {
            Self::None => 0,
            Self::Crc32c => CRC32C.checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8),
            Self::Xxh32 => xxh32(bytes, 0),
            Self::Xxh64 => xxh64(bytes, 0) as u32,
            Self::Xxh3 => match bytes.split_last() {
                Some((&last, others)) => {
                    xxh3_64(others) as u32 ^ u32::from(last).wrapping_mul(0x6b90_83d9)
                }
                None => 0,
            },
        }
    }
}

impl Display for ChecksumKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no checksum",
            Self::Crc32c => "CRC-32C",
            Self::Xxh32 => "XXH32",
            Self::Xxh64 => "XXH64",
            Self::Xxh3 => "XXH3",
        })
    }
}

/// Bytes per step: 16, or 1 in WebAssembly, where the table takes 1 KB of a page instead of 16 KB.
const LANES: usize = if cfg!(target_family = "wasm") { 1 } else { 16 };

/// CRC-32C (Castagnoli), for files of older releases.
static CRC32C: Crc<u32, Table<LANES>> = Crc::<u32, Table<LANES>>::new(&CRC_32_ISCSI);

#[cfg(test)]
mod tests {
    use super::CRC32C;

    /// RFC 3720, B.4, and the usual check value.
    #[test]
    fn crc32c_is_castagnoli() {
        let ascending: [u8; 32] = core::array::from_fn(|i| i as u8);
        let vectors: [(&[u8], u32); 5] = [
            (b"", 0),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
        ];
        for (bytes, expected) in vectors {
            assert_eq!(CRC32C.checksum(bytes), expected, "{bytes:?}");
        }
    }
}
