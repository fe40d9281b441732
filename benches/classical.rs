//! The classical filters of Guava, Spark, Cassandra and RedisBloom: looked up by a loop as those systems have it, key by key, and in batches;
//! hashed beforehand, and filled; ns a key.
//!
//! `naive` is the loop of the system: both hashes, a division per probe, the next key after the last; `key` goes one by one without
//! divisions; `batch` goes by 4096, prefetched; `hash` and `hash_batch` do the same with keys that are hashed; `insert_hash` and
//! `insert_hash_batch` add such. Keys have 8 bytes and rates are 1 %. `redis_chain` has four links, for 1, 2, 4 and 8 of 15 keys.
//!
//! `cargo bench --bench classical` takes a minute and 400 MB of memory; `-- guava/80M` measures a part.

#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;

use benches::clock::{Case, Named};
use benches::rows::{Given, ITERATION, Size};
use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{self, CassandraFilter, Hash128, Layout};
use blocked_bloom_formats::guava::{self, GuavaFilter, GuavaHash};
use blocked_bloom_formats::redis::{RedisFilter, RedisHash};
use blocked_bloom_formats::spark::{SparkFilter, SparkHash, Version};

/// 120 KB and 96 MB.
const SIZES: [Size; 2] = [Size(100_000, "100k"), Size(80_000_000, "80M")];

/// Keys of a pass, and passes of different keys.
const PASS: usize = 1 << 14;
const PASSES: usize = 32;

type Key = [u8; 8];

/// Distinct for distinct numbers, and in no order.
fn key(i: u64) -> Key {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// A bit of big-endian words.
fn java_bit(words: &[u8], bit: u64) -> bool {
    words[((bit / 8) ^ 7) as usize] >> (bit % 8) & 1 == 1
}

trait Filter {
    type Hash: Copy;
    fn hash(&self, key: &Key) -> Self::Hash;
    /// As the system has it, where that is written here.
    fn naive(&self) -> Option<impl Fn(&Key) -> bool>;
    fn contains(&self, hash: Self::Hash) -> bool;
    fn contains_hashes(&self, hashes: &[Self::Hash], hits: &mut Bitmask);
    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask);
    fn insert_hash(&mut self, hash: Self::Hash);
    fn insert_hashes(&mut self, hashes: &[Self::Hash]);
}

/// What all of them call alike.
macro_rules! filter {
    ($filter:ty, $hash:ty, { $($own:tt)* }) => {
        impl Filter for $filter {
            type Hash = $hash;

            fn contains(&self, hash: $hash) -> bool {
                self.contains_hash(hash)
            }

            fn contains_hashes(&self, hashes: &[$hash], hits: &mut Bitmask) {
                self.contains_hashes(hashes, hits);
            }

            fn insert_hash(&mut self, hash: $hash) {
                _ = self.insert_hash(hash);
            }

            fn insert_hashes(&mut self, hashes: &[$hash]) {
                _ = self.insert_hashes(hashes);
            }

            $($own)*
        }
    };
}

filter!(GuavaFilter, GuavaHash, {
    fn hash(&self, key: &Key) -> GuavaHash {
        guava::hash_key(key)
    }

    fn naive(&self) -> Option<impl Fn(&Key) -> bool> {
        let (shape, words) = (self.shape(), self.words());
        Some(move |key: &Key| {
            let GuavaHash { mut h1, h2, .. } = guava::hash_key(key);
            (0..shape.probes()).all(|_| {
                let bit = (h1 & u64::MAX >> 1) % shape.bits();
                h1 = h1.wrapping_add(h2);
                java_bit(words, bit)
            })
        })
    }

    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask) {
        self.contains_batch(keys, hits);
    }
});

filter!(SparkFilter, SparkHash, {
    fn hash(&self, key: &Key) -> SparkHash {
        self.shape().scheme().hash_long(i64::from_le_bytes(*key))
    }

    fn naive(&self) -> Option<impl Fn(&Key) -> bool> {
        let (shape, words) = (self.shape(), self.words());
        Some(move |key: &Key| {
            let hash = shape.scheme().hash_long(i64::from_le_bytes(*key));
            let mut sum = i64::from(hash.h1) * i64::from(i32::MAX);
            (0..shape.probes()).all(|_| {
                sum = sum.wrapping_add(hash.h2.into());
                let number = if sum < 0 { !sum } else { sum } as u64;
                java_bit(words, number % shape.bits())
            })
        })
    }

    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask) {
        let longs: Vec<i64> = keys.iter().map(|&key| i64::from_le_bytes(key)).collect();
        self.contains_longs(&longs, hits);
    }
});

