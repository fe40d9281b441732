//! The types of the module's keys: what Redis calls to save and load them, to rewrite the AOF, and
//! to free them.
//!
//! For a key of the module's own type an RDB file has the pieces of its dump, each with its
//! iterator, and at the end 0, or -1 if the filter is still being loaded. The AOF has them as
//! `BF.LOADCHUNK`. Keys of the types of RedisBloom and valkey-bloom are stored as there.

use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, null_mut};
use std::time::Duration;

use redis_module::key::{RedisKey, RedisKeyWritable};
use redis_module::logging::RedisLogLevel;
use redis_module::native_types::RedisType;
use redis_module::{RedisError, logging, raw};

use crate::allocator::{self, move_box};
use crate::counters::{self, Facts};
use crate::dump::PIECE;
use crate::filter::Filter;
use crate::loading::Loading;
use crate::{redisbloom, settings, valkey};

/// The versions of what an RDB file has: of the module's own type; of RedisBloom's since its
/// release 2.0; and of valkey-bloom's since its release 1.0.
const ENCODING: i32 = 1;
const ENCODING_OF_REDISBLOOM: i32 = 4;
const ENCODING_OF_VALKEY: i32 = 1;

const COMPLETE: i64 = 0;
const STILL_LOADING: i64 = -1;

/// Filters, as RDB files name them, but for those of the types of RedisBloom and valkey-bloom.
pub(crate) static FILTER: RedisType =
    RedisType::new("BlkdBloom", ENCODING, methods(rdb_load, rdb_save));

/// RedisBloom's type, which is taken over where the operator says so.
pub(crate) static REDISBLOOM: RedisType =
    RedisType::new("MBbloom--", ENCODING_OF_REDISBLOOM, methods(load_redisbloom, save_redisbloom));

pub(crate) static VALKEY_BLOOM: RedisType =
    RedisType::new("bloomfltr", ENCODING_OF_VALKEY, methods(load_valkey, save_valkey));

type Load = unsafe extern "C" fn(*mut raw::RedisModuleIO, c_int) -> *mut c_void;
type Save = unsafe extern "C" fn(*mut raw::RedisModuleIO, *mut c_void);

/// Methods of a type whose values are boxes of [`Filter`].
const fn methods(load: Load, save: Save) -> raw::RedisModuleTypeMethods {
    raw::RedisModuleTypeMethods {
        version: redis_module::TYPE_METHOD_VERSION,
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: Some(aof_rewrite),
        mem_usage: Some(mem_usage),
        free: Some(free),
        free_effort: Some(free_effort),
        digest: None,
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        unlink: None,
        copy: Some(copy),
        defrag: Some(defrag),
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: None,
    }
}

/// The other types that the module has registered.
fn others() -> impl Iterator<Item = &'static RedisType> {
    let all = [&REDISBLOOM, &VALKEY_BLOOM].into_iter();
    all.filter(|of| !of.raw_type.borrow().is_null())
}

/// The filter of a key; none if there is no key.
#[inline]
pub(crate) fn get(key: &RedisKey) -> Result<Option<&Filter>, RedisError> {
    key.get_value(&FILTER)
        .or_else(|_| others().find_map(|of| key.get_value(of).ok()).ok_or(RedisError::WrongType))
}

/// The same to be changed, by one at a time.
#[inline]
pub(crate) fn get_mut(key: &mut RedisKeyWritable) -> Result<Option<&mut Filter>, RedisError> {
    key.get_value(&FILTER)
        .or_else(|_| others().find_map(|of| key.get_value(of).ok()).ok_or(RedisError::WrongType))
}

/// Sets a filter as the value of a key that is not there, or that has a value of the same type.
pub(crate) fn set(key: &RedisKeyWritable, filter: Filter) -> Result<(), RedisError> {
    let (of, facts) = (type_of(&filter), Facts::of(&filter));
    key.set_value(of, filter)?;
    counters::came(&facts);
    Ok(())
}

/// Sets a filter in place of the key's, of which the last piece has come.
pub(crate) fn replace(
    key: &mut RedisKeyWritable,
    time_to_live: impl FnOnce() -> Option<Duration>,
    filter: Filter,
) -> Result<(), RedisError> {
    if let Some(loading) = get_mut(key)?
        && ptr::eq(type_of(loading), type_of(&filter))
    {
        counters::changed(&Facts::of(loading), &Facts::of(&filter));
        *loading = filter;
        return Ok(());
    }
    let left = time_to_live();
    // Frees the filter that is there, to which nothing refers any more.
    key.delete()?;
    set(key, filter)?;
    left.map_or(Ok(()), |left| key.set_expire(left).map(|_| ()))
}

