//! Property: over arbitrary blocks, hashes, probes and alignments, every kernel answers and inserts
//! as the scalar probe scheme does; a number of probes that the scheme does not have is an error
//! that changes nothing.
#![no_main]

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, BloomFilter, Filter, Kernel, KeyHash, ParamsError, Sizing, probe};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    blocks: u8,
    probes: u8,
    offset: u8,
    inserted: Vec<u64>,
    looked_up: Vec<u64>,
}

fuzz_target!(|input: Input| {
    let (blocks, probes) = (u32::from(input.blocks) + 1, u32::from(input.probes) % 30 + 1);
    let params = Sizing::MaxBytes(64 + 64 * u64::from(blocks))
        .params(u64::from(blocks) * 51)
        .and_then(|params| params.with_probes(probes))
        .unwrap();
    assert_eq!(params.blocks(), blocks);

    let mut expected = vec![[0; 64]; blocks as usize];
    let is_new: Vec<bool> = input
        .inserted
        .iter()
        .map(|&hash| {
            probe::insert(&mut expected[probe::block_index(hash, blocks) as usize], hash, probes)
        })
        .collect();
    for kernel in Kernel::supported() {
        let empty = BloomFilter::with_params(params, KeyHash::default()).unwrap();
        let mut filter = empty.with_kernel(kernel);
        filter.insert_hashes(&input.inserted).unwrap();
        assert_eq!(filter.blocks(), expected, "{kernel:?}");
        let (mut says, mut new) = (filter.clone(), Bitmask::new());
        says.clear();
        says.insert_hashes_new(&input.inserted, &mut new).unwrap();
        assert!(new.iter().eq(is_new.iter().copied()), "{kernel:?}, {new:?}");
        assert_eq!(says, filter);

        // Blocks of another owner, at no particular alignment.
        let mut lent = vec![[0; 64]; blocks as usize];
        let raw = u32::from(input.probes);
        if !(1..=30).contains(&raw) {
            let error = ParamsError::ProbesOutOfRange { probes: raw };
            assert!(BloomFilter::from_blocks(&mut lent[..], raw, KeyHash::default()) == Err(error));
            assert!(lent.iter().all(|block| *block == [0; 64]));
        }
        let in_lent = BloomFilter::from_blocks(&mut lent[..], probes, KeyHash::default());
        in_lent.unwrap().with_kernel(kernel).insert_hashes(&input.inserted).unwrap();
        assert_eq!(lent, expected, "{kernel:?}");
        let of_blocks = BloomFilter::from_blocks(&lent, probes, KeyHash::default()).unwrap();

        let mut bytes = vec![0; usize::from(input.offset % 64)];
        let offset = bytes.len();
        bytes.extend_from_slice(&filter.to_bytes());
        let view = BloomFilter::from_bytes_any_hash(&bytes[offset..]).unwrap().with_kernel(kernel);
        let keys: Vec<u64> = input.looked_up.iter().chain(&input.inserted).copied().collect();
        let (mut hits, mut of_lent) = (Bitmask::new(), Bitmask::new());
        view.contains_hashes(&keys, &mut hits);
        of_blocks.with_kernel(kernel).contains_hashes(&keys, &mut of_lent);
        assert_eq!(hits, of_lent, "{kernel:?}");
        for (i, &hash) in keys.iter().enumerate() {
            let block = &expected[probe::block_index(hash, blocks) as usize];
            let maybe = probe::contains(block, hash, probes);
            assert_eq!(hits.get(i), Some(maybe), "{kernel:?}, hash {hash:#x}");
            assert_eq!(view.contains_hash(hash), maybe, "{kernel:?}, one hash {hash:#x}");
            assert!(maybe || i < input.looked_up.len(), "an inserted hash is lost");
        }
        let mut words = vec![!0; keys.len().div_ceil(64) + 1];
        assert!(view.contains_hashes_into(&keys, &mut words).is_err());
        assert!(words.iter().all(|&word| word == !0), "written in spite of the wrong length");
    }
});
