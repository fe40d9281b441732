//! The index of a filter in partitions, of `blocked-bloom-lsm`: `docs/format.md`.

use blocked_bloom_lsm::PartitionIndex;

use crate::facts::{Facts, hash_parts, sizes};
use crate::opened::About;
use crate::value::object;

pub(crate) fn describe(about: &About, index: &PartitionIndex<&[u8]>) -> Facts {
    let (hash, seed, tag) = hash_parts(index.key_hash());
    let contents = index.contents();
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "whole_keys": contents.whole_keys(),
        "prefix_extractor": contents.extractor().map(super::native::hex),
        "stored_bytes": about.length,
        "partitions": index.partitions(),
        "partition_bytes": index.stored_bytes(),
        "keys_inserted": index.keys_inserted(),
        "checksums_ok": true,
    };
    let rows = vec![
        ("file", about.name.clone()),
        ("format", about.format.to_string()),
        ("kind", "the index of a filter in partitions, which are elsewhere".to_owned()),
        ("hash", index.key_hash().to_string()),
        ("contents", contents.to_string()),
        ("stored size", sizes(about.length)),
        ("partitions", index.partitions().to_string()),
        ("size of the partitions", sizes(index.stored_bytes())),
        ("keys inserted", index.keys_inserted().to_string()),
        ("checksums", "ok".to_owned()),
    ];
    Facts::new(json, rows)
}
