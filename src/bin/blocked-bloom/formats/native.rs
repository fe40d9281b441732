//! This crate's own format: `docs/format.md`.

use blocked_bloom::{Added, BloomFilterRef, FormatError, Kernel, KeyHash, PrefixExtractor};
use serde_json::json;

use super::{Ask, in_batches, one_by_one};
use crate::facts::{Bits, Facts, kernel, kernels, sizes};
use crate::failure::{Failure, report};
use crate::numbers::percent;
use crate::query::{Prefix, Question};
use crate::stored::Stored;

const MAGIC: &[u8] = b"\x89BBLOOM\n";

/// Whether a file with these first bytes is one.
pub(crate) fn is_one(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// The length that the header announces, if it is sound.
pub(crate) fn stored_bytes(head: &[u8]) -> u64 {
    match BloomFilterRef::from_bytes_trusted(head) {
        Err(FormatError::Length { expected, .. }) => expected,
        _ => head.len() as u64,
    }
}

/// A verified filter, or a message with advice.
pub(crate) fn open(stored: &Stored) -> Result<BloomFilterRef<'_>, Failure> {
    BloomFilterRef::from_bytes(&stored.bytes).map_err(|error| damaged(stored, &error))
}

fn damaged(stored: &Stored, error: &FormatError) -> Failure {
    match error {
        FormatError::Magic { .. } => {
            let advice = "is it the file of keys? The filter comes first";
            Failure::of(&stored.name, format!("{error} ({advice})"))
        }
        _ => stored.damaged(error),
    }
}

pub(crate) fn ask<'a>(stored: &'a Stored, question: &'a Question) -> Result<Ask<'a>, Failure> {
    let filter = open(stored)?;
    if let hash @ KeyHash::Caller { .. } = filter.key_hash() {
        let name = &stored.name;
        report(&format!("{name}: a filter of {hash} answers \"maybe\" for every key"));
    }
    let added = filter.added();
    let asked = match &question.prefix {
        None if added.whole_keys() => None,
        None => Some("keys".to_owned()),
        Some(Prefix::Own) => {
            return Err(Failure::of(
                &stored.name,
                "the filter has no more than a hash of its rule's name: give the rule that it was built with, not own",
            ));
        }
        Some(Prefix::Rule(rule)) if added.extractor() == Some(rule.id()) => None,
        Some(Prefix::Rule(rule)) => {
            Some(format!("prefixes by {rule} (extractor {:016x})", rule.id()))
        }
    };
    // Every answer will be "maybe".
    if let Some(asked) = asked
        && !filter.is_pass_all()
    {
        let name = &stored.name;
        report(&format!(
            "{name}: the filter has {added}; asked about {asked} it answers \"maybe\" to all"
        ));
    }
    Ok(match &question.prefix {
        Some(Prefix::Rule(rule)) => one_by_one(move |key| filter.contains_prefix(rule, key)),
        _ => in_batches(move |keys, hits| filter.contains_batch(keys, hits)),
    })
}

pub(crate) fn describe(stored: &Stored) -> Result<(Facts, Option<Failure>), Failure> {
    let bytes = &stored.bytes;
    match BloomFilterRef::from_bytes(bytes) {
        Ok(filter) => Ok((facts(stored, filter, None), None)),
        Err(error @ FormatError::BlockChecksum { computed, .. }) => {
            let failure = damaged(stored, &error);
            match BloomFilterRef::from_bytes_trusted(bytes) {
                Ok(filter) => Ok((facts(stored, filter, Some(computed)), Some(failure))),
                Err(_) => Err(failure),
            }
        }
        Err(error) => Err(damaged(stored, &error)),
    }
}

