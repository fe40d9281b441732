//! A set of filters answers as its filters do one by one, by every kernel, at every size; and multi-part keys.

use crate::common::{Random, empty, kernels};
use blocked_bloom::{
    BitMatrix, Bitmask, BloomFilter, BloomFilterRef, FilterOptions, FilterSet, Kernel, KeyError,
    KeyHash, KeyHasher, PrefixExtractor, SetError, Sizing,
};

/// Filters of all numbers of probes and several block counts, half of them borrowed from odd addresses, some pass-all, some empty;
/// each of `hashes` was added to a third of them.
struct Tables {
    owned: Vec<BloomFilter>,
    stored: Vec<Vec<u8>>,
}

impl Tables {
    fn new(count: usize, hashes: &[u64], random: &mut Random) -> Self {
        let mut tables = Tables { owned: Vec::new(), stored: Vec::new() };
        for i in 0..count {
            let blocks = [1, 2, 3, 1000, 20_000][(random.next() % 5) as usize];
            let mut filter = match i % 11 {
                7 => BloomFilter::pass_all(KeyHash::default()).unwrap(),
                _ => empty(blocks, i as u32 * 7 % 30 + 1),
            };
            if i % 13 != 5 {
                filter.insert_hashes(&random.hashes(blocks as usize * 8)).unwrap();
                for &hash in hashes {
                    if random.next().is_multiple_of(3) {
                        filter.insert_hash(hash).unwrap();
                    }
                }
            }
            let mut stored = vec![0; i % 64];
            stored.extend(filter.to_bytes());
            tables.owned.push(filter);
            tables.stored.push(stored);
        }
        tables
    }

    /// Owned and borrowed alternately. One by one they answer by the scalar kernel, whatever that of a set of them.
    fn views(&self) -> Vec<BloomFilterRef<'_>> {
        let scalar = Kernel::supported().last().unwrap();
        let both = self.owned.iter().zip(&self.stored).enumerate();
        both.map(|(i, (owned, stored))| match i % 2 {
            0 => owned.into(),
            _ => BloomFilterRef::from_bytes(&stored[i % 64..]).unwrap(),
        })
        .map(|view| view.with_kernel(scalar))
        .collect()
    }
}

fn bits(answers: impl Iterator<Item = bool>) -> Vec<u64> {
    let answers: Vec<bool> = answers.collect();
    let word = |bits: &[bool]| bits.iter().rev().fold(0, |word, &bit| word << 1 | u64::from(bit));
    answers.chunks(64).map(word).collect()
}

#[test]
fn one_key_against_every_number_of_filters() {
    let mut random = Random(1);
    let present = random.hashes(40);
    let tables = Tables::new(130, &present, &mut random);
    let views = tables.views();
    let queries: Vec<u64> = present.into_iter().chain(random.hashes(10)).collect();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        for count in 0..=130 {
            let set = FilterSet::new(KeyHash::default(), views[..count].iter().copied()).unwrap();
            let set = set.with_kernel(kernel);
            assert_eq!((set.len(), set.is_empty()), (count, count == 0));
            for &hash in &queries {
                let expected = bits(views[..count].iter().map(|view| view.contains_hash(hash)));
                set.contains_hash(hash, &mut hits);
                assert_eq!(
                    (hits.len(), hits.words()),
                    (count, &expected[..]),
                    "{set:?}, {hash:#x}"
                );
                let mut words = vec![u64::MAX; count.div_ceil(64)];
                set.contains_hash_into(hash, &mut words).unwrap();
                assert_eq!(words, expected);
            }
        }
    }
}

