//! The metaindex of an SST file: the kind and the location of its filter. Only RocksDB's own
//! filters are supported, and none that is stored per data block.

use super::super::error::RocksdbError;
use super::block::{Block, Handle};
use super::entries::{Cursor, Entries};

/// How the filter of an SST file is stored.
///
/// ```
/// use blocked_bloom_formats::rocksdb::{FilterLayout, SstFilter};
/// # if cfg!(not(target_family = "wasm")) {
/// let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst")?;
/// assert_eq!(SstFilter::open(&file)?.layout(), FilterLayout::Partitioned);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FilterLayout {
    /// No filter.
    None,
    /// One block for the whole file.
    Full,
    /// A block per range of keys, and an index of them.
    Partitioned,
    /// Only a filter per data block, which RocksDB dropped in 2022 and which is not supported.
    PerDataBlock,
    /// Only a filter of a policy other than RocksDB's own.
    OtherPolicy,
}

/// Names of RocksDB's own filters in the metaindex, the same for LegacyBloom, FastLocalBloom and
/// Ribbon.
const FULL: &[u8] = b"fullfilter.rocksdb.BuiltinBloomFilter";
const PARTITIONED: &[u8] = b"partitionedfilter.rocksdb.BuiltinBloomFilter";

/// The contents of the metaindex.
pub(super) struct Metaindex {
    pub(super) properties: Option<Handle>,
    pub(super) full: Option<Handle>,
    pub(super) partitioned: Option<Handle>,
    /// The layout if there is neither a full nor a partitioned filter.
    pub(super) unread: FilterLayout,
}

impl Metaindex {
    pub(super) fn read(block: Block<'_>) -> Result<Self, RocksdbError> {
        let unread = FilterLayout::None;
        let mut names = Metaindex { properties: None, full: None, partitioned: None, unread };
        Entries::for_each(block, |name, value| {
            let handle = || Cursor::new(value).handle();
            let is_of = |kind: &str| name.starts_with(kind.as_bytes());
            match name {
                b"rocksdb.properties" => names.properties = Some(handle()?),
                FULL => names.full = Some(handle()?),
                PARTITIONED => names.partitioned = Some(handle()?),
                _ if is_of("filter.") => names.unread = FilterLayout::PerDataBlock,
                _ if is_of("fullfilter.") || is_of("partitionedfilter.") => {
                    names.unread = FilterLayout::OtherPolicy;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(names)
    }
}
