//! Warnings about requested sizes: the request, the size that the keys need, and the resulting
//! false-positive rate.

use blocked_bloom_inspect::numbers::percent;

use crate::builder::Fit;
use crate::numbers::DEFAULT_BITS_PER_KEY;

/// A size for this multiple of the keys is a mistake, such as G for M, and not a filter that others
/// will be merged with.
const OVERSIZE_FACTOR: u64 = 100;

/// Bytes up to which a filter for too many keys is harmless.
const SMALL: u64 = 1 << 20;

/// The rate above which a filter in `--max-bytes` is of little use: the rate of three bits per key.
const HIGH_RATE: f64 = 0.25;

/// What to say about a filter whose size was given as a number of keys or of bytes that does not
/// fit its keys.
pub(super) fn warning(fit: &Fit, expected: Option<u64>, max_bytes: Option<u64>) -> Option<String> {
    let Fit { keys, bytes, needed, false_positive_rate } = *fit;
    let given = match (expected, max_bytes) {
        (Some(expected), _) if keys > expected => format!("more than the {expected} of --keys"),
        (Some(expected), _) if expected / OVERSIZE_FACTOR > keys && bytes > SMALL => match keys {
            0 => format!("--keys {expected} sized it for that many"),
            _ => {
                let times = expected / keys;
                format!("--keys {expected} sized it for {times} times as many")
            }
        },
        (_, Some(max)) if false_positive_rate > HIGH_RATE => {
            format!("more than fit in --max-bytes {max}")
        }
        _ => return None,
    };
    let needed = match (needed.filter(|&needed| needed != bytes), max_bytes) {
        (None, _) => String::new(),
        (Some(needed), None) => format!(", these keys need {needed}"),
        (Some(needed), Some(_)) => {
            format!(", these keys need {needed} at {DEFAULT_BITS_PER_KEY} bits each")
        }
    };
    let rate = percent(false_positive_rate);
    let read = match keys {
        1 => "1 key was read".to_owned(),
        _ => format!("{keys} keys were read"),
    };
    Some(format!(
        "{read}, {given}: the filter takes {bytes} bytes{needed}; its false-positive rate is {rate}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{SMALL, warning};
    use crate::builder::Fit;

    #[test]
    fn sizes_that_may_be_meant_are_not_warned_of() {
        let fit = |keys, bytes, false_positive_rate| Fit {
            keys,
            bytes,
            needed: Some(128),
            false_positive_rate,
        };
        for (fit, expected, max_bytes) in [
            (fit(1_000, 10 * SMALL, 0.0), None, None),
            (fit(1_000, 10 * SMALL, 0.0), Some(100_000), None),
            (fit(1_000, SMALL, 0.0), Some(10_000_000), None),
            (fit(1_000, 128, 0.25), None, Some(128)),
            (fit(1_000, 128, 0.5), Some(1_000), None),
        ] {
            assert_eq!(warning(&fit, expected, max_bytes), None);
        }
        let empty = warning(&fit(0, 2 * SMALL, 0.0), Some(2_000_000), None).unwrap();
        assert!(empty.starts_with("0 keys were read, --keys 2000000 sized it for that many"));
        let full = warning(&fit(9, 64, 0.26), Some(9), Some(64)).unwrap();
        assert!(full.contains("these keys need 128 at 10 bits each"), "{full}");
    }
}