filter!(CassandraFilter, Hash128, {
    fn hash(&self, key: &Key) -> Hash128 {
        cassandra::hash_key(key)
    }

    fn naive(&self) -> Option<impl Fn(&Key) -> bool> {
        None::<fn(&Key) -> bool>
    }

    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask) {
        self.contains_batch(keys, hits);
    }
});

filter!(RedisFilter, RedisHash, {
    fn hash(&self, key: &Key) -> RedisHash {
        self.hash_key(key)
    }

    fn naive(&self) -> Option<impl Fn(&Key) -> bool> {
        Some(|key: &Key| {
            let hash = self.hash_key(key);
            self.links().iter().rev().any(|link| {
                (0..u64::from(link.shape().probes())).all(|i| {
                    let bit = hash.first().wrapping_add(hash.second().wrapping_mul(i));
                    let bit = bit % link.shape().bits();
                    link.words()[(bit / 8) as usize] >> (bit % 8) & 1 == 1
                })
            })
        })
    }

    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask) {
        self.contains_batch(keys, hits);
    }
});

fn measure<F: Filter>(given: &Given, name: &str, size: Size, empty: impl Fn() -> F) {
    if !given.has(&format!("{name}/{}", size.1)) {
        return;
    }
    let mut filter = empty();
    for start in (0..size.0).step_by(1 << 16) {
        let keys = start..size.0.min(start + (1 << 16));
        let hashes: Vec<_> = keys.map(|i| filter.hash(&key(i))).collect();
        filter.insert_hashes(&hashes);
    }
    let filter = &filter;
    for (mix, first) in [("absent", size.0), ("present", 0)] {
        let number = |i: u64| first + i.wrapping_mul(0x5851_f42d_4c95_7f2d) % size.0;
        let keys: &Vec<Key> = &(0..(PASS * PASSES) as u64).map(|i| key(number(i))).collect();
        let hashes: &Vec<F::Hash> = &keys.iter().map(|key| filter.hash(key)).collect();
        let keys = |pass: usize| black_box(&keys[pass % PASSES * PASS..][..PASS]);
        let hashes = |pass: usize| black_box(&hashes[pass % PASSES * PASS..][..PASS]);
        let has = |key: &Key| filter.contains(filter.hash(key));
        assert!(mix == "absent" || keys(0).iter().all(has), "{name} forgot a key");
        let (mut of_keys, mut of_hashes) = (Bitmask::new(), Bitmask::new());
        let (mut one, mut many) = (empty(), empty());
        let mut ways = Named::default();
        if let Some(naive) = filter.naive() {
            let naive = move |pass| keys(pass).iter().filter(|key| naive(key)).count();
            ways.add("naive", Case::new(PASS, naive));
        }
        ways.add("key", Case::new(PASS, move |pass| keys(pass).iter().filter(|k| has(k)).count()));
        let mut batch = |keys: &[Key]| filter.contains_batch(keys, &mut of_keys);
        let batches = move |pass| keys(pass).chunks(ITERATION).for_each(&mut batch);
        ways.add("batch", Case::new(PASS, batches));
        let contains = |hash: &&F::Hash| filter.contains(**hash);
        ways.add("hash", Case::new(PASS, move |pass| hashes(pass).iter().filter(contains).count()));
        let mut batch = |hashes: &[F::Hash]| filter.contains_hashes(hashes, &mut of_hashes);
        let batches = move |pass| hashes(pass).chunks(ITERATION).for_each(&mut batch);
        ways.add("hash_batch", Case::new(PASS, batches));
        let add = |pass| hashes(pass).iter().for_each(|&hash| one.insert_hash(hash));
        ways.add("insert_hash", Case::new(PASS, add));
        let add = |pass| hashes(pass).chunks(ITERATION).for_each(|part| many.insert_hashes(part));
        ways.add("insert_hash_batch", Case::new(PASS, add));
        println!("\n{name}/{}/{mix}\n{}", size.1, ways.lines(given.rounds(31)));
    }
}

fn main() {
    const LEGAL: &str = "a legal size";
    let given = &Given::to("classical");
    for size in SIZES {
        let keys = size.0;
        let redis = |capacity| RedisFilter::new(capacity, 0.01, Some(2)).expect(LEGAL);
        let spark = || SparkFilter::new(Version::V2 { seed: 0 }, keys, 0.01).expect(LEGAL);
        let cassandra = || CassandraFilter::new(Layout::Since4, keys, 0.01).expect(LEGAL);
        measure(given, "guava", size, || GuavaFilter::new(keys, 0.01).expect(LEGAL));
        measure(given, "spark", size, spark);
        measure(given, "cassandra", size, cassandra);
        measure(given, "redis", size, || redis(keys));
        measure(given, "redis_chain", size, || redis(keys / 15 + 1));
    }
}
