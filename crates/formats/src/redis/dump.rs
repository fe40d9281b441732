//! Dumps: the replies of `BF.SCANDUMP`, which `BF.LOADCHUNK` accepts, and a file of them.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use blocked_bloom::AllocError;

use super::chain::RedisFilter;
use super::error::{RedisError, check_range};
use super::link::{ENTRIES_IS_BITS, FORCE_64, Facts, LINK_BYTES, NO_ROUND, NO_SCALING};
use crate::ClassicalFilter;

/// Bytes of a header before the links: total keys, number of links, options, growth.
const FIXED_BYTES: usize = 20;
/// Maximum size of a reply.
const CHUNK_BYTES: usize = 16 << 20;
/// Bytes before a reply in a file: iterator and length.
const FRAME_BYTES: usize = 16;
/// All known options.
const OPTIONS: u32 = NO_ROUND | ENTRIES_IS_BITS | FORCE_64 | NO_SCALING;

impl RedisFilter {
    /// Loads the replies of `BF.SCANDUMP`, like `BF.LOADCHUNK`. Each reply is an iterator and data:
    /// the header with iterator 1, then the bits in order. A last reply with iterator 0 and without
    /// data may follow. No reply may extend past the end of a link.
    ///
    /// Cost: copies the data. Memory grows with the data passed, and not with the sizes in the
    /// header.
    ///
    /// # Errors
    ///
    /// [`RedisError`] if RedisBloom would not load the header, if a reply is missing, repeated or
    /// out of order, or if an allocation fails. A rejected dump must not be used to answer
    /// "absent".
    pub fn load<D: AsRef<[u8]>>(
        replies: impl IntoIterator<Item = (i64, D)>,
    ) -> Result<Self, RedisError> {
        let mut replies = replies.into_iter();
        let (options, growth, facts) = match replies.next() {
            Some((1, header)) => read_header(header.as_ref())?,
            Some((iterator, _)) => return Err(RedisError::Order { iterator, expected: 1 }),
            None => {
                let expected = (FIXED_BYTES + LINK_BYTES) as u64;
                return Err(RedisError::Truncated { offset: 0, expected });
            }
        };
        let expected = facts.iter().map(|link| link.stored_bytes()).fold(0, u64::saturating_add);
        let mut found = 0_u64;
        let mut links = Vec::new();
        let mut bytes = Vec::new();
        let mut facts = facts.into_iter();
        let (mut current, mut ended) = (facts.next(), false);
        for (iterator, data) in replies {
            let data = data.as_ref();
            if iterator == 0 && data.is_empty() {
                ended = true;
                continue;
            }
            match (ended, current) {
                (false, _) => {}
                (true, Some(_)) => break,
                (true, None) => return Err(RedisError::Order { iterator, expected: 0 }),
            }
            found = found.saturating_add(data.len() as u64);
            let expected = i64::try_from(found).unwrap_or(i64::MAX).saturating_add(1);
            if iterator != expected {
                return Err(RedisError::Order { iterator, expected });
            }
            let most = current.map_or(0, |link| link.stored_bytes() - bytes.len() as u64);
            if data.len() as u64 > most {
                let found = data.len() as u64;
                return Err(RedisError::SpansLinks { iterator, found, most });
            }
            let error = AllocError::new(bytes.len() as u64 + data.len() as u64);
            bytes.try_reserve(data.len()).map_err(|_| error)?;
            bytes.extend_from_slice(data);
            if let Some(link) = current
                && link.stored_bytes() == bytes.len() as u64
            {
                links.push(ClassicalFilter::from_parts(link, core::mem::take(&mut bytes)));
                current = facts.next();
            }
        }
        if current.is_some() {
            return Err(RedisError::Missing { found, expected });
        }
        Ok(RedisFilter { options, growth, links })
    }

