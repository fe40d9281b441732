//! Filters of this project with a checksum of the body in their header. If the body alone is
//! damaged, they are still opened for their description.

use blocked_bloom::FormatError;
use blocked_bloom::parts::HeaderError;

use crate::error::Damage;
use crate::facts::{DAMAGED, hex};

/// Offsets in the header of the body's checksum, and of the header's own checksum at its end.
const BODY_CHECKSUM: usize = 48;
const HEADER_CHECKSUM: usize = 56;

/// A filter and its bytes.
pub(super) struct Sealed<'a, F> {
    pub(super) filter: F,
    pub(super) seal: Seal<'a>,
}

/// The bytes of a filter and their damage.
pub(super) struct Seal<'a> {
    pub(super) bytes: &'a [u8],
    /// The error about the checksum of the body, and its actual checksum.
    damage: Option<(FormatError, u64)>,
}

impl<'a, F> Sealed<'a, F> {
    /// Opens the bytes with `verified`, or with `trusted` if the body alone is damaged.
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

    /// Formats the checksum of the body for people.
    pub(super) fn checksum_row(&self) -> String {
        let (stored, computed) = (hex(self.stored_checksum()), hex(self.computed_checksum()));
        match self.is_damaged() {
            false => format!("ok ({stored})"),
            true => format!("{DAMAGED}: stored {stored}, computed {computed}"),
        }
    }

    /// Reads a number from the header, which is verified.
    fn u64_at(&self, at: usize) -> u64 {
        let number = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        number.map_or(0, |number| u64::from_le_bytes(*number))
    }
}

/// Returns the length in the header of such a filter, from the error about its first bytes alone.
pub(super) fn length(error: Option<FormatError>) -> Option<u64> {
    match error? {
        FormatError::Header(HeaderError::Length { expected, .. }) => Some(expected),
        _ => None,
    }
}
