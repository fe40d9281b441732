//! What the bytes of a `Filter.db` and Cassandra's sizes are limited by.

/// Bytes before the bits: the hash count and the number of 64-bit words, both big-endian.
pub(super) const HEADER_BYTES: usize = 8;

/// Bits per word: Cassandra counts memory in words of a Java `long`.
pub(super) const WORD_BITS: u64 = 64;

/// Most probes per key: Cassandra computes a key's positions into an array of this many.
pub(super) const MAX_HASH_COUNT: u32 = 21;

/// Most words: their number is a signed 32-bit integer.
pub(super) const MAX_WORDS: u32 = i32::MAX as u32;

/// The lowest chance: the entry of Cassandra's table for the most bits per key and their best number of probes.
pub(super) const LOWEST_CHANCE: f64 = 6.71e-5;
