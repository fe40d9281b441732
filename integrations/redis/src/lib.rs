//! A Redis module with the commands of RedisBloom's Bloom filters, on [`blocked_bloom`]'s growing filter. `README.md` has the commands, and in what
//! they differ from RedisBloom's.
//!
//! `commands` are the commands, `data_type` is what Redis calls to save, load and free keys, `filter` what a key holds: a filter of its own
//! (`own`), one of RedisBloom's, or one that is being loaded (`dump`).
//!
//! No panic leaves the module: commands and callbacks catch it, and reply or log an error.

mod allocator;
mod commands;
mod data_type;
mod dump;
mod filter;
mod memory;
mod own;

use redis_module::redis_module;

use crate::allocator::ServerMemory;
use crate::commands::{
    add, card, exists, info, insert, load_chunk, mult_add, mult_exists, on_load, reserve, scan_dump,
};
use crate::data_type::FILTER;

redis_module! {
    name: "blocked-bloom",
    version: 1,
    allocator: (ServerMemory, ServerMemory),
    data_types: [FILTER],
    init: on_load,
    commands: [
        ["bf.reserve", reserve, "write deny-oom", 1, 1, 1, ""],
        ["bf.add", add, "write deny-oom", 1, 1, 1, ""],
        ["bf.madd", mult_add, "write deny-oom", 1, 1, 1, ""],
        ["bf.insert", insert, "write deny-oom", 1, 1, 1, ""],
        ["bf.exists", exists, "readonly fast", 1, 1, 1, ""],
        ["bf.mexists", mult_exists, "readonly fast", 1, 1, 1, ""],
        ["bf.info", info, "readonly fast", 1, 1, 1, ""],
        ["bf.card", card, "readonly fast", 1, 1, 1, ""],
        ["bf.scandump", scan_dump, "readonly fast", 1, 1, 1, ""],
        ["bf.loadchunk", load_chunk, "write deny-oom", 1, 1, 1, ""],
    ],
}
