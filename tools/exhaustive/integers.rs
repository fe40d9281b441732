//! Hashes of adjacent integers, computed with the vectors of the kernel of the process.

use blocked_bloom::KeyHasher;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Check, N, numbers};

/// The default seed, and one with many bits.
const SEEDS: [u64; 2] = [0, 0x9fb2_1c65_1e98_df25];

pub(crate) struct Integers;

impl Check for Integers {
    fn chunk(&mut self, chunk: u64) -> Result<(), String> {
        let numbers = numbers(chunk);
        let narrow = numbers.map(u32::to_le_bytes);
        // Each half takes every value.
        let wide = numbers.map(|n| u64::from(n) << 32 | u64::from(n.wrapping_mul(0x2c1b_3c6d)));
        let wide_bytes = wide.map(u64::to_le_bytes);
        for seed in SEEDS {
            let hasher = KeyHasher::with_seed(seed);
            let mut hashes = [0; N];
            hasher.hash_fixed(&narrow, &mut hashes).map_err(|error| error.to_string())?;
            compare(&narrow, &hashes, seed)?;
            hasher.hash_u64s(&wide, &mut hashes).map_err(|error| error.to_string())?;
            compare(&wide_bytes, &hashes, seed)?;
            hasher.hash_fixed(&wide_bytes, &mut hashes).map_err(|error| error.to_string())?;
            compare(&wide_bytes, &hashes, seed)?;
        }
        Ok(())
    }
}

fn compare<const WIDTH: usize>(
    keys: &[[u8; WIDTH]; N],
    hashes: &[u64; N],
    seed: u64,
) -> Result<(), String> {
    match keys.iter().zip(hashes).find(|(key, hash)| xxh3_64_with_seed(*key, seed) != **hash) {
        None => Ok(()),
        Some((key, hash)) => {
            Err(format!("key {key:02x?} with seed {seed:#x} has another hash than {hash:#018x}"))
        }
    }
}
