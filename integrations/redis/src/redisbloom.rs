//! RedisBloom's filters, which answer, grow and are stored as there: what the crate that reads them
//! does not know, how much memory they take, and the form that they have in RDB files and in `DUMP`
//! where the operator loads this module in RedisBloom's place.
//!
//! A key has the numbers of the chain, and of each link its numbers and its bits: those of the
//! header of a dump, in another order.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::redis::{RedisError as FormatError, RedisFilter};
use redis_module::raw;

use crate::allocator::load_bytes;
use crate::loading::{FIRST_LINK, LINK};
use crate::memory::MOST;
use crate::outcome::{AddError, Added, CreateError};
use crate::reserve::{MAX_EXPANSION, Reserve};

/// RedisBloom's square of `ln(2)`: bits per key are `-ln(error rate)` divided by this.
const LN_2_SQUARED: f64 = 0.480453013918201;

/// Options in a header of RedisBloom's, and their offset: sizes are not rounded up to powers of
/// two; numbers of keys are logarithms of bits.
const NO_ROUND: u32 = 1;
const ENTRIES_IS_BITS: u32 = 2;
const OPTIONS: usize = 12;

/// Bytes of the next link; 0 if there is none.
///
/// No command of RedisBloom makes filters whose numbers of keys are logarithms; the next link of
/// one would have 2^40 bits or more, which no server has.
fn next_link_bytes(filter: &RedisFilter) -> u64 {
    let (Some(growth), Some(last)) = (filter.expansion(), filter.links().last()) else { return 0 };
    let header = filter.dump().next().map(|(_, header)| header).unwrap_or_default();
    let options = header.get(OPTIONS..).and_then(|bytes| bytes.first_chunk());
    let options = options.map_or(ENTRIES_IS_BITS, |bytes| u32::from_le_bytes(*bytes));
    if options & ENTRIES_IS_BITS != 0 {
        return u64::MAX;
    }
    let rounding = if options & NO_ROUND != 0 { 1 } else { 2 };
    let entries = last.entries().saturating_mul(growth.into()).max(1);
    bytes_for(entries, last.error_rate() * 0.5).saturating_mul(rounding)
}

/// Bytes of a link of RedisBloom's. The conversion saturates.
fn bytes_for(entries: u64, rate: f64) -> u64 {
    (entries as f64 * -rate.ln() / LN_2_SQUARED / 8.0) as u64
}

/// Keys and bytes of each link to come.
pub(crate) fn links_to_come(filter: &RedisFilter) -> impl FnMut() -> Option<(u64, u64)> + use<> {
    let last = filter.links().last();
    let (mut keys, mut rate) = last.map_or((0, 0.0), |link| (link.entries(), link.error_rate()));
    let growth = u64::from(filter.expansion().unwrap_or(1));
    move || {
        (keys, rate) = (keys.saturating_mul(growth), 0.5 * rate);
        (rate > 0.0).then(|| (keys, bytes_for(keys, rate)))
    }
}

/// Keys and bytes of each link of a filter that is made so, and grows.
pub(crate) fn links_of(reserve: Reserve) -> impl FnMut() -> Option<(u64, u64)> {
    let Reserve { error_rate: mut rate, capacity: mut keys, expansion } = reserve;
    let mut growth = 1;
    move || {
        (keys, rate) = (keys.saturating_mul(growth), 0.5 * rate);
        growth = expansion;
        (rate > 0.0).then(|| (keys, bytes_for(keys, rate)))
    }
}

/// An empty filter as RedisBloom makes it, if its bytes may be taken.
pub(crate) fn create(
    reserve: &Reserve,
    may_take: impl FnOnce(u64) -> bool,
) -> Result<RedisFilter, CreateError> {
    let expansion = u32::try_from(reserve.expansion).ok().filter(|&expansion| expansion > 0);
    let rate = if expansion.is_some() { 0.5 } else { 1.0 } * reserve.error_rate;
    match bytes_for(reserve.capacity, rate) {
        MOST.. => return Err(CreateError::TooLarge),
        bytes if !may_take(bytes) => return Err(CreateError::Memory),
        _ => {}
    }
    let filter = RedisFilter::new(reserve.capacity, reserve.error_rate, expansion);
    filter.map_err(|error| match error {
        FormatError::Alloc(_) => CreateError::Memory,
        _ => CreateError::Shape,
    })
}

