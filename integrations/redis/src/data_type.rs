//! The types of the module's keys: what Redis calls to save and load them, to rewrite the AOF, and
//! to free them.
//!
//! For a key of the module's own type an RDB file has the pieces of its dump, each with its
//! iterator, and at the end 0, or -1 if the filter is still being loaded. Keys of the types of
//! RedisBloom and valkey-bloom are stored as there. The AOF has pieces as `BF.LOADCHUNK`, and a
//! small filter of valkey-bloom as `BF.LOAD`.

use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, null_mut};

use redis_module::logging::RedisLogLevel;
use redis_module::native_types::RedisType;
use redis_module::{logging, raw};

use crate::allocator;
use crate::counters::{self, Facts};
use crate::filter::Filter;
use crate::loading::{LoadError, Loading};
use crate::slot::{FilterRef, Slot};
use crate::{log, memory, redisbloom, settings, valkey};

/// The versions of what an RDB file has: of the module's own type; of RedisBloom's since its
/// release 2.0; and of valkey-bloom's since its release 1.0.
const ENCODING: i32 = 1;
const ENCODING_OF_REDISBLOOM: i32 = 4;
const ENCODING_OF_VALKEY: i32 = 1;

const COMPLETE: i64 = 0;
const STILL_LOADING: i64 = -1;

/// This module's type in RDB files: all filters without the type of RedisBloom or valkey-bloom.
pub(crate) static FILTER: RedisType =
    RedisType::new("BlkdBloom", ENCODING, methods(rdb_load, rdb_save));

/// RedisBloom's type: filters of RedisBloom that arrive in a file or payload, and with
/// `REDISBLOOM_TYPE` all filters of RedisBloom.
pub(crate) static REDISBLOOM: RedisType =
    RedisType::new("MBbloom--", ENCODING_OF_REDISBLOOM, methods(load_redisbloom, save_redisbloom));

pub(crate) static VALKEY_BLOOM: RedisType =
    RedisType::new("bloomfltr", ENCODING_OF_VALKEY, methods(load_valkey, save_valkey));

type Load = unsafe extern "C" fn(*mut raw::RedisModuleIO, c_int) -> *mut c_void;
type Save = unsafe extern "C" fn(*mut raw::RedisModuleIO, *mut c_void);

/// Methods of a type whose values are from [`Slot::into_raw`].
const fn methods(load: Load, save: Save) -> raw::RedisModuleTypeMethods {
    raw::RedisModuleTypeMethods {
        version: redis_module::TYPE_METHOD_VERSION,
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: Some(aof_rewrite),
        mem_usage: Some(mem_usage),
        free: Some(free),
        free_effort: Some(free_effort),
        digest: Some(digest),
        copy: Some(copy),
        defrag: Some(defrag),
        // SAFETY: numbers, and functions that are none.
        ..unsafe { std::mem::zeroed() }
    }
}

/// All types of the module.
pub(crate) static ALL: [&RedisType; 3] = [&FILTER, &REDISBLOOM, &VALKEY_BLOOM];

/// The type of a key with this filter.
pub(crate) fn type_of(filter: &Filter) -> &'static RedisType {
    match filter {
        Filter::Redis(_) if settings::keeps_type_of_redisbloom() => &REDISBLOOM,
        Filter::Loading(loading)
            if loading.is_redisbloom() && settings::keeps_type_of_redisbloom() =>
        {
            &REDISBLOOM
        }
        Filter::Valkey(_) => &VALKEY_BLOOM,
        Filter::Blocked(_) | Filter::Redis(_) | Filter::Loading(_) => &FILTER,
    }
}