/// The type of a key with this filter.
pub(crate) fn type_of(filter: &Filter) -> &'static RedisType {
    match filter {
        Filter::Redis(_) if settings::makes_filters_of_redisbloom() => &REDISBLOOM,
        Filter::Valkey(_) => &VALKEY_BLOOM,
        Filter::Own(_) | Filter::Redis(_) | Filter::Loading(_) => &FILTER,
    }
}

/// What `rdb_load` returns for a filter that `load` reads: null if there is none.
fn loaded(load: impl FnOnce() -> Option<Filter>) -> *mut c_void {
    let filter = catch_unwind(AssertUnwindSafe(|| load().map(Box::new)));
    filter.ok().flatten().map_or(null_mut(), |filter| {
        counters::came(&Facts::of(&filter));
        Box::into_raw(filter).cast()
    })
}

/// Most bytes of a piece in an RDB file, which the server reads into memory of its own.
const PIECE_OF_FILE: usize = 1 << 20;

/// Calls `callback` with each piece of the dump, the header first; with none, and returns none, if
/// there is no dump.
fn for_each_piece(
    filter: &Filter,
    most: usize,
    mut callback: impl FnMut(i64, &[u8]),
) -> Option<()> {
    let (header, mut piece) = (filter.header(), filter.piece(1, most));
    // The headers of links are made with the first piece.
    if piece.is_none() && matches!(filter, Filter::Own(_)) {
        return None;
    }
    callback(1, &header);
    while let Some((iterator, data)) = piece {
        callback(iterator, &data);
        piece = filter.piece(iterator, most);
    }
    Some(())
}

/// Reads a filter; none if the file ends, is damaged, or there is no memory.
fn load(rdb: *mut raw::RedisModuleIO) -> Option<Filter> {
    if raw::load_signed(rdb).ok()? != 1 {
        return None;
    }
    // Whatever `maxmemory` says, as of all keys of a file; without memory it is an error.
    let loading = Loading::begin(raw::load_string_buffer(rdb).ok()?.as_ref(), |_| true);
    let mut filter = Filter::Loading(Box::new(loading.ok()?));
    loop {
        let iterator = raw::load_signed(rdb).ok()?;
        match (iterator, &mut filter) {
            (COMPLETE, Filter::Own(_) | Filter::Redis(_)) | (STILL_LOADING, Filter::Loading(_)) => {
                return Some(filter);
            }
            (2.., Filter::Loading(loading)) => {
                let piece = raw::load_string_buffer(rdb).ok()?;
                if let Some(complete) = loading.take(iterator, piece.as_ref()).ok()? {
                    filter = complete.into();
                }
            }
            _ => return None,
        }
    }
}

unsafe extern "C" fn rdb_load(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    if encoding != ENCODING {
        return null_mut();
    }
    loaded(|| load(rdb))
}

unsafe extern "C" fn load_redisbloom(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    if encoding != ENCODING_OF_REDISBLOOM {
        return null_mut();
    }
    loaded(|| Some(Filter::Redis(Box::new(redisbloom::load(rdb)?))))
}

unsafe extern "C" fn load_valkey(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    if encoding != ENCODING_OF_VALKEY {
        return null_mut();
    }
    loaded(|| Some(Filter::Valkey(Box::new(valkey::load(rdb)?))))
}

/// The filter that Redis has for a key.
///
/// # Safety
///
/// `value` is what a command set or one of the functions above returned, and nothing changes it
/// while the filter is in use.
unsafe fn filter<'a>(value: *const c_void) -> &'a Filter {
    // SAFETY: the caller's promise; both are boxes of filters.
    unsafe { &*value.cast() }
}

unsafe extern "C" fn rdb_save(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: Redis passes the value of a key of this type, and runs no command meanwhile, or runs
    // it in another process.
    let filter = unsafe { filter(value) };
    written(rdb, || {
        for_each_piece(filter, PIECE_OF_FILE, |iterator, piece| {
            raw::save_signed(rdb, iterator);
            raw::save_slice(rdb, piece);
        })?;
        let end = if matches!(filter, Filter::Loading(_)) { STILL_LOADING } else { COMPLETE };
        raw::save_signed(rdb, end);
        Some(())
    });
}