/// A set of filters with one number of probes makes one mask: every kernel's, for every number, is that of the probe scheme, or some
/// key that was added is not found, or one whose block misses a bit is.
#[test]
fn every_mask_is_that_of_the_probe_scheme() {
    let mut random = Random(2);
    let edges = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff].map(|hi| hi << 32 | 5);
    for kernel in kernels() {
        for probes in 1..=30 {
            for hash in edges.into_iter().chain(random.hashes(20)) {
                // One filter with all bits of the key, and one for each bit that misses only this one.
                let mut bits: Vec<u32> = blocked_bloom::probe::bits(hash, probes).collect();
                bits.sort_unstable();
                bits.dedup();
                let mut stored = vec![with_bits(&bits, probes)];
                for missing in &bits {
                    let rest: Vec<u32> =
                        bits.iter().copied().filter(|bit| bit != missing).collect();
                    stored.push(with_bits(&rest, probes));
                }
                let views = stored.iter().map(|bytes| BloomFilterRef::from_bytes(bytes).unwrap());
                let set = FilterSet::new(KeyHash::default(), views).unwrap().with_kernel(kernel);
                let mut word = [0];
                set.contains_hash_into(hash, &mut word).unwrap();
                assert_eq!(word, [1], "{kernel:?}, {probes} probes, {hash:#x}");
            }
        }
    }
}

/// The bytes of a filter of one block with exactly these bits.
fn with_bits(bits: &[u32], probes: u32) -> Vec<u8> {
    let mut bytes = empty(1, probes).to_bytes();
    for &bit in bits {
        bytes[64 + bit as usize / 8] |= 1 << (bit % 8);
    }
    let hasher = KeyHasher::default();
    let checksum = hasher.hash(&bytes[64..]);
    bytes[48..56].copy_from_slice(&checksum.to_le_bytes());
    let checksum = hasher.hash(&bytes[..56]);
    bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn batches_against_many_filters() {
    let mut random = Random(3);
    let present = random.hashes(900);
    let tables = Tables::new(13, &present, &mut random);
    let views = tables.views();
    let mut queries = random.hashes(900);
    queries.iter_mut().zip(&present).step_by(2).for_each(|(query, key)| *query = *key);
    let mut hits = BitMatrix::new();
    for kernel in kernels() {
        for filters in [0, 1, 2, 8, 13] {
            let set = FilterSet::new(KeyHash::default(), views[..filters].iter().copied());
            let set = set.unwrap().with_kernel(kernel);
            for keys in (0..=140).chain([191, 192, 193, 255, 256, 257, 512, 900]) {
                let hashes = &queries[..keys];
                set.contains_hashes(hashes, &mut hits).unwrap();
                let row = |view: &BloomFilterRef<'_>| {
                    bits(hashes.iter().map(|&hash| view.contains_hash(hash)))
                };
                let expected: Vec<u64> = views[..filters].iter().flat_map(row).collect();
                assert_eq!(hits.words(), expected, "{set:?}, {keys} keys");
                assert_eq!((hits.filters(), hits.keys()), (filters, keys));
                let mut words = vec![u64::MAX; expected.len()];
                set.contains_hashes_into(hashes, &mut words).unwrap();
                assert_eq!(words, expected);
                for sparsity in 0..6 {
                    let wanted = |random: &mut Random| match sparsity {
                        0 => 0,
                        1 => u64::MAX,
                        2 => random.next(),
                        3 => random.next() & random.next() & random.next() & random.next(),
                        4 => [0, u64::MAX][(random.next() % 2) as usize],
                        _ => random.next() | random.next() | random.next(),
                    };
                    // Bits past the last key are the caller's carelessness.
                    let given: Vec<u64> = words.iter().map(|_| wanted(&mut random)).collect();
                    let mut pairs = given.clone();
                    set.retain_hashes_into(hashes, &mut pairs).unwrap();
                    let both = given.iter().zip(&expected).map(|(given, hit)| given & hit);
                    assert!(both.eq(pairs.iter().copied()), "{set:?}, {keys} keys, {sparsity}");
                }
            }
        }
    }
}

