//! The growing filter: no key is lost, the rate stays under the target, the bytes read back and every damage is rejected.

use std::collections::HashSet;

use crate::common::{Random, kernels};
use blocked_bloom::header::HeaderError;
use blocked_bloom::{
    BatchQuery, Bitmask, FilterOptions, FormatError, KeyError, KeyHash, ParamsError,
    ScalableBloomFilter, ScalableBloomFilterRef, ScalableError, ScalableOptions, Sizing,
};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

fn new(rate: f64, first_items: u64) -> ScalableBloomFilter {
    let filter = ScalableOptions::new(rate, first_items).build().unwrap();
    assert_eq!(filter.false_positive_rate(), rate);
    filter
}

/// A filter of `keys` random hashes, added in batches of odd lengths.
fn filled(rate: f64, first_items: u64, keys: usize) -> (ScalableBloomFilter, Vec<u64>) {
    let (mut filter, mut seen) = (new(rate, first_items), Bitmask::new());
    let hashes = Random(first_items).hashes(keys);
    for batch in hashes.chunks(999) {
        filter.insert_hashes(batch, &mut seen).unwrap();
        assert_eq!(seen.len(), batch.len());
    }
    (filter, hashes)
}

/// Absent keys that a filter does not rule out, of a million.
fn false_positives(filter: &ScalableBloomFilter) -> f64 {
    let mut hits = Bitmask::new();
    filter.contains_hashes(&Random(u64::MAX).hashes(1 << 20), &mut hits);
    hits.count_hits() as f64 / hits.len() as f64
}

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/growing.md")]
fn the_rate_stays_under_the_target_however_many_keys_come() {
    for (rate, first_items) in [(0.01, 1_000), (0.01, 10_000), (0.001, 1_000)] {
        for times in [1, 10, 100, 1_000] {
            let keys = first_items as usize * times;
            if keys > 1_000_000 {
                continue;
            }
            let (filter, hashes) = filled(rate, first_items, keys);
            assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
            let (found, estimated) =
                (false_positives(&filter), filter.estimated_false_positive_rate());
            // Three standard deviations of the count.
            let spread = 3.0 * (rate / f64::from(1 << 20)).sqrt();
            assert!(
                found <= rate + spread && estimated <= rate,
                "{keys} keys: {found} {estimated}"
            );
            assert!((found - estimated).abs() <= spread, "{found} counted, {estimated} estimated");
            let known = Sizing::FalsePositiveRate(rate).params(keys as u64).unwrap();
            println!(
                "{rate} {first_items} x{times}: {} links, {:.4} %, {:.1} bits/key, {:.2} x the memory of a filter sized for them",
                filter.links().len(),
                found * 100.0,
                filter.memory_bytes() as f64 * 8.0 / keys as f64,
                filter.memory_bytes() as f64 / known.stored_bytes() as f64,
            );
            let distinct = filter.keys_inserted() as f64 / keys as f64;
            assert!((1.0 - rate..=1.0).contains(&distinct), "{distinct} of the keys were new");
        }
    }
}

#[test]
fn links_grow_by_the_factor_and_tighten_by_the_ratio() {
    let (filter, _) = filled(0.01, 1_000, 20_000);
    let sized: Vec<u64> = filter.links().iter().map(|link| link.view().keys_inserted()).collect();
    assert_eq!(sized[..4], [1_000, 2_000, 4_000, 8_000]);
    let rates: Vec<f64> =
        filter.links()[..4].iter().map(|link| link.params().false_positive_rate()).collect();
    // Each takes 15 % of what those before it left; rounded up to whole blocks, it takes a little less.
    let mut left = 0.01;
    for (i, rate) in rates.iter().enumerate() {
        let share = 0.15 * left;
        assert!((0.8 * share..=share).contains(rate), "link {i}: {rate}, share {share}");
        left -= rate;
    }
    let options = ScalableOptions::new(0.01, 10).with_growth(16).with_tightening(0.5);
    let mut filter = options.build().unwrap();
    for key in 0..3_000_u32 {
        filter.insert(key.to_le_bytes()).unwrap();
    }
    assert_eq!(filter.links().len(), 4);
    // A link is made by the first key that it is for, not by the last of the one before.
    let (mut filter, mut random) = (new(0.1, 1), Random(1));
    for (keys, links) in [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)] {
        while filter.keys_inserted() < keys {
            filter.insert_hash(random.next()).unwrap();
        }
        assert_eq!(filter.links().len(), links, "{keys} keys");
    }
}