/// Runs a callback that creates a key. Returns null, and logs the reason, if there is no filter.
///
/// The server ignores null for a key of the AOF or of the primary: the key would be missing, and
/// additions to it would make a new filter without its items. The server ends instead.
///
/// # Safety
///
/// `key` is null or the server's name of the key, which lives while this runs.
unsafe fn create_key(
    command: &str,
    key: *const raw::RedisModuleString,
    create: impl FnOnce() -> Result<Filter, String>,
) -> *mut c_void {
    allocator::failed_bytes();
    let filter = catch_unwind(AssertUnwindSafe(|| {
        create().map(|filter| (Facts::from_filter(&filter), Slot::from(filter)))
    }));
    let reason = match filter {
        Ok(Ok((facts, slot))) => {
            counters::filter_created(&facts);
            return slot.into_raw();
        }
        Ok(Err(reason)) => reason,
        Err(_) => "internal error of the module".into(),
    };
    let name = if key.is_null() {
        String::new()
    } else {
        let mut length = 0;
        let start = raw::string_ptr_len(key, &raw mut length);
        // SAFETY: the caller's promise; the server returned this many bytes of the name.
        log::printable(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) })
    };
    let bytes = allocator::failed_bytes();
    let reason = match bytes {
        0 => reason,
        _ => format!("{bytes} bytes could not be allocated"),
    };
    let ends = memory::callback_follows(bytes > 0);
    let ending =
        if ends { ". The source has this key: ending, so that no key is missing" } else { "" };
    log::warn(&format!("{command} of key `{name}`: {reason}{ending}"));
    if ends {
        std::process::exit(1);
    }
    null_mut()
}

/// Runs a callback that reads a filter of this encoding from an RDB file or payload.
fn load_key(
    rdb: *mut raw::RedisModuleIO,
    [found, known]: [c_int; 2],
    load: impl FnOnce() -> Result<Filter, String>,
) -> *mut c_void {
    // SAFETY: the pointer is set before any callback; `rdb` is the callback's, and the name lives
    // as long.
    unsafe {
        let name = raw::RedisModule_GetKeyNameFromIO.map_or(ptr::null(), |name| name(rdb));
        create_key("RESTORE or RDB load", name, || {
            if found != known {
                return Err(format!("type version {found}, this module reads version {known}"));
            }
            load()
        })
    }
}

/// A number of an RDB file.
pub(crate) fn load_number(rdb: *mut raw::RedisModuleIO, field: &str) -> Result<u64, String> {
    raw::load_unsigned(rdb).map_err(|_| format!("the value ends before the field {field}"))
}

/// The same of 32 or 8 bits.
pub(crate) fn load_small<T: TryFrom<u64>>(
    rdb: *mut raw::RedisModuleIO,
    field: &str,
) -> Result<T, String> {
    let found = load_number(rdb, field)?;
    let most = u64::MAX >> (64 - 8 * size_of::<T>());
    found.try_into().map_err(|_| format!("{field} {found}, expected at most {most}"))
}

/// A floating-point number of an RDB file.
pub(crate) fn load_double(rdb: *mut raw::RedisModuleIO, field: &str) -> Result<f64, String> {
    raw::load_double(rdb).map_err(|_| format!("the value ends before the field {field}"))
}

/// Most bytes of a piece in an RDB file, in an AOF, or in the commands of a slot. The server reads
/// it into memory of its own: a node that imports a slot ends if it has none for a command.
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
    if piece.is_none() && matches!(filter, Filter::Blocked(_)) {
        return None;
    }
    callback(1, &header);
    while let Some((iterator, data)) = piece {
        callback(iterator, &data);
        piece = filter.piece(iterator, most);
    }
    Some(())
}

