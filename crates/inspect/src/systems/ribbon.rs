//! This project's static filter, a sharded Ribbon: `docs/format.md`.

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Filter, KeyHash};
use blocked_bloom_ribbon::{MAGIC, RibbonError, RibbonFilter};

use crate::error::Error;
use crate::facts::{Facts, Summary, hash_parts, kernel, kernels, sizes};
use crate::numbers::percent;
use crate::system::{Answers, Format, LookupContext, Stored, System, answers};
use crate::value::object;

impl Format {
    /// A static filter of `blocked-bloom-ribbon`: smaller and slower than a Bloom filter.
    pub const RIBBON: Format = Format::new(&System {
        length: Some(|head| match RibbonFilter::from_bytes_any_hash(head).err()? {
            RibbonError::Header(HeaderError::Length { expected, .. }) => Some(expected),
            _ => None,
        }),
        ..System::native(
            "ribbon",
            "A static filter of this project, smaller and slower",
            MAGIC,
            |source| source.boxed(RibbonFilter::from_bytes_any_hash(source.bytes()?)),
        )
    });
}

impl Stored for RibbonFilter<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let (hash, seed, tag) = hash_parts(self.key_hash());
        let json = object! {
            "hash": hash,
            "seed": seed,
            "tag": tag,
            "stored_bytes": self.memory_bytes(),
            "shards": self.shards(),
            "solution_columns": self.columns(),
            "keys_inserted": self.keys_inserted(),
            "bits_per_key": self.bits_per_key(),
            "predicted_false_positive_rate": self.expected_false_positive_rate(),
            "kernels_supported": kernels(),
        };
        let rows = vec![
            ("format", format!("{}, version 1", about.format)),
            ("kind", "static: sharded Ribbon, 64 coefficients to a key".to_owned()),
            ("hash", self.key_hash().to_string()),
            ("stored size", sizes(self.memory_bytes())),
            ("shards", self.shards().to_string()),
            ("columns", self.columns().to_string()),
            ("keys inserted", self.keys_inserted().to_string()),
            ("bits per key", format!("{:.2}", self.bits_per_key())),
            ("false positives, from the shape", percent(self.expected_false_positive_rate())),
            ("checksums", "ok".to_owned()),
            ("kernel here", kernel()),
        ];
        Facts::new(about, json, rows)
    }

    fn hash_of_keys(&self) -> Option<KeyHash> {
        Some(self.key_hash())
    }

    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        answers(|keys, hits| self.contains_batch(keys, hits))
    }
}
