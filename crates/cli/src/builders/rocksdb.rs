//! RocksDB's filter blocks.

use blocked_bloom::{Filter as _, Sizing};
use blocked_bloom_formats::rocksdb::{
    FilterBlock, FilterBlockBuilder, FilterKind, RibbonBlockBuilder, hash_key,
};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers, push};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;

pub(super) static BLOCK: BuildFormat = BuildFormat {
    name: "rocksdb-block",
    help: "RocksDB's Bloom filter block, for an SST file, without the checksum after it",
    extension: Some(".filter"),
    options: &["--bits-per-key"],
    builder: Some(bloom),
};

pub(super) static RIBBON: BuildFormat = BuildFormat {
    name: "rocksdb-ribbon",
    help: "RocksDB's Ribbon filter block, with its fall-back to Bloom for few keys",
    extension: Some(".filter"),
    options: &["--bits-per-key"],
    builder: Some(ribbon),
};

enum BlockBuilder {
    Bloom(FilterBlockBuilder),
    Ribbon(RibbonBlockBuilder),
}

/// Collects keys; their hashes are kept a second time to verify the finished block.
struct Keys {
    builder: BlockBuilder,
    verify: bool,
    hashes: Vec<u64>,
}

fn bloom(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let builder = FilterBlockBuilder::new(bits_per_key(options)?).map_err(Failure::new)?;
    Ok(keys(BlockBuilder::Bloom(builder), options))
}

fn ribbon(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let builder = RibbonBlockBuilder::new(bits_per_key(options)?).map_err(Failure::new)?;
    Ok(keys(BlockBuilder::Ribbon(builder), options))
}

fn bits_per_key(options: &BuildOptions<'_>) -> Result<f64, Failure> {
    let bits_per_key = options.bits_per_key.unwrap_or(10.0);
    // RocksDB lowers values above the limit of --bits-per-key; here they are errors.
    Sizing::BitsPerKey(bits_per_key).params(0).map_err(Failure::new)?;
    Ok(bits_per_key)
}

fn keys(builder: BlockBuilder, options: &BuildOptions<'_>) -> Box<dyn Builder> {
    Box::new(Keys { builder, verify: options.verify, hashes: Vec::new() })
}

impl Builder for Keys {
    fn bytes_per_key(&self) -> u64 {
        let lists = if self.verify { 2 } else { 1 };
        lists * size_of::<u64>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        match &mut self.builder {
            BlockBuilder::Bloom(builder) => builder.insert(key),
            BlockBuilder::Ribbon(builder) => builder.insert(key),
        }
        match self.verify {
            true => push(&mut self.hashes, hash_key(key.as_ref())),
            false => Ok(()),
        }
    }

    fn finish(self: Box<Self>, input: &str) -> Result<Built, Failure> {
        let keys = match &self.builder {
            BlockBuilder::Bloom(builder) => builder.len(),
            BlockBuilder::Ribbon(builder) => builder.len(),
        };
        if keys == 0 {
            return Err(Failure::for_file(input, "no keys: RocksDB stores no filter then"));
        }
        let bytes = match self.builder {
            BlockBuilder::Bloom(builder) => builder.finish(),
            BlockBuilder::Ribbon(builder) => builder.par_finish(),
        };
        let bytes = bytes.map_err(Failure::new)?;
        let block = FilterBlock::from_bytes(&bytes).map_err(Failure::new)?;
        let answers = answers(self.verify, |hits| block.contains_hashes(&self.hashes, hits));
        let shape = match block.kind() {
            FilterKind::FastLocalBloom { probes, blocks } => {
                format!("{}, {probes} probes", counted(blocks, "line"))
            }
            FilterKind::Ribbon { blocks, .. } => format!("Ribbon, {blocks} blocks of 128 slots"),
            kind => format!("{kind:?}"),
        };
        let summary = format!("{}, {shape}", counted(keys as u64, "key"));
        Ok(Built { fit: None, answers, summary, bytes })
    }
}
