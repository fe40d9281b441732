//! This project's own static filter, sharded Ribbon: `docs/format.md`.

use blocked_bloom::{FilterOptions, KeyHash, Sizing};
use blocked_bloom_ribbon::{RibbonFilter, RibbonFilterBuilder, RibbonOptions};
use serde_json::json;

use super::builder::{BuildOptions, Builder, Built};
use super::lookup::{Lookup, in_batches, warn_of_hash};
use crate::facts::{Facts, hash_parts, kernel, kernels, sizes};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::{counted, percent};
use crate::stored::Stored;
use crate::threads;

const DEFAULT_RATE: f64 = 0.01;

fn open(stored: &Stored) -> Result<RibbonFilter<&[u8]>, Failure> {
    RibbonFilter::from_bytes(&stored.bytes[..]).map_err(|error| stored.damaged(error))
}

pub(super) fn lookup(stored: &Stored) -> Result<Lookup<'_>, Failure> {
    let filter = open(stored)?;
    warn_of_hash(stored, filter.key_hash());
    Ok(in_batches(move |keys, hits| filter.contains_batch(keys, hits)))
}

pub(super) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open(stored)?;
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "stored_bytes": filter.memory_bytes(),
        "shards": filter.shards(),
        "columns": filter.columns(),
        "keys_inserted": filter.keys_inserted(),
        "bits_per_key": filter.bits_per_key(),
        "predicted_false_positive_rate": filter.expected_false_positive_rate(),
        "kernels_supported": kernels(),
    });
    let rows = vec![
        ("file", stored.name.clone()),
        ("format", format!("{}, version 1", stored.format)),
        ("kind", "static: sharded Ribbon, 64 coefficients to a key".to_owned()),
        ("hash", filter.key_hash().to_string()),
        ("stored size", sizes(filter.memory_bytes())),
        ("shards", filter.shards().to_string()),
        ("columns", filter.columns().to_string()),
        ("keys inserted", filter.keys_inserted().to_string()),
        ("bits per key", format!("{:.2}", filter.bits_per_key())),
        ("false positives, from the shape", percent(filter.expected_false_positive_rate())),
        ("checksums", "ok".to_owned()),
        ("kernel here", kernel()),
    ];
    Ok(Facts { json, rows, list: None })
}

struct Keys {
    builder: RibbonFilterBuilder,
    verify: bool,
    threads: Option<usize>,
}

pub(super) fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let rate = options.false_positive_rate.unwrap_or(DEFAULT_RATE);
    let filters = FilterOptions::new(Sizing::FalsePositiveRate(rate))
        .with_key_hash(KeyHash::Xxh3 { seed: options.seed });
    let ribbon = RibbonOptions::from(&filters);
    // The range does not depend on the keys: an error before they are read.
    ribbon.estimated_bytes(0).map_err(Failure::new)?;
    let builder = ribbon.builder();
    Ok(Box::new(Keys { builder, verify: options.verify, threads: options.threads }))
}

impl Builder for Keys {
    fn bytes_per_key(&self) -> u64 {
        size_of::<u64>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        self.builder.insert(key).map_err(|error| error.to_string())
    }

    fn finish(self: Box<Self>, _: &str) -> Result<Built, Failure> {
        let keys = self.builder.len();
        let verified = if self.verify { keys as usize } else { 0 };
        let filter = match self.verify {
            true => self.builder.finish_verified(),
            false => threads::pool(self.threads)?.install(|| self.builder.par_finish()),
        };
        let filter = filter.map_err(Failure::new)?;
        let (bits, rate) = (filter.bits_per_key(), percent(filter.expected_false_positive_rate()));
        let summary =
            format!("{}, {bits:.2} bits per key, {rate} false positives", counted(keys, "key"));
        Ok(Built { fit: None, verified, missing: 0, summary, bytes: filter.as_bytes().to_vec() })
    }
}
