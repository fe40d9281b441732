//! Keys that were chosen by someone who knows the seed: the figures in `SECURITY.md`. Under another
//! seed, these keys have no effect.

use crate::common::Random;
use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, KeyHasher, Sizing, probe};

/// XXH3's constant for keys of 4 to 8 bytes.
const PRIME: u64 = 0x9fb2_1c65_1e98_df25;

/// The value that XXH3-64 mixes into this hash of an 8-byte key: the key's halves, exchanged, XORed
/// with a number that depends only on the seed. Every step of the mixing can be reversed.
fn unmixed(hash: u64) -> u64 {
    // Returns the inverse of an odd number modulo 2^64: each step doubles the number of correct
    // bits.
    let inverse =
        (0..6).fold(PRIME, |x, _| x.wrapping_mul(2_u64.wrapping_sub(PRIME.wrapping_mul(x))));
    let mut x = hash ^ (hash >> 28) ^ (hash >> 56);
    x = x.wrapping_mul(inverse);
    // The upper 35 bits are unchanged, and determine the lower ones.
    x ^= (x >> 35) + 8;
    x = x.wrapping_mul(inverse);
    // `x ^ rotl(x, 49) ^ rotl(x, 24)`, applied 64 times, is the identity, so 63 times is its
    // inverse.
    (0..63).fold(x, |x, _| x ^ x.rotate_left(49) ^ x.rotate_left(24))
}

/// Computes 8-byte keys with any hash from one key and its hash.
struct Attacker {
    secret: u64,
}

impl Attacker {
    fn knowing(key: [u8; 8], hash: u64) -> Self {
        Attacker { secret: unmixed(hash) ^ u64::from_le_bytes(key).rotate_left(32) }
    }

    fn key(&self, hash: u64) -> [u8; 8] {
        (unmixed(hash) ^ self.secret).rotate_left(32).to_le_bytes()
    }
}

#[test]
fn a_known_seed_allows_keys_for_every_hash() {
    let mut random = Random(1);
    for seed in [0, 1, random.next(), random.next(), u64::MAX] {
        let hasher = KeyHasher::with_seed(seed);
        let attacker = Attacker::knowing(*b"anything", hasher.hash(b"anything"));
        for hash in random.hashes(10_000) {
            assert_eq!(hasher.hash(attacker.key(hash)), hash, "seed {seed}");
        }
    }
}

const KEYS: u64 = 100_000;

fn key(i: u64) -> [u8; 16] {
    u128::from(i).to_le_bytes()
}

fn build(key_hash: KeyHash, chosen: &[[u8; 8]]) -> BloomFilter {
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(key_hash);
    let mut builder = options.builder();
    builder.extend((0..KEYS - chosen.len() as u64).map(key)).unwrap();
    builder.extend(chosen).unwrap();
    builder.finish().unwrap()
}

/// Returns the rate of random absent keys.
fn rate(filter: &BloomFilter) -> f64 {
    let absent = (KEYS..KEYS + 1_000_000).filter(|&i| filter.contains(key(i)));
    absent.count() as f64 / 1e6
}

/// High halves of hashes that together set every bit of a block, each chosen for the bits that it
/// adds.
fn covering(probes: u32, random: &mut Random) -> Vec<u64> {
    let (mut chosen, mut set) = (Vec::new(), [false; 512]);
    while set.contains(&false) {
        let fresh =
            |hash: &u64| probe::bits(*hash, probes).filter(|&bit| !set[bit as usize]).count();
        let best = random.hashes(500).into_iter().max_by_key(fresh).unwrap();
        probe::bits(best, probes).for_each(|bit| set[bit as usize] = true);
        chosen.push(best >> 32 << 32);
    }
    chosen
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures that the documentation gives")]
fn chosen_keys_fill_a_block() {
    let (seed, mut random) = (7, Random(2));
    let hasher = KeyHasher::with_seed(seed);
    let attacker = Attacker::knowing([0; 8], hasher.hash([0; 8]));
    let cover = covering(6, &mut random);
    println!("{} chosen keys fill a block", cover.len());
    assert!((86..115).contains(&cover.len()));

    // The same low half selects the same block in filters of every size; these are spread over all
    // blocks.
    let blocks = KEYS / cover.len() as u64 + 1;
    let full = |i| cover.iter().map(move |high| high | ((i << 32) / blocks));
    let mut hashes: Vec<u64> = (0..blocks).flat_map(full).collect();
    hashes.truncate(KEYS as usize);
    for (chosen, least, most) in
        [(0, 0.009, 0.0105), (1_000, 0.012, 0.016), (10_000, 0.05, 0.06), (100_000, 0.45, 0.6)]
    {
        let keys: Vec<[u8; 8]> = hashes[..chosen].iter().map(|&hash| attacker.key(hash)).collect();
        let known = rate(&build(KeyHash::Xxh3 { seed }, &keys));
        let secret = rate(&build(KeyHash::Xxh3 { seed: 8 }, &keys));
        println!(
            "{chosen} chosen of {KEYS}: {:.2} % pass, {:.2} % under another seed",
            known * 100.0,
            secret * 100.0
        );
        assert!((least..most).contains(&known), "{known}");
        assert!((0.009..0.0105).contains(&secret), "{secret}");
    }

    // A key with the hash of an inserted key is a false positive in every filter, with any size and
    // number of probes.
    let alike = attacker.key(hasher.hash(key(5)));
    for bits in [5.0, 10.0, 20.0] {
        let options =
            FilterOptions::new(Sizing::BitsPerKey(bits)).with_key_hash(KeyHash::Xxh3 { seed });
        let mut builder = options.builder();
        builder.extend((0..1_000).map(key)).unwrap();
        assert!(builder.finish().unwrap().contains(alike));
    }
}
