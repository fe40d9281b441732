//! Cassandra's `Filter.db`.

use blocked_bloom_formats::cassandra::{CassandraFilter, Hash128, Shape, hash_key};
use blocked_bloom_inspect::layout_of_name;

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers, fit, hash_list};
use crate::failure::Failure;
use crate::numbers::counted;
use crate::wording;

pub(crate) static CASSANDRA: BuildFormat = BuildFormat {
    name: "cassandra",
    help: "A Cassandra Filter.db",
    extension: None,
    options: &["--fpr", "--keys"],
    builder: Some(builder),
};

/// Collects the hashes of partition keys. The filter is sized for the expected number of
/// partitions, or for the distinct keys.
fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let named = || layout_of_name(options.output);
    let layout = options.cassandra_version.map_or_else(named, Ok);
    let layout =
        layout.map_err(|error| Failure::for_file(options.output, wording::text(&error)))?;
    if let Ok(named) = named()
        && named != layout
    {
        let problem = format!("its name says {named}, --cassandra-version {layout}");
        return Err(Failure::for_file(options.output, problem));
    }
    let (expected_keys, verify) = (options.expected_keys, options.verify);
    // The table's `bloom_filter_fp_chance`.
    let chance = options.false_positive_rate.unwrap_or(0.01);
    let finish = move |mut hashes: Vec<Hash128>, _: &str| {
        hashes.sort_unstable_by_key(|hash| (hash.h1, hash.h2));
        hashes.dedup();
        let distinct = hashes.len() as u64;
        let keys = expected_keys.unwrap_or(distinct);
        let mut filter = CassandraFilter::new(layout, keys, chance).map_err(Failure::new)?;
        filter.insert_hashes(&hashes);
        let answers = answers(verify, |hits| filter.contains_hashes(&hashes, hits));
        let given = (!filter.is_pass_all()).then(|| filter.shape());
        let shape = match given {
            Some(shape) => format!("{} words, {} probes", shape.words(), shape.probes()),
            None => "no filter at a chance of 1: an empty file".to_owned(),
        };
        let rate = filter.estimated_false_positive_rate();
        let needed = Shape::for_partitions(layout, distinct, chance).ok().map(Shape::stored_bytes);
        let fit = given.and_then(|s| fit(expected_keys, distinct, s.stored_bytes(), needed, rate));
        let summary = format!("{layout}: {}, {shape}", counted(distinct, "distinct key"));
        Ok(Built { bytes: filter.into_inner(), fit, answers, summary })
    };
    Ok(hash_list(1, |key| Ok(hash_key(key)), finish))
}
