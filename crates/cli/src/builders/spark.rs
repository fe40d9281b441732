//! Spark's filters.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::parquet::PhysicalType;
use blocked_bloom_formats::spark::{Shape, SparkFilter, SparkHash, Version};
use blocked_bloom_inspect::{spark_hash, spark_type};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, fit, push};
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
struct Items {
    version: Version,
    physical_type: PhysicalType,
    is_hex: bool,
    expected_keys: Option<u64>,
    fpp: f64,
    verify: bool,
    hashes: Vec<SparkHash>,
}

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    Ok(Box::new(Items {
        version: match options.spark_version {
            Some(1) => Version::V1,
            _ => Version::V2 { seed: 0 },
        },
        physical_type: spark_type(options.value_type)
            .map_err(|error| Failure::new(wording::text(&error)))?,
        is_hex: options.is_hex,
        expected_keys: options.expected_keys,
        // Spark's default.
        fpp: options.false_positive_rate.unwrap_or(0.03),
        verify: options.verify,
        hashes: Vec::new(),
    }))
}

impl Builder for Items {
    fn bytes_per_key(&self) -> u64 {
        size_of::<SparkHash>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        let hash = spark_hash(self.version, self.physical_type, key.as_ref(), self.is_hex);
        push(&mut self.hashes, hash.map_err(|problem| wording::text(&problem))?)
    }

    fn finish(mut self: Box<Self>, _: &str) -> Result<Built, Failure> {
        self.hashes.sort_unstable_by_key(|hash| (hash.h1, hash.h2));
        self.hashes.dedup();
        let distinct = self.hashes.len() as u64;
        // Spark makes no filter for no items.
        let keys = self.expected_keys.unwrap_or(distinct).max(1);
        let mut filter = SparkFilter::new(self.version, keys, self.fpp).map_err(Failure::new)?;
        filter.insert_hashes(&self.hashes);
        let (view, mut hits) = (filter.view(), Bitmask::new());
        if self.verify {
            view.contains_hashes(&self.hashes, &mut hits);
        }
        let shape = view.shape();
        let needed =
            Shape::for_items(self.version, distinct, self.fpp).ok().map(Shape::stored_bytes);
        let rate = view.estimated_false_positive_rate();
        let (version, words, probes) = (self.version.number(), shape.words(), shape.probes());
        Ok(Built {
            fit: fit(self.expected_keys, distinct, shape.stored_bytes(), needed, rate),
            bytes: filter.into_inner(),
            answers: hits,
            summary: format!(
                "version {version}: {}, {words} words, {probes} probes",
                counted(distinct, "distinct key")
            ),
        })
    }
}
