//! Computes the numbers of shards, slots and columns of a sharded filter.

use blocked_bloom::parts::HEADER_BYTES;

use crate::error::RibbonError;
use crate::scheme::{MAX_COLUMNS, WIDTH};

/// Keys per shard. With more, the directory entry of 8 bytes (1.6 % of a bit per key) would be
/// shared by more keys, but slots per key grow with the size of a shard.
pub(crate) const KEYS_PER_SHARD: u64 = 3_900;

/// Maximum number of slots of a shard: 255 blocks, the limit of `short`.
pub(crate) const MAX_SLOTS: u32 = 255 * WIDTH;

/// Maximum number of shards, which is stored in 32 bits.
const MAX_SHARDS: u64 = u32::MAX as u64;

/// Keys in 2^7, 2^8, ... 2^14 slots at which one construction in twenty fails, with 64
/// coefficients. From RocksDB's `ribbon_config.cc`, which also covers this width.
const KEYS: [f64; 8] = [120.659, 243.346, 488.168, 976.373, 1948.86, 3875.85, 7704.97, 15312.4];

/// Slots of the first entry of [`KEYS`].
const FIRST_SLOTS: f64 = 128.0;

/// Returns the number of shards for this many keys; 0 without keys.
///
/// # Errors
///
/// [`RibbonError::TooManyKeys`].
pub(crate) fn shards(keys: u64) -> Result<u32, RibbonError> {
    match keys.div_ceil(KEYS_PER_SHARD) {
        shards @ ..=MAX_SHARDS => Ok(shards as u32),
        _ => Err(RibbonError::TooManyKeys { keys, limit: MAX_SHARDS * KEYS_PER_SHARD }),
    }
}

/// Converts the number of words of all shards to its stored form of 32 bits. With up to 2^32 shards
/// of 3,900 keys, it may not fit.
///
/// # Errors
///
/// [`RibbonError::TooManyKeys`].
pub(crate) fn words(words: u64, keys: u64) -> Result<u32, RibbonError> {
    u32::try_from(words).map_err(|_| RibbonError::TooManyKeys {
        keys,
        limit: (keys as f64 / words as f64 * f64::from(u32::MAX)) as u64,
    })
}

/// Returns the number of slots for a shard of this many keys, a multiple of 64. It exceeds
/// [`MAX_SLOTS`] if there are too many keys.
pub(crate) fn slots(keys: usize) -> u32 {
    let slots = libm::ceil(exact_slots(keys as f64)).min(f64::from(MAX_SLOTS + 1));
    (slots as u32).next_multiple_of(WIDTH)
}

/// Interpolates the number of slots in the table.
fn exact_slots(keys: f64) -> f64 {
    let keys = keys.max(KEYS[0]);
    // Above the table, its last step is continued.
    let above = KEYS[1..KEYS.len() - 1].partition_point(|&most| most < keys);
    let (lower, upper) = (KEYS[above], KEYS[above + 1]);
    let power = FIRST_SLOTS * (1_u32 << above) as f64;
    power + power * (keys - lower) / (upper - lower)
}

/// Returns the columns for a rate, and the fraction of the slots with one column less.
///
/// # Errors
///
/// [`RibbonError::Rate`] outside 2^-32 to 1/2.
pub(crate) fn columns(rate: f64) -> Result<(u32, f64), RibbonError> {
    for columns in 1..=MAX_COLUMNS {
        let least = libm::exp2(-f64::from(columns));
        if (least..=0.5).contains(&rate) {
            return Ok((columns, rate / least - 1.0));
        }
    }
    Err(RibbonError::Rate { rate })
}

/// Returns the number of blocks with one column less, for a shard with this many starts. The number
/// is rounded down, so that the rate does not exceed the target.
pub(crate) fn short_blocks(starts: u32, portion: f64) -> u32 {
    (portion * f64::from(starts) / f64::from(WIDTH)) as u32
}

