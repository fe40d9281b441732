//! This project's own static filter, sharded Ribbon: `docs/format.md`.

use blocked_bloom::Filter as _;
use blocked_bloom_ribbon::RibbonFilter;

use crate::facts::{Facts, hash_parts, kernel, kernels, percent, sizes};
use crate::opened::About;
use crate::value::object;

pub(crate) fn describe(about: &About, filter: &RibbonFilter<&[u8]>) -> Facts {
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "stored_bytes": filter.memory_bytes(),
        "shards": filter.shards(),
        "solution_columns": filter.columns(),
        "keys_inserted": filter.keys_inserted(),
        "bits_per_key": filter.bits_per_key(),
        "predicted_false_positive_rate": filter.expected_false_positive_rate(),
        "kernels_supported": kernels(),
    };
    let rows = vec![
        ("file", about.name.clone()),
        ("format", format!("{}, version 1", about.format)),
        ("kind", "static: sharded Ribbon, 64 coefficients to a key".to_owned()),
        ("hash", filter.key_hash().to_string()),
        ("stored size", sizes(filter.memory_bytes())),
        ("shards", filter.shards().to_string()),
        ("columns", filter.columns().to_string()),
        ("keys inserted", filter.keys_inserted().to_string()),
        ("bits per key", format!("{:.2}", filter.bits_per_key())),
        ("false positives, from the shape", percent(filter.expected_false_positive_rate())),
        ("checksums", "ok".to_owned()),
        ("kernel here", kernel()),
    ];
    Facts::new(json, rows)
}