/// Reads a filter. Returns the reason if the value ends early or is damaged, or if memory runs out.
fn load(rdb: *mut raw::RedisModuleIO) -> Result<Filter, String> {
    let next_iterator = || raw::load_signed(rdb).map_err(|_| "the value ends before an iterator");
    let next_piece = |iterator| {
        let piece = raw::load_string_buffer(rdb);
        piece.map_err(|_| format!("the value ends within the piece of iterator {iterator}"))
    };
    let refused = |iterator, error: LoadError| {
        format!("piece of iterator {iterator}: {}", error.text().trim_start_matches("ERR "))
    };
    match next_iterator()? {
        1 => {}
        other => return Err(format!("first iterator {other}, expected 1")),
    }
    // `maxmemory` does not apply to keys of a file. Running out of memory is an error.
    let loading = Loading::begin(next_piece(1)?.as_ref(), |_| true);
    let mut filter = Filter::Loading(Box::new(loading.map_err(|error| refused(1, error))?));
    loop {
        let iterator = next_iterator()?;
        match (iterator, &mut filter) {
            (COMPLETE, Filter::Blocked(_) | Filter::Redis(_))
            | (STILL_LOADING, Filter::Loading(_)) => {
                return Ok(filter);
            }
            (2.., Filter::Loading(loading)) => {
                let complete = loading.take(iterator, next_piece(iterator)?.as_ref(), true);
                if let Some(complete) = complete.map_err(|error| refused(iterator, error))? {
                    filter = complete.into();
                }
            }
            _ => return Err(format!("iterator {iterator} at the wrong place")),
        }
    }
}

unsafe extern "C" fn rdb_load(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    load_key(rdb, [encoding, ENCODING], || load(rdb))
}

unsafe extern "C" fn load_redisbloom(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    load_key(rdb, [encoding, ENCODING_OF_REDISBLOOM], || {
        Ok(Filter::Redis(Box::new(redisbloom::load(rdb)?)))
    })
}

unsafe extern "C" fn load_valkey(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    load_key(rdb, [encoding, ENCODING_OF_VALKEY], || {
        Ok(Filter::Valkey(Box::new(valkey::load(rdb)?)))
    })
}

/// The filter of a value.
///
/// # Safety
///
/// A command or one of the functions above has created `value`, and nothing changes it while the
/// filter is in use.
unsafe fn filter<'a>(value: *const c_void) -> FilterRef<'a> {
    // SAFETY: the caller's promise; both are from `Slot::into_raw`.
    unsafe { FilterRef::new(value.cast_mut()) }
}

unsafe extern "C" fn rdb_save(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: Redis passes the value of a key of this type, and runs no command meanwhile, or runs
    // it in another process.
    let filter = unsafe { filter(value) };
    written(rdb, || {
        for_each_piece(&filter, PIECE_OF_FILE, |iterator, piece| {
            raw::save_signed(rdb, iterator);
            raw::save_slice(rdb, piece);
        })?;
        let end = if matches!(&*filter, Filter::Loading(_)) { STILL_LOADING } else { COMPLETE };
        raw::save_signed(rdb, end);
        Some(())
    });
}

unsafe extern "C" fn save_redisbloom(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: Redis passes the value of a key of this type, and runs nothing meanwhile that changes
    // it.
    let filter = unsafe { filter(value) };
    written(rdb, || match &*filter {
        Filter::Redis(filter) => redisbloom::save(rdb, filter),
        Filter::Loading(loading) => loading.save_redisbloom(rdb),
        // No other filter has this type.
        _ => None,
    });
}

unsafe extern "C" fn save_valkey(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: Redis passes the value of a key of this type, and runs nothing meanwhile that changes
    // it.
    let filter = unsafe { filter(value) };
    written(rdb, || {
        // No other filter is of this type.
        let Filter::Valkey(filter) = &*filter else { return None };
        valkey::save(rdb, filter);
        Some(())
    });
}

/// Writes a key to a file with `write`. If that fails, [ends the process](end_the_writing).
fn written(file: *mut raw::RedisModuleIO, write: impl FnOnce() -> Option<()>) {
    if !matches!(catch_unwind(AssertUnwindSafe(write)), Ok(Some(()))) {
        end_the_writing(file);
    }
}

/// Ends the process that writes a file, so that the file does not replace the previous one. A file
/// that lacks a key would load without it, and a file with half a key would not load.
fn end_the_writing(file: *mut raw::RedisModuleIO) -> ! {
    logging::log_io_error(file, RedisLogLevel::Warning, "a filter cannot be written: ending");
    std::process::exit(1)
}

