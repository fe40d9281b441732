//! Options: one choice of the hash, and their serialised form.

use blocked_bloom::{
    Filter, FilterOptions, KeyError, KeyHash, ParamsError, PrefixExtractor, Sizing,
};
use blocked_bloom_scalable::{ScalableError, ScalableOptions};

const SEEDED: KeyHash = KeyHash::Xxh3 { seed: 42 };

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// Detects a hasher, a link or a stored filter that falls back to seed 0, which would make present
/// keys absent.
#[test]
fn a_seed_that_is_stated_once_finds_every_key() {
    let options = FilterOptions::new(Sizing::FalsePositiveRate(0.01)).with_key_hash(SEEDED);
    let mut growing = ScalableOptions::for_filters(&options, 100).unwrap().build().unwrap();
    (0..3_000).for_each(|i| _ = growing.insert(key(i)).unwrap());
    assert_eq!((growing.key_hash(), growing.hasher()), (SEEDED, options.hasher()));
    assert!(growing.links().len() > 3);
    assert!(growing.links().iter().all(|link| link.key_hash() == SEEDED));
    let hasher = options.hasher().unwrap();
    assert!((0..3_000).all(|i| growing.contains_hash(hasher.hash(key(i)))));
    // With another seed, the bits would be those of other keys.
    let other = KeyHash::default().hasher().unwrap();
    assert!((0..3_000).filter(|&i| growing.contains_hash(other.hash(key(i)))).count() < 100);
}

#[test]
fn the_rate_is_that_of_the_filters_beside() {
    let of = |sizing, items| {
        let options = FilterOptions::new(sizing).with_key_hash(SEEDED);
        ScalableOptions::for_filters(&options, items)
    };
    let plain = |rate, items| ScalableOptions::new(rate, items).with_key_hash(SEEDED);
    assert_eq!(of(Sizing::FalsePositiveRate(0.003), 10), Ok(plain(0.003, 10)));
    let sizing = Sizing::BitsPerKey(10.0);
    for items in [1, 10, 100_000] {
        let rate = sizing.params(items).unwrap().false_positive_rate();
        assert_eq!(of(sizing, items), Ok(plain(rate, items)));
    }
    assert_eq!(of(sizing, 0), of(sizing, 1));
    let error = ParamsError::BitsPerKeyOutOfRange { bits_per_key: 1e3 };
    assert_eq!(of(Sizing::BitsPerKey(1e3), 10), Err(error));
    // A growing filter cannot express "no filter".
    for sizing in [Sizing::BitsPerKey(0.0), Sizing::FalsePositiveRate(1.0)] {
        assert!(of(sizing, 10).unwrap().build().is_err());
    }
}

#[test]
fn a_filter_is_continued_with_its_hash_and_rate() {
    let options = FilterOptions::new(Sizing::FalsePositiveRate(0.006)).with_key_hash(SEEDED);
    let growing = ScalableOptions::new(0.01, 1_000).with_key_hash(SEEDED).with_growth(3);
    let mut first = options.empty_filter(1_000).unwrap();
    (0..600).for_each(|i| _ = first.insert(key(i)).unwrap());
    let counted = first.keys_inserted();
    // Borrowed, it is stored as the same filter.
    let view = growing.continue_from(first.view()).unwrap();
    let mut filter = growing.continue_from(first.clone()).unwrap();
    assert_eq!(view.to_bytes(), filter.to_bytes());
    assert_eq!((filter.capacity_left(), filter.keys_inserted()), (1_000 - counted, counted));
    for i in 0..12_000 {
        filter.insert(key(i)).unwrap();
        assert!(filter.expected_false_positive_rate() <= 0.01, "{i}");
    }
    assert!((0..12_000).all(|i| filter.contains(key(i))));
    assert_eq!(filter.links().len(), 3);
    assert!(
        filter.links()[0].keys_inserted() == 1_000 && filter.links()[1].keys_inserted() == 3_000
    );
    let before = filter.clone();
    filter.reallocate();
    assert!(filter == before);

    let error = ScalableOptions::new(0.01, 1_000).continue_from(first.view()).unwrap_err();
    let expected = ScalableError::HashMismatch { left: KeyHash::default(), right: SEEDED };
    assert_eq!(error, expected);
    let error = growing.with_growth(1).continue_from(first.view()).unwrap_err();
    assert_eq!(error, ScalableError::GrowthOutOfRange { growth: 1 });
    let options = options.with_prefixes(PrefixExtractor::fixed(2));
    let mut builder = options.builder();
    builder.insert(key(1)).unwrap();
    let prefixes = builder.finish().unwrap();
    let error = growing.continue_from(prefixes).unwrap_err();
    assert!(matches!(error, ScalableError::Key(KeyError::NoPrefix { .. })), "{error}");
}

#[cfg(feature = "serde")]
mod serde {
    use super::{KeyHash, ScalableOptions};
    use serde_json::{from_str, from_value, json, to_string, to_value};

    #[test]
    fn options_read_back_and_are_checked_when_they_are_used() {
        for key_hash in [KeyHash::default(), super::SEEDED, KeyHash::Caller { tag: 7 }] {
            let options = ScalableOptions::new(0.001, u64::MAX >> 30).with_key_hash(key_hash);
            let options = options.with_growth(16).with_tightening(0.1 + 0.2);
            let read = from_str::<ScalableOptions>(&to_string(&options).unwrap()).unwrap();
            assert_eq!(read, options);
            assert_eq!(read.build(), options.build());
        }
        let options = to_value(ScalableOptions::new(0.01, 100)).unwrap();
        for (field, wrong) in
            [("rate", json!(0.0)), ("growth", json!(1)), ("tightening", json!(2.0))]
        {
            let mut changed = options.clone();
            changed[field] = wrong;
            let read = from_value::<ScalableOptions>(changed).unwrap();
            assert!(read.build().is_err(), "{field}");
        }
        let mut none = options;
        none["items"] = json!(0);
        assert!(from_value::<ScalableOptions>(none).unwrap().build().unwrap().insert("a").unwrap());
    }

    /// Optional, like the `with_` methods of the options.
    #[test]
    fn options_need_a_rate_and_a_number_of_keys() {
        let plain = ScalableOptions::new(0.01, 100);
        let text = r#"{"rate":0.01,"items":100}"#;
        assert_eq!(from_str::<ScalableOptions>(text).unwrap(), plain);
        let all =
            plain.with_key_hash(KeyHash::Caller { tag: 1 }).with_growth(4).with_tightening(0.5);
        let (all, plain) = (to_value(all).unwrap(), to_value(plain).unwrap());
        for field in ["key_hash", "growth", "tightening"] {
            assert_ne!(all[field], plain[field], "{field}");
            let (mut without, mut expected) = (all.clone(), all.clone());
            without.as_object_mut().unwrap().remove(field);
            expected[field] = plain[field].clone();
            let read = from_value::<ScalableOptions>(without).unwrap();
            assert_eq!(to_value(read).unwrap(), expected, "{field}");
        }
        for field in ["rate", "items"] {
            let mut without = all.clone();
            without.as_object_mut().unwrap().remove(field);
            let error = from_value::<ScalableOptions>(without).unwrap_err();
            assert!(error.to_string().contains(field), "{error}");
        }
    }

    #[test]
    fn a_setting_that_is_not_known_is_an_error() {
        let text = r#"{"rate":0.01,"items":100,"grwoth":4}"#;
        let error = from_str::<ScalableOptions>(text).unwrap_err();
        assert!(error.to_string().contains("unknown field `grwoth`"), "{error}");
    }
}
