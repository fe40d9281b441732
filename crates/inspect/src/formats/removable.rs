//! The removable filter of `blocked-bloom-removable`: `docs/format.md`.

use blocked_bloom::{Filter as _, Kernel, Stored};
use blocked_bloom_removable::RemovableFilter;

use super::native::{BODY_CHECKSUM, HEADER_CHECKSUM, hex, u64_at};
use crate::facts::{DAMAGED, Facts, hash_parts, kernel, kernels, percent, sizes};
use crate::opened::About;
use crate::value::object;

const VERSION: u16 = 1;

pub(crate) fn describe(
    about: &About,
    bytes: &[u8],
    filter: &RemovableFilter<Stored<&[u8]>>,
) -> Facts {
    let damage = about.damage.as_ref().map(|&(_, computed)| computed);
    let (header_checksum, stored_checksum) =
        (u64_at(bytes, HEADER_CHECKSUM), u64_at(bytes, BODY_CHECKSUM));
    let bits_per_key = (!filter.is_empty())
        .then(|| filter.lines().len() as f64 * 512.0 / filter.keys_inserted() as f64);
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let rate = filter.expected_false_positive_rate();
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
        "format_version": VERSION,
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "stored_bytes": about.length,
        "lines": filter.lines().len(),
        "keys": filter.keys_inserted(),
        "capacity": filter.capacity(),
        "load": filter.load(),
        "bits_per_key": bits_per_key,
        "estimated_false_positive_rate": rate,
        "header_checksum_ok": true,
        "header_checksum": hex(header_checksum),
        "line_checksum_ok": damage.is_none(),
        "line_checksum_stored": hex(stored_checksum),
        "line_checksum_computed": hex(damage.unwrap_or(stored_checksum)),
        "kernel": Kernel::default().name(),
        "kernels_supported": kernels(),
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
        ("kind", "tags of 16 bits: keys can be removed".to_owned()),
        ("hash", filter.key_hash().to_string()),
        ("stored size", sizes(about.length)),
        ("lines", format!("{} of 32 tags", filter.lines().len())),
        ("keys", filter.keys_inserted().to_string()),
        ("load", format!("{:.2} % of {}", filter.load() * 100.0, filter.capacity())),
        ("bits per key", bits_per_key.map_or("no keys".to_owned(), |bits| format!("{bits:.2}"))),
        ("false positives, from the load", percent(rate)),
        ("header checksum", format!("ok ({})", hex(header_checksum))),
        ("line checksum", checksum),
        ("kernel here", kernel()),
    ];
    Facts::new(json, rows)
}