    /// Builds a filter from a dump's header and the bits of each link, without copying the bits,
    /// for programs that read them separately.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](Self::load) for the header; [`RedisError::Missing`] if the number or
    /// the lengths of the links differ from the header.
    ///
    /// ```
    /// use blocked_bloom_formats::redis::RedisFilter;
    /// let mut filter = RedisFilter::new(100, 0.01, Some(2))?;
    /// filter.insert("apple")?;
    /// let (_, header) = filter.dump().next().unwrap_or_default();
    /// let bits = filter.links()[0].as_bytes().to_vec();
    /// assert_eq!(RedisFilter::from_links(&header, vec![bits])?, filter);
    /// # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
    /// ```
    pub fn from_links(header: &[u8], links: Vec<Vec<u8>>) -> Result<Self, RedisError> {
        let (options, growth, facts) = read_header(header)?;
        let sum = |bytes: &mut dyn Iterator<Item = u64>| bytes.fold(0, u64::saturating_add);
        let expected = sum(&mut facts.iter().map(|link| link.stored_bytes()));
        let found = sum(&mut links.iter().map(|link| link.len() as u64));
        let lengths = links.iter().map(|link| link.len() as u64);
        if !lengths.eq(facts.iter().map(|link| link.stored_bytes())) {
            return Err(RedisError::Missing { found, expected });
        }
        let links = facts.into_iter().zip(links);
        let links = links.map(|(facts, bits)| ClassicalFilter::from_parts(facts, bits)).collect();
        Ok(RedisFilter { options, growth, links })
    }

    /// Overwrites bits as `BF.LOADCHUNK` does to a filter that exists: for programs that follow a
    /// server's commands. RedisBloom accepts pieces in any order and any number of times, also
    /// after additions.
    ///
    /// Overwriting bits can make added keys "absent", and does not change the number of keys.
    ///
    /// # Errors
    ///
    /// [`RedisError::Order`] if the data would begin before the first bit or after the last one,
    /// [`RedisError::SpansLinks`] if it goes beyond the end of a link. The filter is then
    /// unchanged.
    ///
    /// ```
    /// use blocked_bloom_formats::redis::RedisFilter;
    /// let mut source = RedisFilter::new(100, 0.01, Some(2))?;
    /// let mut copy = source.clone();
    /// source.insert("apple")?;
    /// for (iterator, data) in source.dump().skip(1) {
    ///     copy.load_chunk(iterator, &data)?;
    /// }
    /// assert!(copy.contains("apple"));
    /// # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
    /// ```
    pub fn load_chunk(&mut self, iterator: i64, data: &[u8]) -> Result<(), RedisError> {
        let found = data.len() as u64;
        let bytes = self.links.iter().map(|link| link.as_bytes().len() as u64).sum::<u64>();
        let expected = i64::try_from(bytes.saturating_add(1)).unwrap_or(i64::MAX);
        let order = RedisError::Order { iterator, expected };
        let start = u64::try_from(iterator).ok().and_then(|end| end.checked_sub(1 + found));
        let mut start = start.ok_or(order)?;
        for link in &mut self.links {
            let stored = link.stored_mut();
            let most = stored.len() as u64;
            if start >= most {
                start -= most;
                continue;
            }
            let most = most - start;
            let place = stored[start as usize..].get_mut(..data.len());
            place.ok_or(RedisError::SpansLinks { iterator, found, most })?.copy_from_slice(data);
            return Ok(());
        }
        Err(order)
    }

    /// Returns the replies of `BF.SCANDUMP`, each an iterator and data, for `BF.LOADCHUNK`. The
    /// last reply, with iterator 0 and without data, is omitted.
    ///
    /// The first reply is the header. The others are the bits, borrowed, at most 16 MiB each.
    pub fn dump(&self) -> impl Iterator<Item = (i64, Cow<'_, [u8]>)> {
        let mut end = 1;
        let chunks = self.links.iter().flat_map(|link| link.as_bytes().chunks(CHUNK_BYTES));
        let chunks = chunks.map(move |chunk| {
            end += chunk.len() as i64;
            (end, Cow::Borrowed(chunk))
        });
        core::iter::once((1, Cow::Owned(self.header()))).chain(chunks)
    }

