//! Filters of this project whose header has a checksum of what follows it: if that alone is wrong,
//! they are opened to be described.

use blocked_bloom::FormatError;
use blocked_bloom::parts::HeaderError;

use crate::error::Damage;
use crate::facts::{DAMAGED, hex};

/// Offsets in the header: the checksum of what follows it, and the header's own, which ends it.
const BODY_CHECKSUM: usize = 48;
const HEADER_CHECKSUM: usize = 56;

/// A filter and its bytes.
pub(super) struct Sealed<'a, F> {
    pub(super) filter: F,
    pub(super) seal: Seal<'a>,
}

/// The bytes of a filter, and what is wrong with them.
pub(super) struct Seal<'a> {
    pub(super) bytes: &'a [u8],
    /// The error about the checksum of what follows the header, and the checksum that it has.
    damage: Option<(FormatError, u64)>,
}

impl<'a, F> Sealed<'a, F> {
    /// Opens the bytes by `verified`; by `trusted` if only what follows the header is damaged.
    pub(super) fn open(
        bytes: &'a [u8],
        verified: fn(&'a [u8]) -> Result<F, FormatError>,
        trusted: fn(&'a [u8]) -> Result<F, FormatError>,
    ) -> Result<Self, FormatError> {
        let (filter, damage) = match verified(bytes) {
            Ok(filter) => (filter, None),
            Err(error @ FormatError::Header(HeaderError::BodyChecksum { computed, .. })) => {
                let filter = trusted(bytes).map_err(|_| error)?;
                (filter, Some((error, computed)))
            }
            Err(error) => return Err(error),
        };
        Ok(Sealed { filter, seal: Seal { bytes, damage } })
    }
}

impl Seal<'_> {
    pub(super) fn damage(&self) -> Option<Damage> {
        self.damage.as_ref().map(|(error, _)| (*error).into())
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.damage.is_some()
    }

    pub(super) fn header_checksum(&self) -> u64 {
        self.u64_at(HEADER_CHECKSUM)
    }

    pub(super) fn stored_checksum(&self) -> u64 {
        self.u64_at(BODY_CHECKSUM)
    }

    pub(super) fn computed_checksum(&self) -> u64 {
        self.damage.as_ref().map_or(self.stored_checksum(), |&(_, computed)| computed)
    }

    /// The checksum of what follows the header, for people.
    pub(super) fn checksum_row(&self) -> String {
        let (stored, computed) = (hex(self.stored_checksum()), hex(self.computed_checksum()));
        match self.is_damaged() {
            false => format!("ok ({stored})"),
            true => format!("{DAMAGED}: stored {stored}, computed {computed}"),
        }
    }

    /// A number in the header, which was verified.
    fn u64_at(&self, at: usize) -> u64 {
        let number = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        number.map_or(0, |number| u64::from_le_bytes(*number))
    }
}

/// The length that the header of such a filter gives, by the error about its first bytes alone.
pub(super) fn length(error: Option<FormatError>) -> Option<u64> {
    match error? {
        FormatError::Header(HeaderError::Length { expected, .. }) => Some(expected),
        _ => None,
    }
}
