//! Property: a set of filters answers as each of its filters does by itself, hash by hash, on every kernel, by whichever method; pairs
//! that were masked out stay out; a filter of another hash is rejected by name.
#![no_main]

use arbitrary::Arbitrary;
use blocked_bloom::{
    BitMatrix, Bitmask, BloomFilter, BloomFilterRef, FilterOptions, FilterSet, Kernel, KeyHash,
    KeyHasher, PrefixExtractor, SetError, Sizing,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Filter {
    kind: u8,
    blocks: u8,
    probes: u8,
    /// How far from a cache line the bytes are that the filter is opened on.
    offset: u8,
    inserted: Vec<u64>,
}

#[derive(Arbitrary, Debug)]
struct Input {
    filters: Vec<Filter>,
    looked_up: Vec<u64>,
    /// Hashes that are made up beside those, so that batches are of every length.
    more: u8,
    masks: Vec<(u8, u16, u16)>,
}

impl Filter {
    fn build(&self) -> BloomFilter {
        let blocks = u64::from(self.blocks) % 40 + 1;
        let sizing = Sizing::MaxBytes(64 + 64 * blocks);
        match self.kind % 8 {
            0 => BloomFilter::pass_all(KeyHash::default()).unwrap(),
            1 => {
                let options = FilterOptions::new(sizing);
                let mut builder = options.with_only_prefixes(PrefixExtractor::fixed(1)).builder();
                builder.extend(self.inserted.iter().map(|hash| hash.to_le_bytes())).unwrap();
                builder.finish().unwrap()
            }
            _ => {
                let params = sizing.params(51 * blocks).unwrap();
                let params = params.with_probes(u32::from(self.probes) % 30 + 1).unwrap();
                let mut filter = BloomFilter::new(params, KeyHash::default()).unwrap();
                filter.insert_hashes(&self.inserted).unwrap();
                filter
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let stored: Vec<(usize, Vec<u8>)> = input
        .filters
        .iter()
        .take(70)
        .map(|filter| {
            let offset = usize::from(filter.offset) % 64;
            (offset, [vec![0; offset], filter.build().to_bytes()].concat())
        })
        .collect();
    // One by one the filters answer by the scalar probe scheme.
    let scalar = Kernel::supported().last().unwrap();
    let filters: Vec<BloomFilterRef<'_>> = stored
        .iter()
        .map(|(offset, bytes)| BloomFilterRef::from_bytes(&bytes[*offset..]).unwrap())
        .map(|filter| filter.with_kernel(scalar))
        .collect();
    let mut hashes = input.looked_up;
    hashes.extend(input.filters.iter().flat_map(|filter| filter.inserted.iter().take(8)));
    hashes.extend((0..input.more).map(|i| KeyHasher::default().hash([i])));
    let expected = |filter: usize, key: usize| filters[filter].contains_hash(hashes[key]);

    let set = FilterSet::new(KeyHash::default(), filters.iter().copied()).unwrap();
    assert_eq!(set.len(), filters.len());
    let found = KeyHash::Xxh3 { seed: 1 };
    let with_other = filters.iter().copied().chain([BloomFilterRef::pass_all(found)]);
    let refused = FilterSet::new(KeyHash::default(), with_other).map(drop);
    let (index, of_set) = (filters.len(), KeyHash::default());
    assert_eq!(refused, Err(SetError::HashMismatch { index, found, expected: of_set }));
    let words_per_row = hashes.len().div_ceil(64);
    for kernel in Kernel::supported() {
        let set = set.clone().with_kernel(kernel);
        let mut hits = Bitmask::new();
        for (key, &hash) in hashes.iter().enumerate() {
            set.contains_hash(hash, &mut hits);
            let one_by_one = (0..filters.len()).filter(|&filter| expected(filter, key));
            assert!(hits.hits().eq(one_by_one), "{kernel:?}, hash {hash:#x}");
            let mut words = vec![!0; filters.len().div_ceil(64)];
            set.contains_hash_into(hash, &mut words).unwrap();
            assert_eq!(words, hits.words());
        }

        let mut matrix = BitMatrix::new();
        set.contains_hashes(&hashes, &mut matrix).unwrap();
        assert_eq!((matrix.filters(), matrix.keys()), (filters.len(), hashes.len()));
        for filter in 0..filters.len() {
            let one_by_one = (0..hashes.len()).filter(|&key| expected(filter, key));
            assert!(matrix.keys_of(filter).eq(one_by_one), "{kernel:?}, filter {filter}");
        }
        for key in 0..hashes.len() {
            let one_by_one = (0..filters.len()).filter(|&filter| expected(filter, key));
            assert!(matrix.filters_of(key).eq(one_by_one), "{kernel:?}, key {key}");
        }
        let mut words = vec![!0; filters.len() * words_per_row];
        set.contains_hashes_into(&hashes, &mut words).unwrap();
        assert_eq!(words, matrix.words());
        words.push(0);
        assert!(set.contains_hashes_into(&hashes, &mut words).is_err());

        let mut pairs = BitMatrix::new();
        pairs.clear(filters.len(), hashes.len()).unwrap();
        let mut wanted = vec![vec![false; hashes.len()]; filters.len()];
        for &(filter, start, end) in &input.masks {
            let filter = usize::from(filter) % (filters.len() + 1);
            let [start, end] = [start, end].map(|key| usize::from(key) % (hashes.len() + 2));
            let fits = filter < filters.len() && start <= end && end <= hashes.len();
            assert_eq!(pairs.set_keys(filter, start..end).is_ok(), fits);
            if fits {
                wanted[filter][start..end].fill(true);
            }
        }
        // Bits past the last key are not looked at, and cleared.
        let mut words = pairs.words().to_vec();
        if hashes.len() % 64 > 0 {
            let rows = words.chunks_exact_mut(words_per_row);
            rows.for_each(|row| row[words_per_row - 1] |= !0 << (hashes.len() % 64));
        }
        set.retain_hashes(&hashes, &mut pairs).unwrap();
        for (filter, wanted) in wanted.iter().enumerate() {
            for (key, &wanted) in wanted.iter().enumerate() {
                let left = wanted && expected(filter, key);
                assert_eq!(pairs.get(filter, key), Some(left), "{kernel:?}, {filter}, {key}");
            }
        }
        let left: u32 = pairs.words().iter().map(|word| word.count_ones()).sum();
        assert_eq!(pairs.count_hits(), left as usize);
        set.retain_hashes_into(&hashes, &mut words).unwrap();
        assert_eq!(words, pairs.words());
    }
});
