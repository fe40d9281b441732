//! Dumps: what `BF.SCANDUMP` replies and `BF.LOADCHUNK` takes, and what RDB files and rewritten AOF
//! files have. A dump is a header, with iterator 1, and then the data in pieces, each with an
//! iterator that is one more than where it ends.

use std::borrow::Cow;

use crate::filter::Filter;

/// Most bytes of a piece of a dump, as in RedisBloom.
pub(crate) const PIECE: usize = 16 << 20;

/// Most bytes of a piece of an own filter: what takes it computes checksums, too, which shall not
/// keep the server for longer than a piece of RedisBloom's.
const OWN_PIECE: usize = 8 << 20;

impl Filter {
    /// The header.
    pub(crate) fn header(&self) -> Cow<'_, [u8]> {
        match self {
            Filter::Own(filter) => filter.header().into(),
            Filter::Redis(filter) => {
                filter.dump().next().map(|(_, header)| header).unwrap_or_default()
            }
            Filter::Loading(loading) => Cow::Borrowed(loading.header()),
            // It has no dump: `BF.SCANDUMP` is an error.
            Filter::Valkey(_) => Cow::default(),
        }
    }

    /// The piece that begins where `iterator` says, of `most` bytes at most, and its iterator; none
    /// behind the end. An own filter has smaller ones at most; of a filter that is being loaded, it
    /// is what has come.
    pub(crate) fn piece(&self, iterator: i64, most: usize) -> Option<(i64, Cow<'_, [u8]>)> {
        let offset = u64::try_from(iterator.checked_sub(1)?).ok()?;
        let piece: Cow<'_, [u8]> = match self {
            Filter::Own(filter) => filter.piece(offset, most.min(OWN_PIECE))?.into(),
            Filter::Redis(filter) => filter.dump().skip(1).find_map(|(end, data)| {
                let start = (end as u64 - 1).checked_sub(data.len() as u64)?;
                let within = usize::try_from(offset.checked_sub(start)?).ok()?;
                let Cow::Borrowed(data) = data else { return None };
                let data = data.get(within..).filter(|data| !data.is_empty())?;
                Some(Cow::Borrowed(&data[..data.len().min(most)]))
            })?,
            Filter::Loading(loading) => Cow::Borrowed(loading.piece(offset, most)?),
            Filter::Valkey(_) => return None,
        };
        let end = iterator.checked_add(piece.len() as i64)?;
        Some((end, piece))
    }
}
