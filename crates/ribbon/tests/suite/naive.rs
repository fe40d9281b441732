//! A second reader of stored filters, written only from `docs/format.md`.

use xxhash_rust::xxh3::xxh3_64;

/// A stored filter, or `None` if it is invalid.
pub(crate) struct Naive<'a> {
    bytes: &'a [u8],
    columns: u64,
    shards: u64,
}

fn number(bytes: &[u8], offset: usize, length: usize) -> u64 {
    bytes[offset..offset + length]
        .iter()
        .rev()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl<'a> Naive<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        let is_sound = bytes.len() >= 64
            && bytes[..8] == *b"\x89BBRIBN\n"
            && number(bytes, 8, 2) == 1
            && number(bytes, 56, 8) == xxh3_64(&bytes[..56])
            && bytes[10] == 1
            && bytes[11] <= 1
            && (1..=32).contains(&bytes[12])
            && bytes[13..16] == [0; 3]
            && bytes[28..32] == [0; 4]
            && number(bytes, 40, 8) < 1 << 32
            && (number(bytes, 24, 4) == 0) == (number(bytes, 32, 8) == 0)
            && bytes.len() as u64 == 64 + 8 * (number(bytes, 24, 4) + number(bytes, 40, 8))
            && number(bytes, 48, 8) == xxh3_64(&bytes[64..]);
        if !is_sound {
            return None;
        }
        let naive = Naive { bytes, columns: bytes[12].into(), shards: number(bytes, 24, 4) };
        let mut offset = 0;
        for shard in 0..naive.shards {
            let [words_before, starts, short, _] = naive.entry(shard);
            let blocks = starts.div_ceil(64);
            if words_before != offset || starts % 64 != 1 || short > blocks {
                return None;
            }
            offset += blocks * naive.columns - short;
        }
        (offset == number(bytes, 40, 8)).then_some(naive)
    }

    fn entry(&self, shard: u64) -> [u64; 4] {
        let at = 64 + 8 * shard as usize;
        [(0, 4), (4, 2), (6, 1), (7, 1)]
            .map(|(field, length)| number(self.bytes, at + field, length))
    }

    fn bit(&self, word: u64, bit: u64) -> bool {
        let at = 64 + 8 * (self.shards + word) as usize;
        number(self.bytes, at, 8) >> bit & 1 == 1
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        if self.shards == 0 {
            return false;
        }
        let product = u128::from(hash) * u128::from(self.shards);
        let [offset, starts, short, seed] = self.entry((product >> 64) as u64);
        let rest = product as u64;
        let seeded =
            (rest ^ seed.wrapping_mul(0xc782_19a2_3eea_dd03)).wrapping_mul(0x6193_d459_236a_3a0d);
        let start = ((seeded >> 32) * starts) >> 32;
        let a = seeded.wrapping_mul(0xc28f_8282_2b65_0bed);
        let result = u64::from_be_bytes(a.to_le_bytes());
        let columns_of = |block: u64| self.columns - u64::from(block < short);
        let word_of = |block: u64| offset + (0..block).map(columns_of).sum::<u64>();
        // One slot at a time.
        (0..columns_of(start / 64)).all(|column| {
            let sum = (0..64).filter(|i| (a | 1) >> i & 1 == 1).fold(false, |sum, i| {
                let slot = start + i;
                sum ^ self.bit(word_of(slot / 64) + column, slot % 64)
            });
            sum == (result >> column & 1 == 1)
        })
    }
}