#[test]
fn ranges_of_keys_are_all_that_is_looked_up() {
    let filters = [BloomFilterRef::pass_all(KeyHash::default()); 3];
    let set = FilterSet::new(KeyHash::default(), filters).unwrap();
    let mut pairs = BitMatrix::new();
    for keys in [0, 1, 63, 64, 65, 200] {
        let hashes = Random(4).hashes(keys);
        for start in (0..=keys).step_by(7) {
            for end in (start..=keys).step_by(5) {
                pairs.clear(3, keys).unwrap();
                pairs.set_keys(0, 0..start).unwrap();
                pairs.set_keys(1, start..end).unwrap();
                pairs.set_keys(1, start..start).unwrap();
                set.retain_hashes(&hashes, &mut pairs).unwrap();
                assert!(pairs.keys_of(0).eq(0..start));
                assert!(pairs.keys_of(1).eq(start..end));
                assert!(pairs.keys_of(2).next().is_none() && pairs.keys_of(3).next().is_none());
                assert_eq!(pairs.count_hits(), end);
                for key in 0..keys {
                    let set = [key < start, (start..end).contains(&key), false];
                    assert_eq!([0, 1, 2].map(|filter| pairs.get(filter, key)), set.map(Some));
                    let filters = (0..3).filter(|&filter| pairs.get(filter, key) == Some(true));
                    assert!(pairs.filters_of(key).eq(filters));
                }
                assert!(pairs.filters_of(keys).next().is_none());
                assert_eq!((pairs.get(0, keys), pairs.get(3, 0)), (None, None));
            }
        }
    }
}

#[test]
fn what_is_absent_is_cleared_in_a_matrix() {
    let filters = [empty(1, 6), BloomFilter::pass_all(KeyHash::default()).unwrap()];
    let set = FilterSet::new(KeyHash::default(), &filters).unwrap();
    let mut pairs = BitMatrix::new();
    pairs.clear(2, 70).unwrap();
    pairs.set_keys(0, 0..70).unwrap();
    pairs.set_keys(1, 5..66).unwrap();
    set.retain_hashes(&Random(5).hashes(70), &mut pairs).unwrap();
    assert!(pairs.keys_of(0).next().is_none() && pairs.keys_of(1).eq(5..66));
}

/// A filter that was built of prefixes alone knows nothing of keys, in a set too.
#[test]
fn a_filter_of_prefixes_says_maybe_about_keys_and_answers_as_prefixes() {
    let rule = PrefixExtractor::fixed(2);
    let build = |keys: [&str; 2]| {
        let options = FilterOptions::new(Sizing::BitsPerKey(20.0)).with_only_prefixes(rule.clone());
        let mut builder = options.builder();
        builder.extend(keys).unwrap();
        builder.finish().unwrap()
    };
    let filters = [build(["ab1", "cd1"]), build(["ab2", "ef2"])];
    let hash = KeyHasher::default().hash("ab");
    let keys = FilterSet::new(KeyHash::default(), &filters).unwrap();
    let prefixes = filters.iter().map(|filter| filter.view().prefixes(&rule));
    let prefixes = FilterSet::new(KeyHash::default(), prefixes).unwrap();
    let other = filters.iter().map(|filter| filter.view().prefixes(&PrefixExtractor::capped(2)));
    let other = FilterSet::new(KeyHash::default(), other).unwrap();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        for (set, hash, expected) in [
            (&keys, 77, vec![0, 1]),
            (&other, 77, vec![0, 1]),
            (&prefixes, hash, vec![0, 1]),
            (&prefixes, KeyHasher::default().hash("ef"), vec![1]),
            (&prefixes, 77, vec![]),
        ] {
            set.clone().with_kernel(kernel).contains_hash(hash, &mut hits);
            assert!(hits.hits().eq(expected), "{kernel:?}");
        }
    }
}

