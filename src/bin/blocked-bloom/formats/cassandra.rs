//! Cassandra's `Filter.db`.

use std::path::Path;

use blocked_bloom::Bitmask;
use blocked_bloom::interop::cassandra::{
    CassandraError, CassandraFilter, CassandraFilterBuilder, Layout, murmur3,
};
use serde_json::json;

use super::{Ask, Built, in_batches};
use crate::build::{Args, hashes, warn_of_more_than_expected};
use crate::facts::{Bits, Facts, sizes};
use crate::failure::{Failure, report};
use crate::query::Question;
use crate::stored::Stored;

/// Whether a file of this name is one, if it has the first bytes of one.
pub(crate) fn is_name(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().ends_with("Filter.db")
}

/// Whether these first bytes may be the number of probes, which is never above 21, or are fewer. An empty file is a filter.
pub(crate) fn is_head(head: &[u8]) -> bool {
    head.iter().take(3).all(|&byte| byte == 0)
}

/// What the library says of an unknown version is for those who can name a layout otherwise.
fn advise(error: &CassandraError) -> String {
    match error {
        CassandraError::Version { found } => {
            format!("version {found:?} is not known: give one from ic to oa, or da")
        }
        error => error.to_string(),
    }
}

/// The layout of a version as the user gives it.
pub(crate) fn parse_version(version: &str) -> Result<Layout, String> {
    Layout::of_version(version).map_err(|error| advise(&error))
}

/// The layout, which the name of the file tells unless the user does.
pub(crate) fn layout(path: &str, given: Option<Layout>) -> Result<Layout, Failure> {
    if let Some(layout) = given {
        return Ok(layout);
    }
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    Layout::of_file_name(&name).map_err(|error| {
        let error = advise(&error);
        Failure::of(path, format!("{error}; --cassandra-version says it, such as nb or me"))
    })
}

fn open(stored: &Stored) -> Result<CassandraFilter<'_>, Failure> {
    let layout = layout(&stored.name, stored.cassandra_version)?;
    CassandraFilter::from_bytes(&stored.bytes, layout).map_err(|error| stored.damaged(error))
}

pub(crate) fn ask<'a>(stored: &'a Stored, question: &Question) -> Result<Ask<'a>, Failure> {
    let filter = open(stored)?;
    if filter.is_always_present() {
        let name = &stored.name;
        report(&format!("{name}: the file is empty, so that every key may be present"));
    }
    let mut is_told = question.key_format.is_hex();
    Ok(in_batches(move |keys, hits| {
        if !is_told && let Some(key) = keys.iter().find(|key| is_number_or_uuid(key.as_ref())) {
            is_told = true;
            report(&format!(
                "{}: '{}' and its like are asked about as text; if the partition key is an int, a uuid or composite, give its \
                 serialized bytes by --hex, such as 0000002a for the int 42",
                stored.name,
                key.as_ref().escape_ascii(),
            ));
        }
        filter.contains_batch(keys, hits);
    }))
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

pub(crate) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open(stored)?;
    let shape = filter.shape();
    let (probes, words) = (shape.map(|shape| shape.hash_count()), shape.map(|shape| shape.words()));
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
        None => "none: the file is empty, so that every key may be present".to_owned(),
    };
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "layout": filter.layout().to_string(),
        "always_present": filter.is_always_present(),
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
        ("layout", format!("{}, {source}", filter.layout())),
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

/// By the table's chance and the number of partitions: `--keys`, or the distinct keys read.
pub(crate) fn build(args: &Args) -> Result<Built, Failure> {
    let path = args.output.as_ref().map_or(String::new(), |path| path.display().to_string());
    let layout = layout(&path, args.format.cassandra_version)?;
    if let Ok(named) = self::layout(&path, None)
        && named != layout
    {
        let problem = format!("its name says {named}, --cassandra-version {layout}");
        return Err(Failure::of(&path, problem));
    }
    let (name, mut hashes) = hashes(args, |key| Ok(Some(murmur3(key))))?;
    hashes.sort_unstable_by_key(|hash| (hash.h1, hash.h2));
    hashes.dedup();
    let keys = args.expected_items.unwrap_or(hashes.len() as u64);
    warn_of_more_than_expected(args, hashes.len() as u64);
    let chance = args.sizing.fpr.unwrap_or(0.01);
    let mut builder = CassandraFilterBuilder::new(layout, keys, chance).map_err(Failure::new)?;
    hashes.iter().for_each(|&hash| _ = builder.insert_hash(hash));
    let mut hits = Bitmask::new();
    if args.verify {
        builder.view().contains_hashes(&hashes, &mut hits);
    }
    let shape = match builder.view().shape() {
        Some(shape) => format!("{} words, {} probes", shape.words(), shape.hash_count()),
        None => "no filter at a chance of 1: an empty file".to_owned(),
    };
    let summary = format!("{layout}: {} distinct keys, {shape}", hashes.len());
    Built { bytes: builder.finish(), summary }.verified(&name, hits.count_misses())
}
