//! Property: any bytes are either rejected as a filter block of RocksDB, or answered as a naive
//! reading of the format answers, key by key, by hashes and in batches, on every kernel. The last
//! five bytes are also made to fit, so that the fuzzer gets past them.
//!
//! Input: one byte each for the kind that is made to fit, for its probes or lines, and for the
//! length of the keys' material; that material; the block.
#![no_main]

use blocked_bloom::{Bitmask, Filter, Kernel};
use blocked_bloom_formats::rocksdb::{
    FilterBlock, FilterKind, RocksdbError, hash_key, legacy_hash_key,
};
use libfuzzer_sys::fuzz_target;

/// The secret of XXH3, as it is in every version.
#[rustfmt::skip]
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c,
    0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb,
    0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
    0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97,
    0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
    0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83,
    0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26,
    0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc,
    0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

const P32: [u64; 3] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D];
const P64: [u64; 5] = [
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
];

fn le(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes[at..at + count].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn avalanche(h: u64) -> u64 {
    let h = (h ^ h >> 37).wrapping_mul(P64[2]);
    h ^ h >> 32
}

/// The preview of XXH3 that RocksDB has kept, seed 0.
fn naive_hash(d: &[u8]) -> u64 {
    let (n, length) = (d.len(), d.len() as u64);
    let d64 = |at| le(d, at, 8);
    let s64 = |at| le(&SECRET, at, 8);
    let mix = |o: usize, at: usize| fold(d64(o) ^ s64(at), d64(o + 8) ^ s64(at + 8));
    let scaled = length.wrapping_mul(P64[0]);
    match n {
        0 => fold(s64(0), P64[1]),
        1..=3 => {
            let [a, b, c] = [d[0], d[n / 2], d[n - 1]].map(u64::from);
            let all = a | b << 8 | c << 16 | length << 24;
            avalanche((all ^ le(&SECRET, 0, 4)).wrapping_mul(P64[0]))
        }
        4..=8 => {
            let t = (le(d, 0, 4) | le(d, n - 4, 4) << 32) ^ s64(0);
            let m = length.wrapping_add((t ^ t >> 51).wrapping_mul(P32[0]));
            avalanche((m ^ m >> 47).wrapping_mul(P64[1]))
        }
        9..=16 => {
            let (low, high) = (d64(0) ^ s64(0), d64(n - 8) ^ s64(8));
            avalanche(length.wrapping_add(low).wrapping_add(high).wrapping_add(fold(low, high)))
        }
        17..=128 => {
            let mut sum = scaled;
            for pair in 0..(n - 1) / 32 + 1 {
                let ends = [mix(16 * pair, 32 * pair), mix(n - 16 * (pair + 1), 32 * pair + 16)];
                ends.iter().for_each(|end| sum = sum.wrapping_add(*end));
            }
            avalanche(sum)
        }
        129..=240 => {
            let mut sum = (0..8).fold(scaled, |sum, i| sum.wrapping_add(mix(16 * i, 16 * i)));
            sum = avalanche(sum);
            for i in 8..n / 16 {
                sum = sum.wrapping_add(mix(16 * i, 16 * (i - 8) + 3));
            }
            avalanche(sum.wrapping_add(mix(n - 16, 136 - 17)))
        }
        _ => {
            let mut sums = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]];
            let stripe = |sums: &mut [u64; 8], from: usize, at: usize| {
                for (i, sum) in sums.iter_mut().enumerate() {
                    let value = d64(from + 8 * i);
                    let t = value ^ s64(at + 8 * i);
                    let product = (t & 0xffff_ffff).wrapping_mul(t >> 32);
                    *sum = sum.wrapping_add(value).wrapping_add(product);
                }
            };
            for number in 0..n / 64 {
                stripe(&mut sums, 64 * number, 8 * (number % 16));
                if number % 16 == 15 {
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = (*sum ^ *sum >> 47 ^ s64(128 + 8 * i)).wrapping_mul(P32[0]);
                    }
                }
            }
            if n % 64 != 0 {
                stripe(&mut sums, n - 64, 121);
            }
            let pair =
                |j: usize| fold(sums[2 * j] ^ s64(11 + 16 * j), sums[2 * j + 1] ^ s64(19 + 16 * j));
            avalanche((0..4).fold(scaled, |sum, j| sum.wrapping_add(pair(j))))
        }
    }
}

