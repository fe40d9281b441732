//! Numbers as people write and read them, with suffixes and percentages.
//!
//! ```
//! use blocked_bloom_inspect::numbers::{parse_bytes, parse_keys, parse_rate};
//! assert_eq!((parse_keys("1.5M"), parse_keys("1_000")), (Ok(1_500_000), Ok(1_000)));
//! assert_eq!((parse_bytes("64 KiB"), parse_bytes("64 KB")), (Ok(65_536), Ok(64_000)));
//! assert_eq!(parse_rate("1%"), Ok(0.01));
//! assert!(parse_rate("2").unwrap_err().to_string().starts_with("give a number above 0"));
//! ```

use blocked_bloom::probe::MAX_BITS_PER_KEY;

use crate::message::Message;

const THOUSANDS: [(&str, u64); 3] = [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];

/// Suffixes of byte counts. A suffix stands before the suffixes that it ends with.
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

/// Parses a number of keys, at least 1.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_keys(text: &str) -> Result<u64, Message> {
    scaled(text, &THOUSANDS).filter(|&keys| keys > 0).ok_or_else(|| {
        Message::new(
            "give a whole number above 0 such as 1000000, 1_000_000, 1e6 or 1M \
             (K, M and G are decimal)",
        )
    })
}

/// Parses a number that may be 0.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_count(text: &str) -> Result<u64, Message> {
    let count = scaled(text, &THOUSANDS);
    count.ok_or_else(|| Message::new("give a whole number such as 0, 1000, 100k or 1M"))
}

const WANTED_BYTES: &str = "such as 65536, 64KiB or 1.5M \
    (K, M, G and T, also with a B, are decimal, KiB, MiB, GiB and TiB binary)";

/// Parses a number of bytes.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_bytes(text: &str) -> Result<u64, Message> {
    let bytes = scaled(text, &BYTES);
    bytes.ok_or_else(|| Message::new(format_args!("give a whole number of bytes {WANTED_BYTES}")))
}

/// Parses a number of bytes, at least 1.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_size(text: &str) -> Result<u64, Message> {
    let wanted =
        || Message::new(format_args!("give a whole number of bytes, 1 or more, {WANTED_BYTES}"));
    scaled(text, &BYTES).filter(|&bytes| bytes > 0).ok_or_else(wanted)
}

/// Parses a rate above 0 and up to 1, or up to 100 %.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_rate(text: &str) -> Result<f64, Message> {
    let rate = fraction(text).filter(|&rate| rate > 0.0);
    rate.ok_or_else(|| {
        Message::new("give a number above 0 and up to 1, such as 0.01, or a percentage such as 1%")
    })
}

/// Parses a number of bits per key, in the range that every sizing accepts.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_bits(text: &str) -> Result<f64, Message> {
    let bits = text.parse::<f64>().ok().filter(|bits| (0.0..=MAX_BITS_PER_KEY).contains(bits));
    bits.ok_or_else(|| {
        Message::new(format_args!(
            "give a number from 0 to {MAX_BITS_PER_KEY}, such as 10 or 12.5 (0 means no filter)"
        ))
    })
}

/// Parses a number of sorted runs of a level, or of tables of a run: at least 1.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_runs(text: &str) -> Result<u32, Message> {
    let runs = scaled(text, &THOUSANDS).and_then(|runs| u32::try_from(runs).ok());
    let runs = runs.filter(|&runs| runs > 0);
    runs.ok_or_else(|| Message::new("give a whole number, 1 to 4294967295"))
}

/// Parses the fraction of a level's lookups that find their key, 0 to 1.
///
/// # Errors
///
/// A [`Message`] that describes the expected text.
pub fn parse_present(text: &str) -> Result<f64, Message> {
    fraction(text).ok_or_else(|| {
        Message::new("give a fraction of 0 to 1, such as 0.9, or a percentage such as 90%")
    })
}

/// Parses a number from 0 to 1, or a percentage.
fn fraction(text: &str) -> Option<f64> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    (0.0..=divisor).contains(&number).then_some(number / divisor)
}

fn scaled(text: &str, suffixes: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim().replace('_', "").to_ascii_lowercase();
    let (number, unit) = suffixes
        .iter()
        .find_map(|&(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))
        .unwrap_or((&text, 1));
    let number = remove_separators(number.trim_end())?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let value = number.parse::<f64>().ok()? * unit as f64;
    // 1.1G is a whole number although its floating-point product may not be.
    let is_whole = (value - value.round()).abs() <= value * 1e-12;
    (is_whole && value < u64::MAX as f64).then(|| value.round() as u64)
}

/// Removes commas and spaces between groups of three digits before the decimal point. Others may be
/// meant as a decimal point.
fn remove_separators(number: &str) -> Option<String> {
    let whole = number.split(['.', 'e']).next().unwrap_or_default();
    let mut groups = whole.split([',', ' ']);
    let first = groups.next().unwrap_or_default();
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    let is_grouped = first.len() < whole.len();
    let is_right = !is_grouped || ((1..=3).contains(&first.len()) && groups.all(is_group));
    let rest = &number[whole.len()..];
    (is_right && !rest.contains([',', ' '])).then(|| whole.replace([',', ' '], "") + rest)
}

/// Formats a rate from 0 to 1 in percent, with three digits after the point, or with three
/// significant digits below 0.001 %.
///
/// ```
/// use blocked_bloom_inspect::numbers::percent;
/// assert_eq!((percent(0.009665), percent(0.0)), ("0.967 %".into(), "0.000 %".into()));
/// assert_eq!((percent(0.12345), percent(1e-9)), ("12.345 %".into(), "1.00e-7 %".into()));
/// ```
pub fn percent(rate: f64) -> String {
    match rate * 100.0 {
        percent if percent == 0.0 || percent >= 0.001 => format!("{percent:.3} %"),
        percent => format!("{percent:.2e} %"),
    }
}

/// Formats a number of bytes for people: `1.46 KiB`.
///
/// ```
/// use blocked_bloom_inspect::numbers::binary_bytes;
/// assert_eq!((binary_bytes(15), binary_bytes(1_500)), ("15 B".into(), "1.46 KiB".into()));
/// ```
pub fn binary_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut number, mut unit) = (bytes as f64, None);
    for next in UNITS {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, Some(next));
    }
    match unit {
        Some(unit) => format!("{number:.2} {unit}"),
        None => format!("{bytes} B"),
    }
}