#[test]
fn repeated_keys_take_no_memory() {
    let (mut filter, hashes) = filled(0.01, 100, 5_000);
    let before = filter.clone();
    let mut seen = Bitmask::new();
    filter.insert_hashes(&hashes, &mut seen).unwrap();
    assert_eq!(seen.count_misses(), 0);
    assert_eq!(filter, before);
}

#[test]
fn a_batch_that_repeats_a_key_reports_it_once() {
    // Full links come and go within the batch: the key must not be new twice.
    for keys in [1, 2, 63, 64, 65, 1_000, 1_024, 1_025, 5_000] {
        let mut random = Random(keys);
        let hashes = random.hashes(keys as usize);
        let twice: Vec<u64> =
            hashes.iter().flat_map(|&hash| [hash, hash]).chain(hashes.clone()).collect();
        let (mut batched, mut single) = (new(0.01, 7), new(0.01, 7));
        let mut seen = Bitmask::new();
        batched.insert_hashes(&twice, &mut seen).unwrap();
        for (i, &hash) in twice.iter().enumerate() {
            assert_eq!(seen.get(i), Some(!single.insert_hash(hash).unwrap()), "{keys} keys, {i}");
        }
        assert_eq!(batched, single);
        assert_eq!(seen.count_misses() as u64, batched.keys_inserted());
        // As keys instead of hashes.
        let twice: Vec<[u8; 8]> = twice.into_iter().map(u64::to_le_bytes).collect();
        let (mut batched, mut single) = (new(0.01, 7), new(0.01, 7));
        batched.insert_batch(&twice, &mut seen).unwrap();
        for (i, key) in twice.iter().enumerate() {
            assert_eq!(seen.get(i), Some(!single.insert(key).unwrap()), "{keys} keys, {i}");
        }
        assert_eq!(batched, single);
        // The same links for another target, and other links for the same.
        assert_ne!(new(0.01, 7), new(0.02, 7));
        assert_ne!(batched, new(0.01, 7));
    }
}

