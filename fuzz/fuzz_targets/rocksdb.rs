//! Property: any bytes are either refused as a filter block of RocksDB, or answered as a naive reading of the format answers, key by
//! key, by hashes and in batches, on every kernel. The last five bytes are also made to fit, so that the fuzzer gets past them.
//!
//! Input: one byte each for the kind that is made to fit, for its probes or lines, and for the length of the keys' material; that
//! material; the block.
#![no_main]

use blocked_bloom::interop::rocksdb::{
    FilterBlock, FilterKind, RocksdbError, key_hash, legacy_hash,
};
use blocked_bloom::{Bitmask, Kernel};
use libfuzzer_sys::fuzz_target;

/// The secret of XXH3, as it is in every version.
const SECRET: &str = "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f\
    cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c\
    3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8\
    a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364\
    eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e\
    2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e";

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
    let s: Vec<u8> =
        (0..192).map(|i| u8::from_str_radix(&SECRET[2 * i..2 * i + 2], 16).unwrap()).collect();
    let (n, length) = (d.len(), d.len() as u64);
    let d64 = |at| le(d, at, 8);
    let s64 = |at| le(&s, at, 8);
    let mix = |o: usize, at: usize| fold(d64(o) ^ s64(at), d64(o + 8) ^ s64(at + 8));
    let scaled = length.wrapping_mul(P64[0]);
    match n {
        0 => fold(s64(0), P64[1]),
        1..=3 => {
            let [a, b, c] = [d[0], d[n / 2], d[n - 1]].map(u64::from);
            let all = a | b << 8 | c << 16 | length << 24;
            avalanche((all ^ le(&s, 0, 4)).wrapping_mul(P64[0]))
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
        FilterKind::AlwaysFalse => Answers::No,
        _ => Answers::Maybe,
    };
    assert_eq!(found, kind);
    let hashes: Vec<u64> = keys.iter().map(|key| key_hash(key)).collect();
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
    let mut keys: Vec<&[u8]> = (0..=material.len()).map(|end| &material[end / 2..end]).collect();
    keys.extend((1..8).map(|part| &long[..long.len() * part / 7]));
    for key in &keys {
        assert_eq!(key_hash(key), naive_hash(key), "{} bytes", key.len());
        assert_eq!(legacy_hash(key), naive_legacy_hash(key), "{} bytes", key.len());
    }
    check(block, &keys);

    let mut mended = block.to_vec();
    match flags % 4 {
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
