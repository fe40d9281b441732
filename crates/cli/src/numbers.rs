//! Numbers as people write them: suffixes and percentages are read, percentages printed.

use blocked_bloom::Sizing;
use blocked_bloom::probe::MAX_BITS_PER_KEY;
pub(crate) use blocked_bloom_inspect::percent;

const THOUSANDS: [(&str, u64); 3] = [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
const BINARY: [(&str, u64); 3] = [("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30)];

pub(crate) fn parse_keys(text: &str) -> Result<u64, String> {
    match scaled(text, &THOUSANDS) {
        Some(keys) if keys > 0 => Ok(keys),
        _ => Err("give a whole number above 0 such as 1000000, 1_000_000, 1e6 or 1M \
                  (K, M and G are decimal)"
            .to_owned()),
    }
}

pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    scaled(text, &[THOUSANDS, BINARY].concat()).ok_or_else(|| {
        "give a whole number of bytes such as 65536, 64KiB or 1.5M \
         (K, M and G are decimal, KiB, MiB and GiB binary)"
            .to_owned()
    })
}

/// The longest key that is read.
pub(crate) fn parse_key_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("give a whole number of bytes, 1 or more, such as 65536, 64KiB or 1.5M \
                  (K, M and G are decimal, KiB, MiB and GiB binary)"
            .to_owned()),
    }
}

pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= divisor => Ok(rate / divisor),
        _ => Err("give a number above 0 and up to 1, such as 0.01, or a percentage such as 1%"
            .to_owned()),
    }
}

/// Bits per key, in the range that every sizing takes.
pub(crate) fn parse_bits(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bits) if (0.0..=MAX_BITS_PER_KEY).contains(&bits) => Ok(bits),
        _ => Err(format!(
            "give a number from 0 to {MAX_BITS_PER_KEY}, such as 10 or 12.5 (0 means no filter)"
        )),
    }
}

fn scaled(text: &str, suffixes: &[(&str, u64)]) -> Option<u64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (number, unit) = suffixes
        .iter()
        .find_map(|&(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))
        .unwrap_or((&text, 1));
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let value = number.parse::<f64>().ok()? * unit as f64;
    // 1.1G is whole although its product in floating point may not be.
    let is_whole = (value - value.round()).abs() <= value * 1e-12;
    (is_whole && value < u64::MAX as f64).then(|| value.round() as u64)
}

pub(crate) const DEFAULT_BITS_PER_KEY: f64 = 10.0;

/// The one sizing of a filter.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct SizingArgs {
    /// Bits of memory per key, 0 to 100, fractions allowed; 0 means no filter [default: 10]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    pub(crate) bits_per_key: Option<f64>,

    /// Highest false-positive rate: 0.01 and 1% are the same; the smallest such filter is built
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,

    /// Largest size of the stored filter in bytes; suffixes K, M, G, KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) max_bytes: Option<u64>,
}

impl SizingArgs {
    pub(crate) fn sizing(&self) -> Sizing {
        match (self.fpr, self.max_bytes) {
            (Some(rate), _) => Sizing::FalsePositiveRate(rate),
            (_, Some(bytes)) => Sizing::MaxBytes(bytes),
            _ => Sizing::BitsPerKey(self.bits_per_key.unwrap_or(DEFAULT_BITS_PER_KEY)),
        }
    }
}

/// So many of a noun: `1 key`, `2 keys`.
pub(crate) fn counted(count: impl Into<u128>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_bits, parse_bytes, parse_keys, parse_rate};

    #[test]
    fn keys() {
        for (text, keys) in [
            ("1", 1),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("10M", 10_000_000),
            ("1.1G", 1_100_000_000),
            ("0.3k", 300),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_keys(text), Ok(keys), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "M", "10MiB", "inf", "nan", "1e30", "20000000000G"] {
            assert!(parse_keys(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes() {
        assert_eq!(parse_bytes("64K"), Ok(64_000));
        assert_eq!(parse_bytes("64KiB"), Ok(65_536));
        assert_eq!(parse_bytes("1.5gib"), Ok(3 << 29));
        assert!(parse_bytes("64KB").is_err());
    }

    #[test]
    fn bits() {
        assert_eq!((parse_bits("0"), parse_bits("12.5")), (Ok(0.0), Ok(12.5)));
        for text in ["", "-1", "100.1", "1e400", "inf", "nan", "10M"] {
            assert!(parse_bits(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(parse_rate("0.01"), parse_rate("1%"));
        assert_eq!(parse_rate("100 %"), Ok(1.0));
        for text in ["0", "1.1", "101%", "nan", "-1", "%"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