#[test]
fn what_a_set_refuses() {
    let mine = KeyHash::Caller { tag: 3 };
    let mut filters = vec![BloomFilterRef::pass_all(KeyHash::default()); 70];
    for (index, other) in [(69, mine), (1, KeyHash::Xxh3 { seed: 5 })] {
        filters[index] = BloomFilterRef::pass_all(other);
        let error = FilterSet::new(KeyHash::default(), filters.iter().copied()).unwrap_err();
        let expected = KeyHash::default();
        assert_eq!(error, SetError::HashMismatch { index, found: other, expected });
    }
    let many = vec![BloomFilterRef::pass_all(mine); FilterSet::MAX_FILTERS + 1];
    let set = FilterSet::new(mine, many[1..].iter().copied()).unwrap();
    assert_eq!((set.key_hash(), set.hasher()), (mine, Err(KeyError::NoHasher { tag: 3 })));
    let error = FilterSet::new(mine, many).unwrap_err();
    assert_eq!(error, SetError::TooManyFilters { limit: 65_536 });

    // The hash is the caller's: every table must be looked into.
    let mut hits = Bitmask::new();
    set.contains("key", &mut hits);
    assert_eq!((hits.len(), hits.count_misses()), (65_536, 0));
    set.contains_hash(7, &mut hits);
    assert_eq!(hits.count_misses(), 0);

    let error = set.contains_hash_into(7, &mut [0; 1025]).unwrap_err();
    assert_eq!((error.words, error.expected), (1025, 1024));
    let hashes = [0; 65];
    for words in [0, 1, 2 * 65_536 - 1, 2 * 65_536 + 1] {
        let mut words = vec![1; words];
        let error = set.contains_hashes_into(&hashes, &mut words).unwrap_err();
        assert_eq!((error.words, error.expected), (words.len(), 2 * 65_536));
        assert_eq!(set.retain_hashes_into(&hashes, &mut words).unwrap_err(), error);
        assert!(words.iter().all(|&word| word == 1));
    }
}

#[test]
fn what_a_matrix_refuses() {
    let filters = [BloomFilterRef::pass_all(KeyHash::default()); 2];
    let set = FilterSet::new(KeyHash::default(), filters).unwrap();
    let mut matrix = BitMatrix::new();
    matrix.clear(2, 70).unwrap();
    matrix.set_keys(1, 69..70).unwrap();
    let before = matrix.clone();
    let error = matrix.set_keys(2, 0..1).unwrap_err();
    assert_eq!(error, SetError::Range { filter: 2, keys: (0, 1), matrix: (2, 70) });
    #[expect(clippy::reversed_empty_ranges, reason = "a caller's mistake")]
    for range in [3..2, 0..71, 71..71, usize::MAX..usize::MAX, usize::MAX..0] {
        let error = matrix.set_keys(1, range.clone()).unwrap_err();
        let keys = (range.start, range.end);
        assert_eq!(error, SetError::Range { filter: 1, keys, matrix: (2, 70) });
    }
    for keys in [0, 69, 71] {
        let error = set.retain_hashes(&vec![0; keys], &mut matrix).unwrap_err();
        assert!(
            matches!(error, SetError::Shape { keys: 70, expected_keys, .. } if expected_keys == keys)
        );
    }
    for (filters, keys) in [(usize::MAX, usize::MAX), (usize::MAX, 1), (1 << 30, usize::MAX)] {
        let error = matrix.clear(filters, keys).unwrap_err();
        assert!(matches!(error, SetError::Alloc(_)), "{error}");
    }
    assert_eq!(matrix, before);
    set.retain_hashes(&[0; 70], &mut matrix).unwrap();
    assert!(matrix.keys_of(1).eq([69]));
}

/// The documented encoding, written without regard to speed.
fn encoding(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for part in parts {
        let mut length = part.len();
        while length > 127 {
            encoded.push((length % 128 + 128) as u8);
            length /= 128;
        }
        encoded.push(length as u8);
        encoded.extend(part);
    }
    encoded
}

#[test]
fn parts_hash_as_their_documented_encoding() {
    let mut random = Random(5);
    let lengths =
        [0, 1, 2, 7, 63, 126, 127, 128, 129, 253, 254, 255, 256, 257, 1000, 16_383, 16_384];
    for hasher in [KeyHasher::default(), KeyHasher::with_seed(99)] {
        assert_eq!(hasher.hash_parts::<&[u8]>(&[]), hasher.hash(b""));
        for first in lengths {
            for second in lengths.into_iter().chain(100..130) {
                let bytes = random.hashes((first + second) / 8 + 1);
                let bytes: Vec<u8> = bytes.iter().flat_map(|word| word.to_le_bytes()).collect();
                let parts = [bytes[..first].to_vec(), bytes[first..first + second].to_vec()];
                for parts in [&parts[..], &parts[..1], &[&parts[..], &parts[..]].concat()] {
                    assert_eq!(hasher.hash_parts(parts), hasher.hash(encoding(parts)));
                }
            }
        }
    }
}