    fn header(&self) -> Vec<u8> {
        let mut header = self.size().to_le_bytes().to_vec();
        for number in [self.links.len() as u32, self.options, self.growth] {
            header.extend(number.to_le_bytes());
        }
        self.links.iter().for_each(|link| header.extend(link.shape().write()));
        header
    }

    /// Opens a file of a dump: for each reply its iterator (8 bytes, little-endian, signed), its
    /// length (8 bytes) and its data. RedisBloom defines no file; `docs/foreign.md` shows how to
    /// write one with any client.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](Self::load), and [`RedisError::Truncated`] if the bytes end within a
    /// reply.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RedisError> {
        let mut replies = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let offset = bytes.len() as u64;
            let start = offset - rest.len() as u64;
            let expected = start.saturating_add(FRAME_BYTES as u64);
            let truncated = RedisError::Truncated { offset, expected };
            let (iterator, after) = rest.split_first_chunk().ok_or(truncated)?;
            let (length, after) = after.split_first_chunk().ok_or(truncated)?;
            let (iterator, length) = (i64::from_le_bytes(*iterator), u64::from_le_bytes(*length));
            let expected = expected.saturating_add(length);
            let length = usize::try_from(length).ok().filter(|&length| length <= after.len());
            let Some(length) = length else {
                return Err(RedisError::Truncated { offset, expected });
            };
            let (data, after) = after.split_at(length);
            rest = after;
            replies.push((iterator, data));
            if iterator == 0 && data.is_empty() && !rest.is_empty() {
                return Err(RedisError::Trailing { offset, expected });
            }
        }
        Self::load(replies)
    }

    /// Returns a file of the dump, which [`from_bytes`](Self::from_bytes) opens.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for (iterator, data) in self.dump() {
            file.extend(iterator.to_le_bytes());
            file.extend((data.len() as u64).to_le_bytes());
            file.extend_from_slice(&data);
        }
        file
    }
}

/// Reads options, growth and the links.
fn read_header(header: &[u8]) -> Result<(u32, u32, Vec<Facts>), RedisError> {
    let offset = header.len() as u64;
    let Some((fixed, links)) = header.split_first_chunk::<FIXED_BYTES>() else {
        return Err(RedisError::Truncated { offset, expected: (FIXED_BYTES + LINK_BYTES) as u64 });
    };
    let number = |at: usize| {
        let bytes: [u8; 4] = [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
        u32::from_le_bytes(bytes)
    };
    let size = u64::from(number(0)) | u64::from(number(4)) << 32;
    let (count, options, growth) = (number(8), number(12), number(16));
    let check =
        |offset, field, found, least, most| check_range(Some(offset), field, found, least, most);
    check(8, "nfilters", count.into(), 1, u32::MAX.into())?;
    check(12, "options", options.into(), 0, OPTIONS.into())?;
    let expected = FIXED_BYTES as u64 + u64::from(count) * LINK_BYTES as u64;
    if offset < expected {
        return Err(RedisError::Truncated { offset, expected });
    }
    if offset > expected {
        return Err(RedisError::Trailing { offset, expected });
    }
    let (links, _) = links.as_chunks();
    let start = |i: usize| (FIXED_BYTES + i * LINK_BYTES) as u64;
    let links: Result<Vec<Facts>, RedisError> =
        links.iter().enumerate().map(|(i, link)| Facts::read(link, start(i), options)).collect();
    let links = links?;
    let sum = links.iter().try_fold(0_u64, |sum, link| sum.checked_add(link.size()));
    let sum = sum.unwrap_or(u64::MAX);
    check(0, "size", size, sum, sum)?;
    Ok((options, growth, links))
}
