//! The formats read again, from their descriptions: a bit at a time, with divisions.
#![allow(clippy::approx_constant, reason = "RedisBloom's logarithm has one digit less")]

/// The number that these bytes are, read from the last or from the first.
fn number(bytes: &[u8], is_big_endian: bool) -> i128 {
    let digit = |number: i128, &byte: &u8| number * 256 + i128::from(byte);
    if is_big_endian { bytes.iter().fold(0, digit) } else { bytes.iter().rev().fold(0, digit) }
}

fn signed(bytes: &[u8]) -> i128 {
    let unsigned = number(bytes, true);
    if bytes[0] < 0x80 { unsigned } else { unsigned - (1 << (8 * bytes.len())) }
}

/// Whether a bit of big-endian words of 64 bits is set.
fn java_bit(words: &[u8], bit: u64) -> bool {
    let word = words.as_chunks().0[bit as usize / 64];
    u64::from_be_bytes(word) >> (bit % 64) & 1 == 1
}

pub(crate) mod guava {
    use super::{java_bit, number, signed};

    /// MurmurHash3_x64_128 with seed 0, a byte at a time.
    pub(crate) fn murmur3(key: &[u8]) -> (u64, u64) {
        let (c1, c2) = (0x87c3_7b91_1142_53d5_u64, 0x4cf5_ad43_2745_937f_u64);
        let (mut h1, mut h2) = (0_u64, 0_u64);
        // A last block of no bytes changes nothing.
        for block in key.chunks(16) {
            let k1 = number(&block[..block.len().min(8)], false) as u64;
            let k2 = number(&block[block.len().min(8)..], false) as u64;
            h1 ^= k1.wrapping_mul(c1).rotate_left(31).wrapping_mul(c2);
            if block.len() == 16 {
                h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dce729);
            }
            h2 ^= k2.wrapping_mul(c2).rotate_left(33).wrapping_mul(c1);
            if block.len() == 16 {
                h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x38495ab5);
            }
        }
        let finish = |mut h: u64| {
            h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
            h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            h ^ h >> 33
        };
        let length = key.len() as u64;
        h1 = (h1 ^ length).wrapping_add(h2 ^ length);
        h2 = (h2 ^ length).wrapping_add(h1);
        (h1, h2) = (finish(h1), finish(h2));
        h1 = h1.wrapping_add(h2);
        (h1, h2.wrapping_add(h1))
    }

    /// The bits of a key, as Guava's strategies compute them.
    pub(crate) fn bits(strategy: u8, k: u32, bits: u64, (h1, h2): (u64, u64)) -> Vec<u64> {
        let one = |i: u32| match strategy {
            0 => {
                let (a, b) = (h1 as u32 as i32, (h1 >> 32) as i32);
                let combined = a.wrapping_add(b.wrapping_mul(i as i32 + 1));
                u64::from(if combined < 0 { !combined } else { combined } as u32)
            }
            _ => h1.wrapping_add(h2.wrapping_mul(i.into())) & 0x7fff_ffff_ffff_ffff,
        };
        (0..k).map(|i| one(i) % bits).collect()
    }

    /// The answers to keys; none if these are not the bytes of a filter.
    pub(crate) fn answers(bytes: &[u8], keys: &[Vec<u8>]) -> Option<Vec<bool>> {
        let (header, words) = bytes.split_at_checked(6)?;
        let (strategy, k, count) = (header[0], header[1], signed(&header[2..]));
        let fits = strategy <= 1 && k > 0 && count > 0 && words.len() as i128 == 8 * count;
        let answer = |key: &Vec<u8>| {
            let bits = bits(strategy, k.into(), 64 * count as u64, murmur3(key));
            bits.into_iter().all(|bit| java_bit(words, bit))
        };
        fits.then(|| keys.iter().map(answer).collect())
    }
}

pub(crate) mod spark {
    use super::{java_bit, signed};

    #[derive(Clone, Debug)]
    pub(crate) enum Key {
        Bytes(Vec<u8>),
        Long(i64),
    }

    fn murmur3(words: impl Iterator<Item = u32>, length: usize, seed: u32) -> u32 {
        let mut h = seed;
        for word in words {
            h ^= word.wrapping_mul(0xcc9e2d51).rotate_left(15).wrapping_mul(0x1b873593);
            h = h.rotate_left(13).wrapping_mul(5).wrapping_add(0xe6546b64);
        }
        h ^= length as u32;
        for (shift, factor) in [(16, 0x85ebca6b), (13, 0xc2b2ae35), (16, 1)] {
            h = (h ^ h >> shift).wrapping_mul(factor);
        }
        h
    }

    fn hash(key: &Key, seed: u32) -> u32 {
        match key {
            Key::Long(number) => {
                murmur3([*number as u32, (*number >> 32) as u32].into_iter(), 8, seed)
            }
            Key::Bytes(bytes) => {
                let whole = bytes.len() / 4 * 4;
                let words = bytes[..whole].chunks(4).map(|word| {
                    word.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
                });
                let tail = bytes[whole..].iter().map(|&byte| byte as i8 as u32);
                murmur3(words.chain(tail), bytes.len(), seed)
            }
        }
    }

    /// The bits of a key, as Spark's two versions compute them.
    pub(crate) fn bits(version: u32, seed: i32, k: u32, bits: u64, key: &Key) -> Vec<u64> {
        let h1 = hash(key, if version == 1 { 0 } else { seed as u32 });
        let h2 = hash(key, h1) as i32;
        let h1 = h1 as i32;
        let one = |i: u32| match version {
            1 => {
                let combined = h1.wrapping_add(h2.wrapping_mul(i as i32));
                u64::from(if combined < 0 { !combined } else { combined } as u32)
            }
            _ => {
                let combined =
                    i128::from(h1) * i128::from(i32::MAX) + i128::from(i) * i128::from(h2);
                let combined = combined as i64;
                (if combined < 0 { !combined } else { combined }) as u64
            }
        };
        (1..=k).map(|i| one(i) % bits).collect()
    }

