//! The tests of the core: one binary, one module per area. `cargo test --test suite kernels::` runs
//! one of them.

mod common;
#[path = "common/repository.rs"]
mod repository;

mod atomic;
mod batch_query;
mod buffer;
mod build;
mod circles;
mod compact;
mod damage;
mod documents;
mod errors;
mod filter;
mod fold;
mod format;
mod golden;
mod header;
mod hints;
mod hostile_keys;
mod insert_new;
mod kernels;
mod layering;
mod lookup;
mod merge;
mod model;
mod names;
mod options;
mod params;
mod prefix;
mod range;
mod rates;
#[cfg(feature = "serde")]
mod serde;
mod unmixed;
mod unsafe_inventory;
