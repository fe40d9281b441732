//! What is done once, when the module is loaded.

use std::ffi::c_int;

use redis_module::{Context, ModuleOptions, RedisString, Status, raw};

use crate::data_type::REDISBLOOM;
use crate::{allocator, counters, memory, register, settings};

/// An option that Valkey has and Redis has not.
const VALKEY_HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

/// Reads the load arguments, and has the server list commands and settings.
pub(crate) fn on_load(context: &Context, arguments: &[RedisString]) -> Status {
    if !allocator::can_fail() {
        context.log_warning("the module is for Redis 7.0 and later");
        return Status::Err;
    }
    allocator::set_allocator(&memory::allocator(context));
    let arguments: Vec<&[u8]> = arguments.iter().map(RedisString::as_slice).collect();
    if let Err(error) = settings::read_arguments(context, &arguments) {
        context.log_warning(&error);
        return Status::Err;
    }
    set_options(context);
    if settings::reads_files_of_redisbloom() && REDISBLOOM.create_data_type(context.ctx).is_err() {
        context.log_warning("the server does not take RedisBloom's module type");
        return Status::Err;
    }
    match register::register(context) && settings::register(context) && counters::register(context)
    {
        true => Status::Ok,
        false => Status::Err,
    }
}

/// Says which of the server's features the module supports. A file that ends too early is an error
/// of loading it, not the end of the server. A replica that loads a copy goes on to answer: what is
/// loaded shares nothing with what is there. Valkey may move slots: filters go as `BF.LOADCHUNK`,
/// and what is added meanwhile as commands of the same key.
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
