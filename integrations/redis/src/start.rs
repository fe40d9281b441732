//! What is done once, when the module is loaded.

use redis_module::{Context, ModuleOptions, RedisString, Status};

use crate::{allocator, memory, register, settings};

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
    // A file that ends too early is an error of loading it, not the end of the server. A replica
    // that loads a copy goes on to answer: what is loaded shares nothing with what is there.
    context.set_module_options(
        ModuleOptions::HANDLE_IO_ERRORS | ModuleOptions::HANDLE_REPL_ASYNC_LOAD,
    );
    match register::register(context) && settings::register(context) {
        true => Status::Ok,
        false => Status::Err,
    }
}
