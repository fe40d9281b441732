//! Cassandra's probe scheme: the positions of a key's bits, by arithmetic that replaces a division per probe.

use super::hash::Hash128;
use super::layout::Layout;
use super::limits::WORD_BITS;

/// Divides by a number of words that is known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    words: u64,
    /// `(2^64 - 1) / words`, rounded down.
    reciprocal: u64,
}

impl Words {
    /// `words` is 1 to 2^31 - 1.
    pub(super) fn new(words: u32) -> Self {
        let words = u64::from(words.max(1));
        Words { words, reciprocal: u64::MAX / words }
    }

    /// `|base| mod (64 * words)`: the magnitude of Java's remainder, whose sign is that of the dividend. The magnitude of the
    /// smallest number is 2^63.
    ///
    /// The lowest six bits pass through. With `x = |base| / 64 <= 2^57`, `w = words` and `m = (2^64 - 1 - r) / w` for some
    /// `0 <= r < w`, `x * m / 2^64` is below `x / w` by `x * (1 + r) / (w * 2^64) <= x / 2^64 < 1`. Rounded down it is the quotient
    /// or one less, so the remainder is off by nothing or by one `w`. A 64-bit division takes 10 to 40 cycles, this takes 8.
    #[inline]
    pub(super) fn position(self, base: i64) -> u64 {
        let magnitude = base.unsigned_abs();
        let dividend = magnitude / WORD_BITS;
        let quotient = ((u128::from(dividend) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = dividend - quotient * self.words;
        let word = if remainder >= self.words { remainder - self.words } else { remainder };
        word * WORD_BITS + magnitude % WORD_BITS
    }
}

/// The walk of one key: each step is the number that [`Words::position`] takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walk {
    base: i64,
    step: i64,
}

impl Walk {
    #[inline]
    pub(super) fn of(hash: Hash128, layout: Layout) -> Self {
        let (h1, h2) = (hash.h1 as i64, hash.h2 as i64);
        if layout.starts_with_h1() {
            Walk { base: h1, step: h2 }
        } else {
            Walk { base: h2, step: h1 }
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> i64 {
        let base = self.base;
        self.base = base.wrapping_add(self.step);
        base
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    /// The ends of each quotient are where a reciprocal that is off by a little would show.
    #[test]
    fn positions_are_the_remainder() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state ^ state >> 29
        };
        let largest = i32::MAX as u32;
        let fixed = [1, 2, 3, 5, 63, 64, 65, 641, 0xffff, 0x1_0000, largest - 1, largest];
        let random = core::array::from_fn::<u32, 200, _>(|_| {
            let shift = next() % 31;
            (next() as u32 >> 1 >> shift).max(1)
        });
        for words in fixed.into_iter().chain(random) {
            let bits = i128::from(words) * 64;
            let check = |base: i64| {
                let expected = (i128::from(base) % bits).unsigned_abs() as u64;
                assert_eq!(Words::new(words).position(base), expected, "{base} of {words} words");
            };
            for base in [0, 1, -1, 63, 64, -64, i64::MAX, i64::MIN, i64::MIN + 1] {
                check(base);
            }
            for _ in 0..500 {
                let base = (next() >> (next() % 64)) as i64;
                check(base);
                let multiple = (i128::from(base) / bits * bits) as i64;
                for near in [-64, -63, -1, 0, 1, 63, 64] {
                    check(multiple.wrapping_add(near));
                }
            }
        }
    }
}
