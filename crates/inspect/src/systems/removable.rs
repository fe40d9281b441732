//! The removable filter of `blocked-bloom-removable`: `docs/format.md`.

use blocked_bloom::{Filter, Kernel, KeyHash, Stored as Blocks};
use blocked_bloom_removable::{MAGIC, RemovableFilter};

use super::sealed::{self, Sealed};
use crate::error::{Damage, Error};
use crate::facts::{Facts, Summary, hash_parts, hex, kernel, kernels, sizes};
use crate::numbers::percent;
use crate::system::{Answers, Format, LookupContext, Source, Stored, System, answers};
use crate::value::object;

impl Format {
    /// A filter of `blocked-bloom-removable`, from which keys can be removed.
    pub const REMOVABLE: Format = Format::new(&System {
        length: Some(|head| {
            sealed::length(RemovableFilter::from_bytes_trusted_any_hash(head).err())
        }),
        ..System::native("removable", "A filter that keys can be removed from", MAGIC, open)
    });
}

fn open<'a>(source: &Source<'_, 'a>) -> Result<Box<dyn Stored + 'a>, Error> {
    let opened: Result<Removable<'a>, _> = Sealed::open(
        source.bytes()?,
        RemovableFilter::from_bytes_any_hash,
        RemovableFilter::from_bytes_trusted_any_hash,
    );
    source.boxed(opened)
}

const VERSION: u16 = 1;

type Removable<'a> = Sealed<'a, RemovableFilter<Blocks<&'a [u8]>>>;

impl Stored for Removable<'_> {
    fn describe(&self, about: &Summary) -> Facts {
        let filter = &self.filter;
        let bits_per_key = (!filter.is_empty())
            .then(|| filter.lines().len() as f64 * 512.0 / filter.keys_inserted() as f64);
        let (hash, seed, tag) = hash_parts(filter.key_hash());
        let rate = filter.expected_false_positive_rate();
        let json = object! {
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
            "header_checksum": hex(self.seal.header_checksum()),
            "line_checksum_ok": !self.seal.is_damaged(),
            "line_checksum_stored": hex(self.seal.stored_checksum()),
            "line_checksum_computed": hex(self.seal.computed_checksum()),
            "kernel": Kernel::default().name(),
            "kernels_supported": kernels(),
        };
        let rows = vec![
            ("format", format!("{}, version {VERSION}", about.format)),
            ("kind", "tags of 16 bits: keys can be removed".to_owned()),
            ("hash", filter.key_hash().to_string()),
            ("stored size", sizes(about.length)),
            ("lines", format!("{} of 32 tags", filter.lines().len())),
            ("keys", filter.keys_inserted().to_string()),
            ("load", format!("{:.2} % of {}", filter.load() * 100.0, filter.capacity())),
            (
                "bits per key",
                bits_per_key.map_or("no keys".to_owned(), |bits| format!("{bits:.2}")),
            ),
            ("false positives, from the load", percent(rate)),
            ("header checksum", format!("ok ({})", hex(self.seal.header_checksum()))),
            ("line checksum", self.seal.checksum_row()),
            ("kernel here", kernel()),
        ];
        Facts::new(about, json, rows)
    }

    fn damage(&self) -> Option<Damage> {
        self.seal.damage()
    }

    fn hash_of_keys(&self) -> Option<KeyHash> {
        Some(self.filter.key_hash())
    }

    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        answers(|keys, hits| self.filter.contains_batch(keys, hits))
    }
}
