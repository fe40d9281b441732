//! This project's own format: `docs/format.md`.

use blocked_bloom::{BloomFilter, FilterContents, Kernel, PrefixExtractor, Stored};

use super::classical;
use crate::error::{Error, Warning};
use crate::facts::{Bits, DAMAGED, Facts, hash_parts, kernel, kernels, percent, sizes};
use crate::lookup::{Kind, LookupOptions, Prefix};
use crate::opened::About;
use crate::value::object;

const VERSION: u16 = 1;

/// Offset of the probe scheme in the header.
const PROBE_SCHEME: usize = 10;

/// Offsets in the header: the checksum of the blocks, and the header's own, which ends it.
pub(crate) const BODY_CHECKSUM: usize = 48;
pub(crate) const HEADER_CHECKSUM: usize = 56;

/// A number in a header that was verified.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let number = bytes.get(at..).and_then(<[u8]>::first_chunk);
    number.map_or(0, |number| u64::from_le_bytes(*number))
}

pub(crate) fn lookup<'o>(
    filter: &'o BloomFilter<Stored<&'o [u8]>>,
    options: &LookupOptions,
    warnings: &mut Vec<Warning>,
) -> Result<Kind<'o>, Error> {
    let contents = filter.contents();
    let unanswered = match &options.prefix {
        None if contents.whole_keys() => None,
        None => Some("keys".to_owned()),
        Some(Prefix::Own) => return Err(Error::OwnRuleUnknown),
        Some(Prefix::Rule(rule)) if contents.extractor() == Some(rule.id()) => None,
        Some(Prefix::Rule(rule)) => {
            Some(format!("prefixes by {rule} (extractor {:016x})", rule.id()))
        }
    };
    if let Some(looked_up) = unanswered
        && !filter.is_pass_all()
    {
        warnings.push(Warning::Contents { contents, looked_up });
    }
    Ok(match &options.prefix {
        Some(Prefix::Rule(rule)) => Kind::Prefixes(filter, rule.clone()),
        _ => Kind::Bloom(filter),
    })
}

pub(crate) fn describe_compact(about: &About, filter: &BloomFilter<Stored<&[u8]>>) -> Facts {
    let params = filter.params();
    let header = vec![
        ("pass_all", "pass-all", params.is_pass_all().into()),
        ("blocks", "blocks of 64 bytes", params.blocks().into()),
        ("probes", "probes", params.probes().into()),
        ("keys_inserted", "keys inserted", params.expected_items().into()),
    ];
    let bits = Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    classical::facts(about, header, &bits)
}

pub(crate) fn describe(about: &About, bytes: &[u8], filter: &BloomFilter<Stored<&[u8]>>) -> Facts {
    let damage = about.damage.as_ref().map(|&(_, computed)| computed);
    let (params, contents) = (filter.params(), filter.contents());
    // The header was verified when the filter was opened.
    let probe_scheme = bytes.get(PROBE_SCHEME).copied();
    let (header_checksum, stored_checksum) =
        (u64_at(bytes, HEADER_CHECKSUM), u64_at(bytes, BODY_CHECKSUM));
    let computed_checksum = damage.unwrap_or(stored_checksum);
    let bits = damage.is_none().then(|| Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    });
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
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
        "header_checksum": hex(header_checksum),
        "block_checksum_ok": bits.is_some(),
        "block_checksum_stored": hex(stored_checksum),
        "block_checksum_computed": hex(computed_checksum),
        "kernel": Kernel::default().name(),
        "kernels_supported": kernels(),
    };

    let kind = match params.is_pass_all() {
        true => "pass-all: the answer is always \"maybe\"",
        false => "blocked Bloom",
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
            format!("{DAMAGED}: stored {}, computed {}", hex(stored_checksum), hex(computed))
        }
    };
    let rows = vec![
        ("file", about.name.clone()),
        ("format", format!("{}, version {VERSION}", about.format)),
        ("kind", kind.to_owned()),
        (
            "probe scheme",
            format!("{}, that of RocksDB's FastLocalBloom", probe_scheme.unwrap_or(0)),
        ),
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
        ("header checksum", format!("ok ({})", hex(header_checksum))),
        ("block checksum", checksum),
        ("kernel here", kernel()),
    ];
    Facts::new(json, rows)
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

pub(crate) fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}
