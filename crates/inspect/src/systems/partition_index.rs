//! The index of a partitioned filter of `blocked-bloom-lsm`, alone and with its partitions:
//! `docs/format.md`.

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{BloomFilter, KeyHash, Stored as Blocks};
use blocked_bloom_lsm::{INDEX_MAGIC, PartitionError, PartitionIndex, PartitionLocation};

use super::native::unanswered;
use crate::blocks::Part;
use crate::error::{Damage, Error, Warning};
use crate::facts::{DAMAGED, Facts, Summary, hash_parts, hex, sizes};
use crate::message::{LookupOption, Message};
use crate::numbers::percent;
use crate::options::{LookupOptions, Prefix};
use crate::system::{
    Answers, Format, LookupContext, Stored, System, answers, look_up_singly, pass_all,
};
use crate::value::object;

impl Format {
    /// The index of a partitioned filter of `blocked-bloom-lsm`. The partitions are separate native
    /// filters; [`Opened::partitioned`](crate::Opened::partitioned) takes both.
    pub const PARTITION_INDEX: Format = Format::new(&System {
        options: &[LookupOption::Prefix],
        ..System::native(
            "partition-index",
            "The index of a filter in partitions",
            INDEX_MAGIC,
            |source| source.boxed(PartitionIndex::from_bytes_any_hash(source.bytes()?)),
        )
    });
}

type Index<'a> = PartitionIndex<&'a [u8]>;

impl Stored for Index<'_> {
    fn describe(&self, about: &Summary) -> Facts {
        let kind = "the index of a filter in partitions, which are elsewhere";
        describe(about, self, kind, None, "ok".to_owned())
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let problem = "the index of a partitioned filter, without its partitions";
        wanted.warnings.push(Warning::pass_all(problem));
        pass_all()
    }
}

/// `rate` is the false-positive rate, if the partitions are available.
fn describe(
    about: &Summary,
    index: &Index<'_>,
    kind: &str,
    rate: Option<f64>,
    checksums: String,
) -> Facts {
    let (hash, seed, tag) = hash_parts(index.key_hash());
    let contents = index.contents();
    let json = object! {
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "whole_keys": contents.whole_keys(),
        "prefix_extractor": contents.extractor().map(hex),
        "stored_bytes": about.length,
        "partitions": index.partitions(),
        "partition_bytes": index.stored_bytes(),
        "keys_inserted": index.keys_inserted(),
        "estimated_false_positive_rate": rate,
        "checksums_ok": !checksums.starts_with(DAMAGED),
    };
    let mut rows = vec![
        ("format", about.format.to_owned()),
        ("kind", kind.to_owned()),
        ("hash", index.key_hash().to_string()),
        ("contents", contents.to_string()),
        ("stored size", sizes(about.length)),
        ("partitions", index.partitions().to_string()),
        ("size of the partitions", sizes(index.stored_bytes())),
        ("keys inserted", index.keys_inserted().to_string()),
    ];
    rows.extend(rate.map(|rate| ("false positives, from the bits", percent(rate))));
    rows.push(("checksums", checksums));
    Facts::new(about, json, rows)
}

type Partition<'a> = Result<BloomFilter<Blocks<&'a [u8]>>, PartitionError>;

/// An index with its partitions. Unusable partitions answer "maybe".
pub(crate) struct Partitioned<'a> {
    index: Index<'a>,
    partitions: Vec<Partition<'a>>,
}

impl<'a> Partitioned<'a> {
    /// Verifies the index and every partition. `partitions` must hold exactly the partitions of the
    /// index, one after another.
    pub(crate) fn open(index: &'a [u8], partitions: &'a [u8]) -> Result<Self, Damage> {
        let index = PartitionIndex::from_bytes_any_hash(index)?;
        let (found, expected) = (partitions.len() as u64, index.stored_bytes());
        if found != expected {
            return Err(HeaderError::Length { found, expected }.into());
        }
        let locations = (0..index.partitions()).map_while(|number| index.location(number));
        let open = |at: PartitionLocation| {
            // The total length matches the index, so no partition is outside.
            let (from, length) = (at.offset as usize, at.length as usize);
            let bytes = partitions.get(from..).and_then(|rest| rest.get(..length));
            index.open(&at, bytes.unwrap_or_default())
        };
        let partitions = locations.map(open).collect();
        Ok(Partitioned { index, partitions })
    }

    /// Calls `lookup` for the only partition that can hold the key. Returns "maybe" if it is
    /// unusable.
    fn contains_in_partition(
        &self,
        key: &[u8],
        lookup: impl FnOnce(&BloomFilter<Blocks<&'a [u8]>>) -> bool,
    ) -> bool {
        let partition = self.partitions.get(self.index.locate(key).partition);
        match partition {
            Some(Ok(filter)) => lookup(filter),
            _ => true,
        }
    }

    /// Returns the number of unusable partitions, and the reason for the first.
    fn unusable(&self) -> Option<(usize, String)> {
        let errors = self.partitions.iter().enumerate();
        let mut errors = errors.filter_map(|(at, partition)| Some((at, partition.as_ref().err()?)));
        let (first, error) = errors.next()?;
        let (unusable, all) = (1 + errors.count(), self.partitions.len());
        let text =
            format!("{unusable} of {all} partitions cannot be used (partition {first}: {error})");
        Some((unusable, text))
    }
}

impl Stored for Partitioned<'_> {
    fn describe(&self, about: &Summary) -> Facts {
        let rates = self.partitions.iter().map(|partition| match partition {
            Ok(filter) => filter.estimated_false_positive_rate(),
            Err(_) => 1.0,
        });
        // All partitions but the last have about the same number of keys.
        let rate = rates.sum::<f64>() / self.partitions.len() as f64;
        let unusable = self.unusable();
        let checksums = match &unusable {
            None => "ok, those of the partitions too".to_owned(),
            Some((_, text)) => format!("{DAMAGED}: {text}"),
        };
        let kind = "a filter in partitions";
        let facts = describe(about, &self.index, kind, Some(rate), checksums);
        let damage = unusable.map(|(_, text)| Format::PARTITION_INDEX.damaged(Damage::new(text)));
        Facts { damage, ..facts }
    }

    fn hash_of_keys(&self) -> Option<KeyHash> {
        Some(self.index.key_hash())
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let prefix = wanted.options.prefix.clone();
        wanted.warnings.extend(unanswered(self.index.contents(), prefix.as_ref())?);
        if let Some((unusable, text)) = self.unusable() {
            let text = format!("{text}: their answer is \"maybe\" for every key");
            let is_pass_all = unusable == self.partitions.len();
            wanted.warnings.push(Warning::new(Message::new(text), is_pass_all));
        }
        match prefix {
            Some(Prefix::Rule(rule)) => answers(move |keys, hits| {
                look_up_singly(keys, hits, |start| {
                    self.contains_in_partition(start, |filter| filter.contains_prefix(&rule, start))
                });
            }),
            _ => answers(|keys, hits| {
                look_up_singly(keys, hits, |key| {
                    self.contains_in_partition(key, |filter| filter.contains(key))
                });
            }),
        }
    }

    fn parts(&self) -> usize {
        self.partitions.len()
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        Some(Part::Bloom(self.partitions.get(part)?.as_ref().ok()?.view()))
    }

    fn places(&self, key: &[u8], _: &LookupOptions) -> Option<Vec<(usize, u64)>> {
        let hasher = self.index.hasher().ok()?;
        Some(vec![(self.index.locate(key).partition, hasher.hash(key))])
    }
}
