//! Guava's filters.

use blocked_bloom_formats::guava::{GuavaFilter, GuavaHash, Shape, hash_key};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers, fit, hash_list};
use crate::failure::Failure;
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
fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let (expected_keys, verify) = (options.expected_keys, options.verify);
    // Guava's default.
    let fpp = options.false_positive_rate.unwrap_or(0.03);
    let finish = move |mut hashes: Vec<GuavaHash>, _: &str| {
        hashes.sort_unstable_by_key(|hash| (hash.h1, hash.h2));
        hashes.dedup();
        let distinct = hashes.len() as u64;
        let keys = expected_keys.unwrap_or(distinct);
        let mut filter = GuavaFilter::new(keys, fpp).map_err(Failure::new)?;
        filter.insert_hashes(&hashes);
        let answers = answers(verify, |hits| filter.contains_hashes(&hashes, hits));
        let shape = filter.shape();
        let needed = Shape::for_insertions(distinct, fpp).ok().map(Shape::stored_bytes);
        let rate = filter.estimated_false_positive_rate();
        let fit = fit(expected_keys, distinct, shape.stored_bytes(), needed, rate);
        let (words, probes) = (shape.words(), shape.probes());
        let keys = counted(distinct, "distinct key");
        let summary = format!("{keys}, {words} words, {probes} probes");
        Ok(Built { fit, answers, summary, bytes: filter.into_inner() })
    };
    Ok(hash_list(1, |key| Ok(hash_key(key)), finish))
}
