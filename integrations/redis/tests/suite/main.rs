//! Tests of the module in a real `redis-server`, by the `redis` client. Without a server they say
//! that they did not run, and fail if `CI` is set.
#![allow(clippy::print_stdout, reason = "a run shows what it tested, and what it left out")]

mod campaign;
mod cluster;
mod commands;
mod dumps;
mod extremes;
mod files;
mod fixtures;
mod following;
mod hostile;
mod keys;
mod loading;
mod memory;
mod operator;
mod persistence;
mod replies;
mod server;
mod servers;
mod settings;
mod streams;
mod valkey;
