//! One key in the filters of many tables.

use blocked_bloom::{
    Block, BloomFilter, Filter, FilterOptions, Kernel, KeyHash, LengthError, PrefixExtractor,
    Sizing,
};
use blocked_bloom_lsm::contains_in_each;

use crate::common::Random;

const XXH3: KeyHash = KeyHash::Xxh3 { seed: 0 };

/// A filter without blocks of the probe scheme, for hashes that are multiples of a number.
struct Multiples(u64);

impl Filter for Multiples {
    fn contains_hash(&self, hash: u64) -> bool {
        hash.is_multiple_of(self.0)
    }

    fn contains_hashes_into(&self, _: &[u64], _: &mut [u64]) -> Result<(), LengthError> {
        unreachable!("hashes are looked up one by one");
    }

    fn prefetch_hash(&self, _: u64) {}

    fn key_hash(&self) -> KeyHash {
        KeyHash::Caller { tag: 1 }
    }

    fn hash_key(&self, _: &[u8]) -> Option<u64> {
        None
    }
}

/// Filters of every kind and size, with hashes of their own: catches an answer of another table,
/// bits that are kept for another hash or number of probes, and a filter that is not asked itself.
#[test]
fn many_filters_in_one_call_answer_as_each_does() {
    let hashes = Random(11).hashes(60);
    let (rule, large) =
        (PrefixExtractor::fixed(1), Kernel::default().prefetch_threshold() / 64 + 9);
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let with_prefixes = options.clone().with_only_prefixes(rule.clone());
    let prefixes = with_prefixes.builder().finish().unwrap();
    let shared = options.atomic_filter(100).unwrap();
    shared.insert_hashes(&hashes[..20]).unwrap();
    let mut filters: Vec<Box<dyn Filter + '_>> = Vec::new();
    for (i, probes) in (0..90).zip([6, 6, 6, 7, 1, 30, 6, 9, 6].into_iter().cycle()) {
        let blocks = if i % 31 == 30 { large } else { 1 + i % 5 };
        let mut blocks: Vec<Block> = vec![[0; 64]; blocks];
        let mut filter = BloomFilter::from_blocks(&mut blocks[..], probes, XXH3).unwrap();
        filter.insert_hashes(&hashes[i % 7..][..i % 53]).unwrap();
        filters.push(match i % 13 {
            3 => Box::new(&shared),
            5 => Box::new(prefixes.clone()),
            7 => Box::new(BloomFilter::pass_all(XXH3)),
            8 => Box::new(Multiples(1 + i as u64 % 2)),
            9 => Box::new(BloomFilter::from_bytes(filter.to_bytes(), XXH3).unwrap()),
            _ => Box::new(filter.to_filter().unwrap()),
        });
    }
    let mut hits = 0;
    for count in [0, 1, 2, 20, 63, 64, 65, 90] {
        let tables: Vec<usize> = (0..count).collect();
        for &hash in &hashes {
            // Some tables have another seed.
            let hash_of = |table: usize| if table % 6 == 5 { hash.rotate_left(7) } else { hash };
            let found = contains_in_each(&tables, |&table| (&*filters[table], hash_of(table)));
            let contains = |&table: &usize| filters[table].contains_hash(hash_of(table));
            let bits = tables.iter().take(64).filter(|table| contains(table));
            assert_eq!(found, bits.fold(0, |bits, table| bits | 1_u64 << *table), "{count} tables");
            hits += found.count_ones();
        }
    }
    assert!((2_000..16_000).contains(&hits), "{hits}");
}
