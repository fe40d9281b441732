//! Options: each setting is written once, for builders and for opening, and changes nothing else.

use crate::common::{Random, kernels};
use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    Bitmask, BloomFilter, BuildError, Filter, FilterContents, FilterOptions, FormatError, KeyError,
    KeyHash, KeyHasher, ParamsError, PrefixExtractor, Sizing, Stored,
};

const TEN: Sizing = Sizing::BitsPerKey(10.0);

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// Builds and opens as in the README, with a seed that is not the default. Catches a hasher or a
/// view that falls back to seed 0, for which inserted keys are "absent".
#[test]
fn a_seed_that_is_stated_once_finds_every_key() {
    for seed in [42, 1, u64::MAX] {
        let options = FilterOptions::new(TEN).with_key_hash(KeyHash::Xxh3 { seed });

        // Flush three tables.
        let tables: Vec<Vec<u8>> = (0..3)
            .map(|table| {
                let mut builder = options.builder();
                builder.extend((table * 1_000..(table + 1) * 1_000).map(key)).unwrap();
                builder.finish().unwrap().to_bytes()
            })
            .collect();

        // Open them.
        let filters: Vec<BloomFilter<Stored<Vec<u8>>>> = tables
            .into_iter()
            .map(|stored| BloomFilter::from_bytes(stored, options.key_hash()).unwrap())
            .collect();

        // Look up keys in all of them, with the hasher of any of them.
        let keys: Vec<[u8; 4]> = (0..3_000).map(key).collect();
        let expected = KeyHasher::with_seed(seed);
        let builder = options.builder();
        let hashers = [
            options.hasher(),
            options.key_hash().hasher(),
            builder.options().hasher(),
            filters[0].hasher(),
            filters[1].view().hasher(),
            filters[2].to_filter().unwrap().hasher(),
        ];
        let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
        for hasher in hashers {
            let hasher = hasher.unwrap();
            assert_eq!(hasher, expected);
            hasher.hash_batch(&keys, &mut hashes);
            for (filter, hashes) in filters.iter().zip(hashes.chunks(1_000)) {
                assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
                filter.contains_hashes(hashes, &mut hits);
                assert_eq!(hits.count_misses(), 0);
            }
        }
        // The key itself, hashed by the filter.
        for (i, key) in keys.iter().enumerate() {
            assert!(filters[i / 1_000].contains(key));
        }
        // Hashes of another seed are nearly always "absent", so the tests above detect a wrong
        // seed.
        KeyHasher::default().hash_batch(&keys[..1_000], &mut hashes);
        filters[0].contains_hashes(&hashes, &mut hits);
        assert!(hits.count_hits() < 50, "{}", hits.count_hits());
    }
}

/// A memtable's filter is created from the options: catches a hash that does not come from them.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[test]
fn a_seed_that_is_stated_once_finds_every_key_of_a_shared_filter() {
    let options = FilterOptions::new(TEN).with_key_hash(KeyHash::Xxh3 { seed: 42 }).with_probes(9);
    let shared = options.atomic_filter(3_000).unwrap();
    (0..1_500).for_each(|i| _ = shared.insert(key(i)).unwrap());
    shared.insert_batch(&(1_500..3_000).map(key).collect::<Vec<_>>()).unwrap();
    assert_eq!((shared.key_hash(), shared.hasher()), (options.key_hash(), options.hasher()));
    assert_eq!(shared.params().blocks(), options.params(3_000).unwrap().blocks());
    assert_eq!(shared.params().probes(), 9);
    let hasher = options.hasher().unwrap();
    assert!((0..3_000).all(|i| shared.contains_hash(hasher.hash(key(i)))));
}

/// A memtable's filter with options that add prefixes, which only a builder does: the error says
/// so, and `docs/guide.md` has the solution. The filters of flushed tables have the same hash.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[test]
fn options_with_prefixes_make_a_memtable_s_filter_without_them() {
    let rule = PrefixExtractor::fixed(2);
    let options = FilterOptions::new(TEN).with_key_hash(KeyHash::Xxh3 { seed: 42 });
    for options in [options.clone().with_prefixes(rule.clone()), options.with_only_prefixes(rule)] {
        let expected = KeyError::NoPrefix { contents: options.contents() };
        let errors = [options.atomic_filter(1).err(), options.empty_filter(1).err()];
        for error in errors {
            let error = error.expect("no filter without a builder");
            assert_eq!(error, BuildError::Key(expected));
            assert_eq!(error.to_string(), expected.to_string());
            assert!(error.to_string().contains("use FilterOptions::builder"), "{error}");
        }
        let memtable = FilterOptions::new(options.sizing()).with_key_hash(options.key_hash());
        let filter = memtable.atomic_filter(1_000).unwrap();
        (0..1_000).for_each(|i| assert!(filter.insert(key(i)).is_ok()));
        assert_eq!(filter.hasher(), options.hasher());
        let hasher = options.hasher().unwrap();
        assert!((0..1_000).all(|i| filter.contains_hash(hasher.hash(key(i)))));
        assert!((1_000..2_000).filter(|&i| filter.contains(key(i))).count() < 50);
    }
}

