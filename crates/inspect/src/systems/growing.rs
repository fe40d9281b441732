//! The growing filter of `blocked-bloom-scalable`, a chain of native filters: `docs/format.md`.

use blocked_bloom::{Filter, Kernel, KeyHash, Stored as Blocks};
use blocked_bloom_scalable::{LinkBytes, MAGIC, ScalableBloomFilter};

use crate::blocks::Part;
use crate::error::Error;
use crate::facts::{Facts, List, Summary, hash_parts, kernel, kernels, sizes};
use crate::numbers::percent;
use crate::system::{Answers, Format, LookupContext, Stored, System, answers};
use crate::value::{Value, object};

impl Format {
    /// A growing filter of `blocked-bloom-scalable`: a chain of native filters.
    pub const GROWING: Format = Format::new(&System::native(
        "growing",
        "A filter that grows, a chain of filters",
        MAGIC,
        |source| source.boxed(ScalableBloomFilter::from_bytes_any_hash(source.bytes()?)),
    ));
}

impl Stored for ScalableBloomFilter<Blocks<LinkBytes<&[u8]>>> {
    fn describe(&self, about: &Summary) -> Facts {
        let (hash, seed, tag) = hash_parts(self.key_hash());
        let (predicted, estimated) =
            (self.expected_false_positive_rate(), self.estimated_false_positive_rate());
        let links: Vec<Value> = self
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
        list.lines.extend(self.links().iter().zip(1..).map(|(link, number)| {
            vec![
                number.to_string(),
                link.params().blocks().to_string(),
                link.params().probes().to_string(),
                link.keys_inserted().to_string(),
                percent(link.expected_false_positive_rate()),
            ]
        }));
        let json = object! {
            "hash": hash,
            "seed": seed,
            "tag": tag,
            "stored_bytes": about.length,
            "keys_inserted": self.keys_inserted(),
            "growth": self.growth(),
            "capacity_left": self.capacity_left(),
            "highest_false_positive_rate": self.false_positive_rate(),
            "predicted_false_positive_rate": predicted,
            "estimated_false_positive_rate": estimated,
            "checksums_ok": true,
            "links": links,
            "kernel": Kernel::default().name(),
            "kernels_supported": kernels(),
        };
        let rows = vec![
            ("format", about.format.to_owned()),
            ("kind", "a chain of filters, to which larger ones are added".to_owned()),
            ("hash", self.key_hash().to_string()),
            ("stored size", sizes(about.length)),
            ("keys inserted", self.keys_inserted().to_string()),
            ("keys until the next link", self.capacity_left().to_string()),
            ("false positives, at most", percent(self.false_positive_rate())),
            ("false positives, predicted", percent(predicted)),
            ("false positives, from the bits", percent(estimated)),
            ("checksums", "ok".to_owned()),
            ("kernel here", kernel()),
        ];
        Facts { list: Some(list), ..Facts::new(about, json, rows) }
    }

    fn hash_of_keys(&self) -> Option<KeyHash> {
        Some(self.key_hash())
    }

    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        answers(|keys, hits| self.contains_batch(keys, hits))
    }

    fn parts(&self) -> usize {
        self.links().len()
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        self.links().get(part).map(|link| Part::Bloom(link.view()))
    }
}
