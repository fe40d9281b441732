//! The policy alone, and the engine with it.

mod common;
mod engine;
mod model;
mod policy;