unsafe extern "C" fn aof_rewrite(
    aof: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: Redis passes the value of a key of this type, and runs nothing meanwhile that changes
    // it.
    let filter = unsafe { filter(value) };
    written(aof, || {
        // For a piece, the server's copy of it and its buffers: it reports a crash without them.
        if !allocator::has_memory(8 * (filter.size() as usize).min(PIECE_OF_FILE)) {
            return None;
        }
        if let Filter::Valkey(filter) = &*filter
            && filter.bytes() <= PIECE_OF_FILE as u64
        {
            let bytes = filter.to_bytes()?;
            // SAFETY: the pointer is set before any callback; the format is of a string of Redis,
            // and bytes with their length.
            unsafe {
                if let Some(emit) = raw::RedisModule_EmitAOF {
                    let data = bytes.as_ptr().cast::<c_char>();
                    emit(aof, c"BF.LOAD".as_ptr(), c"sb".as_ptr(), key, data, bytes.len());
                }
            }
            return Some(());
        }
        for_each_piece(&filter, PIECE_OF_FILE, |iterator, piece| {
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

/// `DEBUG DIGEST` and `DEBUG DIGEST-VALUE`: equal for filters with equal dumps.
unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: Redis passes the value of a key of this type, and runs nothing meanwhile that changes
    // it.
    let filter = unsafe { filter(value) };
    let add = |bytes: &[u8]| {
        // SAFETY: the pointer is set before any callback; `digest` is the callback's, and the
        // server reads the bytes at once.
        unsafe {
            if let Some(add) = raw::RedisModule_DigestAddStringBuffer {
                add(digest, bytes.as_ptr().cast(), bytes.len());
            }
        }
    };
    let added = catch_unwind(AssertUnwindSafe(|| {
        let _ = for_each_piece(&filter, PIECE_OF_FILE, |iterator, piece| {
            add(&iterator.to_le_bytes());
            add(piece);
        });
    }));
    if added.is_err() {
        log::warn("DEBUG DIGEST: a filter has no digest: internal error of the module");
    }
    // SAFETY: the pointer is set before any callback; `digest` is the callback's.
    unsafe {
        if let Some(end) = raw::RedisModule_DigestEndSequence {
            end(digest);
        }
    }
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: Redis passes the value of a key of this type, and runs nothing meanwhile that changes
    // it.
    let filter = unsafe { filter(value) };
    let bytes = AssertUnwindSafe(|| filter.memory_bytes() as usize);
    catch_unwind(bytes).unwrap_or_default()
}

/// Pages to give back: above 64, Redis frees the key of `UNLINK` in another thread.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: Redis passes the value of a key of this type, and runs nothing meanwhile that changes
    // it.
    let filter = unsafe { filter(value) };
    catch_unwind(AssertUnwindSafe(|| (filter.size() / 4096) as usize)).unwrap_or(1).max(1)
}

/// `COPY`: the value of the new key, or null, which makes a client's command an error.
unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: Redis passes the value of a key of this type, and runs nothing meanwhile that changes
    // it.
    let filter = unsafe { filter(value) };
    let copy = || match &*filter {
        Filter::Loading(_) => Err("the source key is not completely loaded".into()),
        _ => filter.copy().ok_or_else(|| "no memory".into()),
    };
    // SAFETY: the server passes the name of the new key, which lives while the command runs.
    unsafe { create_key("COPY", to, copy) }
}

/// Has the server move small allocations out of fragmented memory: the value, the lists, and the
/// blocks of links of less than 2 MiB. Always done at once.
unsafe extern "C" fn defrag(
    context: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    let moved = catch_unwind(AssertUnwindSafe(|| {
        allocator::defragment(context, || {
            // SAFETY: Redis passes the place of a key's value, and runs nothing else that uses it;
            // the place gets the new value.
            unsafe {
                let mut slot = Slot::from_raw(*value);
                slot.reallocate();
                *value = slot.into_raw();
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
    // Neither runs code that panics.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: Redis frees each value once, and uses it no more.
        unsafe {
            counters::filter_freed(&Facts::from_filter(&FilterRef::new(value)));
            drop(Slot::from_raw(value));
        }
    }));
}
