//! The index of a filter in partitions, of `blocked-bloom-lsm`: `docs/format.md`.

use blocked_bloom_lsm::{INDEX_MAGIC, PartitionIndex};

use crate::error::{Error, Warning};
use crate::facts::{About, Facts, hash_parts, hex, sizes};
use crate::system::{Answers, Format, Stored, System, Wanted, pass_all};
use crate::value::object;

impl Format {
    /// The index of a filter in partitions, of `blocked-bloom-lsm`. The partitions are native
    /// filters of their own.
    pub const PARTITION_INDEX: Format = Format::new(&System::own(
        "partition-index",
        "The index of a filter in partitions, without them",
        INDEX_MAGIC,
        |source| source.boxed(PartitionIndex::from_bytes(source.all()?)),
    ));
}

impl Stored for PartitionIndex<&[u8]> {
    fn describe(&self, about: &About) -> Facts {
        let (hash, seed, tag) = hash_parts(self.key_hash());
        let contents = self.contents();
        let json = object! {
            "hash": hash,
            "seed": seed,
            "tag": tag,
            "whole_keys": contents.whole_keys(),
            "prefix_extractor": contents.extractor().map(hex),
            "stored_bytes": about.length,
            "partitions": self.partitions(),
            "partition_bytes": self.stored_bytes(),
            "keys_inserted": self.keys_inserted(),
            "checksums_ok": true,
        };
        let rows = vec![
            ("format", about.format.to_owned()),
            ("kind", "the index of a filter in partitions, which are elsewhere".to_owned()),
            ("hash", self.key_hash().to_string()),
            ("contents", contents.to_string()),
            ("stored size", sizes(about.length)),
            ("partitions", self.partitions().to_string()),
            ("size of the partitions", sizes(self.stored_bytes())),
            ("keys inserted", self.keys_inserted().to_string()),
            ("checksums", "ok".to_owned()),
        ];
        Facts::new(about, json, rows)
    }

    fn lookup<'o>(&'o self, wanted: &mut Wanted<'_>) -> Result<Answers<'o>, Error> {
        let problem = "the index of a partitioned filter, without its partitions";
        wanted.warnings.push(Warning::of_pass_all(problem));
        pass_all()
    }
}
