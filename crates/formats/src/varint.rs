//! Numbers in groups of seven bits, as RocksDB writes them.

/// Returns the number at the start of `bytes`, and its length. Returns `None` if the bytes end too
/// early or the number does not fit 64 bits. The lowest seven bits come first, and the last byte is
/// below 128. Leading zeros are accepted, up to ten bytes in all.
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (i, shift) in (0..64).step_by(7).enumerate() {
        let &byte = bytes.get(i)?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some((number, i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn numbers_of_every_length_and_what_is_none() {
        for (bytes, expected) in [
            (&[0][..], Some((0, 1))),
            (&[0x7f, 9], Some((127, 1))),
            (&[0x80, 1], Some((128, 2))),
            (&[0x80, 0], Some((0, 2))),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1], Some((u64::MAX, 10))),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2], None),
            (&[128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0], None),
            (&[], None),
            (&[0x80], None),
        ] {
            assert_eq!(read(bytes), expected, "{bytes:?}");
        }
    }
}
