//! Cassandra's `Filter.db`.

use std::path::Path;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{CassandraFilter, Layout, diagnose};

use crate::error::{Error, Warning};
use crate::facts::{Bits, Facts, sizes};
use crate::opened::About;
use crate::value::object;

/// A version of Cassandra's format that has the layout: what a user gives who knows the layout.
///
/// ```
/// use blocked_bloom_inspect::{Layout, version_of};
/// assert_eq!(Layout::of_version(version_of(Layout::Since4)), Ok(Layout::Since4));
/// ```
pub fn version_of(layout: Layout) -> &'static str {
    match layout {
        Layout::UpTo2 => "la",
        Layout::Since3 => "me",
        _ => "nb",
    }
}

/// The layout of the version in the file's name.
///
/// # Errors
///
/// [`Error::CassandraLayout`] if the name has none that is known.
///
/// ```
/// use blocked_bloom_inspect::{Layout, layout_of_name};
/// assert_eq!(layout_of_name("data/nb-1-big-Filter.db"), Ok(Layout::Since4));
/// ```
pub fn layout_of_name(path: &str) -> Result<Layout, Error> {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    Layout::of_file_name(&name).map_err(Error::CassandraLayout)
}

/// Keys that are looked up in other layouts, at least and at most. That all of these are found there though they are absent has a chance of one in a million
/// at 1 %.
const SUSPICIOUS: usize = 3;
const DIAGNOSED: usize = 64;

/// What keys and their answers say against the layout and the keys' form.
pub(crate) fn doubts<K: AsRef<[u8]>>(
    filter: &CassandraFilter<&[u8]>,
    keys: &[K],
    hits: &Bitmask,
    is_text: bool,
) -> Vec<Warning> {
    let number = keys.iter().find(|key| is_text && is_number_or_uuid(key.as_ref()));
    let number = number.map(|key| Warning::NumberAsText { key: key.as_ref().to_vec() });
    let layout = if hits.count_hits() == 0 { other_layout(filter, keys) } else { None };
    number.into_iter().chain(layout).collect()
}

/// Whether the keys, none of which was found, are all in the file if it is read in another layout.
fn other_layout<K: AsRef<[u8]>>(filter: &CassandraFilter<&[u8]>, keys: &[K]) -> Option<Warning> {
    let layout = filter.shape().scheme();
    let keys = &keys[..keys.len().min(DIAGNOSED)];
    let found = diagnose(filter.as_bytes(), keys).ok().and_then(|diagnosis| diagnosis.layout());
    let other = found.filter(|&other| keys.len() >= SUSPICIOUS && other != layout)?;
    Some(Warning::OtherLayout { layout, other, keys: keys.len() })
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

pub(crate) fn describe(about: &About, filter: &CassandraFilter<&[u8]>) -> Facts {
    let shape = (!filter.is_pass_all()).then(|| filter.shape());
    let (probes, words) = (shape.map(|shape| shape.probes()), shape.map(|shape| shape.words()));
    let bits = Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    let source = match about.layout_given {
        true => "as given",
        false => "by the file's name",
    };
    let number = |number: Option<u32>| match number {
        Some(number) => number.to_string(),
        None => "none: the file is empty, every answer is \"maybe\"".to_owned(),
    };
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
        "layout": filter.shape().scheme().to_string(),
        "pass_all": filter.is_pass_all(),
        "stored_bytes": about.length,
        "words": words,
        "probes": probes,
        "fill_ratio": bits.fill_ratio,
        "estimated_keys": bits.keys,
        "estimated_false_positive_rate": bits.false_positive_rate,
        "checksum": None::<bool>,
    };
    let rows = vec![
        ("file", about.name.clone()),
        ("format", about.format.to_string()),
        ("layout", format!("{}, {source}", filter.shape().scheme())),
        ("stored size", sizes(about.length)),
        ("probes", number(probes)),
        ("words of 8 bytes", number(words)),
        ("distinct keys, estimated", bits.keys()),
        ("fill ratio", bits.fill()),
        ("false positives, from the bits", bits.rate()),
        ("checksum", "none: damage in the bits cannot be seen".to_owned()),
    ];
    Facts::new(json, rows)
}
