//! A second reader, written from `docs/format.md`: decodes all codes and searches the list.

use std::ops::Bound;

use xxhash_rust::xxh3::xxh3_64;

pub(crate) struct Naive {
    codes: Vec<u64>,
    starts: u64,
    block_bits: u32,
    dropped: u32,
    shortest: usize,
    longest: usize,
    prefix: Vec<u8>,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The first 16 bytes as a big-endian number.
fn value(bytes: &[u8]) -> u128 {
    (0..16).fold(0, |value, i| value << 8 | u128::from(bytes.get(i).copied().unwrap_or(0)))
}

impl Naive {
    pub(crate) fn open(bytes: &[u8]) -> Option<Self> {
        let checked = |condition: bool| condition.then_some(());
        checked(bytes.len() >= 64 && bytes.starts_with(b"\x89BBRANG\n\x01\x00\x01"))?;
        checked(number(&bytes[56..64]) == xxh3_64(&bytes[..56]))?;
        let [low_bits, block_bits, dropped, shortest, longest] =
            [11, 12, 13, 14, 15].map(|at| u32::from(bytes[at]));
        let [starts, codes, prefix] =
            [number(&bytes[16..24]), number(&bytes[24..28]), number(&bytes[28..32])];
        checked((1..=29).contains(&low_bits) && block_bits <= low_bits + 5 && dropped <= 127)?;
        checked(shortest <= 16 && longest <= 17 && shortest <= longest)?;
        checked(dropped >= 127 || dropped + 8 * longest >= 128)?;
        checked((1..=1 << 62).contains(&starts) && prefix < 1 << 16)?;
        checked(bytes[40..48].iter().all(|&byte| byte == 0))?;
        let buckets = (starts + (1 << block_bits)).div_ceil(1 << (low_bits + 5));
        let bits = codes * u64::from(low_bits + 1) + 32 * buckets;
        let bits_at = 64 + 4 * (buckets + 1);
        let prefix_at = bits_at + bits.div_ceil(8) + 32;
        checked(bytes.len() as u64 == prefix_at + prefix)?;
        checked(number(&bytes[48..56]) == xxh3_64(&bytes[64..]))?;
        let bit = |at: u64| u64::from(bytes[(bits_at + at / 8) as usize] >> (at % 8) & 1);
        checked((bits..8 * (prefix_at - bits_at)).all(|at| bit(at) == 0))?;
        let rank = |i: u64| number(&bytes[64 + 4 * i as usize..][..4]);
        checked(rank(0) == 0 && rank(buckets) == codes)?;
        checked((0..buckets).all(|i| rank(i) <= rank(i + 1)))?;
        let mut list = Vec::new();
        for bucket in 0..buckets {
            let own = rank(bucket + 1) - rank(bucket);
            let unary = rank(bucket) * u64::from(low_bits + 1) + 32 * bucket;
            let (mut part, mut found) = (0, 0);
            for at in unary..unary + own + 32 {
                if bit(at) == 0 {
                    part += 1;
                    continue;
                }
                let low = unary + own + 32 + found * u64::from(low_bits);
                let low_part =
                    (0..u64::from(low_bits)).filter(|&i| found < own && bit(low + i) == 1);
                let low_part: u64 = low_part.map(|i| 1 << i).sum();
                list.push(((bucket << 5) + part) << low_bits | low_part);
                found += 1;
            }
            checked(found == own && part == 32 && bit(unary + own + 31) == 0)?;
        }
        checked(list.is_sorted_by(|code, next| code < next))?;
        Some(Naive {
            codes: list,
            starts,
            block_bits,
            dropped,
            shortest: shortest as usize,
            longest: longest as usize,
            prefix: bytes[prefix_at as usize..].to_vec(),
        })
    }

    pub(crate) fn codes(&self) -> &[u64] {
        &self.codes
    }

    fn start(&self, block: u128) -> u64 {
        let bytes = block.to_le_bytes();
        let hash = xxh3_64(if block >> 64 == 0 { &bytes[..8] } else { &bytes });
        ((u128::from(hash) * u128::from(self.starts)) >> 64) as u64
    }

    pub(crate) fn contains(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        use Bound::{Excluded, Included};
        let is_empty = match (lower, upper) {
            (Included(lower), Included(upper)) => lower > upper,
            (Included(a) | Excluded(a), Included(b) | Excluded(b)) => a >= b,
            _ => false,
        };
        let (mut first, mut last) = (0, u128::MAX);
        if let Included(bound) | Excluded(bound) = lower {
            if bound.starts_with(&self.prefix) && bound.len() > self.prefix.len() {
                let rest = &bound[self.prefix.len()..];
                first = value(rest);
                if matches!(lower, Excluded(_)) && self.longest <= rest.len().min(16) {
                    let shift = 128 - 8 * self.longest as u32;
                    let step = if shift < 128 { 1 << shift } else { return false };
                    let next = value(&rest[..self.longest]).checked_add(step);
                    let Some(next) = next else { return false };
                    first = next;
                }
            } else if bound > &self.prefix[..] {
                return false;
            }
        }
        if let Included(bound) | Excluded(bound) = upper {
            let is_below = bound < &self.prefix[..];
            if is_below || matches!(upper, Excluded(_)) && bound == &self.prefix[..] {
                return false;
            }
            if bound.starts_with(&self.prefix) {
                let rest = &bound[self.prefix.len()..];
                last = value(rest);
                let is_least = rest.len() <= 16 && !rest.ends_with(&[0]);
                if matches!(upper, Excluded(_)) && (is_least || rest.len() <= self.shortest) {
                    let Some(before) = last.checked_sub(1) else { return false };
                    last = before;
                }
            }
        }
        if is_empty || first > last || self.codes.is_empty() {
            return false;
        }
        let (first, last) = (first >> self.dropped, last >> self.dropped);
        let (from, to) = (first >> self.block_bits, last >> self.block_bits);
        if to - from >= 8 {
            return true;
        }
        (from..=to).any(|block| {
            let base = block << self.block_bits;
            let end = base + (1 << self.block_bits) - 1;
            let start = self.start(block);
            let low = start + (first.max(base) - base) as u64;
            let high = start + (last.min(end) - base) as u64;
            let at = self.codes.partition_point(|&code| code < low);
            self.codes.get(at).is_some_and(|&code| code <= high)
        })
    }
}
