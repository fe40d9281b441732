//! RocksDB's filters: what RocksDB wrote is answered as it answers, by every kernel; what is
//! written is what it writes; damage is an error or an answer.

mod block;
mod damage;
mod ribbon;
mod sst;
