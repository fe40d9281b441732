//! The growing filter of `blocked-bloom-scalable`, a chain of native filters: `docs/format.md`.

use blocked_bloom::{Filter as _, Kernel, Stored as Blocks};
use blocked_bloom_scalable::ScalableBloomFilter;

use crate::facts::{Facts, List, hash_parts, kernel, kernels, percent, sizes};
use crate::opened::About;
use crate::value::{Value, object};

pub(crate) fn describe(about: &About, filter: &ScalableBloomFilter<Blocks<&[u8]>>) -> Facts {
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let (predicted, estimated) =
        (filter.expected_false_positive_rate(), filter.estimated_false_positive_rate());
    let links: Vec<Value> = filter
        .links()
        .iter()
        .map(|link| {
            object! {
                "blocks": link.params().blocks(),
                "probes": link.params().probes(),
                "keys_inserted": link.keys_inserted(),
                "fill_ratio": link.fill_ratio(),
                "predicted_false_positive_rate": link.expected_false_positive_rate(),
            }
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
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "stored_bytes": about.length,
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
    };
    let rows = vec![
        ("file", about.name.clone()),
        ("format", about.format.to_string()),
        ("kind", "a chain of filters, to which larger ones are added".to_owned()),
        ("hash", filter.key_hash().to_string()),
        ("stored size", sizes(about.length)),
        ("keys inserted", filter.keys_inserted().to_string()),
        ("keys until the next link", filter.capacity_left().to_string()),
        ("false positives, at most", percent(filter.false_positive_rate())),
        ("false positives, predicted", percent(predicted)),
        ("false positives, from the bits", percent(estimated)),
        ("checksums", "ok".to_owned()),
        ("kernel here", kernel()),
    ];
    Facts { list: Some(list), ..Facts::new(json, rows) }
}
