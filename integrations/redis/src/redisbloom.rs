//! RedisBloom's filters, which answer, grow and are stored as there. `blocked-bloom-formats` has
//! the filters; this module adds the memory that they need and their form in RDB files and `DUMP`.
//!
//! A key has the numbers of the chain, and of each link its numbers and its bits: those of the
//! header of a dump, in another order.

use std::borrow::Cow;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::redis::{RedisError as FormatError, RedisFilter};
use redis_module::raw;

use crate::allocator::{has_zeros, load_bytes, zeros};
use crate::data_type::{load_double, load_number, load_small};
use crate::loading::{FIRST_LINK, GROWTH, LINK};
use crate::memory::MAX_MEMORY;
use crate::outcome::{AddError, Added, CreateError};
use crate::reserve::{Reserve, UNUSED_EXPANSION};

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
    let Reserve { error_rate: mut rate, capacity: mut keys, expansion, .. } = reserve;
    let mut growth = 1;
    move || {
        (keys, rate) = (keys.saturating_mul(growth), 0.5 * rate);
        growth = expansion;
        (rate > 0.0).then(|| (keys, bytes_for(keys, rate)))
    }
}

/// An empty filter as RedisBloom makes it, if its bytes may be taken.
///
/// RedisBloom 2.8 keeps the lower 32 bits of any expansion: also 0, and also one of a filter that
/// does not grow.
pub(crate) fn create(
    reserve: &Reserve,
    may_take: impl FnOnce(u64) -> bool,
) -> Result<RedisFilter, CreateError> {
    let (expansion, stored) = match reserve.expansion {
        0 => (None, reserve.unused_expansion),
        expansion => (Some((expansion as u32).max(1)), expansion as u32),
    };
    let rate = if expansion.is_some() { 0.5 } else { 1.0 } * reserve.error_rate;
    match bytes_for(reserve.capacity, rate) {
        MAX_MEMORY.. => return Err(CreateError::TooLarge),
        bytes if !may_take(bytes) || !has_zeros(bytes) => return Err(CreateError::Memory),
        _ => {}
    }
    let failed = |error| match error {
        FormatError::Alloc(_) => CreateError::Memory,
        _ => CreateError::Shape,
    };
    let filter =
        RedisFilter::new(reserve.capacity, reserve.error_rate, expansion).map_err(failed)?;
    if stored == expansion.unwrap_or(UNUSED_EXPANSION) {
        return Ok(filter);
    }
    let mut header = filter.dump().next().map_or(Vec::new(), |(_, header)| header.into_owned());
    header[GROWTH..FIRST_LINK].copy_from_slice(&stored.to_le_bytes());
    let bytes = filter.links()[0].as_bytes().len();
    drop(filter);
    let bits = zeros(bytes).ok_or(CreateError::Memory)?;
    RedisFilter::from_links(&header, vec![bits]).map_err(failed)
}

/// Adds keys in order. If the last link is full, a new key gets a new link, provided that
/// `may_take` allows its bytes.
pub(crate) fn add<K: AsRef<[u8]>>(
    filter: &mut RedisFilter,
    keys: &[K],
    may_take: impl Fn(u64) -> bool,
) -> Result<Added, AddError> {
    let hashes: Vec<_> = keys.iter().map(|key| filter.hash_key(key)).collect();
    // Present keys stay present. Looking up the others brings their bytes into the cache.
    let mut present = Bitmask::new();
    filter.contains_hashes(&hashes, &mut present);
    let mut added = Added::default();
    for (before, (&hash, is_present)) in hashes.iter().zip(present.iter()).enumerate() {
        // The call may contain a key twice.
        let is_present = is_present || filter.contains_hash(hash);
        let is_full = filter.links().last().is_none_or(|link| link.size() >= link.entries());
        let may_take = |bytes| may_take(bytes) && has_zeros(bytes);
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
            // Also without a lack of memory, RedisBloom makes some link, which this module cannot.
            Err(_) => return Err(AddError { before, is_memory: true }),
        }
    }
    Ok(added)
}

/// Reads a filter. Returns the reason if the value ends early or is damaged, or if memory runs out.
pub(crate) fn load(rdb: *mut raw::RedisModuleIO) -> Result<RedisFilter, String> {
    let mut header = load_number(rdb, "size")?.to_le_bytes().to_vec();
    let count: u32 = load_small(rdb, "nfilters")?;
    header.extend(count.to_le_bytes());
    for field in ["options", "growth"] {
        header.extend(load_small::<u32>(rdb, field)?.to_le_bytes());
    }
    let mut links = Vec::new();
    for _ in 0..count {
        let entries = load_number(rdb, "entries")?;
        let error = load_double(rdb, "error")?;
        let hashes: u32 = load_small(rdb, "hashes")?;
        let bits_per_entry = load_double(rdb, "bpe")?;
        let (bits, n2) = (load_number(rdb, "bits")?, load_small::<u8>(rdb, "n2")?);
        let bytes = load_bytes(rdb).ok_or("the bits are missing, or the server has no memory")?;
        let size = load_number(rdb, "size of a link")?;
        let numbers = [bytes.len() as u64, bits, size, error.to_bits(), bits_per_entry.to_bits()];
        numbers.iter().for_each(|number| header.extend(number.to_le_bytes()));
        header.extend(hashes.to_le_bytes());
        header.extend(entries.to_le_bytes());
        header.push(n2);
        links.push(bytes);
    }
    RedisFilter::from_links(&header, links).map_err(|error| error.to_string())
}

/// Writes a filter for [`load`].
pub(crate) fn save(rdb: *mut raw::RedisModuleIO, filter: &RedisFilter) -> Option<()> {
    let (_, header) = filter.dump().next()?;
    let mut links = filter.links().iter();
    save_links(rdb, &header, || links.next().map(|link| Cow::Borrowed(link.as_bytes())))
}

/// Writes a filter for [`load`], from the header of its dump and the bytes of each link. Returns
/// none, maybe after writing a part, if either is missing.
pub(crate) fn save_links<'a>(
    rdb: *mut raw::RedisModuleIO,
    header: &[u8],
    mut next_link: impl FnMut() -> Option<Cow<'a, [u8]>>,
) -> Option<()> {
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
    chain.into_iter().for_each(|number| raw::save_unsigned(rdb, number));
    for facts in links.chunks_exact(LINK) {
        raw::save_unsigned(rdb, number::<8>(facts, 44)?);
        raw::save_double(rdb, f64::from_bits(number::<8>(facts, 24)?));
        raw::save_unsigned(rdb, number::<4>(facts, 40)?);
        raw::save_double(rdb, f64::from_bits(number::<8>(facts, 32)?));
        raw::save_unsigned(rdb, number::<8>(facts, 8)?);
        raw::save_unsigned(rdb, number::<1>(facts, LINK - 1)?);
        raw::save_slice(rdb, &next_link()?);
        raw::save_unsigned(rdb, number::<8>(facts, 16)?);
    }
    Some(())
}
