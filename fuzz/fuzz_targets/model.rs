//! Property: whatever is done to a filter, it finds what a set says was inserted, and answers as a
//! naive filter of the same shape does, which keeps one bool per bit. A key that the filter cannot
//! hash is an error that changes nothing; merging with threads or without, one filter or a list of
//! one, gives the same.
#![no_main]

use std::collections::HashSet;

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, BloomFilter, KeyError, KeyHash, Params, Sizing};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    UnionWith(Vec<u64>),
    StoreAndReopen,
    Fold(u8),
    Clear,
}

/// One bool per bit, in the arithmetic of `docs/format.md`.
struct Naive {
    blocks: Vec<[bool; 512]>,
    probes: u32,
}

impl Naive {
    fn positions(&self, hash: u64) -> impl Iterator<Item = (usize, usize)> + use<> {
        let block = (hash % (1 << 32)) * self.blocks.len() as u64 / (1 << 32);
        let mut product = hash / (1 << 32);
        (0..self.probes).map(move |_| {
            let bit = product / (1 << 23);
            product = product * 0x9e37_79b9 % (1 << 32);
            (block as usize, bit as usize)
        })
    }

    fn insert(&mut self, hash: u64) {
        for (block, bit) in self.positions(hash) {
            self.blocks[block][bit] = true;
        }
    }

    fn fold(&mut self, divisor: usize) {
        let or =
            |group: &[[bool; 512]]| std::array::from_fn(|bit| group.iter().any(|block| block[bit]));
        self.blocks = self.blocks.chunks(divisor).map(or).collect();
    }

    fn contains(&self, hash: u64) -> bool {
        self.positions(hash).all(|(block, bit)| self.blocks[block][bit])
    }
}

fn empty(params: Params) -> BloomFilter {
    BloomFilter::with_params(params, KeyHash::Caller { tag: 1 }).unwrap()
}

/// The filter holds the caller's hashes: it takes no keys.
fn insert_keys(filter: &mut BloomFilter) {
    let (before, error) = (filter.clone(), KeyError::NoHasher { tag: 1 });
    assert_eq!(filter.insert("key"), Err(error));
    assert_eq!(filter.insert_batch(&["one", "two"]), Err(error));
    assert_eq!(filter.insert_batch_new(&["one", "two"], &mut Bitmask::new()), Err(error));
    assert!(filter.par_insert_batch(&["one", "two"]).is_err());
    assert!(filter.contains("key"), "a key that cannot be hashed is not ruled out");
    assert_eq!(*filter, before);
}

fuzz_target!(|input: (u8, u8, Vec<Step>, Vec<u64>)| {
    let (blocks, probes, steps, looked_up) = input;
    let (blocks, probes) = (u64::from(blocks % 8) + 1, u32::from(probes) % 30 + 1);
    let params = Sizing::MaxBytes(64 + 64 * blocks)
        .params(blocks * 51)
        .and_then(|params| params.with_probes(probes))
        .unwrap();
    let mut filter = empty(params);
    let mut naive = Naive { blocks: vec![[false; 512]; blocks as usize], probes };
    let mut model = HashSet::new();
    let mut folded_by = 1;
    for step in steps {
        match step {
            Step::Insert(hash) => {
                let was_absent = !naive.contains(hash);
                assert_eq!(filter.insert_hash(hash), Ok(was_absent));
                insert_keys(&mut filter);
                naive.insert(hash);
                model.insert(hash);
            }
            Step::InsertBatch(hashes) => {
                let (mut by_threads, mut says) = (filter.clone(), filter.clone());
                let (mut counts, mut new) = (filter.clone(), Bitmask::new());
                counts.insert_hashes_counting_new(&hashes, &mut new).unwrap();
                let counted = filter.keys_inserted() + new.count_hits() as u64;
                assert_eq!(counts.keys_inserted(), counted);
                says.insert_hashes_new(&hashes, &mut new).unwrap();
                for (hash, is_new) in hashes.iter().zip(new.iter()) {
                    assert_eq!(is_new, !naive.contains(*hash));
                    naive.insert(*hash);
                }
                by_threads.par_insert_hashes(&hashes).unwrap();
                filter.insert_hashes(&hashes).unwrap();
                assert_eq!((&filter, &filter), (&by_threads, &says));
                assert_eq!(counts.blocks(), filter.blocks());
                model.extend(hashes);
            }
            Step::UnionWith(hashes) => {
                let mut other = empty(params);
                other.insert_hashes(&hashes).unwrap();
                other = other.folded(folded_by).unwrap();
                let mut same = other.clone();
                same.union_with(&filter).unwrap();
                filter.union_with(&other.view()).unwrap();
                assert!(same == filter);
                hashes.iter().for_each(|&hash| naive.insert(hash));
                model.extend(hashes);
            }
            Step::StoreAndReopen => {
                let opened = BloomFilter::from_bytes_any_hash(filter.to_bytes()).unwrap();
                assert_eq!(opened, filter);
                filter = opened.to_filter().unwrap();
            }
            Step::Fold(divisor) => {
                let divisor = u32::from(divisor);
                let divides = divisor != 0 && naive.blocks.len() as u32 % divisor == 0;
                let folded = filter.folded(divisor);
                assert_eq!(folded.is_ok(), divides);
                if let Ok(folded) = folded {
                    filter = folded;
                    naive.fold(divisor as usize);
                    folded_by *= divisor;
                }
            }
            Step::Clear => {
                filter.clear();
                naive.blocks.fill([false; 512]);
                model.clear();
            }
        }
    }
    for &hash in model.iter().chain(&looked_up) {
        assert_eq!(filter.contains_hash(hash), naive.contains(hash), "hash {hash:#x}");
    }
    assert!(model.iter().all(|&hash| filter.contains_hash(hash)));
});