#[test]
fn every_kernel_gives_the_same_answers() {
    let (filter, hashes) = filled(0.01, 500, 20_000);
    let queries: Vec<u64> = hashes.into_iter().step_by(7).chain(Random(3).hashes(30_000)).collect();
    for kernel in kernels() {
        let filter = filter.clone().with_kernel(kernel);
        let mut hits = Bitmask::new();
        for length in [0, 1, 64, 65, 1_023, 1_024, 1_025, queries.len()] {
            filter.contains_hashes(&queries[..length], &mut hits);
            assert_eq!(hits.len(), length);
            for (i, &hash) in queries[..length].iter().enumerate() {
                assert_eq!(hits.get(i), Some(filter.contains_hash(hash)), "{} {i}", kernel.name());
            }
        }
        let (mut added, mut seen) = (new(0.01, 500).with_kernel(kernel), Bitmask::new());
        added.insert_hashes(&queries, &mut seen).unwrap();
        let mut scalar = new(0.01, 500);
        queries.iter().for_each(|&hash| assert!(scalar.insert_hash(hash).is_ok()));
        assert_eq!(added, scalar, "{}", kernel.name());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    Batch(Vec<u16>),
    Store,
    Merge(Vec<u16>),
}

/// Keys of the model are the integers below.
const KEYS: u16 = 4_096;

fn step() -> impl Strategy<Value = Step> {
    let batch = || prop::collection::vec(0..KEYS, 0..300);
    prop_oneof![
        20 => (0..KEYS).prop_map(Step::Insert),
        5 => batch().prop_map(Step::Batch),
        2 => Just(Step::Store),
        1 => batch().prop_map(Step::Merge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn no_program_loses_a_key(
        rate in 1e-4..0.5,
        first_items in 0_u64..50,
        growth in 2_u32..=16,
        tightening in 0.05..=0.95,
        seed: u64,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let empty = || {
            ScalableOptions::new(rate, first_items)
                .with_key_hash(KeyHash::Xxh3 { seed })
                .with_growth(growth)
                .with_tightening(tightening)
                .build()
                .unwrap()
        };
        let bytes = |keys: &[u16]| -> Vec<[u8; 2]> { keys.iter().map(|key| key.to_le_bytes()).collect() };
        let (mut filter, mut model, mut seen) = (empty(), HashSet::new(), Bitmask::new());
        for step in steps {
            match step {
                Step::Insert(key) => {
                    let is_new = filter.insert(key.to_le_bytes()).unwrap();
                    prop_assert!(model.insert(key) || !is_new, "an old key is never new");
                }
                Step::Batch(keys) => {
                    filter.insert_batch(&bytes(&keys), &mut seen).unwrap();
                    for (i, &key) in keys.iter().enumerate() {
                        prop_assert!(model.insert(key) || seen.get(i) == Some(true));
                    }
                }
                Step::Store => {
                    let stored = filter.to_bytes();
                    let read = ScalableBloomFilter::from_bytes(&stored).unwrap();
                    prop_assert_eq!(&read, &filter);
                    prop_assert_eq!(read.to_bytes(), stored);
                    filter = read;
                }
                Step::Merge(keys) => {
                    let mut other = empty();
                    other.insert_batch(&bytes(&keys), &mut seen).unwrap();
                    filter.union_with(other).unwrap();
                    model.extend(keys);
                }
            }
        }
        let keys: Vec<u16> = (0..KEYS).collect();
        let stored = filter.to_bytes();
        let view = ScalableBloomFilterRef::from_bytes(&stored).unwrap();
        filter.contains_batch(&bytes(&keys), &mut seen);
        let mut of_view = Bitmask::new();
        view.contains_batch(&bytes(&keys), &mut of_view);
        prop_assert_eq!(&of_view, &seen);
        for &key in &keys {
            let found = seen.get(usize::from(key)) == Some(true);
            prop_assert!(found || !model.contains(&key));
            prop_assert_eq!(found, filter.contains(key.to_le_bytes()));
            prop_assert_eq!(found, view.contains(key.to_le_bytes()));
        }
    }
}

#[test]
fn a_union_has_the_links_and_the_rates_of_both() {
    let (mut left, left_keys) = filled(0.01, 100, 3_000);
    let (right, right_keys) = filled(0.02, 200, 5_000);
    let links = left.links().len() + right.links().len();
    let (memory, keys) =
        (left.memory_bytes() + right.memory_bytes(), left.keys_inserted() + right.keys_inserted());
    let open = left.links().last().unwrap().clone();
    left.union_with(right).unwrap();
    assert_eq!(
        (left.links().len(), left.memory_bytes(), left.keys_inserted()),
        (links, memory, keys)
    );
    assert_eq!(left.links().last(), Some(&open), "further keys go where they went");
    assert!(left_keys.iter().chain(&right_keys).all(|&hash| left.contains_hash(hash)));
    // And it goes on growing, under the sum of both targets.
    let mut seen = Bitmask::new();
    left.insert_hashes(&Random(77).hashes(50_000), &mut seen).unwrap();
    assert!(left.links().len() > links);
    assert!(left.estimated_false_positive_rate() <= 0.03 && false_positives(&left) < 0.0305);

    let before = left.clone();
    let caller = KeyHash::Caller { tag: 1 };
    let other = ScalableOptions::new(0.01, 1).with_key_hash(caller).build().unwrap();
    let error = ScalableError::HashMismatch { left: KeyHash::default(), right: caller };
    assert_eq!(left.union_with(other), Err(error));
    assert_eq!(left, before);

    let mut empty = new(0.01, 5);
    empty.union_with(before.clone()).unwrap();
    assert_eq!(empty.links(), before.links());
    let mut full = before.clone();
    full.union_with(new(0.01, 5)).unwrap();
    assert_eq!(full.links(), before.links());
}

#[test]
fn what_cannot_be_is_a_typed_error() {
    let options = ScalableOptions::new;
    let refused = |options: ScalableOptions| options.build().unwrap_err();
    for rate in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
        let error = refused(options(rate, 10));
        assert!(
            matches!(error, ScalableError::Params(ParamsError::RateOutOfRange { .. })),
            "{rate}"
        );
    }
    assert!(matches!(
        refused(options(1e-9, 10)),
        ScalableError::Params(ParamsError::RateUnreachable { .. })
    ));
    assert!(matches!(refused(options(0.01, u64::MAX)), ScalableError::Params(_)));
    assert!(new(0.01, 0).insert("a").unwrap());
    for growth in [0, 1, 17, u32::MAX] {
        let error = refused(options(0.01, 10).with_growth(growth));
        assert_eq!(error, ScalableError::GrowthOutOfRange { growth });
    }
    for tightening in [0.0, 0.049, 0.951, 1.0, f64::NAN] {
        let error = refused(options(0.01, 10).with_tightening(tightening));
        assert!(matches!(error, ScalableError::TighteningOutOfRange { .. }));
    }

    let caller = KeyHash::Caller { tag: 9 };
    let mut filter = options(0.01, 10).with_key_hash(caller).build().unwrap();
    let error = KeyError::NoHasher { tag: 9 };
    let mut seen = Bitmask::new();
    assert_eq!(filter.hasher(), Err(error));
    assert_eq!(filter.insert("a"), Err(ScalableError::Key(error)));
    assert_eq!(filter.insert_batch(&["a"], &mut seen), Err(ScalableError::Key(error)));
    assert!(seen.is_empty());
    assert_eq!(filter.insert_batch::<&str>(&[], &mut seen), Err(ScalableError::Key(error)));
    assert!(filter.contains("a") && filter.links().is_empty());
    filter.contains_batch(&["a", "b"], &mut seen);
    assert_eq!(seen.count_hits(), 2);
    // Hashes are what it takes.
    filter.insert_hashes(&Random(1).hashes(2), &mut seen).unwrap();
    assert_eq!((seen.count_misses(), filter.keys_inserted()), (2, 2));
}

#[test]
fn growth_that_fails_loses_nothing() {
    // The first links keep 10^-7, which later ones cannot keep a share of.
    let mut filter = ScalableOptions::new(1e-7, 1).with_tightening(0.5).build().unwrap();
    let mut hashes = Random(1);
    let mut added = Vec::new();
    let error = loop {
        let hash = hashes.next();
        match filter.insert_hash(hash) {
            Ok(_) => added.push(hash),
            Err(error) => break error,
        }
        assert!(added.len() < 1 << 20, "no link is ever out of reach");
    };
    assert!(matches!(error, ScalableError::Params(_)), "{error}");
    assert!(added.len() > 3 && added.iter().all(|&hash| filter.contains_hash(hash)));
    assert_eq!(filter.keys_inserted(), added.len() as u64);
    // Keys that it has are still fine.
    assert_eq!(filter.insert_hash(added[0]), Ok(false));
}

/// No link, one, several, and one of the caller's hashes.
fn specimens() -> Vec<ScalableBloomFilter> {
    let caller = KeyHash::Caller { tag: 0xfeed };
    let mut of_caller = ScalableOptions::new(0.05, 3).with_key_hash(caller).build().unwrap();
    of_caller.insert_hash(0x0123_4567_89ab_cdef).unwrap();
    vec![new(0.01, 1_000), filled(0.02, 10, 5).0, filled(0.02, 10, 60).0, of_caller]
}

#[test]
fn filters_read_back_as_they_were_written() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        assert_eq!(
            bytes.len() as u64,
            64 + 64 * filter.links().len() as u64 + filter.memory_bytes()
        );
        #[cfg(feature = "std")]
        {
            let mut written = Vec::new();
            assert_eq!(filter.write_to(&mut written).unwrap(), bytes.len() as u64);
            assert_eq!(written, bytes);
        }
        let view = ScalableBloomFilterRef::from_bytes(&bytes).unwrap();
        assert_eq!(
            (view.key_hash(), view.links().len()),
            (filter.key_hash(), filter.links().len())
        );
        assert_eq!(view.hasher(), filter.hasher());
        let queries = [Random(10).hashes(60), Random(9).hashes(60)].concat();
        let (mut hits, mut expected) = (Bitmask::new(), Bitmask::new());
        view.contains_hashes(&queries, &mut hits);
        filter.contains_hashes(&queries, &mut expected);
        assert_eq!(hits, expected);
        assert!(queries.iter().all(|&hash| view.contains_hash(hash) == filter.contains_hash(hash)));
        let mut read = view.to_filter().unwrap();
        assert_eq!(read, filter);
        // What is read goes on as what was written would have.
        let mut filter = filter;
        for hash in Random(9).hashes(500) {
            assert_eq!(read.insert_hash(hash), filter.insert_hash(hash));
        }
        assert_eq!(read.to_bytes(), filter.to_bytes());
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        for length in 0..bytes.len() {
            let error = ScalableBloomFilterRef::from_bytes(&bytes[..length]).unwrap_err();
            match error {
                FormatError::Header(HeaderError::TooShort { found }) => {
                    assert!(found == length as u64 && length < 64);
                }
                FormatError::Link { ref error, start, .. } => {
                    assert!(matches!(
                        **error,
                        FormatError::Header(
                            HeaderError::TooShort { .. } | HeaderError::Length { .. }
                        )
                    ));
                    assert!(start <= length as u64);
                }
                ref other => panic!("{length} bytes: {other}"),
            }
            assert_eq!(error.offset(), length as u64, "{error}");
            assert_eq!(ScalableBloomFilter::from_bytes(&bytes[..length]), Err(error));
        }
        for extra in [1, 64, 128] {
            let mut longer = bytes.clone();
            longer.resize(bytes.len() + extra, 0);
            let error = ScalableBloomFilterRef::from_bytes(&longer).unwrap_err();
            let (found, expected) = (longer.len() as u64, bytes.len() as u64);
            assert_eq!(error, FormatError::Header(HeaderError::Length { found, expected }));
            assert_eq!(error.offset(), expected);
        }
        // A whole link more, or less, than the header says.
        if let Some(link) = filter.links().last() {
            let longer = [bytes.clone(), link.to_bytes()].concat();
            assert!(ScalableBloomFilterRef::from_bytes(&longer).is_err());
            let shorter = &bytes[..bytes.len() - link.to_bytes().len()];
            assert!(ScalableBloomFilterRef::from_bytes(shorter).is_err());
        }
    }
}

