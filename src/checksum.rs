//! XXH3-64 with seed 0: the checksum of stored bytes, and the hash of the names of prefix rules.

use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, 0)
}
