//! RedisBloom's module type, taken over where the operator loads this module in its place: keys of
//! RedisBloom's RDB files, and of its `DUMP`, in the form that RedisBloom itself reads.
//!
//! A key has the numbers of the chain, and of each link its numbers and its bits: those of the
//! header of a dump, in another order.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use blocked_bloom_formats::redis::RedisFilter;
use redis_module::native_types::RedisType;
use redis_module::raw;

use crate::allocator::load_bytes;
use crate::data_type::{self, end_the_writing, filter};
use crate::filter::Filter;
use crate::loading::{FIRST_LINK, LINK};
use crate::reserve::MAX_EXPANSION;

/// The version of RedisBloom's files since 2.0.
const ENCODING: i32 = 4;

pub(crate) static REDISBLOOM: RedisType =
    RedisType::new("MBbloom--", ENCODING, data_type::methods(rdb_load, rdb_save));

/// Reads a filter; none if the file ends, is damaged, or there is no memory.
fn load(rdb: *mut raw::RedisModuleIO) -> Option<RedisFilter> {
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

unsafe extern "C" fn rdb_load(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    if encoding != ENCODING {
        return null_mut();
    }
    data_type::loaded(|| Some(Filter::Redis(Box::new(load(rdb)?))))
}

/// Writes what [`load`] reads; nothing, and none, if it cannot be told.
fn save(rdb: *mut raw::RedisModuleIO, filter: &RedisFilter) -> Option<()> {
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

unsafe extern "C" fn rdb_save(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: Redis passes the value of a key of this type, and runs no command meanwhile, or runs
    // it in another process.
    let filter = unsafe { filter(value) };
    let saved = catch_unwind(AssertUnwindSafe(|| match filter {
        Filter::Redis(filter) => save(rdb, filter),
        // No other filter is of this type.
        _ => None,
    }));
    if !matches!(saved, Ok(Some(()))) {
        end_the_writing(rdb);
    }
}
