//! RocksDB's filters: every kernel gives RocksDB's answers, written bytes equal RocksDB's, and
//! damage is an error or an answer.

mod block;
mod damage;
mod properties;
mod ribbon;
mod sst;
