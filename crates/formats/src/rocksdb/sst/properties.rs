//! The properties of an SST file that determine which lookups its filter supports.
//!
//! If a property is missing, lookups that depend on it answer "maybe".

use alloc::string::String;
use core::ops::Range;

use blocked_bloom::AllocError;

use super::super::error::RocksdbError;
use super::block::Block;
use super::entries::{Cursor, Entries};

/// The known properties of a table; all are unset without a properties block.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) comparator: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) extractor: Option<String>,
    pub(super) whole_keys: Option<bool>,
    pub(super) prefixes: Option<bool>,
    pub(super) filter_entries: Option<u64>,
    pub(super) range_deletions: Option<u64>,
    /// Whether the separators of the partition index are user keys. By default they are internal
    /// keys.
    pub(super) user_key_separators: bool,
    /// Whether handles of the partition index are stored as differences.
    pub(super) delta_handles: bool,
}

impl Properties {
    pub(super) fn read(block: Block<'_>) -> Result<Self, RocksdbError> {
        let mut properties = Properties::default();
        Entries::for_each(block, |name, value| {
            let number = || Cursor::new(value).varint();
            match name {
                b"rocksdb.comparator" => properties.comparator = text(value)?,
                b"rocksdb.filter.policy" => properties.policy = text(value)?,
                b"rocksdb.prefix.extractor.name" => properties.extractor = text(value)?,
                b"rocksdb.block.based.table.whole.key.filtering" => {
                    properties.whole_keys = flag(value);
                }
                b"rocksdb.block.based.table.prefix.filtering" => properties.prefixes = flag(value),
                b"rocksdb.num.filter_entries" => properties.filter_entries = Some(number()?),
                b"rocksdb.num.range-deletions" => properties.range_deletions = Some(number()?),
                b"rocksdb.index.key.is.user.key" => {
                    properties.user_key_separators = number()? != 0;
                }
                b"rocksdb.index.value.is.delta.encoded" => {
                    properties.delta_handles = number()? != 0;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(properties)
    }

    /// Returns the range of the sequence number that RocksDB writes when it ingests a file.
    pub(super) fn sequence_number(block: Block<'_>) -> Option<Range<usize>> {
        let mut place = None;
        let outcome = Entries::for_each(block, |name, value| {
            if name == b"rocksdb.external_sst_file.global_seqno" && value.bytes.len() == 8 {
                let start = (value.offset - block.offset) as usize;
                place = Some(start..start + 8);
            }
            Ok(())
        });
        outcome.ok().and(place)
    }
}

/// Copies a text, since the owner of the file may lend other bytes later.
fn text(value: Block<'_>) -> Result<Option<String>, AllocError> {
    let Ok(text) = core::str::from_utf8(value.bytes) else { return Ok(None) };
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| AllocError::new(text.len() as u64))?;
    copy.push_str(text);
    Ok(Some(copy))
}

fn flag(value: Block<'_>) -> Option<bool> {
    match value.bytes {
        b"1" => Some(true),
        b"0" => Some(false),
        _ => None,
    }
}
