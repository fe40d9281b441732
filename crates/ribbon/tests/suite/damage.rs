//! The damage tests of the core, applied to stored Ribbon filters. Unverified contents may give any
//! answer, but never cause a read outside of the bytes.

#[path = "../../../../tests/suite/damage/campaign.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod campaign;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_ribbon::RibbonFilter;
use xxhash_rust::xxh3::xxh3_64;

use self::campaign::{Case, Expected, Outcome};
use crate::common::{Random, kernels};
use crate::naive::Naive;
use crate::sharded::built;

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= 64 {
        let body = xxh3_64(&bytes[64..]);
        bytes[48..56].copy_from_slice(&body.to_le_bytes());
        let header = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&header.to_le_bytes());
    }
}

#[test]
fn stored_filters() {
    let added = Random(1).hashes(60);
    let queries = [added.clone(), Random(3).hashes(60)].concat();
    let kernels = kernels();
    let look_up = |bytes: &[u8]| match RibbonFilter::from_bytes_any_hash(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty() && error.offset().is_some());
            Outcome::refused()
        }
        Ok(filter) => {
            let answers: Vec<bool> =
                queries.iter().map(|&hash| filter.contains_hash(hash)).collect();
            let mut hits = Bitmask::new();
            for &kernel in &kernels {
                let filter = filter.view().with_kernel(kernel);
                filter.contains_hashes(&queries, &mut hits);
                assert!(hits.iter().eq(answers.iter().copied()));
                assert!(queries.iter().map(|&hash| filter.contains_hash(hash)).eq(hits.iter()));
            }
            Outcome::answers(answers)
        }
    };
    let naive = |bytes: &[u8]| {
        let naive = Naive::open(bytes);
        Expected::from_answers(
            naive.map(|naive| queries.iter().map(|&hash| naive.contains(hash)).collect()),
        )
    };
    let report = Case {
        name: "Ribbon filter",
        bytes: built(0.01, &added).as_bytes().to_vec(),
        other: built(0.01, &Random(2).hashes(60)).as_bytes().to_vec(),
        added: added.len(),
        header: 0..64,
        seal: Some(&seal),
        look_up: &look_up,
        naive: &naive,
    }
    .run();
    assert!(report.all_refused());
    assert!(report.header.refused > 5_000 && report.sealed.refused > 100);
}

/// A valid header with arbitrary contents, which [`RibbonFilter::from_bytes_trusted`] accepts.
#[test]
fn contents_that_nobody_verified() {
    let whole = built(0.02, &Random(1).hashes(9_000));
    let queries = Random(2).hashes(300);
    let mut hits = Bitmask::new();
    let mut random = Random(4);
    let kernels = kernels();
    for round in 0..300 {
        let mut bytes = whole.as_bytes().to_vec();
        // The directory, all of it or a part.
        let end = if round % 3 == 0 { bytes.len() } else { 64 + 24 };
        for byte in &mut bytes[64..end] {
            if round % 2 == 0 || random.next().is_multiple_of(8) {
                *byte = random.next() as u8;
            }
        }
        let bytes = bytes.into_boxed_slice();
        assert!(*bytes == *whole.as_bytes() || RibbonFilter::from_bytes_any_hash(&bytes).is_err());
        let filter = RibbonFilter::from_bytes_trusted(&bytes, whole.key_hash()).unwrap();
        queries.iter().for_each(|&hash| filter.prefetch_hash(hash));
        for &kernel in &kernels {
            let view = filter.view().with_kernel(kernel);
            view.contains_hashes(&queries, &mut hits);
            for (hit, &hash) in hits.iter().zip(&queries) {
                let found = [hit, view.contains_hash(hash)];
                assert_eq!(found, [filter.contains_hash(hash); 2], "{kernel}");
            }
        }
    }
}

/// A header with fewer words than columns, which no verified filter has.
#[test]
fn words_for_less_than_one_block() {
    let whole = built(0.02, &Random(1).hashes(9));
    let queries = Random(2).hashes(70);
    let (kernels, mut hits) = (kernels(), Bitmask::new());
    for columns in 1..=32_u8 {
        for words in 0..40_u64 {
            let mut bytes = whole.as_bytes().to_vec();
            bytes.resize(64 + 8 + 8 * words as usize, 0x5a);
            bytes[12] = columns;
            bytes[40..48].copy_from_slice(&words.to_le_bytes());
            seal(&mut bytes);
            let bytes = bytes.into_boxed_slice();
            let filter = RibbonFilter::from_bytes_trusted(&bytes, whole.key_hash()).unwrap();
            queries.iter().for_each(|&hash| filter.prefetch_hash(hash));
            for &kernel in &kernels {
                let view = filter.view().with_kernel(kernel);
                view.contains_hashes(&queries, &mut hits);
                for (hit, &hash) in hits.iter().zip(&queries) {
                    let found = [hit, view.contains_hash(hash)];
                    let expected = [filter.contains_hash(hash); 2];
                    assert_eq!(found, expected, "{kernel} {columns} {words}");
                }
            }
        }
    }
}

/// An owner that later lends fewer or more bytes: "maybe" for every key.
#[test]
fn bytes_that_change_their_length() {
    use std::cell::Cell;

    struct ShrinkingOwner<'c>(Vec<u8>, &'c Cell<usize>);
    impl AsRef<[u8]> for ShrinkingOwner<'_> {
        fn as_ref(&self) -> &[u8] {
            &self.0[..self.1.get()]
        }
    }
    let whole = built(0.02, &Random(1).hashes(900));
    let stored = whole.as_bytes().len();
    let lent = Cell::new(stored);
    let bytes = [whole.as_bytes(), &[0; 100]].concat();
    let (filter, error) =
        RibbonFilter::open_or_pass_all(ShrinkingOwner(bytes, &lent), whole.key_hash());
    assert!(error.is_none());
    let absent: Vec<u64> = Random(5).hashes(100);
    let mut hits = Bitmask::new();
    for length in [0, 63, 64, 100, stored - 8, stored - 1, stored + 1, stored + 8, stored + 100] {
        lent.set(stored);
        filter.contains_hashes(&absent, &mut hits);
        assert!(hits.count_hits() < 20 && filter.expected_false_positive_rate() < 0.021);
        lent.set(length);
        for batch in [&absent[..], &absent[..64], &absent[..65], &[]] {
            filter.contains_hashes(batch, &mut hits);
            assert_eq!((hits.len(), hits.count_misses()), (batch.len(), 0), "{length}");
        }
        filter.contains_u64s(&absent, &mut hits);
        assert_eq!(hits.count_misses(), 0, "{length}");
        assert!(
            absent
                .iter()
                .all(|&hash| filter.contains_hash(hash) && filter.view().contains_hash(hash))
        );
        absent.iter().for_each(|&hash| filter.prefetch_hash(hash));
        assert_eq!(filter.expected_false_positive_rate(), 1.0);
    }
}
