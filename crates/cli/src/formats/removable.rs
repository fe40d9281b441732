//! The removable filter of `blocked-bloom-removable`: `docs/format.md`.

use blocked_bloom::header::{Header, HeaderError};
use blocked_bloom::{Bitmask, Block, FormatError, Kernel};
use blocked_bloom_removable::{MAGIC, RemovableError, RemovableFilter, RemovableOptions};
use serde_json::json;

use super::builder::{BuildOptions, Builder, Built, push};
use super::lookup::{Lookup, in_batches, warn_of_hash};
use crate::facts::{DAMAGED, Facts, hash_parts, kernel, kernels, sizes};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::{counted, percent};
use crate::stored::Stored;

const VERSION: u16 = 1;

/// Offset of the checksum of the lines in the header.
const LINE_CHECKSUM: usize = 48;

pub(super) fn lookup(stored: &Stored) -> Result<Lookup<'_>, Failure> {
    let filter = RemovableFilter::from_bytes(&stored.bytes[..]);
    let filter = filter.map_err(|error| stored.damaged(error))?;
    warn_of_hash(stored, filter.key_hash());
    Ok(in_batches(move |keys, hits| filter.contains_batch(keys, hits)))
}

pub(super) fn describe(stored: &Stored) -> Result<(Facts, Option<Failure>), Failure> {
    let bytes = &stored.bytes[..];
    let header = Header::read(bytes, MAGIC, VERSION).map_err(|error| stored.damaged(error))?;
    match RemovableFilter::from_bytes(bytes) {
        Ok(filter) => Ok((facts(stored, &header, filter.view(), None), None)),
        Err(error @ FormatError::Header(HeaderError::BodyChecksum { computed, .. })) => {
            let failure = stored.damaged(error);
            match RemovableFilter::from_bytes_trusted(bytes) {
                Ok(filter) => {
                    Ok((facts(stored, &header, filter.view(), Some(computed)), Some(failure)))
                }
                Err(_) => Err(failure),
            }
        }
        Err(error) => Err(stored.damaged(error)),
    }
}

/// `damage` is the checksum that the lines have instead of the stored one.
fn facts(
    stored: &Stored,
    header: &Header,
    filter: RemovableFilter<&[Block]>,
    damage: Option<u64>,
) -> Facts {
    let hex = |checksum: u64| format!("{checksum:016x}");
    let stored_checksum = header.u64_at(LINE_CHECKSUM);
    let bytes = stored.bytes.len() as u64;
    let bits_per_key = (!filter.is_empty())
        .then(|| filter.lines().len() as f64 * 512.0 / filter.keys_inserted() as f64);
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let rate = filter.expected_false_positive_rate();
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "format_version": VERSION,
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "stored_bytes": bytes,
        "lines": filter.lines().len(),
        "keys": filter.keys_inserted(),
        "capacity": filter.capacity(),
        "load": filter.load(),
        "bits_per_key": bits_per_key,
        "estimated_false_positive_rate": rate,
        "header_checksum_ok": true,
        "header_checksum": hex(header.checksum()),
        "line_checksum_ok": damage.is_none(),
        "line_checksum_stored": hex(stored_checksum),
        "line_checksum_computed": hex(damage.unwrap_or(stored_checksum)),
        "kernel": Kernel::default().name(),
        "kernels_supported": kernels(),
    });
    let checksum = match damage {
        None => format!("ok ({})", hex(stored_checksum)),
        Some(computed) => {
            format!("{DAMAGED}: stored {}, computed {}", hex(stored_checksum), hex(computed))
        }
    };
    let rows = vec![
        ("file", stored.name.clone()),
        ("format", format!("{}, version {VERSION}", stored.format)),
        ("kind", "tags of 16 bits: keys can be removed".to_owned()),
        ("hash", filter.key_hash().to_string()),
        ("stored size", sizes(bytes)),
        ("lines", format!("{} of 32 tags", filter.lines().len())),
        ("keys", filter.keys_inserted().to_string()),
        ("load", format!("{:.2} % of {}", filter.load() * 100.0, filter.capacity())),
        ("bits per key", bits_per_key.map_or("no keys".to_owned(), |bits| format!("{bits:.2}"))),
        ("false positives, from the load", percent(rate)),
        ("header checksum", format!("ok ({})", hex(header.checksum()))),
        ("line checksum", checksum),
        ("kernel here", kernel()),
    ];
    Facts { json, rows, list: None }
}

/// Collects the hashes of keys.
struct Hashes {
    options: RemovableOptions,
    verify: bool,
    hashes: Vec<u64>,
}

pub(super) fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let keys = RemovableOptions::new(options.expected_keys.unwrap_or(0));
    Ok(Box::new(Hashes { options: keys, verify: options.verify, hashes: Vec::new() }))
}

impl Builder for Hashes {
    fn bytes_per_key(&self) -> u64 {
        size_of::<u64>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        let hasher = self.options.hasher().map_err(|error| error.to_string())?;
        push(&mut self.hashes, hasher.hash(key))
    }

    fn finish(self: Box<Self>, input: &str) -> Result<Built, Failure> {
        let filter = RemovableFilter::from_hashes(&self.options, &self.hashes);
        let filter = filter.map_err(|error| match error {
            RemovableError::Full { inserted, taken, capacity } => {
                let key = inserted + 1;
                let advice = "is a key there more than 64 times, or 32 if its two lines are one? Give each once";
                let full =
                    format!("both of its lines are full, with {taken} of {capacity} lanes taken");
                Failure::of(input, format!("key {key}: {full}: {advice}"))
            }
            error => Failure::of(input, error),
        })?;
        let mut hits = Bitmask::new();
        if self.verify {
            filter.contains_hashes(&self.hashes, &mut hits);
        }
        let (lines, load) = (filter.lines().len(), filter.load() * 100.0);
        let (keys, lines) = (counted(filter.keys_inserted(), "key"), counted(lines as u64, "line"));
        let summary = format!("{keys}, {lines}, load {load:.1} %");
        Ok(Built {
            fit: None,
            verified: hits.len(),
            missing: hits.count_misses(),
            summary,
            bytes: filter.to_bytes(),
        })
    }
}
