//! Properties: any bytes are either refused as a Ribbon filter, or answered alike by every kernel
//! and by the scalar definition; a filter that is built of any hashes has them all, or is an error;
//! so with RocksDB's blocks, whose bytes have no checksum.
//!
//! Input: one byte for what is done, one for the rate or the number of blocks, one for a seed; then
//! bytes of a filter, or hashes.
#![no_main]

use blocked_bloom::{Bitmask, Filter, Kernel, KeyHash};
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};
use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

/// Returns hashes to look up: some from the input, and well mixed ones.
fn queries(data: &[u8]) -> Vec<u64> {
    let own =
        data.chunks_exact(8).take(40).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    own.chain((0..60_u64).map(|i| xxh3_64(&i.to_le_bytes()))).collect()
}

fn check_sharded(filter: &RibbonFilter<&[u8]>, queries: &[u64]) {
    let mut hits = Bitmask::new();
    queries.iter().for_each(|&hash| filter.prefetch_hash(hash));
    for kernel in Kernel::supported() {
        filter.view().with_kernel(kernel).contains_hashes(queries, &mut hits);
        for (i, &hash) in queries.iter().enumerate() {
            assert_eq!(hits.get(i), Some(filter.contains_hash(hash)), "{kernel}");
        }
    }
}

fn check_block(filter: RibbonBlock<&[u8]>, queries: &[u64]) {
    let mut hits = Bitmask::new();
    queries.iter().for_each(|&hash| filter.prefetch_hash(hash));
    for kernel in Kernel::supported() {
        filter.with_kernel(kernel).contains_hashes(queries, &mut hits);
        for (i, &hash) in queries.iter().enumerate() {
            assert_eq!(hits.get(i), Some(filter.contains_hash(hash)), "{kernel}");
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let [what, number, seed, data @ ..] = data else { return };
    let queries = queries(data);
    match what % 5 {
        0 => {
            let opened = RibbonFilter::from_bytes_any_hash(data);
            let key_hash = opened.as_ref().map_or(KeyHash::default(), RibbonFilter::key_hash);
            let (filter, error) = RibbonFilter::open_or_pass_all(data, key_hash);
            check_sharded(&filter, &queries);
            match opened {
                Ok(opened) => assert!(error.is_none() && opened == filter),
                Err(_) => {
                    assert!(
                        error.is_some() && queries.iter().all(|&hash| filter.contains_hash(hash))
                    )
                }
            }
        }
        // The same with a length and checksums that fit.
        1 => {
            let mut bytes = data.to_vec();
            bytes.resize(data.len().max(64).next_multiple_of(8), *seed);
            let words = (bytes.len() as u64 - 64) / 8;
            let shards = words.min(u64::from(*number));
            bytes[..12].copy_from_slice(b"\x89BBRIBN\n\x01\x00\x01\x00");
            bytes[12] = 1 + seed % 32;
            bytes[13..16].fill(0);
            bytes[24..32].copy_from_slice(&shards.to_le_bytes());
            // There are keys if there are shards, and only then.
            bytes[32..40].copy_from_slice(&shards.to_le_bytes());
            bytes[40..48].copy_from_slice(&(words - shards).to_le_bytes());
            let body = xxh3_64(&bytes[64..]);
            bytes[48..56].copy_from_slice(&body.to_le_bytes());
            let header = xxh3_64(&bytes[..56]);
            bytes[56..64].copy_from_slice(&header.to_le_bytes());
            let bytes = bytes.into_boxed_slice();
            let tag = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
            let key_hash = KeyHash::Caller { tag };
            let filter = RibbonFilter::from_bytes_trusted(&*bytes, key_hash).unwrap();
            check_sharded(&filter, &queries);
            if let Ok(filter) = RibbonFilter::from_bytes_any_hash(&*bytes) {
                check_sharded(&filter, &queries);
            }
        }
        2 => {
            let blocks = u32::from(*number) * (1 + u32::from(*what) / 16);
            let [low, middle, high, _] = blocks.to_le_bytes();
            let block = [data, &[0xfe, *seed, low, middle, high]].concat().into_boxed_slice();
            if let Ok(filter) = RibbonBlock::from_bytes(&*block) {
                check_block(filter, &queries);
            }
        }
        // Hashes as they come, and mixed.
        3 => {
            let mut builder =
                RibbonOptions::new(0.5_f64.powi(1 + i32::from(number % 32))).builder();
            let is_mixed = seed % 2 == 0;
            let hash = |word: &[u8]| match is_mixed {
                true => xxh3_64(word),
                false => u64::from_le_bytes(word.try_into().unwrap()),
            };
            let hashes: Vec<u64> = data.chunks_exact(8).map(hash).collect();
            hashes.iter().for_each(|&hash| builder.insert_hash(hash));
            match builder.finish_verified() {
                Ok(filter) => {
                    let filter = RibbonFilter::from_bytes_any_hash(filter.as_bytes()).unwrap();
                    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
                    check_sharded(&filter, &queries);
                }
                Err(error) => assert!(!is_mixed, "{error}"),
            }
        }
        _ => {
            let hashes: Vec<u64> = data.chunks_exact(8).map(xxh3_64).collect();
            let options = RibbonBlockOptions::new(f64::from(*number) / 4.0 + 0.5).unwrap();
            if let BuiltBlock::Ribbon(block) = options.build(&hashes).unwrap()
                && let Ok(filter) = RibbonBlock::from_bytes(&*block)
            {
                assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
                check_block(filter, &queries);
            }
        }
    }
});
