//! This project's own range filter.

use blocked_bloom::Bitmask;
use blocked_bloom_inspect::numbers::percent;
use blocked_bloom_range::{RangeFilter, RangeFilterBuilder, RangeOptions};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built};
use crate::failure::Failure;
use crate::keys::{Key, KeyReader};
use crate::numbers::{DEFAULT_BITS_PER_KEY, counted};

pub(super) static RANGE: BuildFormat = BuildFormat {
    name: "range",
    help: "This tool's own static filter for ranges of sorted keys",
    extension: Some(".range"),
    options: &["--bits-per-key", "--type", "--unit"],
    builder: Some(builder),
};

struct Keys(RangeFilterBuilder);

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let bits = options.bits_per_key.unwrap_or(DEFAULT_BITS_PER_KEY);
    let range = RangeOptions::new(bits).with_unit(options.unit);
    // An option out of its range is an error before the keys are read.
    range.builder().finish().map_err(Failure::new)?;
    Ok(Box::new(Keys(range.builder())))
}

/// Looks all keys up in a stored filter. Returns how many there are, and how many it lacks.
pub(crate) fn look_up(stored: &[u8], mut keys: KeyReader<'_>) -> Result<[u64; 2], Failure> {
    let filter = RangeFilter::from_bytes(stored).map_err(Failure::new)?;
    let (mut key, mut count, mut missing) = (Key::default(), 0, 0);
    while keys.read(&mut key)? {
        count += 1;
        missing += u64::from(!filter.contains(key.as_ref()));
    }
    Ok([count, missing])
}

impl Builder for Keys {
    /// The value of a key and its code.
    fn bytes_per_key(&self) -> u64 {
        24
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        self.0.insert(key.as_ref()).map_err(|error| error.to_string())
    }

    fn finish(self: Box<Self>, _: &str) -> Result<Built, Failure> {
        let keys = self.0.keys_inserted();
        let filter = self.0.finish().map_err(Failure::new)?;
        let rate = percent(filter.max_false_positive_rate(1));
        let summary = format!("{}, at most {rate} false positives", counted(keys, "key"));
        let (bytes, answers) = (filter.as_bytes().to_vec(), Bitmask::new());
        Ok(Built { fit: None, answers, summary, bytes })
    }
}
