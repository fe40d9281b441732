//! A Redis module with the commands of RedisBloom's Bloom filters, on [`blocked_bloom`]'s growing
//! filter. `README.md` lists the commands and their differences from RedisBloom's.
//!
//! `commands` has the commands, `arguments` their arguments, and `making` the code that creates
//! filters and adds to them. `register` lists commands for the server, `settings` is the
//! configuration, and `counters` the section of `INFO`. `data_type` has the callbacks that save,
//! load and free keys. `key` opens keys, `slot` is the memory of their values (`packed`: small
//! filters as bytes), and `filter` the filter in it: an own filter (`blocked`), one of RedisBloom's
//! (`redisbloom`) or valkey-bloom's (`valkey`), or one that is being loaded (`loading`). `dump` has
//! its pieces, `reserve` its options, `outcome` the results of adding, and `scaling` its limits.
//!
//! No panic leaves the module: commands and callbacks catch it, and reply or log an error.

mod allocator;
mod arguments;
mod blocked;
mod commands;
mod counters;
mod data_type;
mod dump;
mod filter;
mod key;
mod loading;
mod log;
mod making;
mod memory;
mod outcome;
mod packed;
mod redisbloom;
mod register;
mod reserve;
mod scaling;
mod settings;
mod slot;
mod start;
mod valkey;

use redis_module::redis_module;

use crate::allocator::ServerMemory;
use crate::data_type::{FILTER, VALKEY_BLOOM};
use crate::start::load_module;

/// The version of the package as `MODULE LIST` has it: 10,000 for a major version, 100 for a minor
/// one.
const MODULE_VERSION: i32 = 10_000 * number(env!("CARGO_PKG_VERSION_MAJOR"))
    + 100 * number(env!("CARGO_PKG_VERSION_MINOR"))
    + number(env!("CARGO_PKG_VERSION_PATCH"));

const fn number(text: &str) -> i32 {
    match i32::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version is three numbers"),
    }
}

redis_module! {
    name: "blocked-bloom",
    version: MODULE_VERSION,
    allocator: (ServerMemory, ServerMemory),
    data_types: [FILTER, VALKEY_BLOOM],
    init: load_module,
    commands: [],
}
