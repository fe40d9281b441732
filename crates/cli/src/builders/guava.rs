//! Guava's filters.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::guava::{GuavaFilter, GuavaHash, Shape, hash_key};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, fit, push};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;

pub(super) static GUAVA: BuildFormat = BuildFormat {
    name: "guava",
    help: "What Guava's BloomFilter reads",
    extension: Some(".guava"),
    options: &["--fpr", "--keys"],
    builder: Some(builder),
};

/// Collects the hashes of keys. The filter is sized for the expected number of insertions, or for
/// the distinct keys.
struct Keys {
    expected_keys: Option<u64>,
    fpp: f64,
    verify: bool,
    hashes: Vec<GuavaHash>,
}

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    Ok(Box::new(Keys {
        expected_keys: options.expected_keys,
        // Guava's default.
        fpp: options.false_positive_rate.unwrap_or(0.03),
        verify: options.verify,
        hashes: Vec::new(),
    }))
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
            fit: fit(self.expected_keys, distinct, shape.stored_bytes(), needed, rate),
            bytes: filter.into_inner(),
            answers: hits,
            summary: format!(
                "{}, {words} words, {probes} probes",
                counted(distinct, "distinct key")
            ),
        })
    }
}