#[test]
fn a_budget_under_the_smallest_filter_has_room_for_no_key() {
    let options = FilterOptions::new(TEN);
    let smallest = options.params(1).unwrap().stored_bytes();
    assert_eq!(options.max_additions(smallest - 1), Ok(0));
    assert!(options.max_additions(smallest).unwrap() > 0);
}

#[test]
fn a_filter_of_another_hash_seed_or_tag_is_refused_where_it_is_opened() {
    let hashes = [0, 42].map(|seed| KeyHash::Xxh3 { seed });
    let hashes = [hashes, [41, 42].map(|tag| KeyHash::Caller { tag })].concat();
    for &found in &hashes {
        let options = FilterOptions::new(TEN).with_key_hash(found);
        let filter = options.empty_filter(10).unwrap();
        let stored = filter.to_bytes();
        for open in [BloomFilter::from_bytes_any_hash, BloomFilter::from_bytes_trusted_any_hash] {
            assert_eq!(open(&stored).unwrap().key_hash(), found);
        }
        for &expected in &hashes {
            let mismatch = HeaderError::HashMismatch { offset: 11, found, expected };
            let refused = (found != expected).then_some(FormatError::Header(mismatch));
            for open in [BloomFilter::from_bytes, BloomFilter::from_bytes_trusted] {
                assert_eq!(open(&stored, expected).err(), refused);
            }
            let (opened, error) = BloomFilter::open_or_pass_all(&stored, expected);
            assert_eq!((error, opened.contains_hash(7)), (refused, refused.is_some()));
            let text = refused.map_or(String::new(), |error| error.to_string());
            let names = [found, expected].map(|key_hash| text.contains(&key_hash.to_string()));
            assert_eq!(names, [refused.is_some(); 2], "{text}");
        }
    }
}

/// Huge-page advice never changes a byte, however the filter is created.
#[test]
fn huge_pages_change_no_byte() {
    // 40,000 blocks are 2.4 MiB, more than a huge page.
    let keys = 40_000 * 51_u64;
    let hashes = Random(1).hashes(keys as usize);
    let build = |huge_pages: bool| {
        let options = FilterOptions::new(TEN).with_huge_pages(huge_pages);
        let mut builder = options.builder();
        hashes.iter().for_each(|&hash| builder.insert_hash(hash).unwrap());
        let limited = options.clone().with_memory_limit(1 << 20).with_expected_items(keys);
        let mut flushing = limited.builder();
        hashes.iter().for_each(|&hash| flushing.insert_hash(hash).unwrap());
        let mut filled = options.empty_filter(keys).unwrap();
        filled.insert_hashes(&hashes).unwrap();
        let mut filters = vec![
            filled.clone(),
            filled,
            flushing.finish_verified().unwrap(),
            builder.clone().finish_verified().unwrap(),
        ];
        #[cfg(feature = "rayon")]
        filters.push(builder.clone().par_finish().unwrap());
        filters.push(builder.finish().unwrap());
        filters
    };
    let (with, without) = (build(true), build(false));
    assert!(size_of_val(with[0].blocks()) > 2 << 20);
    let expected = with[0].to_bytes();
    for filter in with.into_iter().chain(without) {
        assert!(filter.to_bytes() == expected);
        // So do copies of it.
        let mut folded = filter.clone();
        let divisor = folded.shrink_to_false_positive_rate(0.5).unwrap();
        assert!(divisor > 1 && folded == filter.folded(divisor).unwrap());
        for kernel in kernels() {
            let mut hits = Bitmask::new();
            filter.view().with_kernel(kernel).contains_hashes(&hashes[..10_000], &mut hits);
            assert_eq!(hits.count_misses(), 0);
        }
    }
}

#[test]
fn options_say_what_they_were_made_of() {
    let rule = PrefixExtractor::fixed(4);
    let options = FilterOptions::new(TEN);
    assert_eq!((options.sizing(), options.key_hash()), (TEN, KeyHash::default()));
    assert_eq!((options.contents(), options.extractor()), (FilterContents::WholeKeys, None));
    assert_eq!(options.params(1_000), TEN.params(1_000));
    assert_eq!(options.builder().options(), &options);

    let both = options.clone().with_prefixes(rule.clone());
    let extractor = rule.id();
    assert_eq!(both.contents(), FilterContents::WholeKeysAndPrefixes { extractor });
    assert_eq!(both.extractor(), Some(&rule));
    // The last of the two settings applies.
    let only = both.clone().with_only_prefixes(rule.clone());
    assert_eq!(only.contents(), FilterContents::Prefixes { extractor });
    assert_eq!(only.with_prefixes(rule), both);

    let foldable = options.clone().foldable().with_probes(9);
    let expected = TEN.foldable_params(100_000).unwrap().with_probes(9).unwrap();
    assert_eq!(foldable.params(100_000), Ok(expected));
    assert_ne!(expected.blocks(), TEN.params(100_000).unwrap().blocks());
    let refused = ParamsError::ProbesOutOfRange { probes: 31 };
    assert_eq!(options.clone().with_probes(31).params(1), Err(refused));
    let nan = FilterOptions::new(Sizing::BitsPerKey(f64::NAN)).params(1).unwrap_err();
    assert!(matches!(nan, ParamsError::BitsPerKeyOutOfRange { .. }));

    let caller = options.with_key_hash(KeyHash::Caller { tag: 9 });
    assert_eq!(caller.hasher(), Err(KeyError::NoHasher { tag: 9 }));
}

