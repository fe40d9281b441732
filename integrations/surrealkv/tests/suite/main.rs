//! The policy alone, and the engine with it.

mod common;
mod engine;
mod failure;
mod model;
mod policy;
