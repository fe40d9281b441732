//! This project's own range filter.

use std::ops::Bound::Included;

use blocked_bloom::Bitmask;
use blocked_bloom_inspect::numbers::percent;
use blocked_bloom_range::{RangeFilterBuilder, RangeOptions};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::{DEFAULT_BITS_PER_KEY, counted};

pub(super) static RANGE: BuildFormat = BuildFormat {
    name: "range",
    help: "This tool's own static filter for ranges of sorted keys",
    extension: Some(".range"),
    options: &["--bits-per-key", "--type", "--unit"],
    builder: Some(builder),
};

struct Keys {
    builder: RangeFilterBuilder,
    /// The keys, if each is to be looked up again.
    kept: Option<Vec<Vec<u8>>>,
}

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let bits = options.bits_per_key.unwrap_or(DEFAULT_BITS_PER_KEY);
    let range = RangeOptions::new(bits).with_unit(options.unit);
    // An option out of its range is an error before the keys are read.
    range.builder().finish().map_err(Failure::new)?;
    Ok(Box::new(Keys { builder: range.builder(), kept: options.verify.then(Vec::new) }))
}

impl Builder for Keys {
    /// The value of a key and its code.
    fn bytes_per_key(&self) -> u64 {
        24
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        self.kept.iter_mut().for_each(|kept| kept.push(key.as_ref().to_vec()));
        self.builder.insert(key.as_ref()).map_err(|error| error.to_string())
    }

    fn finish(self: Box<Self>, _: &str) -> Result<Built, Failure> {
        let keys = self.builder.keys_inserted();
        let filter = self.builder.finish().map_err(Failure::new)?;
        let mut answers = Bitmask::new();
        let kept = self.kept.unwrap_or_default();
        let points = kept.iter().map(|key| (Included(&key[..]), Included(&key[..])));
        filter.contains_ranges(&points.collect::<Vec<_>>(), &mut answers);
        let rate = percent(filter.max_false_positive_rate(1));
        let summary = format!("{}, at most {rate} false positives", counted(keys, "key"));
        Ok(Built { fit: None, answers, summary, bytes: filter.as_bytes().to_vec() })
    }
}
