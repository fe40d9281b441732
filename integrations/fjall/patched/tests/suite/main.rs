//! The patched engine: its answers, the tables that its filters rule out, and its files.

mod common;
mod database;
mod files;
mod model;
mod ruled_out;
