//! Property: a batch of keys of any lengths, hashed by any kernel, as slices, arrays, integers or
//! by offsets, has the hash of each key; offsets are right or an error that writes nothing, as a
//! naive reading of them says.
#![no_main]

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, FilterOptions, HashError, Kernel, KeyHash, KeyHasher, Sizing};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64_with_seed;

#[derive(Arbitrary, Debug)]
struct Input {
    seed: u64,
    bytes: Vec<u8>,
    /// Key `i` has `lengths[i] % most` bytes, but at least `least`.
    lengths: Vec<u8>,
    least_length: u8,
    most_length: u8,
    /// How often the keys are repeated.
    times: u8,
    offsets: Vec<i32>,
    wide_offsets: Vec<u64>,
}

fn fixed<const N: usize>(input: &Input, seed: u64) {
    let keys = input.bytes.as_chunks::<N>().0;
    let mut hashes = vec![0; keys.len()];
    assert_eq!(KeyHasher::with_seed(seed).hash_fixed(keys, &mut hashes), Ok(()));
    assert!(keys.iter().zip(&hashes).all(|(key, &hash)| hash == xxh3_64_with_seed(key, seed)));
}

fn offsets<O: Copy + Into<i128>>(input: &Input, offsets: &[O]) {
    let mut hashes = vec![7; offsets.len().saturating_sub(1)];
    let hashed = KeyHasher::with_seed(input.seed).hash_offsets(&input.bytes, offsets, &mut hashes);
    let wide: Vec<i128> = offsets.iter().map(|&offset| offset.into()).collect();
    let is_right = |&offset: &i128| (0..=input.bytes.len() as i128).contains(&offset);
    if wide.is_sorted() && wide.iter().all(is_right) {
        assert_eq!(hashed, Ok(()));
        for (pair, hash) in wide.windows(2).zip(hashes) {
            let key = &input.bytes[pair[0] as usize..pair[1] as usize];
            assert_eq!(hash, xxh3_64_with_seed(key, input.seed));
        }
    } else {
        let Err(HashError::Offset { index, offset, least, most }) = hashed else {
            panic!("{hashed:?}")
        };
        assert_eq!((wide[index], input.bytes.len()), (offset, most));
        assert!(offset < least as i128 || offset > most as i128);
        assert!(hashes.iter().all(|&hash| hash == 7));
    }
}

fuzz_target!(|input: Input| {
    let most = usize::from(input.most_length) + 1;
    let mut rest = &input.bytes[..];
    let mut keys = Vec::new();
    for &length in &input.lengths {
        let length = (usize::from(length) % most).max(usize::from(input.least_length) % most);
        let (key, later) = rest.split_at(length.min(rest.len()));
        rest = if later.is_empty() { &input.bytes } else { later };
        keys.push(key);
    }
    let keys = keys.repeat(usize::from(input.times % 8) + 1);
    let expected: Vec<u64> = keys.iter().map(|key| xxh3_64_with_seed(key, input.seed)).collect();
    let integers: Vec<u64> =
        input.bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
    let of_integers: Vec<u64> =
        integers.iter().map(|key| xxh3_64_with_seed(&key.to_le_bytes(), input.seed)).collect();
    let options = FilterOptions::new(Sizing::BitsPerKey(30.0))
        .with_key_hash(KeyHash::Xxh3 { seed: input.seed });
    let hasher = options.hasher().unwrap();
    let (mut hashes, mut of_u64s) = (vec![7; keys.len()], vec![7; integers.len()]);
    hasher.hash_batch_into(&keys, &mut hashes).unwrap();
    hasher.hash_u64s(&integers, &mut of_u64s).unwrap();
    assert_eq!((&hashes, &of_u64s), (&expected, &of_integers));

    let mut filter = options.empty_filter((keys.len() + integers.len()) as u64).unwrap();
    filter.insert_hashes(&expected).unwrap();
    filter.insert_hashes(&of_integers).unwrap();
    let mut hits = Bitmask::new();
    for kernel in Kernel::supported() {
        // A key with another hash would be absent, but for one in 100,000.
        filter.view().with_kernel(kernel).contains_batch(&keys, &mut hits);
        assert_eq!(hits.count_misses(), 0, "{kernel}");
        filter.view().with_kernel(kernel).contains_u64s(&integers, &mut hits);
        assert_eq!(hits.count_misses(), 0, "{kernel}");
    }
    fixed::<3>(&input, input.seed);
    fixed::<4>(&input, input.seed);
    fixed::<7>(&input, input.seed);
    fixed::<8>(&input, input.seed);
    fixed::<16>(&input, input.seed);
    offsets(&input, &input.offsets);
    offsets(&input, &input.wide_offsets);
});
