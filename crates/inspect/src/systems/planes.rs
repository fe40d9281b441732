//! The bit planes of `blocked-bloom-planes`: `docs/planes.md`.

use std::num::NonZeroU32;

use blocked_bloom::{Bitmask, KeyHash, KeyHasher};
use blocked_bloom_planes::{MAGIC, Planes, PlanesOptions, Query, TextRows};

use crate::error::Error;
use crate::facts::{Facts, Summary, hash_parts, sizes};
use crate::system::{
    Answers, Format, LookupContext, Stored, System, answers, look_up_singly, pass_all,
};
use crate::value::object;

impl Format {
    /// Bit planes of `blocked-bloom-planes`: a skip index.
    pub const PLANES: Format =
        Format::new(&System::native("planes", "Bit planes, a skip index", MAGIC, |source| {
            source.boxed(Planes::from_bytes_any_hash(source.bytes()?))
        }));
}

/// Returns the queries for a phrase. A row that may have the phrase satisfies at least one.
///
/// In rows of text, the words of the lines are the items. Planes of version 1, or of another
/// program, do not record how rows were divided: the phrase may be one item, or each word may be
/// one. Both are then queried, which can return more rows than necessary.
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

impl Stored for Planes<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let (layout, shape) = (self.layout(), self.shape());
        let options = layout.options();
        let text = options.text();
        let version = if text.is_some() { 2 } else { 1 };
        let (hash, seed, tag_of_hash) = hash_parts(options.key_hash());
        let lines = text.map(|text| text.lines().get());
        let json = object! {
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
        Facts::new(about, json, rows)
    }

    fn hash_of_keys(&self) -> Option<KeyHash> {
        Some(self.key_hash())
    }

    /// Looks up phrases in any row.
    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let Ok(hasher) = self.hasher() else { return pass_all() };
        answers(move |keys, hits| {
            let mut rows = Bitmask::new();
            look_up_singly(keys, hits, |phrase| {
                queries(self.layout().options(), hasher, phrase).iter().any(|query| {
                    self.query(query, &mut rows);
                    rows.count_hits() > 0
                })
            });
        })
    }
}
