//! Parquet's split-block filters.

use blocked_bloom::{Bitmask, Filter as _};
use blocked_bloom_formats::parquet::PhysicalType;
use blocked_bloom_inspect::ColumnType;
use blocked_bloom_inspect::numbers::percent;
use blocked_bloom_split::{MAX_BITSET_BYTES, SplitBlockFilter};
use indicatif::BinaryBytes;

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, fit, push};
use crate::failure::{Failure, warn};
use crate::keys::Key;
use crate::wording;

pub(super) static FILTER: BuildFormat = BuildFormat {
    name: "parquet-filter",
    help: "A Bloom filter of Parquet: header and bitset of a column in a row group",
    extension: Some(".sbbf"),
    options: &["--fpr", "--keys", "--type"],
    builder: Some(builder),
};

/// Warns if even Parquet's largest filter has a higher rate than requested.
fn warn_of_cap(filter: &SplitBlockFilter, values: u64, rate: f64) {
    const PROBES: f64 = 8.0;
    if 32 * filter.blocks().len() as u64 != u64::from(MAX_BITSET_BYTES) {
        return;
    }
    let bits = 8.0 * f64::from(MAX_BITSET_BYTES);
    let reached = (1.0 - (-PROBES * values as f64 / bits).exp()).powf(PROBES);
    if reached > rate {
        warn(format!(
            "Parquet's largest filter has {}: expect {} false positives with {values} values, not \
             {}",
            format_args!("{MAX_BITSET_BYTES} bytes ({})", BinaryBytes(MAX_BITSET_BYTES.into())),
            percent(reached),
            percent(rate),
        ));
    }
}

/// Collects the hashes of a column's values. The filter is sized for the expected number of values,
/// or for the distinct ones, as Arrow sizes it.
struct Values {
    /// None if the user did not give it.
    physical_type: Option<PhysicalType>,
    is_hex: bool,
    expected_values: Option<u64>,
    rate: f64,
    oversized: bool,
    verify: bool,
    hashes: Vec<u64>,
}

impl Values {
    fn physical_type(&self) -> PhysicalType {
        self.physical_type.unwrap_or(PhysicalType::ByteArray)
    }
}

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let rate = options.false_positive_rate.unwrap_or(0.01);
    // A rate out of its range is an error before the values are read.
    SplitBlockFilter::new(0, rate).map_err(Failure::new)?;
    Ok(Box::new(Values {
        physical_type: options.value_type,
        is_hex: options.is_hex,
        expected_values: options.expected_keys,
        rate,
        oversized: options.oversized,
        verify: options.verify,
        hashes: Vec::new(),
    }))
}

impl Builder for Values {
    fn add(&mut self, key: &Key) -> Result<(), String> {
        let value = ColumnType::from(self.physical_type()).encode(key.as_ref(), self.is_hex);
        let value = value.map_err(|problem| wording::text(&problem))?;
        push(&mut self.hashes, value.hash())
    }

    fn finish(mut self: Box<Self>, _: &str) -> Result<Built, Failure> {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        let distinct = self.hashes.len() as u64;
        let values = self.expected_values.unwrap_or(distinct);
        let mut filter = SplitBlockFilter::new(values, self.rate).map_err(Failure::new)?;
        warn_of_cap(&filter, values, self.rate);
        filter.insert_hashes(&self.hashes);
        if !self.oversized {
            filter.shrink_to_false_positive_rate(self.rate);
        }
        let mut hits = Bitmask::new();
        if self.verify {
            filter.contains_hashes(&self.hashes, &mut hits);
        }
        let (physical_type, blocks) = (self.physical_type(), filter.blocks().len());
        let default = if self.physical_type.is_none() { " (no --type given)" } else { "" };
        let bytes = filter.to_bytes();
        let stored = |filter: &SplitBlockFilter| filter.to_bytes().len() as u64;
        let needed = SplitBlockFilter::new(distinct, self.rate).ok().map(|of| stored(&of));
        let rate = filter.estimated_false_positive_rate();
        let fit = fit(self.expected_values, distinct, stored(&filter), needed, rate);
        Ok(Built {
            bytes,
            fit,
            answers: hits,
            summary: format!(
                "{distinct} distinct values of {physical_type}{default}, {blocks} blocks"
            ),
        })
    }
}
