//! The metaindex of an SST file: which filter there is, and where.
//!
//! This file owns the names. It refuses to read filters that are not RocksDB's own, or that are kept per data block.

use super::super::error::RocksdbError;
use super::FilterLayout;
use super::entries::{Cursor, Entries};
use super::table::{Block, Handle};

/// Names of RocksDB's own filters in the metaindex: the same for LegacyBloom, FastLocalBloom and Ribbon.
const FULL: &[u8] = b"fullfilter.rocksdb.BuiltinBloomFilter";
const PARTITIONED: &[u8] = b"partitionedfilter.rocksdb.BuiltinBloomFilter";

/// What the metaindex names.
pub(super) struct Metaindex {
    pub(super) properties: Option<Handle>,
    pub(super) full: Option<Handle>,
    pub(super) partitioned: Option<Handle>,
    /// What there is if neither.
    pub(super) unread: FilterLayout,
}

impl Metaindex {
    pub(super) fn of(block: Block<'_>) -> Result<Self, RocksdbError> {
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
