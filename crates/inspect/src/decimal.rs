//! Decimal numbers of any length, converted to integers and half-precision numbers.

/// Parses a decimal number and multiplies it by `10^scale`. Returns whether it is negative, and its
/// digits without leading zeros. The error is the reason as text.
pub(crate) fn scaled(text: &str, scale: u32, precision: u32) -> Result<(bool, Vec<u8>), String> {
    let malformed = || "it is not a decimal number".to_owned();
    let (is_negative, number) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i64 = exponent.parse::<i32>().map_err(|_| malformed())?.into();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all = || whole.bytes().chain(fraction.bytes());
    if all().next().is_none() || !all().all(|digit| digit.is_ascii_digit()) {
        return Err(malformed());
    }
    let mut digits: Vec<u8> = all().map(|digit| digit - b'0').skip_while(|&d| d == 0).collect();
    if digits.is_empty() {
        return Ok((false, digits));
    }
    let mut zeros = exponent - fraction.len() as i64 + i64::from(scale);
    while zeros < 0 && digits.last() == Some(&0) {
        digits.pop();
        zeros += 1;
    }
    if zeros < 0 {
        return Err(format!("it has more than {scale} digits after the point"));
    }
    if digits.len() as i64 + zeros > i64::from(precision) {
        return Err(format!("it has more than {} digits before the point", precision - scale));
    }
    digits.resize(digits.len() + zeros as usize, 0);
    Ok((is_negative, digits))
}

/// Returns the shortest two's complement form of an integer, big-endian.
pub(crate) fn twos_complement(is_negative: bool, digits: &[u8]) -> Vec<u8> {
    // Least significant byte first.
    let mut bytes = vec![0_u8];
    for &digit in digits {
        let mut carry = u16::from(digit);
        for byte in &mut bytes {
            carry += 10 * u16::from(*byte);
            *byte = carry as u8;
            carry >>= 8;
        }
        bytes.extend((carry > 0).then_some(carry as u8));
    }
    bytes.push(0);
    if is_negative {
        let mut carry = true;
        for byte in &mut bytes {
            (*byte, carry) = (!*byte).overflowing_add(carry.into());
        }
    }
    while let [.., last, sign] = bytes[..]
        && sign == if last & 0x80 == 0 { 0 } else { 0xff }
    {
        bytes.pop();
    }
    bytes.reverse();
    bytes
}

/// Returns the bits of the nearest half-precision number. `None` for NaN and numbers out of range.
pub(crate) fn half(value: f64) -> Option<u16> {
    const INFINITY: f64 = 31_744.0;
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    if value.is_infinite() {
        return Some(sign | INFINITY as u16);
    }
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1_023).max(-14);
    let steps = (value.abs() / 2_f64.powi(exponent - 10)).round_ties_even();
    let bits = steps + f64::from(1_024 * (exponent + 14));
    (bits < INFINITY).then_some(sign | bits as u16)
}
