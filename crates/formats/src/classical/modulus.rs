//! Remainders by a fixed divisor, without a division.

/// Computes remainders by a fixed number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Modulus {
    /// 0 to 2^63.
    divisor: u64,
    /// `(2^64 - 1) / divisor`, rounded down.
    reciprocal: u64,
}

impl Modulus {
    /// Prepares a divisor, 0 to 2^63. With 0, no remainder may be computed.
    pub(super) fn new(divisor: u64) -> Self {
        Modulus { divisor, reciprocal: u64::MAX / divisor.max(1) }
    }

    #[inline]
    pub(super) fn divisor(self) -> u64 {
        self.divisor
    }

    /// Returns `dividend mod divisor`.
    ///
    /// With `d = divisor` and `m = (2^64 - 1 - r) / d` for some `0 <= r < d`, `x * m / 2^64` is
    /// below `x / d` by `x * (1 + r) / (d * 2^64) <= x / 2^64 < 1`. Rounded down it is the quotient
    /// or one less. So the remainder is exact or too large by `d`, and below `2 d <= 2^64`. This
    /// takes 8 cycles; a 64-bit division takes 10 to 40.
    #[inline]
    pub(super) fn remainder(self, dividend: u64) -> u64 {
        let quotient = ((u128::from(dividend) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = dividend - quotient * self.divisor;
        if remainder >= self.divisor { remainder - self.divisor } else { remainder }
    }
}

#[cfg(test)]
mod tests {
    use super::Modulus;

    /// Tests the ends of each quotient, where a slightly wrong reciprocal would show.
    #[test]
    fn remainders_are_those_of_division() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state ^ state >> 29
        };
        let most = 1 << 63;
        let fixed = [1, 2, 3, 5, 63, 64, 65, 641, 1 << 22, 64 * 0x7fff_ffff, most - 1, most];
        let random = core::array::from_fn::<u64, 300, _>(|_| {
            let shift = 1 + next() % 62;
            (next() >> shift).max(1)
        });
        for divisor in fixed.into_iter().chain(random) {
            let modulus = Modulus::new(divisor);
            let check = |x: u64| assert_eq!(modulus.remainder(x), x % divisor, "{x} by {divisor}");
            [0, 1, 63, 64, most - 1, most, u64::MAX - 1, u64::MAX].into_iter().for_each(check);
            for _ in 0..500 {
                let shift = next() % 64;
                let x = next() >> shift;
                let multiple = x / divisor * divisor;
                for near in [0, 1, 2, 64] {
                    check(multiple.wrapping_sub(near));
                    check(multiple.wrapping_add(near));
                }
                check(x);
            }
        }
    }
}
