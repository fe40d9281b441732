//! The growing filter of `blocked-bloom-scalable`, a chain of native filters: `docs/format.md`.

use blocked_bloom::{Kernel, Stored as Blocks};
use blocked_bloom_scalable::ScalableBloomFilter;
use serde_json::{Value, json};

use super::lookup::{Lookup, in_batches, warn_of_hash};
use crate::facts::{Facts, List, hash_parts, kernel, kernels, sizes};
use crate::failure::Failure;
use crate::numbers::percent;
use crate::stored::Stored;

/// A verified filter.
pub(crate) fn open(stored: &Stored) -> Result<ScalableBloomFilter<Blocks<&[u8]>>, Failure> {
    ScalableBloomFilter::from_bytes(&stored.bytes[..]).map_err(|error| stored.damaged(error))
}

pub(super) fn lookup(stored: &Stored) -> Result<Lookup<'_>, Failure> {
    let filter = open(stored)?;
    warn_of_hash(stored, filter.key_hash());
    Ok(in_batches(move |keys, hits| filter.contains_batch(keys, hits)))
}

pub(super) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open(stored)?;
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let (predicted, estimated) =
        (filter.expected_false_positive_rate(), filter.estimated_false_positive_rate());
    let links: Vec<Value> = filter
        .links()
        .iter()
        .map(|link| {
            json!({
                "blocks": link.params().blocks(),
                "probes": link.params().probes(),
                "keys_inserted": link.keys_inserted(),
                "fill_ratio": link.fill_ratio(),
                "predicted_false_positive_rate": link.expected_false_positive_rate(),
            })
        })
        .collect();
    let mut list = List::new(0, &["link", "blocks", "probes", "keys", "false positives"]);
    list.lines.extend(filter.links().iter().zip(1..).map(|(link, number)| {
        vec![
            number.to_string(),
            link.params().blocks().to_string(),
            link.params().probes().to_string(),
            link.keys_inserted().to_string(),
            percent(link.expected_false_positive_rate()),
        ]
    }));
    let stored_bytes = stored.bytes.len() as u64;
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "stored_bytes": stored_bytes,
        "keys_inserted": filter.keys_inserted(),
        "growth": filter.growth(),
        "capacity_left": filter.capacity_left(),
        "highest_false_positive_rate": filter.false_positive_rate(),
        "predicted_false_positive_rate": predicted,
        "estimated_false_positive_rate": estimated,
        "checksums_ok": true,
        "links": links,
        "kernel": Kernel::default().name(),
        "kernels_supported": kernels(),
    });
    let rows = vec![
        ("file", stored.name.clone()),
        ("format", stored.format.to_string()),
        ("kind", "a chain of filters, to which larger ones are added".to_owned()),
        ("hash", filter.key_hash().to_string()),
        ("stored size", sizes(stored_bytes)),
        ("keys inserted", filter.keys_inserted().to_string()),
        ("keys until the next link", filter.capacity_left().to_string()),
        ("false positives, at most", percent(filter.false_positive_rate())),
        ("false positives, predicted", percent(predicted)),
        ("false positives, from the bits", percent(estimated)),
        ("checksums", "ok".to_owned()),
        ("kernel here", kernel()),
    ];
    Ok(Facts { json, rows, list: Some(list) })
}
