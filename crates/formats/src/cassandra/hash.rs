//! The hash of a partition key: Cassandra's variant of MurmurHash3, with its quirk and its seed, 0.

/// First multiplier of MurmurHash3_x64_128 (Appleby 2011).
const C1: u64 = 0x87c3_7b91_1142_53d5;
/// Second multiplier of the same.
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Both halves of a partition key's hash, from [`hash_key`].
///
/// The hash does not depend on the table or on the [`Layout`](super::Layout): hash a key once, look it up in the filter of every
/// SSTable.
///
/// ```
/// use blocked_bloom_formats::cassandra::hash_key;
/// let hash = hash_key([0x03]);
/// assert_eq!((hash.h1, hash.h2), (0x726a_c6dd_306a_3e59, 0x4e71_1127_c5b5_a8e4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hash128 {
    /// The first half, which is also the token of Cassandra's Murmur3Partitioner (as a signed number, for keys that are not empty).
    pub h1: u64,
    /// The second half.
    pub h2: u64,
}

/// The hash of a partition key's bytes: MurmurHash3_x64_128 with seed 0, but as Cassandra computes it.
///
/// Cassandra sign-extends each byte of the tail, which is the last `len % 16` bytes, before it shifts it into place. A key whose
/// tail has a byte of 0x80 or more hashes differently under other implementations of MurmurHash3; every other key does not.
///
/// Cost: about one nanosecond per four bytes and a few more.
///
/// ```
/// use blocked_bloom_formats::cassandra::hash_key;
/// // "é" in UTF-8 is c3 a9: both bytes are in the tail. The standard hash of these bytes is another.
/// assert_eq!(hash_key("").h1, 0);
/// assert_ne!(hash_key("é"), hash_key("e"));
/// ```
#[inline]
pub fn hash_key(key: impl AsRef<[u8]>) -> Hash128 {
    murmur3(key.as_ref())
}

fn murmur3(key: &[u8]) -> Hash128 {
    let (mut h1, mut h2) = (0_u64, 0_u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (low, high) = halves(block);
        h1 ^= mix1(low);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2(high);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Words without bytes are zero and mix to zero: no case for each length is needed.
    let (low, high) = tail.split_at(tail.len().min(8));
    let (low, high) = (load(low), load(high));
    h1 ^= mix1(sum_of_signed_bytes(low));
    h2 ^= mix2(sum_of_signed_bytes(high));

    let length = key.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    Hash128 { h1, h2 }
}

#[inline]
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let whole = u128::from_le_bytes(*block);
    (whole as u64, (whole >> 64) as u64)
}

/// Up to eight bytes as a little-endian number. Loads that overlap, because a copy of unknown length into a zeroed buffer is
/// slower to read back than all the rest of a short key takes.
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

/// The exclusive or of the word's bytes, each sign-extended to 64 bits and then shifted to its place.
///
/// A byte with its sign bit set flips every bit above itself. How often bytes are flipped is the running parity of the sign bits
/// below them, which three shifts compute for all eight at once.
#[inline]
fn sum_of_signed_bytes(word: u64) -> u64 {
    let mut flips = (word & 0x8080_8080_8080_8080) << 1;
    flips ^= flips << 8;
    flips ^= flips << 16;
    flips ^= flips << 32;
    word ^ flips.wrapping_mul(0xff)
}
