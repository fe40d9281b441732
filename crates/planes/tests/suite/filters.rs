//! Planes built from filters of the core answer as the filters do, bit for bit.

use blocked_bloom::{Bitmask, Block, BloomFilter, FilterOptions, KeyHash, PrefixExtractor, Sizing};
use blocked_bloom_planes::{Planes, PlanesError, PlanesOptions, Query, Shape};

use crate::naive::Random;

fn filters(count: usize, blocks: u64, probes: u32, key_hash: KeyHash) -> Vec<BloomFilter> {
    let params = Sizing::MaxBytes(64 + 64 * blocks).params(50 * blocks).unwrap();
    let params = params.with_probes(probes).unwrap();
    let mut random = Random(blocks);
    let filled = (0..count).map(|_| {
        let mut filter = BloomFilter::with_params(params, key_hash).unwrap();
        let keys = random.next_below(80 * blocks as usize);
        filter.insert_hashes(&random.hashes(keys)).unwrap();
        filter
    });
    filled.collect()
}

/// Compares every answer of every filter, for hashes that are present in some filters.
fn compare(filters: &[BloomFilter], planes: &Planes, seed: u64) -> usize {
    let blocks = filters[0].params().blocks();
    let mut random = Random(u64::from(blocks));
    _ = random.next();
    let mut hashes = random.hashes(20);
    hashes.extend(Random(seed).hashes(300));
    let (mut hits, mut alone, mut found) = (Bitmask::new(), Bitmask::new(), 0);
    let mut answers = Vec::new();
    for filter in filters {
        filter.contains_hashes(&hashes, &mut alone);
        answers.push(alone.clone());
    }
    for (i, &hash) in hashes.iter().enumerate() {
        planes.query(&Query::all([hash]), &mut hits);
        assert_eq!(hits.len(), filters.len());
        for (answer, hit) in answers.iter().zip(hits.iter()) {
            assert_eq!(answer.get(i), Some(hit), "{hash:x}");
        }
        found += hits.count_hits();
    }
    found
}

#[test]
fn answers_are_equal_bit_for_bit() {
    for (blocks, probes) in [(1, 1), (1, 6), (3, 8), (7, 30), (20, 5)] {
        let filters = filters(600, blocks, probes, KeyHash::default());
        let planes = Planes::from_filters(&filters).unwrap();
        assert_eq!(planes.shape(), Shape::new(blocks as u32, 512, probes).unwrap());
        assert!(compare(&filters, &planes, 1) > 600);
    }
}

#[test]
fn stand_ins_and_filters_of_prefixes_may_have_everything() {
    let mut filters = filters(40, 2, 6, KeyHash::default());
    filters.insert(0, BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap());
    filters.insert(20, BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap());
    let options = FilterOptions::new(Sizing::MaxBytes(64 + 128)).with_probes(6);
    let mut builder = options.with_only_prefixes(PrefixExtractor::fixed(2)).builder();
    builder.insert("prefix").unwrap();
    filters.push(builder.finish().unwrap());
    let planes = Planes::from_filters(&filters).unwrap();
    compare(&filters, &planes, 2);
    let mut hits = Bitmask::new();
    planes.query(&Query::all([1, 2, 3]), &mut hits);
    assert_eq!([0, 20, 42].map(|row| hits.get(row)), [Some(true); 3]);

    // No other row does.
    let only = vec![BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap(); 3];
    let planes = Planes::from_filters(&only).unwrap();
    planes.query(&Query::all([1, 2, 3]), &mut hits);
    assert_eq!((hits.len(), hits.count_hits()), (3, 3));
    let none: [BloomFilter; 0] = [];
    assert_eq!(Planes::from_filters(&none).unwrap().rows(), 0);
}

#[test]
fn filters_that_differ_are_errors() {
    let caller = KeyHash::Caller { tag: 9 };
    let [small, large, others, probes] = [
        (2, 6, KeyHash::default()),
        (3, 6, KeyHash::default()),
        (2, 6, caller),
        (2, 7, KeyHash::default()),
    ]
    .map(|(blocks, probes, key_hash)| filters(1, blocks, probes, key_hash).remove(0));
    let shape = |blocks, probes| Shape::new(blocks, 512, probes).unwrap();
    let expected = shape(2, 6);
    assert_eq!(
        Planes::from_filters(&[small.clone(), large.clone()]).unwrap_err(),
        PlanesError::RowShape { found: shape(3, 6), expected }
    );
    assert_eq!(
        Planes::from_filters(&[small.clone(), probes]).unwrap_err(),
        PlanesError::RowShape { found: shape(2, 7), expected }
    );
    assert_eq!(
        Planes::from_filters(&[small.clone(), others.clone()]).unwrap_err(),
        PlanesError::HashMismatch { found: caller, expected: KeyHash::default() }
    );
    // An error appends nothing. A view is accepted like a filter.
    let mut builder = PlanesOptions::new(expected).builder().unwrap();
    assert!(builder.append_filter(&large).is_err() && builder.append_filter(&others).is_err());
    assert_eq!(builder.rows(), 0);
    let view: BloomFilter<&[Block]> = small.view();
    builder.append_filter(&view).unwrap();
    builder.append_filter(&small).unwrap();
    assert_eq!(builder.rows(), 2);
}