unsafe extern "C" fn save_redisbloom(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: as in `rdb_save`.
    let filter = unsafe { filter(value) };
    written(rdb, || match filter {
        Filter::Redis(filter) => redisbloom::save(rdb, filter),
        // No other filter is of this type.
        _ => None,
    });
}

unsafe extern "C" fn save_valkey(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: as in `rdb_save`.
    let filter = unsafe { filter(value) };
    written(rdb, || {
        // No other filter is of this type.
        let Filter::Valkey(filter) = filter else { return None };
        valkey::save(rdb, filter);
        Some(())
    });
}

/// Has `write` write a key to a file; if it cannot, [ends the writing](end_the_writing).
fn written(file: *mut raw::RedisModuleIO, write: impl FnOnce() -> Option<()>) {
    if !matches!(catch_unwind(AssertUnwindSafe(write)), Ok(Some(()))) {
        end_the_writing(file);
    }
}

/// Ends the process that writes a file, which does not replace the last one then. A file without a
/// key, or with half of one, would be loaded without it, or not at all.
fn end_the_writing(file: *mut raw::RedisModuleIO) -> ! {
    logging::log_io_error(file, RedisLogLevel::Warning, "a filter cannot be written: ending");
    std::process::exit(1)
}

unsafe extern "C" fn aof_rewrite(
    aof: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: as in `rdb_save`.
    let filter = unsafe { filter(value) };
    written(aof, || {
        if let Filter::Valkey(filter) = filter {
            let bytes = filter.to_bytes()?;
            // SAFETY: as below.
            unsafe {
                if let Some(emit) = raw::RedisModule_EmitAOF {
                    let data = bytes.as_ptr().cast::<c_char>();
                    emit(aof, c"BF.LOAD".as_ptr(), c"sb".as_ptr(), key, data, bytes.len());
                }
            }
            return Some(());
        }
        for_each_piece(filter, PIECE, |iterator, piece| {
            // SAFETY: the pointer is set before any callback; the format is of a string of Redis, a
            // number, and bytes with their length.
            unsafe {
                if let Some(emit) = raw::RedisModule_EmitAOF {
                    let (data, length) = (piece.as_ptr().cast::<c_char>(), piece.len());
                    emit(
                        aof,
                        c"BF.LOADCHUNK".as_ptr(),
                        c"slb".as_ptr(),
                        key,
                        iterator as c_longlong,
                        data,
                        length,
                    );
                }
            }
        })
    });
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: as in `rdb_save`.
    let filter = unsafe { filter(value) };
    let bytes = AssertUnwindSafe(|| filter.memory_bytes() as usize);
    catch_unwind(bytes).unwrap_or_default()
}

/// Pages to give back: above 64, Redis frees the key of `UNLINK` in another thread.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: as in `rdb_save`.
    let filter = unsafe { filter(value) };
    catch_unwind(AssertUnwindSafe(|| (filter.size() / 4096) as usize)).unwrap_or(1).max(1)
}

/// `COPY`: the value of the new key, or null, and then the command is an error.
unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: as in `rdb_save`.
    let filter = unsafe { filter(value) };
    let copy = catch_unwind(AssertUnwindSafe(|| filter.copy().map(Box::new)));
    copy.ok().flatten().map_or(null_mut(), |copy| {
        counters::came(&Facts::of(&copy));
        Box::into_raw(copy).cast()
    })
}

/// Has the server move what is not large out of fragmented memory: the value, the lists, and the
/// blocks of links of less than 2 MiB. Always done at once.
unsafe extern "C" fn defrag(
    context: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    let moved = catch_unwind(AssertUnwindSafe(|| {
        allocator::defragment(context, || {
            // SAFETY: Redis passes the place of a key's value, a box of a filter, and runs nothing
            // else that uses it; the place gets what the box becomes.
            unsafe {
                let mut filter: Box<Filter> = Box::from_raw((*value).cast());
                filter.reallocate();
                move_box(&mut filter);
                *value = Box::into_raw(filter).cast();
            }
        });
    }));
    // What moves memory does not panic.
    if moved.is_err() {
        std::process::abort();
    }
    0
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: Redis frees each value once, and it is a box of a filter.
    let filter: Box<Filter> = unsafe { Box::from_raw(value.cast()) };
    // Neither runs code that panics.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        counters::left(&Facts::of(&filter));
        drop(filter);
    }));
}
