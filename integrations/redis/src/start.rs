//! Initialisation, once, when the server loads the module.

use std::ffi::c_int;

use redis_module::{Context, ModuleOptions, RedisString, Status, raw};

use crate::data_type::REDISBLOOM;
use crate::{allocator, counters, log, memory, register, settings};

/// An option that Valkey has and Redis has not.
const VALKEY_HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

/// Reads the load arguments, and has the server list commands and settings.
pub(crate) fn load_module(context: &Context, arguments: &[RedisString]) -> Status {
    if !allocator::can_fail() {
        log::warn("this module needs Redis 7.0 or later");
        return Status::Err;
    }
    allocator::set_allocator(&memory::allocator(context));
    let arguments: Vec<&[u8]> = arguments.iter().map(RedisString::as_slice).collect();
    if let Err(error) = settings::read_arguments(&arguments) {
        log::warn(&error);
        return Status::Err;
    }
    set_options(context);
    // Always, whatever the settings are: a replica must load the keys that its primary has.
    if REDISBLOOM.create_data_type(context.ctx).is_err() {
        let taken = "the server does not register RedisBloom's type `MBbloom--` for this module \
                     (is RedisBloom loaded, too?)";
        if settings::keeps_type_of_redisbloom() {
            log::warn(&format!("{taken}: `REDISBLOOM_TYPE` needs it, ending"));
            return Status::Err;
        }
        log::warn(&format!("{taken}: its keys cannot be loaded, restored or replicated here"));
    }
    match register::register(context) && settings::register(context) && counters::register(context)
    {
        true => Status::Ok,
        false => Status::Err,
    }
}

/// Says which of the server's features the module supports. A file that ends too early is an error
/// of loading it, not the end of the server. A replica that loads a copy goes on to answer: new and
/// old keys share nothing. Valkey may move slots: filters go as `BF.LOADCHUNK`, and later additions
/// as commands of the same key.
fn set_options(context: &Context) {
    let mut options =
        (ModuleOptions::HANDLE_IO_ERRORS | ModuleOptions::HANDLE_REPL_ASYNC_LOAD).bits();
    if memory::is_valkey(context) {
        options |= VALKEY_HANDLE_ATOMIC_SLOT_MIGRATION;
    }
    // SAFETY: the server writes the pointer before it calls anything else of the module.
    if let Some(set) = unsafe { raw::RedisModule_SetModuleOptions } {
        // SAFETY: called while the module is loaded, with its context and flags of the server's.
        unsafe { set(context.ctx, options) };
    }
}
