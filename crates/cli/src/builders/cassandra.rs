//! Cassandra's `Filter.db`.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{CassandraFilter, Hash128, Layout, Shape, hash_key};
use blocked_bloom_inspect::layout_of_name;

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, Fit, push};
use crate::failure::Failure;
use crate::keys::Key;
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
struct PartitionKeys {
    layout: Layout,
    expected_keys: Option<u64>,
    /// The table's `bloom_filter_fp_chance`.
    chance: f64,
    verify: bool,
    hashes: Vec<Hash128>,
}

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
    Ok(Box::new(PartitionKeys {
        layout,
        expected_keys: options.expected_keys,
        chance: options.false_positive_rate.unwrap_or(0.01),
        verify: options.verify,
        hashes: Vec::new(),
    }))
}

impl Builder for PartitionKeys {
    fn bytes_per_key(&self) -> u64 {
        size_of::<Hash128>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        push(&mut self.hashes, hash_key(key))
    }

    fn finish(mut self: Box<Self>, _: &str) -> Result<Built, Failure> {
        self.hashes.sort_unstable_by_key(|hash| (hash.h1, hash.h2));
        self.hashes.dedup();
        let (layout, distinct) = (self.layout, self.hashes.len() as u64);
        let keys = self.expected_keys.unwrap_or(distinct);
        let mut filter = CassandraFilter::new(layout, keys, self.chance).map_err(Failure::new)?;
        filter.insert_hashes(&self.hashes);
        let mut hits = Bitmask::new();
        if self.verify {
            filter.contains_hashes(&self.hashes, &mut hits);
        }
        let given = (!filter.is_pass_all()).then(|| filter.shape());
        let shape = match given {
            Some(shape) => format!("{} words, {} probes", shape.words(), shape.probes()),
            None => "no filter at a chance of 1: an empty file".to_owned(),
        };
        let fit = self.expected_keys.zip(given).map(|(_, shape)| {
            let needed = Shape::for_partitions(layout, distinct, self.chance).ok();
            Fit {
                keys: distinct,
                bytes: shape.stored_bytes(),
                needed: needed.map(Shape::stored_bytes),
                false_positive_rate: filter.estimated_false_positive_rate(),
            }
        });
        Ok(Built {
            bytes: filter.into_inner(),
            fit,
            answers: hits,
            summary: format!("{layout}: {}, {shape}", counted(distinct, "distinct key")),
        })
    }
}
