//! The key hashes of RocksDB's filters: XXPH3, an unreleased form of XXH3-64 that RocksDB froze
//! from xxHash 0.7.2, and the 32-bit hash of filters before `format_version` 5. Filters have no
//! seed.
//!
//! XXH3-64 of xxHash 0.8 and later returns other values at every length, so the core's
//! [`KeyHasher`](blocked_bloom::KeyHasher) cannot be used.
//!
//! Source: RocksDB `util/xxph3.h`, `util/hash.cc`.

pub use blocked_bloom_ribbon::rocksdb::KEY_HASH;

const P32_1: u64 = 0x9e37_79b1;
const P32_2: u64 = 0x85eb_ca77;
const P32_3: u64 = 0xc2b2_ae3d;
const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

/// Bytes hashed at a time in keys above 240 bytes.
const STRIPE: usize = 64;

/// Stripes between two scramblings.
const STRIPES: usize = 16;

/// xxHash's `kSecret`.
#[rustfmt::skip]
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// Returns RocksDB's 64-bit key hash (XXPH3-64, seed 0), for filters of `format_version` 5 and
/// later.
///
/// The low half selects the block and the high half the bits, as in the core's filters: a batch
/// that is hashed once can be looked up in both ([`KEY_HASH`]). Cost: like XXH3-64, about 2 ns for
/// keys up to 16 bytes and 8 ns at 128 bytes.
///
/// ```
/// use blocked_bloom_formats::rocksdb::hash_key;
/// assert_eq!(hash_key([3]), 0x81b7_8b21_c2ce_4f18);
/// ```
#[inline]
pub fn hash_key(key: impl AsRef<[u8]>) -> u64 {
    xxph3(key.as_ref())
}

/// Returns RocksDB's 32-bit key hash, for filters before `format_version` 5.
///
/// Bytes of an incomplete last word are signed, as in RocksDB on every machine. Cost: one
/// multiplication per 4 bytes.
///
/// ```
/// use blocked_bloom_formats::rocksdb::legacy_hash_key;
/// assert_eq!(legacy_hash_key(""), 0xbc9f_1d34);
/// ```
pub fn legacy_hash_key(key: impl AsRef<[u8]>) -> u32 {
    legacy(key.as_ref())
}

#[inline]
fn xxph3(key: &[u8]) -> u64 {
    let n = key.len() as u64;
    match key.len() {
        0 => fold(secret(0), P2),
        length @ 1..=3 => {
            let [first, middle, last] = [0, length >> 1, length - 1].map(|at| u64::from(key[at]));
            let word = first | middle << 8 | last << 16 | n << 24;
            avalanche((word ^ (secret(0) & 0xffff_ffff)).wrapping_mul(P1))
        }
        length @ 4..=8 => {
            let word = u64::from(u32_at(key, 0)) | u64::from(u32_at(key, length - 4)) << 32;
            let word = word ^ secret(0);
            let mixed = (word ^ (word >> 51)).wrapping_mul(P32_1).wrapping_add(n);
            avalanche((mixed ^ (mixed >> 47)).wrapping_mul(P2))
        }
        length @ 9..=16 => {
            let low = u64_at(key, 0) ^ secret(0);
            let high = u64_at(key, length - 8) ^ secret(8);
            avalanche(n.wrapping_add(low).wrapping_add(high).wrapping_add(fold(low, high)))
        }
        17..=128 => avalanche(pairs(key)),
        129..=240 => avalanche(rows(key)),
        _ => long(key),
    }
}

fn legacy(key: &[u8]) -> u32 {
    const SEED: u32 = 0xbc9f_1d34;
    const M: u32 = 0xc6a4_a793;
    let (words, tail) = key.as_chunks();
    let mut hash = SEED ^ (key.len() as u32).wrapping_mul(M);
    for &word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(word)).wrapping_mul(M);
        hash ^= hash >> 16;
    }
    if !tail.is_empty() {
        for (i, &byte) in tail.iter().enumerate() {
            hash = hash.wrapping_add((byte.cast_signed() as u32) << (8 * i));
        }
        hash = hash.wrapping_mul(M);
        hash ^= hash >> 24;
    }
    hash
}

/// Returns the XOR of the product's halves.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn avalanche(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 37)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline]
fn secret(at: usize) -> u64 {
    u64_at(&SECRET, at)
}

/// Mixes 16 bytes of the key with 16 of the secret.
#[inline]
fn mix(key: &[u8], at: usize, with: usize) -> u64 {
    fold(u64_at(key, at) ^ secret(with), u64_at(key, at + 8) ^ secret(with + 8))
}

/// Hashes 17 to 128 bytes: pairs of 16 bytes from both ends, which overlap in the middle.
#[inline]
fn pairs(key: &[u8]) -> u64 {
    let length = key.len();
    let mut sum = (length as u64).wrapping_mul(P1);
    let mut add = |pair: usize| {
        let front = mix(key, 16 * pair, 32 * pair);
        let back = mix(key, length - 16 * (pair + 1), 32 * pair + 16);
        sum = sum.wrapping_add(front).wrapping_add(back);
    };
    if length > 96 {
        add(3);
    }
    if length > 64 {
        add(2);
    }
    if length > 32 {
        add(1);
    }
    add(0);
    sum
}

/// Hashes 129 to 240 bytes: 16 bytes at a time, and the last 16.
fn rows(key: &[u8]) -> u64 {
    let length = key.len();
    let mut sum = (length as u64).wrapping_mul(P1);
    for i in 0..8 {
        sum = sum.wrapping_add(mix(key, 16 * i, 16 * i));
    }
    sum = avalanche(sum);
    for i in 8..length / 16 {
        sum = sum.wrapping_add(mix(key, 16 * i, 16 * (i - 8) + 3));
    }
    sum.wrapping_add(mix(key, length - 16, 136 - 17))
}

/// Hashes more than 240 bytes: eight lanes that absorb one stripe at a time and are scrambled after
/// every 16 stripes.
fn long(key: &[u8]) -> u64 {
    let mut lanes = [P32_3, P1, P2, P3, P4, P32_2, P5, P32_1];
    let (stripes, rest) = key.as_chunks::<STRIPE>();
    for stripes in stripes.chunks(STRIPES) {
        for (i, stripe) in stripes.iter().enumerate() {
            take_up(&mut lanes, stripe, 8 * i);
        }
        if stripes.len() == STRIPES {
            for (i, lane) in lanes.iter_mut().enumerate() {
                *lane = (*lane ^ (*lane >> 47) ^ secret(128 + 8 * i)).wrapping_mul(P32_1);
            }
        }
    }
    if !rest.is_empty()
        && let Some(stripe) = key.last_chunk()
    {
        take_up(&mut lanes, stripe, 121);
    }
    let mut sum = (key.len() as u64).wrapping_mul(P1);
    for (i, pair) in lanes.chunks(2).enumerate() {
        sum = sum.wrapping_add(fold(pair[0] ^ secret(11 + 16 * i), pair[1] ^ secret(19 + 16 * i)));
    }
    avalanche(sum)
}

fn take_up(lanes: &mut [u64; 8], stripe: &[u8; STRIPE], with: usize) {
    for (i, lane) in lanes.iter_mut().enumerate() {
        let word = u64_at(stripe, 8 * i);
        let key = word ^ secret(with + 8 * i);
        *lane = lane.wrapping_add(word).wrapping_add((key & 0xffff_ffff) * (key >> 32));
    }
}