/// Links of another filter, each sound by itself, and links in another order.
#[test]
fn links_of_other_filters_are_refused() {
    let (one, _) = filled(0.01, 20, 200);
    let mut other = new(0.01, 20);
    for key in 1_000..1_200_u64 {
        other.insert(key.to_le_bytes()).unwrap();
    }
    assert_eq!(one.links().len(), other.links().len());
    let links = |filter: &ScalableBloomFilter| -> Vec<Vec<u8>> {
        filter.links().iter().map(|link| link.to_bytes()).collect()
    };
    let header = &one.to_bytes()[..64];
    let (ours, theirs) = (links(&one), links(&other));
    assert!(ScalableBloomFilterRef::from_bytes(&[header, &ours.concat()].concat()).is_ok());
    for i in 0..ours.len() {
        let mut mixed = ours.clone();
        mixed[i].clone_from(&theirs[i]);
        let mixed = [header, &mixed.concat()].concat();
        let error = ScalableBloomFilterRef::from_bytes(&mixed).unwrap_err();
        assert!(matches!(error, FormatError::Header(HeaderError::BodyChecksum { offset: 40, .. })));
        assert_eq!(error.offset(), 40);
    }
    let mut reversed = ours;
    reversed.reverse();
    assert!(ScalableBloomFilterRef::from_bytes(&[header, &reversed.concat()].concat()).is_err());
}

