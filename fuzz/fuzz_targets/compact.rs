//! Property: if bytes open as a compact filter, lookups with and without opening agree with a naive
//! reader of the document, and writing the filter again returns the same bytes. Lookups in all
//! other bytes answer "maybe", unless the bytes have the length of a full filter. No bytes open in
//! both forms.
#![no_main]

use blocked_bloom::{Bitmask, BloomFilter, Kernel, KeyHash, KeyHasher};
use libfuzzer_sys::fuzz_target;

/// The document, read bit by bit; `None` if the bytes are not a compact filter.
struct Naive<'a> {
    blocks: &'a [u8],
    probes: u32,
}

impl<'a> Naive<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 72 || bytes.len() % 64 != 8 {
            return None;
        }
        let (blocks, trailer) = bytes.split_at(bytes.len() - 8);
        let all = trailer[3] == 5
            && trailer[2] == 1
            && blocks.len() == 64
            && blocks.iter().all(|&byte| byte == 255);
        let fits =
            trailer[..2] == [0xbc, 1] && (1..=30).contains(&trailer[2]) && (trailer[3] == 1 || all);
        fits.then_some(Naive { blocks, probes: trailer[2].into() })
    }

    fn contains(&self, hash: u64) -> bool {
        let count = self.blocks.len() as u64 / 64;
        let start = ((hash & 0xffff_ffff) * count >> 32) as usize * 64;
        let mut high = (hash >> 32) as u32;
        (0..self.probes).all(|_| {
            let bit = (high >> 23) as usize;
            high = high.wrapping_mul(0x9e37_79b9);
            self.blocks[start + bit / 8] >> (bit % 8) & 1 == 1
        })
    }
}

fn contains_in(bytes: &[u8], hash: u64) -> bool {
    BloomFilter::contains_hash_in(bytes, KeyHash::default(), hash)
}

fn check(bytes: &[u8]) {
    let hashes: Vec<u64> = (0..80_u8).map(|i| KeyHasher::default().hash([i])).collect();
    let opened = BloomFilter::from_compact_bytes(bytes, KeyHash::default());
    let Some(naive) = Naive::read(bytes) else {
        let error = opened.unwrap_err();
        assert!(error.offset() <= bytes.len().max(72) as u64);
        assert!(bytes.len() % 64 == 0 || hashes.iter().all(|&hash| contains_in(bytes, hash)));
        return;
    };
    let filter = opened.unwrap();
    assert!(BloomFilter::from_bytes_trusted_any_hash(bytes).is_err());
    assert_eq!(filter.to_compact_bytes().unwrap(), bytes);
    let full = filter.to_bytes();
    assert!(BloomFilter::from_compact_bytes(&full, KeyHash::default()).is_err());
    assert_eq!(BloomFilter::from_bytes_any_hash(&full[..]), Ok(filter));
    let mut hits = Bitmask::new();
    for kernel in Kernel::supported() {
        filter.with_kernel(kernel).contains_hashes(&hashes, &mut hits);
        for (i, &hash) in hashes.iter().enumerate() {
            let expected = naive.contains(hash);
            assert_eq!(hits.get(i), Some(expected), "{kernel:?}, hash {hash:#x}");
            assert_eq!(filter.contains_hash(hash), expected);
            assert_eq!([contains_in(bytes, hash), contains_in(&full, hash)], [expected; 2]);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // With the length and the first bytes of the trailer made to fit, so that the fuzzer gets past
    // them.
    if bytes.len() >= 66 {
        let (fields, blocks) = bytes.split_at(2);
        let mut fitting = blocks[..blocks.len() / 64 * 64].to_vec();
        fitting.extend([0xbc, 1, fields[0] % 32, fields[1] % 8, 1, 2, 3, 4]);
        check(&fitting);
    }
});
