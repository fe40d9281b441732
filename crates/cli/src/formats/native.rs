//! This crate's own format: `docs/format.md`.

use blocked_bloom::header::{Header, HeaderError};
use blocked_bloom::{
    BatchQuery, BloomFilterRef, FilterContents, FormatError, Kernel, KeyHash, PrefixExtractor,
};
use serde_json::json;

use super::lookup::{Lookup, LookupArgs, Prefix, in_batches};
use crate::facts::{Bits, Facts, kernel, kernels, sizes};
use crate::failure::{Failure, warn};
use crate::numbers::percent;
use crate::stored::Stored;

const MAGIC: [u8; 8] = *b"\x89BBLOOM\n";
const VERSION: u16 = 1;

/// Offset of the probe scheme in the header.
const PROBE_SCHEME: usize = 10;

/// Offset of the checksum of the blocks in the header.
const BLOCK_CHECKSUM: usize = 48;

/// A verified filter, or an error with advice.
pub(crate) fn open(stored: &Stored) -> Result<BloomFilterRef<'_>, Failure> {
    BloomFilterRef::from_bytes(&stored.bytes).map_err(|error| damaged(stored, &error))
}

fn damaged(stored: &Stored, error: &FormatError) -> Failure {
    match error {
        FormatError::Header(HeaderError::Magic { .. }) => {
            let advice = "is it the file of keys? The filter comes first";
            Failure::of(&stored.name, format!("{error} ({advice})"))
        }
        _ => stored.damaged(error),
    }
}

pub(super) fn lookup<'a>(stored: &'a Stored, args: &'a LookupArgs) -> Result<Lookup<'a>, Failure> {
    let filter = open(stored)?;
    let name = &stored.name;
    if let hash @ KeyHash::Caller { .. } = filter.key_hash() {
        warn(format!("{name}: a filter of {hash}: the answer is \"maybe\" for every key"));
    }
    let contents = filter.contents();
    let unanswered = match &args.prefix {
        None if contents.whole_keys() => None,
        None => Some("keys".to_owned()),
        Some(Prefix::Own) => {
            return Err(Failure::of(
                name,
                "the filter has no more than a hash of its rule's name: give the rule that it was built with, not own",
            ));
        }
        Some(Prefix::Rule(rule)) if contents.extractor() == Some(rule.id()) => None,
        Some(Prefix::Rule(rule)) => {
            Some(format!("prefixes by {rule} (extractor {:016x})", rule.id()))
        }
    };
    if let Some(unanswered) = unanswered
        && !filter.is_pass_all()
    {
        warn(format!(
            "{name}: the filter holds {contents}, not {unanswered}: the answer is \"maybe\" for every line"
        ));
    }
    Ok(match &args.prefix {
        Some(Prefix::Rule(rule)) => {
            in_batches(move |starts, hits| filter.contains_prefix_batch(rule, starts, hits))
        }
        _ => in_batches(move |keys, hits| filter.contains_batch(keys, hits)),
    })
}

pub(super) fn describe(stored: &Stored) -> Result<(Facts, Option<Failure>), Failure> {
    let bytes = &stored.bytes;
    let header = Header::read(bytes, MAGIC, VERSION);
    let header = header.map_err(|error| damaged(stored, &error.into()))?;
    match BloomFilterRef::from_bytes(bytes) {
        Ok(filter) => Ok((facts(stored, &header, filter, None), None)),
        Err(error @ FormatError::Header(HeaderError::BodyChecksum { computed, .. })) => {
            let failure = damaged(stored, &error);
            match BloomFilterRef::from_bytes_trusted(bytes) {
                Ok(filter) => Ok((facts(stored, &header, filter, Some(computed)), Some(failure))),
                Err(_) => Err(failure),
            }
        }
        Err(error) => Err(damaged(stored, &error)),
    }
}

/// `damage` is the checksum that the blocks have instead of the stored one.
fn facts(
    stored: &Stored,
    header: &Header,
    filter: BloomFilterRef<'_>,
    damage: Option<u64>,
) -> Facts {
    let (params, contents) = (filter.params(), filter.contents());
    let probe_scheme = header.u8_at(PROBE_SCHEME);
    let stored_checksum = header.u64_at(BLOCK_CHECKSUM);
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
        "format_version": VERSION,
        "probe_scheme": probe_scheme,
        "pass_all": params.is_pass_all(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "whole_keys": contents.whole_keys(),
        "prefix_extractor": contents.extractor().map(hex),
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
        "header_checksum": hex(header.checksum()),
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
        ("format", format!("{}, version {VERSION}", stored.format)),
        ("kind", kind.to_owned()),
        ("probe scheme", format!("{probe_scheme}, that of RocksDB's FastLocalBloom")),
        ("hash", filter.key_hash().to_string()),
        ("contents", with_rule(contents)),
        ("stored size", sizes(params.stored_bytes())),
        ("blocks", format!("{} of 64 bytes", params.blocks())),
        ("probes", params.probes().to_string()),
        ("keys inserted", params.expected_items().to_string()),
        ("distinct keys, estimated", keys),
        ("bits per key", bits_per_key),
        ("fill ratio", fill),
        ("false positives, predicted", percent(params.false_positive_rate())),
        ("false positives, from the bits", rate),
        ("header checksum", format!("ok ({})", hex(header.checksum()))),
        ("block checksum", checksum),
        ("kernel here", kernel()),
    ];
    Facts { json, rows, list: None }
}

/// What a filter holds, with the name of the rule where it is one of the crate's own that somebody may have used.
fn with_rule(contents: FilterContents) -> String {
    let named = contents.extractor().and_then(|id| {
        let lengths =
            (0..=1024).flat_map(|n| [PrefixExtractor::fixed(n), PrefixExtractor::capped(n)]);
        let delimiters = (0..=u8::MAX)
            .flat_map(|byte| (0..=8).map(move |count| PrefixExtractor::delimiter(byte, count)));
        lengths.chain(delimiters).find(|rule| rule.id() == id)
    });
    match named {
        Some(rule) => format!("{contents} ({rule})"),
        None => contents.to_string(),
    }
}

fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}
