//! Facts about the server: its memory, its flags and its name.

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use redis_module::{Context, ContextFlags, raw};

/// Fewer bytes are not checked.
const SMALL: u64 = 1 << 20;
/// More than this no server has.
pub(crate) const MAX_MEMORY: u64 = 1 << 46;

/// Whether this many more bytes stay within `maxmemory`, or, if that is not set, within the memory
/// of the machine. Where keys are evicted, all memory may be in use, and eviction frees some:
/// then the bytes alone are compared.
///
/// Redis looks at `maxmemory` before a command only, and a link may be gigabytes. jemalloc reserves
/// more memory than the machine has without an error; using it ends the server. Followers have
/// no limit, as in Redis.
pub(crate) fn fits(context: &Context, bytes: u64) -> bool {
    if bytes > MAX_MEMORY {
        return false;
    }
    if bytes < SMALL || follows(context) {
        return true;
    }
    let Some(Memory { used, limit, machine, evicts }) = memory(context) else { return true };
    match (limit, evicts) {
        (0, _) => used.saturating_add(bytes) <= machine,
        (_, true) => bytes <= limit,
        (_, false) => used.saturating_add(bytes) <= limit,
    }
}

/// Whether the command is from another server or the AOF, and must have the same effect here. The
/// server has another flag while a replica loads a copy and goes on to answer.
pub(crate) fn follows(context: &Context) -> bool {
    context.get_flags().intersects(ContextFlags::REPLICATED | ContextFlags::LOADING)
}

/// Valkey's flag for the client of another node, which moves slots to this one. Redis 8 uses the
/// bit for something else.
const SLOT_IMPORT_CLIENT: c_int = 1 << 25;

/// Whether the command belongs to a slot that another node moves here. An error reply then fails
/// the import: the other node keeps the slot, and this one deletes its part and serves on.
pub(crate) fn imports_slot(context: &Context) -> bool {
    is_on_valkey() && flags(context.ctx) & SLOT_IMPORT_CLIENT != 0
}

/// Whether a callback that creates a key does so for a file or another server. Callbacks have no
/// client, so a writable replica cannot tell its clients from its primary: there, only a lack of
/// memory counts.
pub(crate) fn callback_follows(lacks_memory: bool) -> bool {
    let flags = flags(null_mut()) as u32;
    let has = |flag| flags & flag != 0;
    has(raw::REDISMODULE_CTX_FLAGS_LOADING)
        || has(raw::REDISMODULE_CTX_FLAGS_SLAVE)
            && (has(raw::REDISMODULE_CTX_FLAGS_READONLY) || lacks_memory)
}

/// The server's flags: those of the client too, unless the context is null.
fn flags(context: *mut raw::RedisModuleCtx) -> c_int {
    // SAFETY: the server writes the pointer before it calls the module, and accepts a null context.
    unsafe { raw::RedisModule_GetContextFlags.map_or(0, |flags| flags(context)) }
}

/// What `INFO memory` says.
struct Memory {
    used: u64,
    /// 0 if there is none.
    limit: u64,
    machine: u64,
    evicts: bool,
}

/// `None` if `INFO` lacks the field.
fn memory(context: &Context) -> Option<Memory> {
    // SAFETY: the pointers are set before the first command. The information is of this function,
    // is used while it lives, and is freed once; the text is part of it and ends with 0.
    unsafe {
        let number = raw::RedisModule_ServerInfoGetFieldUnsigned?;
        let text = raw::RedisModule_ServerInfoGetFieldC?;
        let (get, free) = (raw::RedisModule_GetServerInfo?, raw::RedisModule_FreeServerInfo?);
        let info = get(context.ctx, c"memory".as_ptr());
        if info.is_null() {
            return None;
        }
        let number = |name: &CStr| {
            let mut error: c_int = 0;
            let number = number(info, name.as_ptr(), &raw mut error);
            (error == 0).then_some(number)
        };
        let policy = text(info, c"maxmemory_policy".as_ptr());
        let evicts = !policy.is_null() && CStr::from_ptr(policy) != c"noeviction";
        let fields = [c"used_memory", c"maxmemory", c"total_system_memory"].map(number);
        free(context.ctx, info);
        let [Some(used), Some(limit), Some(machine)] = fields else { return None };
        Some(Memory { used, limit, machine, evicts })
    }
}

/// The name of the server's allocator; empty if the server does not tell.
pub(crate) fn allocator(context: &Context) -> Vec<u8> {
    text(context, c"memory", c"mem_allocator")
}

static IS_VALKEY: AtomicBool = AtomicBool::new(false);

/// What [`is_valkey`] said when the module was loaded.
pub(crate) fn is_on_valkey() -> bool {
    IS_VALKEY.load(Relaxed)
}

/// Whether the server is Valkey, which calls itself a version of Redis elsewhere.
pub(crate) fn is_valkey(context: &Context) -> bool {
    let is_valkey = text(context, c"server", c"server_name") == b"valkey";
    IS_VALKEY.store(is_valkey, Relaxed);
    is_valkey
}

/// A field of `INFO`; empty if the server has none of this name.
fn text(context: &Context, section: &CStr, field: &CStr) -> Vec<u8> {
    // SAFETY: the pointers are set before the first command. The information is of this function,
    // is used while it lives, and is freed once; the text is part of it and ends with 0.
    unsafe {
        let (Some(text), Some(get), Some(free)) = (
            raw::RedisModule_ServerInfoGetFieldC,
            raw::RedisModule_GetServerInfo,
            raw::RedisModule_FreeServerInfo,
        ) else {
            return Vec::new();
        };
        let info = get(context.ctx, section.as_ptr());
        if info.is_null() {
            return Vec::new();
        }
        let text = text(info, field.as_ptr());
        let text =
            if text.is_null() { Vec::new() } else { CStr::from_ptr(text).to_bytes().to_vec() };
        free(context.ctx, info);
        text
    }
}
