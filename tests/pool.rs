//! Only the methods `par_*` use threads. The test has its own process, since a global pool cannot
//! be stopped.
#![cfg(feature = "rayon")]

use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, KeyHash, KeyHasher, Sizing};

/// Number of keys from which the methods `par_*` use the pool.
const LARGE_COUNT: u64 = (1 << 23) + 1;

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// The only test: another one would start the pool.
#[test]
fn only_the_methods_par_start_the_global_pool() {
    let options = FilterOptions::new(Sizing::BitsPerKey(20.0));
    let params = options.params(LARGE_COUNT).unwrap();
    let keys: Vec<[u8; 8]> = (0..LARGE_COUNT).map(key).collect();
    let mut hashes = Vec::new();
    KeyHasher::default().hash_batch(&keys, &mut hashes);

    // Building: keys in a list, keys flushed at the limit, and insertion into a finished filter.
    let mut builder = options.builder();
    builder.extend(&keys).unwrap();
    let mut filter = builder.clone().finish().unwrap();
    assert!(builder.clone().finish_verified().unwrap() == filter);
    let (verified, error) = builder.clone().finish_verified_or_pass_all().unwrap();
    assert!(verified == filter && error.is_none());
    let limited = options.clone().with_memory_limit(1 << 20).with_expected_items(LARGE_COUNT);
    let mut flushing = limited.builder();
    hashes.iter().for_each(|&hash| flushing.insert_hash(hash).unwrap());
    assert!(flushing.finish_verified().unwrap() == filter);
    let mut direct = options.empty_filter(LARGE_COUNT).unwrap();
    direct.insert_batch(&keys).unwrap();
    assert!(direct == filter);
    direct.insert_hashes(&hashes).unwrap();

    // Merging and folding, 80 MiB at once.
    let built = filter.clone();
    filter.union_with(&direct).unwrap();
    filter.shrink_to_false_positive_rate(0.5).unwrap();

    // Storing, sharing, looking up.
    let stored = direct.to_bytes();
    let opened = BloomFilter::from_bytes_any_hash(stored).unwrap();
    let mut hits = Bitmask::new();
    opened.contains_batch(&keys, &mut hits);
    assert_eq!(hits.count_misses(), 0);
    let shared = blocked_bloom::AtomicBloomFilter::from(direct);
    shared.insert_hashes(&hashes).unwrap();

    // With few keys, the methods `par_*` do not use threads either.
    let mut small = options.empty_filter(1_000).unwrap();
    small.par_insert_hashes(&hashes[..65_536]).unwrap();
    small.par_insert_batch(&keys[..65_535]).unwrap();
    let mut builder_of_few = options.builder();
    builder_of_few.extend(&keys[..65_536]).unwrap();
    builder_of_few.clone().par_finish().unwrap();
    builder_of_few.par_finish_verified().unwrap();

    // A second pool cannot be built, so this call fails if a pool was started.
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global().expect("no pool was started");
    assert!(rayon::ThreadPoolBuilder::new().build_global().is_err(), "one was started now");
    let mut same = BloomFilter::with_params(params, KeyHash::default()).unwrap();
    same.par_insert_hashes(&hashes).unwrap();
    assert!(same == built && builder.par_finish().unwrap() == same);
}
