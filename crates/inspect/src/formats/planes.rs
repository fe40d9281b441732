//! The bit planes of `blocked-bloom-planes`: `docs/planes.md`.

use std::num::NonZeroU32;

use blocked_bloom::{Bitmask, KeyHasher};
use blocked_bloom_planes::{Planes, PlanesOptions, Query, TextRows};

use crate::facts::{Facts, hash_parts, sizes};
use crate::lookup::Kind;
use crate::opened::About;
use crate::value::object;

/// Queries of which a row that may have the phrase satisfies at least one.
///
/// Rows of a text have the words of their lines. Where the planes do not say how their rows were divided, since they are of version 1 or of another
/// program, the phrase may be an item as it is, or be in its words: neither is lost, at the price of more rows in vain.
///
/// ```
/// use blocked_bloom::KeyHash;
/// use blocked_bloom_inspect::queries;
/// use blocked_bloom_planes::{PlanesOptions, Shape};
/// let options = PlanesOptions::new(Shape::new(1, 128, 4)?);
/// let hasher = KeyHash::Xxh3 { seed: 0 }.hasher()?;
/// assert_eq!(queries(&options, hasher, b"disk full").len(), 2); // one item, or two words
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn queries(options: &PlanesOptions, hasher: KeyHasher, phrase: &[u8]) -> Vec<Query> {
    let text = options.text();
    let divided = text.unwrap_or(TextRows::new(NonZeroU32::MIN));
    let words = Query::all(divided.words(phrase).map(|word| hasher.hash(word)));
    match text {
        Some(_) => vec![words],
        None if divided.words(phrase).next().is_none() => vec![Query::all([hasher.hash(phrase)])],
        None => vec![Query::all([hasher.hash(phrase)]), words],
    }
}

/// Lookups of phrases in any row.
pub(crate) struct Phrases<'o> {
    planes: &'o Planes<&'o [u8]>,
    hasher: KeyHasher,
}

pub(crate) fn lookup<'o>(planes: &'o Planes<&'o [u8]>) -> Kind<'o> {
    match planes.hasher() {
        Ok(hasher) => Kind::Planes(Phrases { planes, hasher }),
        Err(_) => Kind::PassAll,
    }
}

impl Phrases<'_> {
    /// Whether any row may have the words of the phrase.
    pub(crate) fn may_be_in_a_row(&self, phrase: &[u8], rows: &mut Bitmask) -> bool {
        queries(self.planes.layout().options(), self.hasher, phrase).iter().any(|query| {
            self.planes.query(query, rows);
            rows.count_hits() > 0
        })
    }
}

pub(crate) fn describe(about: &About, planes: &Planes<&[u8]>) -> Facts {
    let (layout, shape) = (planes.layout(), planes.shape());
    let options = layout.options();
    let text = options.text();
    let version = if text.is_some() { 2 } else { 1 };
    let (hash, seed, tag_of_hash) = hash_parts(options.key_hash());
    let lines = text.map(|text| text.lines().get());
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
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
        "stored_bytes": about.length,
    };
    let items = match lines {
        Some(1) => "the words of a line of a text".to_owned(),
        Some(lines) => format!("the words of {lines} lines of a text"),
        None => "not said".to_owned(),
    };
    let rows = vec![
        ("file", about.name.clone()),
        ("format", format!("{}, version {version}", about.format)),
        ("rows", layout.rows().to_string()),
        ("items of a row", items),
        ("shape", shape.to_string()),
        ("groups", format!("{} of up to {} rows", layout.groups(), options.group_rows())),
        ("liveness plane", if options.has_liveness() { "yes" } else { "no" }.to_owned()),
        ("hash", options.key_hash().to_string()),
        ("tag", options.tag().to_string()),
        ("stored size", sizes(about.length)),
        ("checksums", "all right".to_owned()),
    ];
    Facts::new(json, rows)
}