fn naive_legacy_hash(key: &[u8]) -> u32 {
    let m = 0xc6a4_a793_u32;
    let mut h = 0xbc9f_1d34 ^ (key.len() as u32).wrapping_mul(m);
    let words = key.chunks_exact(4);
    let tail = words.remainder();
    for word in words {
        h = h.wrapping_add(le(word, 0, 4) as u32).wrapping_mul(m);
        h ^= h >> 16;
    }
    if !tail.is_empty() {
        for (i, &byte) in tail.iter().enumerate() {
            h = h.wrapping_add((byte as i8 as u32) << (8 * i));
        }
        h = h.wrapping_mul(m);
        h ^= h >> 24;
    }
    h
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Answers {
    No,
    Maybe,
    /// Lines of 64 bytes, probes.
    Fast(u64, u32),
    /// Lines, bytes of a line, probes.
    Legacy(u32, u32, u32),
    /// Ordinal of the seed, blocks of slots.
    Ribbon(u8, u32),
    /// RocksDB reads beyond such a block.
    Refused,
}

fn naive_kind(block: &[u8]) -> Answers {
    let n = block.len();
    if n <= 5 {
        return Answers::No;
    }
    let trailer = &block[n - 5..];
    let (bits, marker) = ((n - 5) as u32, trailer[0] as i8);
    match marker {
        -1 => {
            let (sub, probes, rest) = (trailer[1], trailer[2], le(trailer, 3, 2));
            let fits = sub == 0 && rest == 0 && probes >> 5 == 0 && (1..=30).contains(&probes);
            match fits {
                true if bits < 64 => Answers::Refused,
                true => Answers::Fast(u64::from(bits / 64), probes.into()),
                false => Answers::Maybe,
            }
        }
        -2 => match le(trailer, 2, 3) as u32 {
            0 | 1 => Answers::Maybe,
            blocks => Answers::Ribbon(trailer[1], blocks),
        },
        1.. => {
            let lines = le(trailer, 1, 4) as u32;
            match lines != 0 && bits % lines == 0 && (bits / lines).is_power_of_two() {
                true => Answers::Legacy(lines, bits / lines, marker as u32),
                false => Answers::Maybe,
            }
        }
        _ => Answers::Maybe,
    }
}

fn naive_contains(block: &[u8], kind: Answers, key: &[u8]) -> bool {
    match kind {
        Answers::No => false,
        Answers::Maybe | Answers::Refused => true,
        Answers::Fast(lines, probes) => {
            let h = naive_hash(key);
            let line = ((h & 0xffff_ffff) * lines >> 32) as usize * 64;
            let mut g = (h >> 32) as u32;
            (0..probes).all(|_| {
                let (byte, bit) = (line + (g >> 26) as usize, g >> 23 & 7);
                g = g.wrapping_mul(0x9e37_79b9);
                block[byte] >> bit & 1 == 1
            })
        }
        Answers::Ribbon(seed, blocks) => {
            let (blocks, segments) = (u64::from(blocks), (block.len() as u64 - 5) / 16);
            let columns = segments.div_ceil(blocks).min(32);
            let short = (columns * blocks).saturating_sub(segments);
            let t = u64::from(seed).wrapping_mul(0xc782_19a2_3eea_dd03);
            let raw = (t ^ (t & 0xf0f0_f0f0_f0f0_f0f0) >> 4) & 0xffff_ffff;
            let s = (naive_hash(key) ^ raw).wrapping_mul(0x6193_d459_236a_3a0d);
            let start = (u128::from(s) * u128::from(128 * blocks - 127) >> 64) as u64;
            let a = s.wrapping_mul(0xc28f_8282_2b65_0bed);
            let bits = u128::from(a) << 64 | u128::from(a ^ 0xc367_844a_6e52_731d) | 1;
            let of = |block: u64| columns.saturating_sub(u64::from(block < short));
            (0..of(start / 128)).all(|column| {
                let sum = (0..128).filter(|i| bits >> i & 1 == 1).fold(0, |sum, i| {
                    let (at, bit) = ((start + i) / 128, (start + i) % 128);
                    let segment = at * columns - at.min(short) + column;
                    sum ^ block[(16 * segment + bit / 8) as usize] >> (bit % 8) & 1
                });
                u64::from(sum) == a.swap_bytes() >> column & 1
            })
        }
        Answers::Legacy(lines, bytes, probes) => {
            let mut h = naive_legacy_hash(key);
            let base = (h % lines * bytes) as usize;
            let delta = h.rotate_right(17);
            (0..probes).all(|_| {
                let bit = h & (8 * bytes - 1);
                h = h.wrapping_add(delta);
                block[base + bit as usize / 8] >> (bit % 8) & 1 == 1
            })
        }
    }
}

fn check(block: &[u8], keys: &[&[u8]]) {
    let kind = naive_kind(block);
    let filter = match (FilterBlock::from_bytes_or_no_keys(block), kind) {
        (Err(RocksdbError::NoLine { .. }), Answers::Refused) => return,
        // RocksDB makes no reader of no bytes.
        (Err(RocksdbError::NoKeys { found: 0 }), _) => return assert!(block.is_empty()),
        (filter, _) => filter.unwrap(),
    };
    assert_ne!(kind, Answers::Refused);
    assert_eq!(FilterBlock::from_bytes(block).is_err(), kind == Answers::No);
    let found = match filter.kind() {
        FilterKind::FastLocalBloom { probes, blocks } => {
            Answers::Fast(blocks.into(), probes.into())
        }
        FilterKind::LegacyBloom { probes, lines, line_bytes } => {
            Answers::Legacy(lines, line_bytes, probes.into())
        }
        FilterKind::Ribbon { seed, blocks } => Answers::Ribbon(seed, blocks),
        FilterKind::NoKeys => Answers::No,
        _ => Answers::Maybe,
    };
    assert_eq!(found, kind);
    let hashes: Vec<u64> = keys.iter().map(|key| hash_key(key)).collect();
    let expected: Vec<bool> = keys.iter().map(|key| naive_contains(block, kind, key)).collect();
    for kernel in Kernel::supported() {
        let filter = filter.with_kernel(kernel);
        let (mut of_keys, mut of_hashes) = (Bitmask::new(), Bitmask::new());
        filter.contains_batch(keys, &mut of_keys);
        filter.contains_hashes(&hashes, &mut of_hashes);
        for (i, key) in keys.iter().enumerate() {
            let expected = expected[i];
            assert_eq!(filter.contains(key), expected, "{key:02x?}");
            assert_eq!(of_keys.get(i), Some(expected), "{kernel:?}, {key:02x?}");
            // These hashes say nothing of a filter that has another.
            let of_hash = expected || matches!(kind, Answers::Legacy(..));
            assert_eq!(filter.contains_hash(hashes[i]), of_hash);
            assert_eq!(of_hashes.get(i), Some(of_hash), "{kernel:?}, {key:02x?}");
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [flags, number, length, rest @ ..] = input else { return };
    let (material, block) = rest.split_at(usize::from(*length).min(rest.len()));
    // The pieces of the material are keys, of every short length; repeated, they are long ones.
    let long = material.repeat(9);
    let mut keys: Vec<&[u8]> = (0..=material.len())
        .step_by(material.len() / 40 + 1)
        .map(|end| &material[end / 2..end])
        .collect();
    keys.extend((1..8).map(|part| &long[..long.len() * part / 7]));
    for key in &keys {
        assert_eq!(hash_key(key), naive_hash(key), "{} bytes", key.len());
        assert_eq!(legacy_hash_key(key), naive_legacy_hash(key), "{} bytes", key.len());
    }
    check(block, &keys);

    let mut mended = block.to_vec();
    match flags % 4 {
        0 if *number >= 128 => mended.extend([0xfe, *flags, number % 16, flags / 64, 0]),
        0 | 1 => {
            // Bytes beyond the last line are legal.
            mended.truncate(block.len() / 64 * 64 + usize::from(flags / 4));
            mended.extend([255, 0, number % 32, 0, 0]);
        }
        2 => {
            let lines = u32::from(*number % 16) + 1;
            mended.truncate(block.len() / (lines as usize * 64) * lines as usize * 64);
            mended.push(flags / 4 + 1);
            mended.extend(lines.to_le_bytes());
        }
        _ => {
            let line = 1 << (flags / 4 % 8);
            mended.truncate(block.len() / line * line);
            let lines = (mended.len() / line) as u32;
            mended.push(number % 128);
            mended.extend(lines.to_le_bytes());
        }
    }
    check(&mended, &keys);
});
