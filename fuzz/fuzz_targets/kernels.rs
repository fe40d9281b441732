//! Property: over arbitrary blocks, hashes, probes and alignments, every kernel answers and inserts as the scalar law does.
#![no_main]

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, BloomFilter, BloomFilterRef, Kernel, KeyHash, Sizing, probe};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    blocks: u8,
    probes: u8,
    offset: u8,
    inserted: Vec<u64>,
    asked: Vec<u64>,
}

fuzz_target!(|input: Input| {
    let (blocks, probes) = (u32::from(input.blocks) + 1, u32::from(input.probes) % 30 + 1);
    let params = Sizing::MaxBytes(64 + 64 * u64::from(blocks))
        .params(u64::from(blocks) * 51)
        .and_then(|params| params.with_probes(probes))
        .unwrap();
    assert_eq!(params.blocks(), blocks);

    let mut expected = vec![[0; 64]; blocks as usize];
    for &hash in &input.inserted {
        probe::insert(&mut expected[probe::block_index(hash, blocks) as usize], hash, probes);
    }
    for kernel in Kernel::supported() {
        let empty = BloomFilter::with_params(params, KeyHash::default()).unwrap();
        let mut filter = empty.with_kernel(kernel);
        filter.insert_hashes(&input.inserted);
        assert_eq!(filter.view().blocks(), expected, "{kernel:?}");

        let mut bytes = vec![0; usize::from(input.offset % 64)];
        let offset = bytes.len();
        bytes.extend_from_slice(&filter.to_bytes());
        let view = BloomFilterRef::from_bytes(&bytes[offset..]).unwrap().with_kernel(kernel);
        let asked: Vec<u64> = input.asked.iter().chain(&input.inserted).copied().collect();
        let mut hits = Bitmask::new();
        view.contains_hashes(&asked, &mut hits);
        for (i, &hash) in asked.iter().enumerate() {
            let block = &expected[probe::block_index(hash, blocks) as usize];
            let maybe = probe::contains(block, hash, probes);
            assert_eq!(hits.get(i), Some(maybe), "{kernel:?}, hash {hash:#x}");
            assert_eq!(view.contains_hash(hash), maybe, "{kernel:?} asked once, hash {hash:#x}");
            assert!(maybe || i < input.asked.len(), "an inserted hash is lost");
        }
    }
});
