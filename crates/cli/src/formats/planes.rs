//! The bit planes of `blocked-bloom-planes`: `docs/planes.md`.

use std::num::NonZeroU32;

use blocked_bloom::{Bitmask, KeyHasher};
use blocked_bloom_planes::{Planes, PlanesOptions, Query, TextRows};
use serde_json::json;

use super::lookup::{Lookup, pass_all, warn_of_hash};
use crate::facts::{Facts, hash_parts, sizes};
use crate::failure::Failure;
use crate::stored::Stored;

fn open(stored: &Stored) -> Result<Planes<&[u8]>, Failure> {
    Planes::from_bytes(&stored.bytes[..]).map_err(|error| stored.damaged(error))
}

/// Queries of which a row that may have the phrase satisfies at least one.
///
/// Rows of a text have the words of their lines. Where the planes do not say how their rows were divided, since they are of version 1 or of another
/// program, the phrase may be an item as it is, or be in its words: neither is lost, at the price of more rows in vain.
pub(crate) fn queries(options: &PlanesOptions, hasher: KeyHasher, phrase: &[u8]) -> Vec<Query> {
    let text = options.text();
    let divided = text.unwrap_or(TextRows::new(NonZeroU32::MIN));
    let words = Query::all(divided.words(phrase).map(|word| hasher.hash(word)));
    match text {
        Some(_) => vec![words],
        None if divided.words(phrase).next().is_none() => vec![Query::all([hasher.hash(phrase)])],
        None => vec![Query::all([hasher.hash(phrase)]), words],
    }
}

/// Whether any row may have the words of each line.
pub(super) fn lookup(stored: &Stored) -> Result<Lookup<'_>, Failure> {
    let planes = open(stored)?;
    warn_of_hash(stored, planes.key_hash());
    let Ok(hasher) = planes.hasher() else { return Ok(pass_all()) };
    let mut hits = Bitmask::new();
    Ok(Box::new(move |keys| {
        let mut is_in_a_row = |query: &Query| {
            planes.query(query, &mut hits);
            hits.count_hits() > 0
        };
        let mut may_have = |phrase: &[u8]| {
            queries(planes.layout().options(), hasher, phrase).iter().any(&mut is_in_a_row)
        };
        Ok(keys.iter().map(|key| may_have(key.as_ref())).collect())
    }))
}

pub(super) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let planes = open(stored)?;
    let (layout, shape) = (planes.layout(), planes.shape());
    let options = layout.options();
    let text = options.text();
    let version = if text.is_some() { 2 } else { 1 };
    let (hash, seed, tag_of_hash) = hash_parts(options.key_hash());
    let (lines, bytes) = (text.map(|text| text.lines().get()), stored.bytes.len() as u64);
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "format_version": version,
        "rows": layout.rows(),
        "groups": layout.groups(),
        "rows_in_a_group": options.group_rows(),
        "lines_in_a_row": lines,
        "tokenizer": text.map(|_| "words"),
        "blocks": shape.blocks(),
        "block_bits": shape.block_bits(),
        "probes": shape.probes(),
        "planes": shape.planes(),
        "liveness": options.has_liveness(),
        "hash": hash,
        "seed": seed,
        "tag_of_hash": tag_of_hash,
        "tag": options.tag(),
        "stored_bytes": bytes,
    });
    let items = match lines {
        Some(1) => "the words of a line of a text".to_owned(),
        Some(lines) => format!("the words of {lines} lines of a text"),
        None => "not said".to_owned(),
    };
    let rows = vec![
        ("file", stored.name.clone()),
        ("format", format!("{}, version {version}", stored.format)),
        ("rows", layout.rows().to_string()),
        ("items of a row", items),
        ("shape", shape.to_string()),
        ("groups", format!("{} of up to {} rows", layout.groups(), options.group_rows())),
        ("liveness plane", if options.has_liveness() { "yes" } else { "no" }.to_owned()),
        ("hash", options.key_hash().to_string()),
        ("tag", options.tag().to_string()),
        ("stored size", sizes(bytes)),
        ("checksums", "all right".to_owned()),
    ];
    Ok(Facts { json, rows, list: None })
}