/// `damage` is the checksum that the blocks have instead of the stored one.
fn facts(stored: &Stored, filter: BloomFilterRef<'_>, damage: Option<u64>) -> Facts {
    let (params, added) = (filter.params(), filter.added());
    let version = u64_at(&stored.bytes, 8) & 0xffff;
    let [header_checksum, stored_checksum] = [56, 48].map(|offset| u64_at(&stored.bytes, offset));
    let computed_checksum = damage.unwrap_or(stored_checksum);
    let bits = damage.is_none().then(|| Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    });
    let (hash, seed, tag) = match filter.key_hash() {
        KeyHash::Xxh3 { seed } => ("xxh3-64", Some(seed), None),
        KeyHash::Caller { tag } => ("caller", None, Some(tag)),
    };
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "format_version": version,
        "pass_all": params.is_pass_all(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "whole_keys": added.whole_keys(),
        "prefix_extractor": added.extractor().map(hex),
        "stored_bytes": params.stored_bytes(),
        "blocks": params.blocks(),
        "probes": params.probes(),
        "keys_inserted": params.expected_items(),
        "bits_per_key": params.bits_per_key(),
        "fill_ratio": bits.as_ref().map(|bits| bits.fill_ratio),
        "estimated_keys": bits.as_ref().and_then(|bits| bits.keys),
        "predicted_false_positive_rate": params.false_positive_rate(),
        "estimated_false_positive_rate": bits.as_ref().map(|bits| bits.false_positive_rate),
        "header_checksum_ok": true,
        "header_checksum": hex(header_checksum),
        "block_checksum_ok": bits.is_some(),
        "block_checksum_stored": hex(stored_checksum),
        "block_checksum_computed": hex(computed_checksum),
        "kernel": Kernel::default().name(),
        "kernels_supported": kernels(),
    });

    let kind = match params.is_pass_all() {
        true => "pass-all: the answer is always \"maybe\"",
        false => "ordinary",
    };
    let bits_per_key = match params.expected_items() {
        _ if params.is_pass_all() => "no filter".to_owned(),
        0 => "no keys".to_owned(),
        _ => format!("{:.2}", params.bits_per_key()),
    };
    let [fill, keys, rate] = match &bits {
        None => ["unknown, the blocks are damaged"; 3].map(str::to_owned),
        Some(bits) => [bits.fill(), bits.keys(), bits.rate()],
    };
    let checksum = match damage {
        None => format!("ok ({})", hex(stored_checksum)),
        Some(computed) => {
            format!("DAMAGED: stored {}, computed {}", hex(stored_checksum), hex(computed))
        }
    };
    let rows = vec![
        ("file", stored.name.clone()),
        ("format", format!("{}, version {version}", stored.format)),
        ("kind", kind.to_owned()),
        ("hash", filter.key_hash().to_string()),
        ("added", what_was(added)),
        ("stored size", sizes(params.stored_bytes())),
        ("blocks", format!("{} of 64 bytes", params.blocks())),
        ("probes", params.probes().to_string()),
        ("keys inserted", params.expected_items().to_string()),
        ("distinct keys, estimated", keys),
        ("bits per key", bits_per_key),
        ("fill ratio", fill),
        ("false positives, predicted", percent(params.false_positive_rate())),
        ("false positives, from the bits", rate),
        ("header checksum", format!("ok ({})", hex(header_checksum))),
        ("block checksum", checksum),
        ("kernel here", kernel()),
    ];
    Facts { json, rows, list: None }
}

/// What was added, with the rule's name where it is one of the crate's own that somebody may have used.
fn what_was(added: Added) -> String {
    let named = added.extractor().and_then(|id| {
        let lengths =
            (0..=1024).flat_map(|n| [PrefixExtractor::fixed(n), PrefixExtractor::capped(n)]);
        let delimiters = (0..=u8::MAX)
            .flat_map(|byte| (0..=8).map(move |count| PrefixExtractor::delimiter(byte, count)));
        lengths.chain(delimiters).find(|rule| rule.id() == id)
    });
    match named {
        Some(rule) => format!("{added} ({rule})"),
        None => added.to_string(),
    }
}

fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}

/// A field of a verified header.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let field = bytes.get(offset..).and_then(<[u8]>::first_chunk);
    field.map_or(0, |field| u64::from_le_bytes(*field))
}
