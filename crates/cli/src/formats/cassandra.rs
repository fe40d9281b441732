//! Cassandra's `Filter.db`.

use std::path::Path;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{
    CassandraFilter, Hash128, Layout, Shape, diagnose, hash_key,
};
use serde_json::json;

use super::builder::{BuildOptions, Builder, Built, Fit, push};
use super::lookup::{Lookup, LookupArgs, in_batches};
use crate::facts::{Bits, Facts, sizes};
use crate::failure::{Failure, warn};
use crate::file_format::describe_version_error;
use crate::keys::Key;
use crate::numbers::counted;
use crate::stored::Stored;

/// A version of the layout, as `--cassandra-version` takes it.
pub(crate) fn version(layout: Layout) -> &'static str {
    match layout {
        Layout::UpTo2 => "la",
        Layout::Since3 => "me",
        _ => "nb",
    }
}

/// The layout that the user gave, or else that of the version in the file's name.
fn layout(path: &str, given: Option<Layout>) -> Result<Layout, Failure> {
    if let Some(layout) = given {
        return Ok(layout);
    }
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    Layout::of_file_name(&name).map_err(|error| {
        let error = describe_version_error(&error);
        Failure::of(path, format!("{error}; or give --cassandra-version, such as nb or me"))
    })
}

fn open(stored: &Stored) -> Result<CassandraFilter<&[u8]>, Failure> {
    let layout = layout(&stored.name, stored.cassandra_version)?;
    CassandraFilter::from_bytes(&stored.bytes[..], layout).map_err(|error| stored.damaged(error))
}

pub(super) fn lookup<'a>(stored: &'a Stored, args: &LookupArgs) -> Result<Lookup<'a>, Failure> {
    let filter = open(stored)?;
    let name = &stored.name;
    if filter.is_pass_all() {
        warn(format!("{name}: the file is empty: the answer is \"maybe\" for every key"));
    }
    let (mut is_warned, mut is_suspected) = (args.key_format.is_hex(), false);
    Ok(in_batches(move |keys, hits| {
        if !is_warned && let Some(key) = keys.iter().find(|key| is_number_or_uuid(key.as_ref())) {
            is_warned = true;
            warn(format!(
                "{name}: '{}' and the like are looked up as text; if the partition key is an int, a uuid or composite, give its \
                 serialized bytes by --hex, such as 0000002a for the int 42",
                key.as_ref().escape_ascii(),
            ));
        }
        filter.contains_batch(keys, hits);
        if !is_suspected && hits.count_hits() == 0 {
            is_suspected = warn_of_layout(stored, filter.shape().scheme(), keys);
        }
    }))
}

/// Keys that are looked up in other layouts, at least and at most. That so many absent ones are all found there has a chance of one in a million
/// at 1 %.
const SUSPICIOUS: usize = 3;
const DIAGNOSED: usize = 64;

/// Warns if the keys, none of which was found, are all in the file if it is read in another layout than its name says.
fn warn_of_layout(stored: &Stored, layout: Layout, keys: &[Key]) -> bool {
    let keys = &keys[..keys.len().min(DIAGNOSED)];
    let found = diagnose(&stored.bytes, keys).ok().and_then(|diagnosis| diagnosis.layout());
    let Some(other) = found.filter(|&other| keys.len() >= SUSPICIOUS && other != layout) else {
        return false;
    };
    let (name, count, version) = (&stored.name, keys.len(), version(other));
    warn(format!(
        "{name}: read as of {layout}, none of {count} keys is found; read as of {other}, all are: its name may be wrong, give --cassandra-version {version}"
    ));
    true
}

/// Whether a text is how a number or a UUID is written, whose serialized bytes are others.
fn is_number_or_uuid(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_number = (1..=20).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let uuid = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    is_number || (text.len() == 36 && text.iter().enumerate().all(uuid))
}

pub(super) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open(stored)?;
    let shape = (!filter.is_pass_all()).then(|| filter.shape());
    let (probes, words) = (shape.map(|shape| shape.probes()), shape.map(|shape| shape.words()));
    let bits = Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    let bytes = stored.bytes.len() as u64;
    let source = match stored.cassandra_version {
        Some(_) => "as given by --cassandra-version",
        None => "by the file's name",
    };
    let number = |number: Option<u32>| match number {
        Some(number) => number.to_string(),
        None => "none: the file is empty, every answer is \"maybe\"".to_owned(),
    };
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "layout": filter.shape().scheme().to_string(),
        "pass_all": filter.is_pass_all(),
        "stored_bytes": bytes,
        "words": words,
        "probes": probes,
        "fill_ratio": bits.fill_ratio,
        "estimated_keys": bits.keys,
        "estimated_false_positive_rate": bits.false_positive_rate,
        "checksum": null,
    });
    let rows = vec![
        ("file", stored.name.clone()),
        ("format", stored.format.to_string()),
        ("layout", format!("{}, {source}", filter.shape().scheme())),
        ("stored size", sizes(bytes)),
        ("probes", number(probes)),
        ("words of 8 bytes", number(words)),
        ("distinct keys, estimated", bits.keys()),
        ("fill ratio", bits.fill()),
        ("false positives, from the bits", bits.rate()),
        ("checksum", "none: damage in the bits cannot be seen".to_owned()),
    ];
    Ok(Facts { json, rows, list: None })
}

/// Collects the hashes of partition keys. The filter is sized for the expected number of partitions, or for the distinct keys.
struct PartitionKeys {
    layout: Layout,
    expected_keys: Option<u64>,
    /// The table's `bloom_filter_fp_chance`.
    chance: f64,
    verify: bool,
    hashes: Vec<Hash128>,
}

pub(super) fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let layout = layout(options.output, options.cassandra_version)?;
    if let Ok(named) = self::layout(options.output, None)
        && named != layout
    {
        let problem = format!("its name says {named}, --cassandra-version {layout}");
        return Err(Failure::of(options.output, problem));
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
            verified: hits.len(),
            missing: hits.count_misses(),
            summary: format!("{layout}: {}, {shape}", counted(distinct, "distinct key")),
        })
    }
}
