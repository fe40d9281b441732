//! Dates and times in the form of ISO 8601, converted to counts since 1970. Errors are reasons as
//! text.

use blocked_bloom_formats::parquet::TimeUnit;

const DAY_SECONDS: i128 = 86_400;

/// Parses a date as days since 1970-01-01.
pub(crate) fn date(text: &str) -> Result<i128, String> {
    let days = || {
        let mut parts = text.splitn(3, '-');
        let year: i64 = number(parts.next()?, 4..=6)?;
        let month = number(parts.next()?, 2..=2)?;
        let day = number(parts.next()?, 2..=2)?;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + i64::from(is_leap),
            _ => 0,
        };
        // Years begin in March, so that a leap day is the last day of a year.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468;
        (1..=last).contains(&day).then_some(days.into())
    };
    days().ok_or_else(|| "it is not a date such as 2026-01-31".to_owned())
}

/// Parses a number with this many digits.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let is_number = digits.contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Parses a time as a count since midnight.
pub(crate) fn time(text: &str, unit: TimeUnit) -> Result<i128, String> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = || {
        let parts: Vec<i64> =
            clock.split(':').map(|part| number(part, 2..=2)).collect::<Option<_>>()?;
        let (&[hour, minute], second) = match parts.len() {
            2 if fraction.is_empty() => (parts.first_chunk()?, 0),
            3 => (parts.first_chunk()?, parts[2]),
            _ => return None,
        };
        let is_time = hour < 24 && minute < 60 && second < 60;
        let is_fraction = fraction.bytes().all(|c| c.is_ascii_digit());
        (is_time && is_fraction).then_some(3_600 * hour + 60 * minute + second)
    };
    let seconds = seconds().ok_or("it is not a time such as 12:30:00.5")?;
    let (digits, fraction) = (unit.digits() as usize, fraction.trim_end_matches('0'));
    if fraction.len() > digits {
        return Err(format!("it has more than {digits} digits after the point"));
    }
    let fraction: i128 = format!("{fraction:0<digits$}").parse().unwrap_or_default();
    Ok(i128::from(seconds) * 10_i128.pow(unit.digits()) + fraction)
}

/// Parses a time since 1970-01-01 00:00: in UTC if the text has a zone, otherwise as local time.
pub(crate) fn timestamp(text: &str, unit: TimeUnit, is_utc: bool) -> Result<i128, String> {
    let (day, clock) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let (clock, zone) = match clock.find(['Z', 'z', '+', '-']) {
        Some(at) => clock.split_at(at),
        None => (clock, ""),
    };
    let days = date(day)?;
    let (seconds, clock) = (offset(zone)?, if clock.is_empty() { "00:00" } else { clock });
    match is_utc {
        true if zone.is_empty() => Err("it has no time zone: append Z for UTC, or +01:00".into()),
        false if !zone.is_empty() => {
            Err(format!("it has the zone {zone}, and the column has none: leave it out"))
        }
        _ => {
            let scale = 10_i128.pow(unit.digits());
            Ok((days * DAY_SECONDS - seconds) * scale + time(clock.trim_end(), unit)?)
        }
    }
}

/// Returns the seconds of a zone before UTC.
fn offset(zone: &str) -> Result<i128, String> {
    let (sign, clock) = match zone.split_at_checked(1) {
        None | Some(("Z" | "z", "")) => return Ok(0),
        Some((sign, clock)) => (if sign == "-" { -1 } else { 1 }, clock),
    };
    let clock = match clock.len() {
        2 => format!("{clock}:00"),
        4 if clock.is_ascii() => format!("{}:{}", &clock[..2], &clock[2..]),
        _ => clock.to_owned(),
    };
    let micros = time(&clock, TimeUnit::Micros);
    let micros = micros.map_err(|_| format!("{zone} is not a time zone such as Z or +01:00"))?;
    Ok(sign * micros / 1_000_000)
}

/// Parses an INT96 timestamp of 12 bytes: nanoseconds of the day, and the Julian day.
pub(crate) fn int96(text: &str) -> Result<Vec<u8>, String> {
    const JULIAN_DAY_OF_1970: i128 = 2_440_588;
    const DAY_NANOS: i128 = DAY_SECONDS * 1_000_000_000;
    let count = timestamp(text, TimeUnit::Nanos, true)?;
    let day = u32::try_from(count.div_euclid(DAY_NANOS) + JULIAN_DAY_OF_1970);
    let day = day.map_err(|_| "out of range".to_owned())?;
    Ok([&(count.rem_euclid(DAY_NANOS) as u64).to_le_bytes()[..], &day.to_le_bytes()].concat())
}