#[test]
fn every_flipped_bit_is_refused() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = ScalableBloomFilterRef::from_bytes(&damaged).expect_err("a flipped bit");
            use FormatError::{Header, Link};
            let expected = match bit / 8 {
                0..8 => matches!(error, Header(HeaderError::Magic { .. })),
                8..10 => matches!(error, Header(HeaderError::Version { .. })),
                10..64 => matches!(error, Header(HeaderError::Checksum { .. })),
                at => matches!(error, Link { start, .. } if start <= at as u64),
            };
            assert!(expected, "bit {bit}: {error}");
        }
    }
}

/// A header of a hostile or buggy writer, whose checksum is right.
#[test]
fn headers_that_make_no_sense_are_refused() {
    let bytes = new(0.01, 1_000).to_bytes();
    let forged = |offset: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        let sum = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        ScalableBloomFilter::from_bytes(&bytes)
    };
    let error = |offset, value: &[u8]| {
        let error = forged(offset, value).unwrap_err();
        assert!(!error.to_string().is_empty());
        error
    };
    // A field that has this value: its offset, and what was found.
    let field = |error| match error {
        FormatError::Header(HeaderError::Field { offset, found, .. }) => (offset, found),
        other => panic!("{other}"),
    };
    assert_eq!(field(error(10, &[2])), (10, 2));
    for number in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        for at in [24, 32] {
            let error = error(at, &number.to_le_bytes());
            let FormatError::Header(HeaderError::Number { offset, found, .. }) = error else {
                panic!("{error}");
            };
            assert_eq!((offset, found.to_bits()), (at as u64, number.to_bits()));
            assert_eq!(error.offset(), offset);
        }
    }
    for found in [0, 1, 17, 255] {
        let error = error(11, &[found]);
        assert_eq!(error.offset(), 11);
        assert_eq!(field(error), (11, found.into()));
    }
    assert!(matches!(
        error(40, &[1]),
        FormatError::Header(HeaderError::BodyChecksum { offset: 40, .. })
    ));
    assert_eq!(field(error(48, &[0; 8])), (48, 0));
    assert!(matches!(error(12, &[1]), FormatError::Link { link: 0, start: 64, .. }));
    assert!(matches!(error(12, &[0xff; 4]), FormatError::Link { link: 0, .. }));
    // Absurd, and harmless: a first link for 2^64 - 1 keys cannot be made.
    let mut filter = forged(48, &[0xff; 8]).unwrap();
    assert!(matches!(filter.insert("a"), Err(ScalableError::Params(_))));
    // A link of another hash than the header's.
    let found = KeyHash::Xxh3 { seed: 1 };
    let stranger = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(found);
    let mut with_stranger = bytes.clone();
    with_stranger[12] = 1;
    let sum = xxh3_64(&with_stranger[..56]);
    with_stranger[56..64].copy_from_slice(&sum.to_le_bytes());
    with_stranger.extend(stranger.builder().finish().unwrap().to_bytes());
    let error = ScalableBloomFilterRef::from_bytes(&with_stranger).unwrap_err();
    let mismatch = FormatError::HashMismatch { found, expected: KeyHash::default() };
    assert_eq!(error, FormatError::Link { link: 0, start: 64, error: Box::new(mismatch) });
}

