//! Guava's filters.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::guava::{GuavaFilter, GuavaHash, Shape, Strategy, hash_key};
use serde_json::json;

use super::builder::{BuildOptions, Builder, Built, push};
use super::classical;
use super::lookup::{Lookup, in_batches};
use crate::facts::{Bits, Facts};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;
use crate::stored::Stored;

fn open(stored: &Stored) -> Result<GuavaFilter<&[u8]>, Failure> {
    GuavaFilter::from_bytes(&stored.bytes[..]).map_err(|error| stored.damaged(error))
}

pub(super) fn lookup(stored: &Stored) -> Result<Lookup<'_>, Failure> {
    let filter = open(stored)?;
    Ok(in_batches(move |keys, hits| filter.contains_batch(keys, hits)))
}

pub(super) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open(stored)?;
    let shape = filter.shape();
    let strategy = match shape.scheme() {
        Strategy::Mitz32 => "MURMUR128_MITZ_32",
        Strategy::Mitz64 => "MURMUR128_MITZ_64",
        _ => "other",
    };
    let header = vec![
        ("strategy", "strategy", json!(strategy)),
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

/// Collects the hashes of keys. The filter is sized for the expected number of insertions, or for the distinct keys.
struct Keys {
    expected_keys: Option<u64>,
    fpp: f64,
    verify: bool,
    hashes: Vec<GuavaHash>,
}

pub(super) fn builder(options: &BuildOptions<'_>) -> Box<dyn Builder> {
    Box::new(Keys {
        expected_keys: options.expected_keys,
        // Guava's own.
        fpp: options.false_positive_rate.unwrap_or(0.03),
        verify: options.verify,
        hashes: Vec::new(),
    })
}

impl Builder for Keys {
    fn bytes_per_key(&self) -> u64 {
        size_of::<GuavaHash>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        push(&mut self.hashes, hash_key(key))
    }

    fn finish(mut self: Box<Self>, _: &str) -> Result<Built, Failure> {
        self.hashes.sort_unstable_by_key(|hash| (hash.h1, hash.h2));
        self.hashes.dedup();
        let distinct = self.hashes.len() as u64;
        let keys = self.expected_keys.unwrap_or(distinct);
        let mut filter = GuavaFilter::new(keys, self.fpp).map_err(Failure::new)?;
        filter.insert_hashes(&self.hashes);
        let (view, mut hits) = (filter.view(), Bitmask::new());
        if self.verify {
            view.contains_hashes(&self.hashes, &mut hits);
        }
        let shape = view.shape();
        let needed = Shape::for_insertions(distinct, self.fpp).ok().map(Shape::stored_bytes);
        let rate = view.estimated_false_positive_rate();
        let (words, probes) = (shape.words(), shape.probes());
        Ok(Built {
            fit: classical::fit(self.expected_keys, distinct, shape.stored_bytes(), needed, rate),
            bytes: filter.into_inner(),
            verified: hits.len(),
            missing: hits.count_misses(),
            summary: format!(
                "{}, {words} words, {probes} probes",
                counted(distinct, "distinct key")
            ),
        })
    }
}
