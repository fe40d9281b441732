//! Filters in bytes of another owner: one that lends other bytes than were opened, and damaged
//! bytes. None may answer "absent".

use std::cell::Cell;
use std::sync::Arc;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, Filter, FormatError, KeyHash};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};

use crate::common::{Random, kernels};

/// Lends a prefix of its bytes, of this length.
struct Owner<'a> {
    bytes: &'a [u8],
    lent: &'a Cell<usize>,
}

impl AsRef<[u8]> for Owner<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.lent.get()]
    }
}

const KEYS: u64 = 300;

fn stored() -> Vec<u8> {
    let keys: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let mut filter = RemovableOptions::new(KEYS).empty_filter().unwrap();
    filter.insert_batch(&keys).unwrap();
    filter.to_bytes()
}

/// Every lookup of these keys: batches of every kind, and single keys.
macro_rules! answers {
    ($filter:expr, $keys:expr) => {{
        let (filter, keys): (_, &[u64]) = ($filter, $keys);
        let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let mut hashes = Vec::new();
        filter.hasher().unwrap().hash_batch(&bytes, &mut hashes);
        let any: &dyn Filter = filter;
        let mut masks = [const { Bitmask::new() }; 4];
        filter.contains_hashes(&hashes, &mut masks[0]);
        filter.contains_batch(&bytes, &mut masks[1]);
        filter.contains_u64s(keys, &mut masks[2]);
        masks[3].write(keys.len(), |words| {
            words.fill(0);
            for (i, (&hash, key)) in hashes.iter().zip(&bytes).enumerate() {
                any.prefetch_hash(hash);
                assert_eq!(filter.contains_hash(hash), filter.contains(key));
                assert_eq!(filter.contains_hash(hash), any.contains_hash(hash));
                words[i / 64] |= u64::from(filter.contains_hash(hash)) << (i % 64);
            }
        });
        assert!(masks.iter().all(|mask| *mask == masks[0]));
        // Bits after the last key are zero here too.
        let mut words = [(); 4].map(|()| vec![5; keys.len().div_ceil(64)]);
        filter.contains_hashes_into(&hashes, &mut words[0]).unwrap();
        filter.contains_batch_into(&bytes, &mut words[1]).unwrap();
        filter.contains_u64s_into(keys, &mut words[2]).unwrap();
        any.contains_hashes_into(&hashes, &mut words[3]).unwrap();
        assert!(words.iter().all(|words| words == masks[0].words()));
        // Nothing is written if there are too many words or too few.
        let mut words = vec![5; keys.len().div_ceil(64) + 1];
        assert!(filter.contains_hashes_into(&hashes, &mut words).is_err());
        assert!(filter.contains_batch_into(&bytes, &mut words).is_err());
        assert!(filter.contains_u64s_into(keys, &mut words).is_err());
        assert!(words.iter().all(|&word| word == 5));
        masks[0].clone()
    }};
}

/// The properties of a pass-all filter.
macro_rules! check_passes_all {
    ($filter:expr) => {{
        let filter = $filter;
        for length in [0, 1, 7, 8, 9, 63, 64, 65, 128, 1_500] {
            let hits = answers!(filter, &Random(9).hashes(length));
            assert_eq!((hits.count_hits(), hits.len()), (length, length));
        }
        assert!(filter.is_pass_all() && !filter.is_empty());
        assert_eq!((filter.capacity(), filter.memory_bytes(), filter.load()), (0, 0, 1.0));
        assert_eq!(filter.expected_false_positive_rate(), 1.0);
        assert!(filter.lines().is_empty());
        assert_eq!(filter.to_filter().unwrap_err(), RemovableError::PassAll);
        // The stored form cannot be mistaken for a filter without keys.
        let stored = filter.to_bytes();
        assert!(RemovableFilter::from_bytes_any_hash(&stored).is_err());
        assert!(RemovableFilter::from_bytes_trusted_any_hash(&stored).is_err());
    }};
}