/// Returns the size of a stored filter if every shard has the mean number of keys.
pub(crate) fn estimated_bytes(rate: f64, keys: u64) -> Result<u64, RibbonError> {
    let (columns, portion) = columns(rate)?;
    let shards = shards(keys)?;
    if shards == 0 {
        return Ok(HEADER_BYTES as u64);
    }
    // Rounding up to whole blocks adds half a block on average if shards differ by more than one
    // block, which is the case from about 1,000 keys per shard upwards.
    let mean = keys as f64 / f64::from(shards);
    let slots = match exact_slots(mean) {
        slots if mean < 1_000.0 => libm::ceil(slots / f64::from(WIDTH)) * f64::from(WIDTH),
        slots => slots + f64::from(WIDTH) / 2.0,
    };
    let starts = (slots - f64::from(WIDTH - 1)) * portion - f64::from(WIDTH) / 2.0;
    let words = slots / f64::from(WIDTH) * f64::from(columns) - starts.max(0.0) / f64::from(WIDTH);
    Ok(HEADER_BYTES as u64 + (f64::from(shards) * 8.0 * (words + 1.0)) as u64)
}

/// Returns the lowest rate, 2^-32 to 1/2, at which a filter of this many keys takes at most this
/// many bytes.
pub(crate) fn lowest_rate(keys: u64, bytes: u64) -> Option<f64> {
    let fits = |columns: f64| {
        let rate = libm::exp2(-columns);
        estimated_bytes(rate, keys).is_ok_and(|needed| needed <= bytes).then_some(rate)
    };
    // Finds the largest number of columns that fits. With a fractional number, only some slots have
    // the last column.
    let (mut lowest, mut least, mut most) = (fits(1.0)?, 1.0, f64::from(MAX_COLUMNS));
    if let Some(rate) = fits(most) {
        return Some(rate);
    }
    for _ in 0..52 {
        let middle = (least + most) / 2.0;
        match fits(middle) {
            Some(rate) => (lowest, least) = (rate, middle),
            None => most = middle,
        }
    }
    Some(lowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At every size the returned rate fits, and a rate 1 % lower does not.
    #[test]
    fn the_lowest_rate_fits_and_a_lower_one_does_not() {
        for keys in [1_000, 100_000, 10_000_000_u64] {
            for bits in [2.0, 4.5, 7.0, 9.9, 16.0, 30.0] {
                let bytes = (keys as f64 * bits / 8.0) as u64;
                let rate = lowest_rate(keys, bytes).unwrap();
                assert!(estimated_bytes(rate, keys).unwrap() <= bytes, "{keys} {bits}");
                assert!(estimated_bytes(rate * 0.99, keys).unwrap() > bytes, "{keys} {bits}");
            }
            assert_eq!(lowest_rate(keys, keys / 8), None);
            assert_eq!(lowest_rate(keys, u64::MAX), Some(libm::exp2(-32.0)));
        }
        assert_eq!(lowest_rate(u64::MAX, u64::MAX), None);
    }

    /// As many words as an entry's offset can count are accepted, and no more. Tests cannot build a
    /// filter of 32 GiB.
    #[test]
    fn words_up_to_the_last() {
        let most = u64::from(u32::MAX);
        assert_eq!(words(0, 0), Ok(0));
        assert_eq!(words(most, 1 << 30), Ok(u32::MAX));
        for over in [most + 1, 2 * most, 1 << 35] {
            let error = words(over, 1 << 30).unwrap_err();
            let RibbonError::TooManyKeys { keys, limit } = error else { panic!("{error}") };
            // The limit has as many words per key.
            assert_eq!(keys, 1 << 30);
            let words_of_limit = limit as f64 * over as f64 / (1_u64 << 30) as f64;
            assert!((words_of_limit / most as f64 - 1.0).abs() < 1e-6, "{limit}");
        }
    }
}
