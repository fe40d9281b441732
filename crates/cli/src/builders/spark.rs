//! Spark's filters.

use blocked_bloom_formats::spark::{Shape, SparkFilter, SparkHash, Version};
use blocked_bloom_inspect::{spark_hash, spark_type};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers, fit, hash_list};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;
use crate::wording;

pub(super) static SPARK: BuildFormat = BuildFormat {
    name: "spark",
    help: "What Spark's BloomFilter reads",
    extension: Some(".spark"),
    options: &["--fpr", "--keys", "--type", "--spark-version"],
    builder: Some(builder),
};

/// Collects the hashes of keys. The filter is sized for the expected number of items, or for the
/// distinct keys.
fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let version = match options.spark_version {
        Some(1) => Version::V1,
        _ => Version::V2 { seed: 0 },
    };
    let physical_type =
        spark_type(options.value_type).map_err(|error| Failure::new(wording::text(&error)))?;
    let (expected_keys, verify, is_hex) = (options.expected_keys, options.verify, options.is_hex);
    // Spark's default.
    let fpp = options.false_positive_rate.unwrap_or(0.03);
    let hash = move |key: &Key| {
        let hash = spark_hash(version, physical_type, key.as_ref(), is_hex);
        hash.map_err(|problem| wording::text(&problem))
    };
    let finish = move |mut hashes: Vec<SparkHash>, _: &str| {
        hashes.sort_unstable_by_key(|hash| (hash.h1, hash.h2));
        hashes.dedup();
        let distinct = hashes.len() as u64;
        // Spark makes no filter for no items.
        let keys = expected_keys.unwrap_or(distinct).max(1);
        let mut filter = SparkFilter::new(version, keys, fpp).map_err(Failure::new)?;
        filter.insert_hashes(&hashes);
        let answers = answers(verify, |hits| filter.contains_hashes(&hashes, hits));
        let shape = filter.shape();
        let needed = Shape::for_items(version, distinct, fpp).ok().map(Shape::stored_bytes);
        let rate = filter.estimated_false_positive_rate();
        let fit = fit(expected_keys, distinct, shape.stored_bytes(), needed, rate);
        let (version, words, probes) = (version.number(), shape.words(), shape.probes());
        let keys = counted(distinct, "distinct key");
        let summary = format!("version {version}: {keys}, {words} words, {probes} probes");
        Ok(Built { fit, answers, summary, bytes: filter.into_inner() })
    };
    Ok(hash_list(1, hash, finish))
}