#[test]
fn an_empty_filter_has_the_shape_and_the_hash_of_the_options() {
    for key_hash in [KeyHash::Xxh3 { seed: 42 }, KeyHash::Caller { tag: 9 }] {
        let options = FilterOptions::new(TEN).with_key_hash(key_hash).foldable().with_probes(7);
        for keys in [0, 1, 5_000] {
            let empty = options.empty_filter(keys).unwrap();
            let expected =
                BloomFilter::with_params(options.params(keys).unwrap(), key_hash).unwrap();
            assert_eq!(empty, expected);
            assert!(empty.is_empty());
        }
    }
    let all = FilterOptions::new(Sizing::BitsPerKey(0.0)).empty_filter(10).unwrap();
    assert!(all.is_pass_all() && all.contains("anything"));
    let refused = FilterOptions::new(TEN).with_probes(0).empty_filter(10).unwrap_err();
    assert_eq!(refused, BuildError::Params(ParamsError::ProbesOutOfRange { probes: 0 }));
}

/// Catches an option with which a builder remembers another builder's keys.
#[test]
fn builders_of_the_same_options_are_independent_and_alike() {
    let options = FilterOptions::new(TEN).with_key_hash(KeyHash::Xxh3 { seed: 3 });
    let (mut one, mut other) = (options.builder(), options.builder());
    one.extend((0..100).map(key)).unwrap();
    assert!(other.is_empty() && options.builder().is_empty());
    assert_eq!(other.memory_bytes(), 0);
    other.extend((0..100).map(key)).unwrap();
    assert_eq!(one.finish().unwrap().to_bytes(), other.finish().unwrap().to_bytes());
}

/// Foldable filters have the probes that suit both sizes, if that costs the whole filter little;
/// filters sized by a rate keep the rate.
#[test]
fn foldable_options_choose_probes_for_both_sizes() {
    let at = |sizing, keys| {
        let whole = Sizing::foldable_params(sizing, keys).unwrap();
        let both = FilterOptions::new(sizing).foldable().params(keys).unwrap();
        assert_eq!(both.blocks(), whole.blocks());
        (whole, both)
    };
    let mut fewer = 0;
    for tenths in 10..400 {
        let sizing = Sizing::BitsPerKey(f64::from(tenths) / 10.0);
        for keys in [1_000, 7_000, 1_000_000] {
            let (whole, both) = at(sizing, keys);
            let (rate, of_half) =
                (whole.false_positive_rate(), whole.false_positive_rate_at(2 * keys));
            let most = (rate * 1.25).min(rate + 2e-4);
            let half_at =
                |probes| whole.with_probes(probes).unwrap().false_positive_rate_at(2 * keys);
            assert!(both.false_positive_rate() <= most, "{both}");
            assert!(half_at(both.probes()) <= of_half, "{both}");
            // One probe less costs too much, does not help the folded filter, or the filter cannot
            // be folded.
            if both.blocks() >= 128 && both.probes() > 1 {
                let less = both.with_probes(both.probes() - 1).unwrap();
                let is_better = half_at(less.probes()) < half_at(both.probes());
                assert!(less.false_positive_rate() > most || !is_better, "{both}");
            }
            assert!(both.blocks() >= 128 || both == whole, "{both}");
            fewer += u32::from(both.probes() < whole.probes());
        }
    }
    assert!(fewer > 300, "{fewer}");
    for (bits, probes, of_both) in [(10.0, 6, 6), (12.0, 7, 7), (14.0, 8, 7), (16.0, 9, 7)] {
        let (whole, both) = at(Sizing::BitsPerKey(bits), 10_000_000);
        assert_eq!((whole.probes(), both.probes()), (probes, of_both), "{bits} bits");
    }
    for power in 1..27 {
        let rate = 0.5_f64.powi(power);
        let (_, both) = at(Sizing::FalsePositiveRate(rate), 1_000_000);
        assert!(both.false_positive_rate() <= rate, "{both}");
    }
    assert!(at(Sizing::BitsPerKey(0.0), 1_000_000).1.is_pass_all());
}

#[test]
fn a_filter_for_keys_and_a_rate() {
    for (keys, rate) in [(0, 0.01), (1_000, 0.01), (50_000, 0.000_1), (10, 1.0)] {
        let filter = BloomFilter::new(keys, rate).unwrap();
        let options = FilterOptions::new(Sizing::FalsePositiveRate(rate));
        assert_eq!(filter, options.empty_filter(keys).unwrap());
        assert!(filter.params().false_positive_rate_at(keys) <= rate);
    }
    for rate in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(matches!(BloomFilter::new(10, rate), Err(BuildError::Params(_))), "{rate}");
    }
}
