//! The format read once more: a byte, a bit and a step at a time, in signed numbers as Cassandra
//! computes.

use blocked_bloom_formats::cassandra::Layout;

fn fmix(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51afd7ed558ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ceb9fe1a85ec53);
    word ^ word >> 33
}

/// MurmurHash3_x64_128, seed 0, whose tail bytes are signed.
pub(crate) fn murmur3(key: &[u8]) -> (u64, u64) {
    const C1: u64 = 0x87c37b91114253d5;
    const C2: u64 = 0x4cf5ad432745937f;
    let k1_mixed = |k1: u64| k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let k2_mixed = |k2: u64| k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (0_u64, 0_u64);
    let whole = key.len() / 16 * 16;
    for block in key[..whole].chunks(16) {
        h1 ^= k1_mixed(u64::from_le_bytes(block[..8].try_into().unwrap()));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dce729);
        h2 ^= k2_mixed(u64::from_le_bytes(block[8..].try_into().unwrap()));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x38495ab5);
    }
    let (mut k1, mut k2) = (0_i64, 0_i64);
    for (i, &byte) in key[whole..].iter().enumerate() {
        let signed = i64::from(byte as i8);
        if i < 8 { k1 ^= signed << (8 * i) } else { k2 ^= signed << (8 * (i - 8)) }
    }
    h1 ^= k1_mixed(k1 as u64);
    h2 ^= k2_mixed(k2 as u64);
    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = fmix(h1);
    h2 = fmix(h2);
    h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

fn positions(layout: Layout, hash_count: u32, words: u32, (h1, h2): (u64, u64)) -> Vec<u64> {
    let (mut base, step) = match layout {
        Layout::Cassandra2 => (h1 as i64, h2 as i64),
        _ => (h2 as i64, h1 as i64),
    };
    let max = i64::from(words) * 64;
    let mut positions = Vec::new();
    for _ in 0..hash_count {
        positions.push((base % max).unsigned_abs());
        base = base.wrapping_add(step);
    }
    positions
}

/// The words as numbers, in which bit `i` of the filter is bit `i % 64` of word `i / 64`.
fn words(bytes: &[u8], layout: Layout) -> Vec<u64> {
    bytes[8..]
        .chunks(8)
        .map(|word| word.try_into().unwrap())
        .map(|word| match layout {
            Layout::Cassandra4 => u64::from_le_bytes(word),
            _ => u64::from_be_bytes(word),
        })
        .collect()
}

/// The answer of a file that is whole.
pub(crate) fn contains(bytes: &[u8], layout: Layout, hash: (u64, u64)) -> bool {
    let hash_count = u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let words = words(bytes, layout);
    positions(layout, hash_count, words.len() as u32, hash)
        .into_iter()
        .all(|i| words[i as usize / 64] >> (i % 64) & 1 == 1)
}

/// The file of these hashes.
pub(super) fn write(
    layout: Layout,
    hash_count: u32,
    word_count: u32,
    hashes: &[(u64, u64)],
) -> Vec<u8> {
    let mut words = vec![0_u64; word_count as usize];
    for &hash in hashes {
        for i in positions(layout, hash_count, word_count, hash) {
            words[i as usize / 64] |= 1 << (i % 64);
        }
    }
    let mut bytes = [hash_count.to_be_bytes(), word_count.to_be_bytes()].concat();
    for word in words {
        bytes.extend(match layout {
            Layout::Cassandra4 => word.to_le_bytes(),
            _ => word.to_be_bytes(),
        });
    }
    bytes
}

/// Sizing as Cassandra loops through its table: `table[bits][k - 1]` from 2 bits per key. Gives
/// probes and words.
pub(super) fn size(table: &[Vec<f64>], partitions: u64, fp_chance: f64) -> (u32, u64) {
    let best = |bits: usize| {
        let mut best = 1;
        for k in 1..=table[bits].len() {
            if table[bits][k - 1] < table[bits][best - 1] {
                best = k;
            }
        }
        best
    };
    let (k, bits) = if fp_chance >= table[2][0] {
        (2, best(2))
    } else {
        let (mut bits, mut k) = (2, best(2));
        while table[bits][k - 1] > fp_chance {
            bits += 1;
            k = best(bits);
        }
        while k > 1 && table[bits][k - 2] <= fp_chance {
            k -= 1;
        }
        (k, bits)
    };
    (k as u32, (((partitions * bits as u64 + 20) - 1) >> 6) + 1)
}
