//! Parquet's split-block filters.

use blocked_bloom::Filter as _;
use blocked_bloom_formats::parquet::PhysicalType;
use blocked_bloom_inspect::ColumnType;
use blocked_bloom_inspect::numbers::percent;
use blocked_bloom_split::{MAX_BITSET_BYTES, SplitBlockFilter};
use indicatif::BinaryBytes;

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers, fit, hash_list};
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
fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let rate = options.false_positive_rate.unwrap_or(0.01);
    // A rate out of its range is an error before the values are read.
    SplitBlockFilter::new(0, rate).map_err(Failure::new)?;
    let (expected_values, verify, is_hex) = (options.expected_keys, options.verify, options.is_hex);
    let oversized = options.oversized;
    let physical_type = options.value_type.unwrap_or(PhysicalType::ByteArray);
    let default = if options.value_type.is_none() { " (no --type given)" } else { "" };
    let hash = move |key: &Key| {
        let value = ColumnType::from(physical_type).encode(key.as_ref(), is_hex);
        value.map(|value| value.hash()).map_err(|problem| wording::text(&problem))
    };
    let finish = move |mut hashes: Vec<u64>, _: &str| {
        hashes.sort_unstable();
        hashes.dedup();
        let distinct = hashes.len() as u64;
        let values = expected_values.unwrap_or(distinct);
        let mut filter = SplitBlockFilter::new(values, rate).map_err(Failure::new)?;
        warn_of_cap(&filter, values, rate);
        filter.insert_hashes(&hashes);
        if !oversized {
            filter.shrink_to_false_positive_rate(rate);
        }
        let answers = answers(verify, |hits| filter.contains_hashes(&hashes, hits));
        let stored = |filter: &SplitBlockFilter| filter.to_bytes().len() as u64;
        let needed = SplitBlockFilter::new(distinct, rate).ok().map(|of| stored(&of));
        let reached = filter.estimated_false_positive_rate();
        let fit = fit(expected_values, distinct, stored(&filter), needed, reached);
        let blocks = filter.blocks().len();
        let summary =
            format!("{distinct} distinct values of {physical_type}{default}, {blocks} blocks");
        Ok(Built { bytes: filter.to_bytes(), fit, answers, summary })
    };
    Ok(hash_list(1, hash, finish))
}
