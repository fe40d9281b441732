//! Dumps: what `BF.SCANDUMP` replies and `BF.LOADCHUNK` takes, and what RDB files and rewritten AOF
//! files have. A dump is a header, with iterator 1, and then the data in pieces, each with an
//! iterator that is one more than where it ends.

use std::borrow::Cow;

use crate::filter::Filter;

/// Most bytes of a piece of a dump, as in RedisBloom.
pub(crate) const PIECE: usize = 16 << 20;

/// Most bytes of a piece of an own filter: what takes it computes checksums, too, which shall not
/// keep the server for longer than a piece of RedisBloom's.
const BLOCKED_PIECE: usize = 8 << 20;

impl Filter {
    /// The header.
    pub(crate) fn header(&self) -> Cow<'_, [u8]> {
        match self {
            Filter::Blocked(filter) => filter.header().into(),
            Filter::Redis(filter) => {
                filter.dump().next().map(|(_, header)| header).unwrap_or_default()
            }
            Filter::Loading(loading) => Cow::Borrowed(loading.header()),
            Filter::Valkey(filter) => filter.header().into(),
        }
    }

    /// The piece of at most `most` bytes that follows the one with this iterator, and its own
    /// iterator. None at the end. Pieces of an own filter have at most [`BLOCKED_PIECE`] bytes. If
    /// the filter is being loaded, the piece may begin after a gap.
    pub(crate) fn piece(&self, iterator: i64, most: usize) -> Option<(i64, Cow<'_, [u8]>)> {
        let offset = u64::try_from(iterator.checked_sub(1)?).ok()?;
        let piece: Cow<'_, [u8]> = match self {
            Filter::Blocked(filter) => filter.piece(offset, most.min(BLOCKED_PIECE), false)?.into(),
            Filter::Redis(filter) => filter.dump().skip(1).find_map(|(end, data)| {
                let start = (end as u64 - 1).checked_sub(data.len() as u64)?;
                let within = usize::try_from(offset.checked_sub(start)?).ok()?;
                let Cow::Borrowed(data) = data else { return None };
                let data = data.get(within..).filter(|data| !data.is_empty())?;
                Some(Cow::Borrowed(&data[..data.len().min(most)]))
            })?,
            Filter::Loading(loading) => {
                let (start, piece) = loading.piece(offset, most)?;
                let end = i64::try_from(start).ok()?.checked_add(1 + piece.len() as i64)?;
                return Some((end, Cow::Borrowed(piece)));
            }
            Filter::Valkey(filter) => {
                let (start, bits) = filter.bits_at(offset)?;
                let bits = &bits[(offset - start) as usize..];
                Cow::Borrowed(&bits[..bits.len().min(most)])
            }
        };
        let end = iterator.checked_add(piece.len() as i64)?;
        Some((end, piece))
    }

    /// The reply to `BF.SCANDUMP` with this iterator. Before the first piece of a large own filter
    /// come replies without data, with negative iterators, while its checksums are computed.
    pub(crate) fn scan(&self, iterator: i64) -> Option<(i64, Cow<'_, [u8]>)> {
        let Filter::Blocked(filter) = self else { return self.piece(iterator, PIECE) };
        if let Some(next) = filter.read_part(iterator) {
            return Some((next, Cow::default()));
        }
        let iterator = if filter.is_read_in_parts() { iterator.max(1) } else { iterator };
        let offset = u64::try_from(iterator.checked_sub(1)?).ok()?;
        let piece = filter.piece(offset, BLOCKED_PIECE, true)?;
        Some((iterator.checked_add(piece.len() as i64)?, piece.into()))
    }

    /// Whether the dump has these bytes where a piece with this iterator ends: a client then
    /// repeats a piece whose reply it has lost. The header of a filter that is being loaded does
    /// not count, since it begins the load again.
    pub(crate) fn has_piece(&self, iterator: i64, data: &[u8]) -> bool {
        if iterator == 1 {
            return !matches!(self, Filter::Loading(_)) && self.header() == data;
        }
        let mut at = iterator.saturating_sub(data.len() as i64);
        let mut rest = data;
        while let Some((end, piece)) = self.piece(at, rest.len()).filter(|_| !rest.is_empty()) {
            if end != at + piece.len() as i64 || !rest.starts_with(&piece) {
                return false;
            }
            (at, rest) = (end, &rest[piece.len()..]);
        }
        rest.is_empty() && !data.is_empty()
    }
}
