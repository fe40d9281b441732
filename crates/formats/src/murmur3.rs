//! MurmurHash3_x64_128 (Appleby 2011), used by Guava, and by Cassandra in a variant.

/// First multiplier of MurmurHash3_x64_128 (Appleby 2011).
const C1: u64 = 0x87c3_7b91_1142_53d5;
/// Second multiplier of MurmurHash3_x64_128.
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Returns both halves of the hash. With `SIGNED_TAIL`, each byte of the tail (the last `len % 16`
/// bytes) is sign-extended before it is shifted into place, as in Cassandra.
#[inline]
pub(crate) fn x64_128<const SIGNED_TAIL: bool>(key: &[u8], seed: u64) -> (u64, u64) {
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (low, high) = halves(block);
        h1 ^= mix1(low);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2(high);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Words without bytes are zero and mix to zero, so no length needs a special case.
    let (low, high) = tail.split_at(tail.len().min(8));
    let (low, high) = (load(low), load(high));
    h1 ^= mix1(if SIGNED_TAIL { sum_of_signed_bytes(low) } else { low });
    h2 ^= mix2(if SIGNED_TAIL { sum_of_signed_bytes(high) } else { high });

    let length = key.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2)
}

#[inline]
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let whole = u128::from_le_bytes(*block);
    (whole as u64, (whole >> 64) as u64)
}

/// Loads up to eight bytes as a little-endian number, with overlapping loads. Copying an unknown
/// number of bytes into a zeroed buffer and reading it back takes more time than the rest of
/// hashing a short key.
#[inline]
fn load(bytes: &[u8]) -> u64 {
    let shift = 8 * bytes.len() as u32;
    if let Some(&all) = bytes.first_chunk() {
        u64::from_le_bytes(all)
    } else if let (Some(&low), Some(&high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(low)) | u64::from(u32::from_le_bytes(high)) << (shift - 32)
    } else if let [first, .., last] = *bytes {
        u64::from(first) | u64::from(bytes[1]) << 8 | u64::from(last) << (shift - 8)
    } else {
        bytes.first().map_or(0, |&byte| u64::from(byte))
    }
}

#[inline]
fn mix1(word: u64) -> u64 {
    word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
fn mix2(word: u64) -> u64 {
    word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
fn finish(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

/// Returns the XOR of the word's bytes, each sign-extended to 64 bits and then shifted into place.
///
/// A byte with its sign bit set flips every bit above itself. The running parity of the lower sign
/// bits determines whether a byte is flipped; three shifts compute it for all eight bytes at once.
#[inline]
fn sum_of_signed_bytes(word: u64) -> u64 {
    let mut flips = (word & 0x8080_8080_8080_8080) << 1;
    flips ^= flips << 8;
    flips ^= flips << 16;
    flips ^= flips << 32;
    word ^ flips.wrapping_mul(0xff)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::x64_128;

    /// The verification value of the author's test program: the hash of the hashes of the keys
    /// `0..n`, each with the seed `256 - n`.
    #[test]
    fn the_hash_is_the_authors() {
        let key: Vec<u8> = (0..=255).collect();
        let bytes = |(h1, h2): (u64, u64)| [h1.to_le_bytes(), h2.to_le_bytes()].concat();
        let all: Vec<u8> = (0..256)
            .flat_map(|length| bytes(x64_128::<false>(&key[..length], 256 - length as u64)))
            .collect();
        assert_eq!(bytes(x64_128::<false>(&all, 0))[..4], 0x6384_ba69_u32.to_le_bytes());
    }
}