#[test]
fn an_owner_that_lends_fewer_or_more_bytes_makes_every_answer_maybe() {
    let stored = stored();
    let bytes = [&stored[..], &stored[..]].concat();
    for kernel in kernels() {
        for trusted in [false, true] {
            let lent = Cell::new(stored.len());
            let owner = Owner { bytes: &bytes, lent: &lent };
            let filter = match trusted {
                true => RemovableFilter::from_bytes_trusted_any_hash(owner),
                false => RemovableFilter::from_bytes_any_hash(owner),
            };
            let filter = filter.unwrap().with_kernel(kernel);
            let keys: Vec<u64> = (0..2 * KEYS).collect();
            let expected = answers!(&filter, &keys);
            assert!((KEYS..KEYS + 9).contains(&(expected.count_hits() as u64)));
            let (one_less, one_more) = (stored.len() - 1, stored.len() + 1);
            for length in [0, 10, 64, 128, one_less, one_more, stored.len() + 64, bytes.len()] {
                lent.set(length);
                check_passes_all!(&filter);
                check_passes_all!(&filter.view());
                assert_eq!(filter.keys_inserted(), KEYS);
            }
            lent.set(stored.len());
            assert_eq!(answers!(&filter, &keys), expected);
            assert_eq!(answers!(&filter.view(), &keys), expected);
            assert_eq!(filter.into_inner().as_ref(), stored);
        }
    }
}

/// The length differs every time: the verified slice is the one that is used.
#[test]
fn an_owner_that_lends_other_bytes_while_it_is_opened() {
    struct Changing<'a>(&'a [u8], Cell<usize>, [usize; 4]);
    impl AsRef<[u8]> for Changing<'_> {
        fn as_ref(&self) -> &[u8] {
            let turn = self.1.replace(self.1.get() + 1);
            &self.0[..self.2[turn.min(3)]]
        }
    }
    let stored = stored();
    let (whole, more) = (stored.len(), stored.len() + 64);
    let bytes = [&stored[..], &[0; 64]].concat();
    let hasher = RemovableOptions::new(KEYS).hasher().unwrap();
    for choice in 0..81 {
        let turns = [1, 3, 9, 27].map(|power| [whole, more, 0][choice / power % 3]);
        let owner = || Changing(&bytes, Cell::new(0), turns);
        let opened = [
            RemovableFilter::from_bytes_any_hash(owner()),
            RemovableFilter::from_bytes_trusted_any_hash(owner()),
            Ok(RemovableFilter::open_or_pass_all(owner(), KeyHash::default()).0),
        ];
        for filter in opened.into_iter().flatten() {
            for key in 0..KEYS {
                assert!(filter.contains_hash(hasher.hash(key.to_le_bytes())), "{turns:?}");
            }
        }
    }
}

#[test]
fn damaged_bytes_open_as_a_filter_that_passes_all() {
    let good = stored();
    let (filter, error) = RemovableFilter::open_or_pass_all(&good, KeyHash::default());
    assert_eq!(error, None);
    assert!(
        !filter.is_pass_all() && filter == RemovableFilter::from_bytes_any_hash(&good).unwrap()
    );
    for kernel in kernels() {
        let mut damaged = vec![good[..100].to_vec(), [&good[..], &[0]].concat(), Vec::new()];
        for at in [0, 10, 63, 64, good.len() - 1] {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            damaged.push(bytes);
        }
        for bytes in damaged {
            let shared: Arc<[u8]> = bytes.into();
            let (filter, error) =
                RemovableFilter::open_or_pass_all(Arc::clone(&shared), KeyHash::default());
            assert_eq!(error, RemovableFilter::from_bytes_any_hash(&shared).err());
            assert!(matches!(error, Some(FormatError::Header(_))));
            let filter = filter.with_kernel(kernel);
            check_passes_all!(&filter);
            check_passes_all!(&filter.view());
            assert_eq!(filter.keys_inserted(), 0);
            assert!(Arc::ptr_eq(&filter.into_inner(), &shared));
        }
        // Another hash.
        let expected = KeyHash::Xxh3 { seed: 3 };
        let (filter, error) = RemovableFilter::open_or_pass_all(&good, expected);
        let found = KeyHash::default();
        assert_eq!(error, Some(HeaderError::HashMismatch { offset: 11, found, expected }.into()));
        assert_eq!(filter.key_hash(), expected);
        check_passes_all!(&filter.with_kernel(kernel));
    }
}
