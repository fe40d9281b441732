//! Whether the server has memory for what a command is about to make.

use std::ffi::{CStr, c_int};

use redis_module::{Context, ContextFlags, raw};

/// Less than this is not looked at.
const SMALL: u64 = 1 << 20;
/// More than this no server has.
const MOST: u64 = 1 << 46;

/// Whether so many more bytes stay within `maxmemory`, or, if that is not set, within the memory of the machine.
///
/// Redis looks at `maxmemory` before a command only, and a link may be gigabytes. jemalloc reserves more memory than the machine has without an error;
/// using it ends the server. A replica, and a server that reads its AOF, does what it is told, as Redis does.
pub(crate) fn has(context: &Context, bytes: u64) -> bool {
    if bytes > MOST {
        return false;
    }
    let follows = ContextFlags::REPLICATED | ContextFlags::LOADING;
    if bytes < SMALL || context.get_flags().intersects(follows) {
        return true;
    }
    let [used, limit, machine] =
        info(context, [c"used_memory", c"maxmemory", c"total_system_memory"]);
    let limit = if limit > 0 { limit } else { machine };
    limit == 0 || used.saturating_add(bytes) <= limit
}

/// Numbers of `INFO memory`; 0 for those that are not there.
fn info<const N: usize>(context: &Context, fields: [&CStr; N]) -> [u64; N] {
    // SAFETY: the pointers are set before the first command. The information is of this function, is used while it lives, and is freed once.
    unsafe {
        let (Some(get), Some(field), Some(free)) = (
            raw::RedisModule_GetServerInfo,
            raw::RedisModule_ServerInfoGetFieldUnsigned,
            raw::RedisModule_FreeServerInfo,
        ) else {
            return [0; N];
        };
        let info = get(context.ctx, c"memory".as_ptr());
        if info.is_null() {
            return [0; N];
        }
        let numbers = fields.map(|name| {
            let mut error: c_int = 0;
            let number = field(info, name.as_ptr(), &raw mut error);
            if error == 0 { number } else { 0 }
        });
        free(context.ctx, info);
        numbers
    }
}
