//! Numbers as people write them, with suffixes and percentages; those that `blocked-bloom plan` takes, and some more.

use blocked_bloom::probe::MAX_BITS_PER_KEY;

const THOUSANDS: [(&str, u64); 3] = [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
/// Of bytes, the longest first.
const BYTES: [(&str, u64); 13] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("b", 1),
];

pub(crate) fn parse_keys(text: &str) -> Result<u64, String> {
    match scaled(text, &THOUSANDS) {
        Some(keys) if keys > 0 => Ok(keys),
        _ => Err("give a whole number above 0 such as 1000000, 1_000_000, 1e6 or 1M \
                  (K, M and G are decimal)"
            .to_owned()),
    }
}

/// A number that may be 0.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    scaled(text, &THOUSANDS)
        .ok_or_else(|| "give a whole number such as 0, 1000, 100k or 1M".to_owned())
}

pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    scaled(text, &BYTES).ok_or_else(|| {
        "give a whole number of bytes such as 65536, 64 KiB or 1.5 GB \
         (KB, MB, GB and TB are decimal, KiB, MiB, GiB and TiB binary)"
            .to_owned()
    })
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
    let text = text.replace(['_', ',', ' '], "").to_ascii_lowercase();
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