    /// The answers to keys; none if these are not the bytes of a filter.
    pub(crate) fn answers(bytes: &[u8], keys: &[Key]) -> Option<Vec<bool>> {
        let version = signed(bytes.get(..4)?);
        let start = if version == 1 { 12 } else { 16 };
        let (header, words) = bytes.split_at_checked(start)?;
        let k = signed(&header[4..8]);
        let seed = signed(&header[8..12]) as i32;
        let count = signed(&header[start - 4..]);
        let fits = (1..=2).contains(&version)
            && (1..=1074).contains(&k)
            && count > 0
            && words.len() as i128 == 8 * count;
        let answer = |key: &Key| {
            let bits = bits(version as u32, seed, k as u32, 64 * count as u64, key);
            bits.into_iter().all(|bit| java_bit(words, bit))
        };
        fits.then(|| keys.iter().map(answer).collect())
    }
}

pub(crate) mod redis {
    use super::number;

    fn murmur2(key: &[u8], seed: u64, width: u32) -> u64 {
        let (factor, shift, ends) = match width {
            64 => (0xc6a4_a793_5bd1_e995_u64, 47, [47, 47]),
            _ => (0x5bd1_e995, 24, [13, 15]),
        };
        let mask = if width == 64 { u64::MAX } else { u64::from(u32::MAX) };
        let times = |number: u64| number.wrapping_mul(factor) & mask;
        let length = key.len() as u64;
        let mut h = seed ^ if width == 64 { times(length) } else { length };
        for word in key.chunks(width as usize / 8) {
            let mut k = number(word, false) as u64;
            if word.len() == width as usize / 8 {
                k = times(k);
                k = times(k ^ k >> shift);
                h = if width == 64 { times(h ^ k) } else { times(h) ^ k };
            } else {
                h = times(h ^ k);
            }
        }
        h = times(h ^ h >> ends[0]);
        h ^ h >> ends[1]
    }

    pub(crate) fn hashes(key: &[u8], width: u32) -> (u64, u64) {
        let seed = if width == 64 { 0xc6a4_a793_5bd1_e995 } else { 0x9747_b28c };
        let a = murmur2(key, seed, width);
        (a, murmur2(key, a, width))
    }

    /// The answers of a file of a dump to keys; none if there is something in it that RedisBloom
    /// does not load, or that no dump of a whole filter has.
    pub(crate) fn answers(file: &[u8], keys: &[Vec<u8>]) -> Option<Vec<bool>> {
        let mut replies = Vec::new();
        let mut rest = file;
        while !rest.is_empty() {
            let (head, after) = rest.split_at_checked(16)?;
            let length = number(&head[8..], false);
            let length = usize::try_from(length).ok()?;
            let (data, after) = after.split_at_checked(length)?;
            let iterator = number(&head[..8], false) as u64 as i64;
            if iterator == 0 && length == 0 && !after.is_empty() {
                return None;
            }
            replies.push((iterator, data));
            rest = after;
        }
        let ((first, header), replies) = replies.split_first()?;
        if *first != 1 || header.len() < 20 {
            return None;
        }
        let field = |at: usize, length: usize| number(&header[at..at + length], false);
        let (size, links, options) = (field(0, 8), field(8, 4), field(12, 4));
        if links == 0 || options > 15 || header.len() as i128 != 20 + 53 * links {
            return None;
        }
        // Where each link ends, its bits, probes, and the bits that they fall on.
        let (mut end, mut sum, mut chain) = (0, 0, Vec::new());
        for link in 0..links as usize {
            let at = 20 + 53 * link;
            let (bytes, bits, hashes, n2) =
                (field(at, 8), field(at + 8, 8), field(at + 40, 4), field(at + 52, 1));
            let float = |at: usize| f64::from_bits(field(at, 8) as u64);
            let (error, bpe) = (float(at + 24), float(at + 32));
            let expected = (0.693147180559945_f64 * bpe).ceil();
            let fits = error > 0.0
                && error < 1.0
                && bpe > 0.0
                && bpe < 1552.0
                && hashes as f64 == expected
                && bits == 8 * bytes
                && (1..=1 << 63).contains(&bits)
                && n2 < 64
                && (n2 == 0 || bits >= 1 << n2);
            if !fits {
                return None;
            }
            end += bytes;
            sum += field(at + 16, 8);
            chain.push((end, bytes, hashes, if n2 == 0 { bits } else { 1 << n2 }));
        }
        if sum != size {
            return None;
        }
        let mut all = Vec::new();
        for (iterator, data) in replies {
            if *iterator == 0 && data.is_empty() {
                break;
            }
            let start = all.len() as i128;
            all.extend_from_slice(data);
            let crosses = chain.iter().any(|&(end, ..)| start < end && end < all.len() as i128);
            if i128::from(*iterator) != all.len() as i128 + 1 || crosses {
                return None;
            }
        }
        if all.len() as i128 != end {
            return None;
        }
        let width = if options & 4 != 0 { 64 } else { 32 };
        let answer = |key: &Vec<u8>| {
            let (a, b) = hashes(key, width);
            chain.iter().any(|&(end, bytes, hashes, modulus)| {
                (0..hashes).all(|i| {
                    let sum = a.wrapping_add(b.wrapping_mul(i as u64));
                    let bit = sum % modulus as u64 + 8 * (end - bytes) as u64;
                    all[bit as usize / 8] >> (bit % 8) & 1 == 1
                })
            })
        };
        Some(keys.iter().map(answer).collect())
    }
}