/// Adds keys in their order. A link is made for one that is not there, if its bytes may be taken.
pub(crate) fn add<K: AsRef<[u8]>>(
    filter: &mut RedisFilter,
    keys: &[K],
    may_take: impl Fn(u64) -> bool,
) -> Result<Added, AddError> {
    let hashes: Vec<_> = keys.iter().map(|key| filter.hash_key(key)).collect();
    // Keys that are there stay there, and the lines of the others are in the cache afterwards.
    let mut present = Bitmask::new();
    filter.contains_hashes(&hashes, &mut present);
    let mut added = Added::default();
    for (before, (&hash, is_present)) in hashes.iter().zip(present.iter()).enumerate() {
        // An earlier key of the call may be the same.
        let is_present = is_present || filter.contains_hash(hash);
        let is_full = filter.links().last().is_none_or(|link| link.size() >= link.entries());
        if !is_present && is_full && !may_take(next_link_bytes(filter)) {
            return Err(AddError { before, is_memory: true });
        }
        let is_new = match is_present {
            true => Ok(false),
            false => filter.insert_hash(hash),
        };
        match is_new {
            Ok(is_new) => added.is_new.push(is_new),
            Err(FormatError::Full { .. }) => {
                added.is_full = true;
                break;
            }
            Err(error) => {
                return Err(AddError { before, is_memory: matches!(error, FormatError::Alloc(_)) });
            }
        }
    }
    Ok(added)
}

/// Reads a filter; none if the file ends, is damaged, or there is no memory.
pub(crate) fn load(rdb: *mut raw::RedisModuleIO) -> Option<RedisFilter> {
    let number = || raw::load_unsigned(rdb).ok();
    let (size, count, options, growth) = (number()?, number()?, number()?, number()?);
    if growth > MAX_EXPANSION as u64 {
        return None;
    }
    let mut header = size.to_le_bytes().to_vec();
    for number in [count, options, growth] {
        header.extend(u32::try_from(number).ok()?.to_le_bytes());
    }
    let mut links = Vec::new();
    for _ in 0..count {
        let entries = number()?;
        let error = raw::load_double(rdb).ok()?;
        let hashes = u32::try_from(number()?).ok()?;
        let bits_per_entry = raw::load_double(rdb).ok()?;
        let (bits, n2) = (number()?, u8::try_from(number()?).ok()?);
        let bytes = load_bytes(rdb)?;
        let numbers =
            [bytes.len() as u64, bits, number()?, error.to_bits(), bits_per_entry.to_bits()];
        numbers.iter().for_each(|number| header.extend(number.to_le_bytes()));
        header.extend(hashes.to_le_bytes());
        header.extend(entries.to_le_bytes());
        header.push(n2);
        links.push(bytes);
    }
    RedisFilter::from_links(&header, links).ok()
}

/// Writes what [`load`] reads; nothing, and none, if it cannot be told.
pub(crate) fn save(rdb: *mut raw::RedisModuleIO, filter: &RedisFilter) -> Option<()> {
    let (_, header) = filter.dump().next()?;
    let (chain, links) = header.split_at_checked(FIRST_LINK)?;
    fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
        let mut number = [0; 8];
        number[..N].copy_from_slice(bytes.get(at..at + N)?);
        Some(u64::from_le_bytes(number))
    }
    let chain = [
        number::<8>(chain, 0)?,
        number::<4>(chain, 8)?,
        number::<4>(chain, 12)?,
        number::<4>(chain, 16)?,
    ];
    let links = links.chunks_exact(LINK).zip(filter.links()).map(|(facts, link)| {
        let entries = number::<8>(facts, 44)?;
        let error = f64::from_bits(number::<8>(facts, 24)?);
        let hashes = number::<4>(facts, 40)?;
        let bits_per_entry = f64::from_bits(number::<8>(facts, 32)?);
        let (bits, n2) = (number::<8>(facts, 8)?, number::<1>(facts, LINK - 1)?);
        let size = number::<8>(facts, 16)?;
        Some((entries, error, hashes, bits_per_entry, bits, n2, link.as_bytes(), size))
    });
    let links: Vec<_> = links.collect::<Option<_>>()?;
    // From here on nothing fails, so that no file has half a key.
    chain.into_iter().for_each(|number| raw::save_unsigned(rdb, number));
    for (entries, error, hashes, bits_per_entry, bits, n2, bytes, size) in links {
        raw::save_unsigned(rdb, entries);
        raw::save_double(rdb, error);
        raw::save_unsigned(rdb, hashes);
        raw::save_double(rdb, bits_per_entry);
        raw::save_unsigned(rdb, bits);
        raw::save_unsigned(rdb, n2);
        raw::save_slice(rdb, bytes);
        raw::save_unsigned(rdb, size);
    }
    Some(())
}