/// Pins the container, and the sizes of the links: never update it.
#[test]
fn the_golden_file_is_what_is_written_and_still_opens() {
    let mut filter = new(0.01, 20);
    for key in 0..100_u64 {
        filter.insert(key.to_le_bytes()).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/scalable.bloom");
    let stored = std::fs::read(path).unwrap_or_else(|error| {
        let built = concat!(env!("CARGO_TARGET_TMPDIR"), "/scalable.bloom");
        std::fs::write(built, filter.to_bytes()).unwrap();
        panic!("{path}: {error}; {built} has what was built")
    });
    assert_eq!(stored, filter.to_bytes());
    let view = ScalableBloomFilterRef::from_bytes(&stored).unwrap();
    assert!((0..100_u64).all(|key| view.contains(key.to_le_bytes())));
    assert_eq!(
        (stored.len(), xxh3_64(&stored), view.links().len()),
        (640, 0xeb2c_3fd8_8b68_bf73, 3)
    );
}

/// Reads the table of the container in the document and checks each row against a filter's bytes.
#[test]
fn the_document_matches_the_code() {
    let document = include_str!("../../docs/format.md");
    let section = document.split("## Growing filter").nth(1).expect("the section");
    let section = section.split("\n### ").next().unwrap();
    let (filter, _) = filled(0.02, 10, 60);
    let bytes = filter.to_bytes();
    let mut end = 0;
    for line in section.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [offset, length, field, value] = cells[..] else { continue };
        let (Ok(offset), Ok(length)) = (offset.parse::<usize>(), length.parse::<usize>()) else {
            continue;
        };
        assert_eq!(offset, end, "{field} begins where the field before it ends");
        end = offset + length;
        let mut found = [0; 8];
        found[..length].copy_from_slice(&bytes[offset..end]);
        let found = u64::from_le_bytes(found);
        match field {
            "magic" => {
                let hex: Vec<String> =
                    bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(value, format!("`{}`", hex.join(" ")));
            }
            "version" => assert_eq!(found.to_string(), value),
            "hash" => assert_eq!(found, 1),
            "checksum of the links" => {
                let sums: Vec<u8> = filter
                    .links()
                    .iter()
                    .flat_map(|link| link.to_bytes()[56..64].to_vec())
                    .collect();
                assert_eq!(found, xxh3_64(&sums));
            }
            "links" => assert_eq!(found, filter.links().len() as u64),
            "seed" => assert_eq!(found, 0),
            "false-positive rate" => assert_eq!(f64::from_bits(found), 0.02),
            "tightening" => {
                assert!(f64::from_bits(found) == 0.85 && value.contains("0.05 to 0.95"))
            }
            "growth" => assert!(found == 2 && value.contains("2 to 16")),
            "items" => assert_eq!(found, 40),
            "checksum of the header" => assert_eq!(found, xxh3_64(&bytes[..56])),
            other => panic!("unknown field {other}"),
        }
        if end == 64 {
            return;
        }
    }
    panic!("the table ends at {end}");
}
