//! A Redis module with the commands of RedisBloom's Bloom filters, on [`blocked_bloom`]'s growing
//! filter. `README.md` has the commands, and in what they differ from RedisBloom's.
//!
//! `commands` are the commands, with their `arguments`, and `making` what those that make filters
//! have in common; `register` is what the server lists of them, `settings` what it configures, and
//! `counters` what `INFO` tells. `data_type` is what Redis calls to save, load and free keys.
//! `filter` is what a key holds: a filter of its own (`own`), one of RedisBloom's (`redisbloom`) or
//! of valkey-bloom's (`valkey`), or one that is being loaded (`loading`); `dump` is how it is
//! stored, `reserve` what it is made for, `outcome` what making it and adding to it comes to, and
//! `scaling` how far it can grow.
//!
//! No panic leaves the module: commands and callbacks catch it, and reply or log an error.

mod allocator;
mod arguments;
mod commands;
mod counters;
mod data_type;
mod dump;
mod filter;
mod loading;
mod making;
mod memory;
mod outcome;
mod own;
mod redisbloom;
mod register;
mod reserve;
mod scaling;
mod settings;
mod start;
mod valkey;

use redis_module::redis_module;

use crate::allocator::ServerMemory;
use crate::data_type::{FILTER, VALKEY_BLOOM};
use crate::start::on_load;

redis_module! {
    name: "blocked-bloom",
    version: 1,
    allocator: (ServerMemory, ServerMemory),
    data_types: [FILTER, VALKEY_BLOOM],
    init: on_load,
    commands: [],
}