/// Every way to cut every string of three letters and up to five bytes into up to four parts: no two share an encoding or a hash.
/// The letters are those that mean something in an encoding: lengths and bytes that continue a length.
#[test]
fn no_two_lists_of_parts_are_one_key() {
    let mut seen = std::collections::HashMap::new();
    let mut lists: Vec<Vec<Vec<u8>>> = vec![vec![]];
    let mut strings: Vec<Vec<u8>> = vec![vec![]];
    for length in 0..2 {
        let longer = strings.iter().filter(|string| string.len() == length);
        let longer =
            longer.flat_map(|string| [0, 1, 2, 0x81].map(|byte| [&string[..], &[byte]].concat()));
        let longer: Vec<Vec<u8>> = longer.collect();
        strings.extend(longer);
    }
    for parts in 0..3 {
        let longer = lists.iter().filter(|list| list.len() == parts);
        let longer: Vec<Vec<Vec<u8>>> = longer
            .flat_map(|list| {
                strings.iter().map(|part| [&list[..], std::slice::from_ref(part)].concat())
            })
            .collect();
        lists.extend(longer);
    }
    assert_eq!(lists.len(), 1 + 21 + 21 * 21 + 21 * 21 * 21);
    for list in &lists {
        let other = seen.insert(KeyHasher::default().hash_parts(list), list);
        assert_eq!(other, None, "{list:?}");
    }
}

#[test]
fn hashes_of_parts_stay_as_they_are() {
    let hasher = KeyHasher::default();
    assert_eq!(hasher.hash_parts(&["row", "column"]), hasher.hash(b"\x03row\x06column"));
    assert_eq!(hasher.hash_parts(&["row"]), hasher.hash(b"\x03row"));
    let long = ["a".repeat(200), "b".repeat(200)];
    assert_eq!(
        [
            hasher.hash_parts(&["row", "column"]),
            hasher.hash_parts(&["row"]),
            hasher.hash_parts(&long),
            KeyHasher::with_seed(7).hash_parts(&long),
            hasher.hash(42_u64.to_le_bytes()),
        ],
        [
            9_435_922_704_426_298_675,
            7_109_888_144_225_264_014,
            12_354_187_205_810_183_432,
            5_963_716_169_087_490_942,
            15_395_265_915_043_915_720
        ]
    );
}

/// HBase's two granularities from one filter: a row that was never written, and a column that a row does not have.
#[test]
fn one_filter_answers_about_rows_and_columns() {
    let hasher = KeyHasher::default();
    let mut builder = FilterOptions::new(Sizing::BitsPerKey(16.0)).builder();
    for row in 0..1000_u32 {
        let row = row.to_be_bytes();
        builder.insert_hash(hasher.hash_parts(&[row])).unwrap();
        for column in 0..4_u32 {
            builder.insert_hash(hasher.hash_parts(&[row, column.to_be_bytes()])).unwrap();
        }
    }
    let filter = builder.finish().unwrap();
    let has = |parts: &[u32]| {
        let parts: Vec<[u8; 4]> = parts.iter().map(|part| part.to_be_bytes()).collect();
        filter.contains_hash(hasher.hash_parts(&parts))
    };
    assert!((0..1000).all(|row| has(&[row]) && (0..4).all(|column| has(&[row, column]))));
    let rows = (1000..11_000).filter(|&row| has(&[row])).count();
    let columns = (0..1000).flat_map(|row| (4..14).map(move |column| [row, column]));
    let columns = columns.filter(|pair| has(pair)).count();
    assert!(rows < 30 && columns < 30, "{rows} and {columns} of 10,000 pass");
}
