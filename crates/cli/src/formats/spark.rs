//! Spark's filters.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::parquet::{PhysicalType, Value};
use blocked_bloom_formats::spark::{Shape, SparkFilter, SparkHash, Version};
use serde_json::json;

use super::builder::{BuildOptions, Builder, Built, push};
use super::lookup::{Lookup, LookupArgs};
use super::{classical, value};
use crate::facts::{Bits, Facts};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;
use crate::stored::Stored;

fn open(stored: &Stored) -> Result<SparkFilter<&[u8]>, Failure> {
    SparkFilter::from_bytes(&stored.bytes[..]).map_err(|error| stored.damaged(error))
}

/// The type of keys: numbers, which Spark widens to 64 bits, or bytes, unless the user says otherwise.
fn check_type(given: Option<PhysicalType>) -> Result<PhysicalType, Failure> {
    match given.unwrap_or(PhysicalType::ByteArray) {
        known @ (PhysicalType::Int32 | PhysicalType::Int64 | PhysicalType::ByteArray) => Ok(known),
        other => {
            let other = value::name(other);
            let message = format!("--type {other}: for spark give int32, int64 or byte-array");
            Err(Failure::new(message))
        }
    }
}

fn hash(
    version: Version,
    physical_type: PhysicalType,
    key: &Key,
    is_hex: bool,
) -> Result<SparkHash, String> {
    Ok(match value::parse(physical_type, key, is_hex)? {
        Value::Int32(number) => version.hash_long(number.into()),
        Value::Int64(number) => version.hash_long(number),
        _ => version.hash_bytes(key),
    })
}

pub(super) fn lookup<'a>(stored: &'a Stored, args: &LookupArgs) -> Result<Lookup<'a>, Failure> {
    let filter = open(stored)?;
    let (physical_type, is_hex) = (check_type(args.value_type)?, args.key_format.is_hex());
    let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
    Ok(Box::new(move |keys| {
        hashes.clear();
        for (i, key) in keys.iter().enumerate() {
            let hash = hash(filter.shape().scheme(), physical_type, key, is_hex);
            hashes.push(hash.map_err(|problem| (i, problem))?);
        }
        filter.contains_hashes(&hashes, &mut hits);
        Ok(hits.iter().collect())
    }))
}

pub(super) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open(stored)?;
    let shape = filter.shape();
    let version = shape.scheme();
    let header = vec![
        ("version", "version", json!(version.number())),
        ("seed", "seed", json!(version.seed())),
        ("probes", "probes", json!(shape.probes())),
        ("words", "words of 8 bytes", json!(shape.words())),
    ];
    let bits = Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    Ok(classical::facts(stored, header, &bits))
}

/// Collects the hashes of keys. The filter is sized for the expected number of items, or for the distinct keys.
struct Items {
    version: Version,
    physical_type: PhysicalType,
    is_hex: bool,
    expected_keys: Option<u64>,
    fpp: f64,
    verify: bool,
    hashes: Vec<SparkHash>,
}

pub(super) fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    Ok(Box::new(Items {
        version: match options.spark_version {
            Some(1) => Version::V1,
            _ => Version::V2 { seed: 0 },
        },
        physical_type: check_type(options.value_type)?,
        is_hex: options.is_hex,
        expected_keys: options.expected_keys,
        // Spark's own.
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
        push(&mut self.hashes, hash(self.version, self.physical_type, key, self.is_hex)?)
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
            fit: classical::fit(self.expected_keys, distinct, shape.stored_bytes(), needed, rate),
            bytes: filter.into_inner(),
            verified: hits.len(),
            missing: hits.count_misses(),
            summary: format!(
                "version {version}: {}, {words} words, {probes} probes",
                counted(distinct, "distinct key")
            ),
        })
    }
}
