//! The classical filters of Guava, Spark, Cassandra and RedisBloom, looked up by a loop as those
//! systems have it, key by key, and in batches of 4096; ns a key.
//!
//! `naive` is the loop of the system: both hashes, a division per probe, the next key after the
//! last; `key` goes one by one without divisions; `batch` is prefetched. Keys have 8 bytes and
//! rates are 1 %. `redis_chain` has four links, for 1, 2, 4 and 8 of 15 keys.
//!
//! `cargo bench -p blocked-bloom-benches --bench classical` takes a minute and 400 MB of memory;
//! `-- guava/80M` measures a part.

use benches::clock::{Case, Named};
use benches::rows::{Arguments, ITERATION, Size};
use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{self, CassandraFilter, Layout};
use blocked_bloom_formats::guava::{self, GuavaFilter, GuavaHash};
use blocked_bloom_formats::redis::RedisFilter;
use blocked_bloom_formats::spark::{SparkFilter, Version};

/// 120 KB and 96 MB.
const SIZES: [Size; 2] = [Size(100_000, "100k"), Size(80_000_000, "80M")];

/// Keys of a pass, and passes of different keys.
const PASS: usize = 1 << 14;
const PASSES: usize = 32;

type Key = [u8; 8];

/// Counts those that may be in the filter.
type Row<'a> = (&'static str, Box<dyn FnMut(&[Key]) -> usize + 'a>);

/// Distinct for distinct numbers, and in no order.
fn key(i: u64) -> Key {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// A bit of big-endian words.
fn java_bit(words: &[u8], bit: u64) -> bool {
    words[((bit / 8) ^ 7) as usize] >> (bit % 8) & 1 == 1
}

fn query_row<'a>(name: &'static str, contains: impl Fn(&Key) -> bool + 'a) -> Row<'a> {
    (name, Box::new(move |keys| keys.iter().filter(|key| contains(key)).count()))
}

fn batch<'a>(contains: impl Fn(&[Key], &mut Bitmask) + 'a) -> Row<'a> {
    let mut hits = Bitmask::new();
    let count = move |keys: &[Key]| {
        contains(keys, &mut hits);
        hits.count_hits()
    };
    ("batch", Box::new(count))
}

/// Inserts the hashes of keys `0 .. keys`.
fn fill<H>(keys: u64, hash: impl Fn(&Key) -> H, mut insert: impl FnMut(&[H])) {
    for start in (0..keys).step_by(1 << 16) {
        let part = start..keys.min(start + (1 << 16));
        insert(&part.map(|i| hash(&key(i))).collect::<Vec<H>>());
    }
}

/// Fills a filter for this many keys, and hands over the rows to look keys up in it.
type System = fn(u64, &dyn Fn(Vec<Row<'_>>));

const LEGAL: &str = "a legal size";

fn guava(keys: u64, measure: &dyn Fn(Vec<Row<'_>>)) {
    let mut filter = GuavaFilter::new(keys, 0.01).expect(LEGAL);
    fill(keys, |key| guava::hash_key(key), |hashes| filter.insert_hashes(hashes));
    let (shape, words) = (filter.shape(), filter.words());
    let naive = |key: &Key| {
        let GuavaHash { mut h1, h2, .. } = guava::hash_key(key);
        (0..shape.probes()).all(|_| {
            let bit = (h1 & u64::MAX >> 1) % shape.bits();
            h1 = h1.wrapping_add(h2);
            java_bit(words, bit)
        })
    };
    let key = query_row("key", |key| filter.contains_hash(guava::hash_key(key)));
    measure(vec![
        query_row("naive", naive),
        key,
        batch(|keys, hits| filter.contains_batch(keys, hits)),
    ]);
}

fn spark(keys: u64, measure: &dyn Fn(Vec<Row<'_>>)) {
    let mut filter = SparkFilter::new(Version::V2 { seed: 0 }, keys, 0.01).expect(LEGAL);
    let shape = filter.shape();
    let hash = |key: &Key| shape.scheme().hash_long(i64::from_le_bytes(*key));
    fill(keys, hash, |hashes| filter.insert_hashes(hashes));
    let naive = |key: &Key| {
        let hash = hash(key);
        let mut sum = i64::from(hash.h1) * i64::from(i32::MAX);
        (0..shape.probes()).all(|_| {
            sum = sum.wrapping_add(hash.h2.into());
            let number = if sum < 0 { !sum } else { sum } as u64;
            java_bit(filter.words(), number % shape.bits())
        })
    };
    let longs = |keys: &[Key]| keys.iter().map(|&key| i64::from_le_bytes(key)).collect::<Vec<_>>();
    measure(vec![
        query_row("naive", naive),
        query_row("key", |key| filter.contains_hash(hash(key))),
        batch(|keys, hits| filter.contains_longs(&longs(keys), hits)),
    ]);
}

fn cassandra(keys: u64, measure: &dyn Fn(Vec<Row<'_>>)) {
    let mut filter = CassandraFilter::new(Layout::Cassandra4, keys, 0.01).expect(LEGAL);
    fill(keys, |key| cassandra::hash_key(key), |hashes| filter.insert_hashes(hashes));
    let key = query_row("key", |key| filter.contains_hash(cassandra::hash_key(key)));
    measure(vec![key, batch(|keys, hits| filter.contains_batch(keys, hits))]);
}

fn redis(keys: u64, capacity: u64, measure: &dyn Fn(Vec<Row<'_>>)) {
    let mut filter = RedisFilter::new(capacity, 0.01, Some(2)).expect(LEGAL);
    let empty = filter.clone();
    fill(keys, |key| empty.hash_key(key), |hashes| _ = filter.insert_hashes(hashes));
    let naive = |key: &Key| {
        let hash = filter.hash_key(key);
        filter.links().iter().rev().any(|link| {
            (0..u64::from(link.shape().probes())).all(|i| {
                let bit = hash.first().wrapping_add(hash.second().wrapping_mul(i));
                let bit = bit % link.shape().bits();
                link.words()[(bit / 8) as usize] >> (bit % 8) & 1 == 1
            })
        })
    };
    let key = query_row("key", |key| filter.contains_hash(filter.hash_key(key)));
    measure(vec![
        query_row("naive", naive),
        key,
        batch(|keys, hits| filter.contains_batch(keys, hits)),
    ]);
}

const SYSTEMS: [(&str, System); 5] = [
    ("guava", guava),
    ("spark", spark),
    ("cassandra", cassandra),
    ("redis", |keys, measure| redis(keys, keys, measure)),
    ("redis_chain", |keys, measure| redis(keys, keys / 15 + 1, measure)),
];

fn main() {
    let given = Arguments::from_command_line();
    for ((name, system), Size(count, size)) in
        SIZES.into_iter().flat_map(|size| SYSTEMS.map(|s| (s, size)))
    {
        let title = format!("{name}/{size}");
        let measure = |mut rows: Vec<Row<'_>>| {
            for (mix, first) in [("absent", count), ("present", 0)] {
                let number = |i: u64| first + i.wrapping_mul(0x5851_f42d_4c95_7f2d) % count;
                let keys: Vec<Key> = (0..(PASS * PASSES) as u64).map(|i| key(number(i))).collect();
                let mut named = Named::default();
                for (name, way) in &mut rows {
                    assert!(mix == "absent" || way(&keys[..PASS]) == PASS, "{title} forgot a key");
                    named.add(*name, Case::batches(&keys, PASS, ITERATION, way));
                }
                named.print(format!("{title}/{mix}"), given.rounds(31));
            }
        };
        if given.is_requested(&title) {
            system(count, &measure);
        }
    }
}
