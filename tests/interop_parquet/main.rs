//! Parquet's split-block filters: what real writers wrote is answered as they answer, for every kernel; what is written is what they
//! write; damage is an error or an answer.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/fixtures.rs"]
mod fixtures;

mod damage;
mod footer;
mod kernels;
mod systems;
