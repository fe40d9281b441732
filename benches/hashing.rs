//! Hashing keys of 16 and of 8 bytes, one after the other and many at a time, alone and followed by
//! a lookup in a filter of 100,000 keys; all absent. The first row of each table hashes key after
//! key.
//!
//! `cargo bench -p blocked-bloom-benches --bench hashing` takes half a minute; with
//! `BLOCKED_BLOOM_KERNEL=avx2` it measures that kernel. Times are ns per key.

use benches::clock::{Case, Named};
use benches::rows::{Arguments, Size};
use benches::workload::{Key, Mix, key};
use blocked_bloom::{Bitmask, BloomFilter, Kernel, KeyHasher};

/// Keys that are hashed: more than a branch predictor learns.
const KEYS: usize = 1 << 18;

fn hash_each<K: AsRef<[u8]>>(keys: &[K], hashes: &mut Vec<u64>) {
    let hasher = KeyHasher::default();
    hashes.clear();
    hashes.extend(keys.iter().map(|key| hasher.hash(key)));
}

/// Keys, hashes of a call, and its answers.
type Run<'a, K> = &'a dyn Fn(&[K], &mut Vec<u64>, &mut Bitmask);

/// A table of ways to treat the same keys, some a call.
fn table<K>(title: &str, keys: &[K], batch: usize, rounds: usize, ways: &[(&str, Run<'_, K>)]) {
    let mut named = Named::default();
    for &(name, run) in ways {
        let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
        let case = move |keys: &[K]| run(keys, &mut hashes, &mut hits);
        named.add(name, Case::batches(keys, keys.len(), batch, case));
    }
    named.print(format!("{title}, {}, {batch} a call", Kernel::default()), rounds);
}

fn main() {
    let given = Arguments::from_command_line();
    let rounds = given.rounds(41);
    let filter: &BloomFilter = &Size(100_000, "100k").filled();
    let hasher = KeyHasher::default();
    let integers: Vec<u64> = (0..KEYS as u64).map(|i| Mix::Absent.number(100_000, i)).collect();
    let eights: Vec<[u8; 8]> = integers.iter().map(|number| number.to_le_bytes()).collect();
    let keys: Vec<Key> = integers.iter().map(|&number| key(number)).collect();
    let slices: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    for batch in [4_096, 32] {
        table(
            "16 bytes",
            &keys,
            batch,
            rounds,
            &[
                ("one by one", &|keys, hashes, _| hash_each(keys, hashes)),
                ("hash_batch", &|keys, hashes, _| hasher.hash_batch(keys, hashes)),
            ],
        );
        table(
            "slices of 16 bytes",
            &slices,
            batch,
            rounds,
            &[
                ("one by one", &|keys, hashes, _| hash_each(keys, hashes)),
                ("hash_batch", &|keys, hashes, _| hasher.hash_batch(keys, hashes)),
            ],
        );
        table(
            "8 bytes",
            &eights,
            batch,
            rounds,
            &[
                ("one by one", &|keys, hashes, _| hash_each(keys, hashes)),
                ("hash_batch", &|keys, hashes, _| hasher.hash_batch(keys, hashes)),
            ],
        );
        let eights_of = |keys: &[u64], hashes: &mut Vec<u64>| {
            hashes.clear();
            hashes.extend(keys.iter().map(|key| hasher.hash(key.to_le_bytes())));
        };
        table(
            "integers",
            &integers,
            batch,
            rounds,
            &[
                ("one by one", &|keys, hashes, _| eights_of(keys, hashes)),
                ("hash_u64s", &|keys, hashes, _| {
                    hashes.resize(keys.len(), 0);
                    hasher.hash_u64s(keys, hashes).expect("as many hashes as keys");
                }),
            ],
        );
        table(
            "16 bytes looked up",
            &keys,
            batch,
            rounds,
            &[
                ("one by one", &|keys, hashes, hits| {
                    hash_each(keys, hashes);
                    filter.contains_hashes(hashes, hits);
                }),
                ("contains_batch", &|keys, _, hits| filter.contains_batch(keys, hits)),
            ],
        );
        table(
            "integers looked up",
            &integers,
            batch,
            rounds,
            &[
                ("one by one", &|keys, hashes, hits| {
                    eights_of(keys, hashes);
                    filter.contains_hashes(hashes, hits);
                }),
                ("contains_u64s", &|keys, _, hits| filter.contains_u64s(keys, hits)),
            ],
        );
    }
}
