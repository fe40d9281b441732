//! Numbers in groups of seven bits, as RocksDB writes them.

/// Why a number is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VarintError {
    /// The bytes end too early.
    Truncated,
    /// The number does not fit 64 bits.
    TooLarge,
}

/// Returns the number at the start of `bytes`, and its length. The lowest seven bits come first,
/// and the last byte is below 128. Leading zeros are accepted, up to ten bytes in all.
pub(crate) fn read(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut number = 0;
    for (i, shift) in (0..64).step_by(7).enumerate() {
        let &byte = bytes.get(i).ok_or(VarintError::Truncated)?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(VarintError::TooLarge);
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok((number, i + 1));
        }
    }
    Err(VarintError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::{VarintError, read};

    #[test]
    fn numbers_of_every_length_and_what_is_none() {
        for (bytes, expected) in [
            (&[0][..], Ok((0, 1))),
            (&[0x7f, 9], Ok((127, 1))),
            (&[0x80, 1], Ok((128, 2))),
            (&[0x80, 0], Ok((0, 2))),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1], Ok((u64::MAX, 10))),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2], Err(VarintError::TooLarge)),
            (&[128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0], Err(VarintError::TooLarge)),
            (&[], Err(VarintError::Truncated)),
            (&[0x80], Err(VarintError::Truncated)),
        ] {
            assert_eq!(read(bytes), expected, "{bytes:?}");
        }
    }
}
