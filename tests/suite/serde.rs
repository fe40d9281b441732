//! Options in configuration files: they are read back, missing fields have defaults, and invalid
//! values are errors.

use blocked_bloom::{FilterContents, FilterOptions, KeyHash, Params, PrefixExtractor, Sizing};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{from_str, json, to_string, to_value};

/// Returns the value as JSON, which must deserialise to the same value.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> String {
    let text = to_string(value).unwrap();
    assert_eq!(from_str::<T>(&text).unwrap(), *value, "{text}");
    text
}

fn sizings() -> [Sizing; 6] {
    [
        Sizing::BitsPerKey(10.0),
        Sizing::BitsPerKey(0.1 + 0.2),
        Sizing::BitsPerKey(0.0),
        Sizing::FalsePositiveRate(0.01),
        Sizing::FalsePositiveRate(f64::MIN_POSITIVE),
        Sizing::MaxBytes(u64::MAX),
    ]
}

fn key_hashes() -> [KeyHash; 3] {
    [KeyHash::default(), KeyHash::Xxh3 { seed: u64::MAX }, KeyHash::Caller { tag: 7 }]
}

#[test]
fn sizes_and_hashes_read_back() {
    sizings().iter().for_each(|sizing| _ = round_trip(sizing));
    key_hashes().iter().for_each(|key_hash| _ = round_trip(key_hash));
    assert_eq!(round_trip(&Sizing::BitsPerKey(10.5)), r#"{"BitsPerKey":10.5}"#);
    assert_eq!(round_trip(&Sizing::MaxBytes(128)), r#"{"MaxBytes":128}"#);
    assert_eq!(round_trip(&KeyHash::Xxh3 { seed: 3 }), r#"{"Xxh3":{"seed":3}}"#);
    assert_eq!(round_trip(&KeyHash::Caller { tag: 3 }), r#"{"Caller":{"tag":3}}"#);
    assert_eq!(from_str::<Sizing>(r#"{"BitsPerKey":10}"#).unwrap(), Sizing::BitsPerKey(10.0));
    assert!(from_str::<Sizing>(r#"{"BytesPerKey":10.0}"#).is_err());
    assert!(from_str::<KeyHash>(r#"{"Xxh3":{}}"#).is_err(), "a hash without its seed");
    for text in [r#"{"Xxh3":{"seed":1,"sed":2}}"#, r#"{"Caller":{"tag":1,"seed":2}}"#] {
        let error = from_str::<KeyHash>(text).unwrap_err();
        assert!(error.to_string().contains("unknown field"), "{error}");
    }
}

#[test]
fn filter_options_read_back() {
    for sizing in sizings() {
        for key_hash in key_hashes() {
            let options = FilterOptions::new(sizing).with_key_hash(key_hash);
            for options in [
                options.clone(),
                options.clone().with_probes(9).foldable().with_huge_pages(false),
                options.clone().with_memory_limit(1 << 30).with_expected_items(u64::MAX),
                options.clone().with_prefixes(PrefixExtractor::fixed(4)),
                options.clone().with_only_prefixes(PrefixExtractor::capped(8)),
                options.with_only_prefixes(PrefixExtractor::delimiter(b'/', 2)),
            ] {
                round_trip(&options);
            }
        }
    }
}

/// Omits one field after the other from options that set all of them. The hash has no default: with
/// another hash than the writer's, keys would be absent.
#[test]
fn missing_fields_have_defaults_except_the_hash() {
    let plain = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let text = r#"{"sizing":{"BitsPerKey":10.0},"key_hash":{"Xxh3":{"seed":0}}}"#;
    assert_eq!(from_str::<FilterOptions>(text).unwrap(), plain);
    let text = r#"{"key_hash":{"Xxh3":{"seed":0}}}"#;
    assert_eq!(from_str::<FilterOptions>(text).unwrap(), FilterOptions::default());
    assert_eq!(FilterOptions::default(), plain);
    for text in ["{}", r#"{"sizing":{"BitsPerKey":10.0}}"#] {
        let error = from_str::<FilterOptions>(text).unwrap_err();
        assert!(error.to_string().contains("missing field `key_hash`"), "{error}");
    }
    let error = from_str::<FilterOptions>(r#"{"sizings":{}}"#).unwrap_err();
    assert!(error.to_string().contains("unknown field `sizings`"), "{error}");
    // Without a rule, a filter of prefixes alone is not possible.
    let text = r#"{"whole_keys":false,"key_hash":{"Xxh3":{"seed":0}}}"#;
    let without_rule = from_str::<FilterOptions>(text).unwrap();
    assert_eq!(without_rule.contents(), FilterContents::WholeKeys);
    let rule = PrefixExtractor::fixed(4);
    let all = plain
        .clone()
        .with_sizing(Sizing::MaxBytes(1 << 20))
        .with_key_hash(KeyHash::Xxh3 { seed: 5 })
        .with_probes(7)
        .foldable()
        .with_only_prefixes(rule.clone())
        .with_memory_limit(1_000)
        .with_expected_items(10)
        .with_huge_pages(false);
    let (all, plain) = (to_value(&all).unwrap(), to_value(&plain).unwrap());
    let fields: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "sizing",
            "probes",
            "foldable",
            "key_hash",
            "prefixes",
            "whole_keys",
            "memory_limit",
            "expected_items",
            "huge_pages"
        ]
    );
    for field in fields {
        assert_ne!(all[field], plain[field], "{field}");
        let (mut without, mut expected) = (all.clone(), all.clone());
        without.as_object_mut().unwrap().remove(field);
        if field == "key_hash" {
            assert!(serde_json::from_value::<FilterOptions>(without).is_err());
            continue;
        }
        expected[field] = plain[field].clone();
        let read = serde_json::from_value::<FilterOptions>(without).unwrap();
        assert_eq!(to_value(read).unwrap(), expected, "{field}");
    }
}

/// The functions of the rule are not in its name.
#[test]
fn a_rule_of_the_callers_is_written_and_not_read() {
    let first = |bytes: &[u8]| (!bytes.is_empty()).then_some(1);
    let custom = PrefixExtractor::custom("first", first, first);
    assert_eq!(to_string(&custom).unwrap(), r#""custom:first""#);
    let error = from_str::<PrefixExtractor>(r#""custom:first""#).unwrap_err();
    assert!(error.to_string().starts_with(r#"unknown prefix rule "custom:first""#), "{error}");
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_prefixes(custom);
    let text = to_string(&options).unwrap();
    let error = from_str::<FilterOptions>(&text).unwrap_err();
    assert!(error.to_string().contains(r#"unknown prefix rule "custom:first""#), "{error}");
    for name in ["", "fixed", "fixed:04", "delimiter:2F:1"] {
        assert!(serde_json::from_value::<PrefixExtractor>(json!(name)).is_err(), "{name}");
    }
    for rule in [PrefixExtractor::fixed(4), PrefixExtractor::delimiter(b'/', 2)] {
        assert_eq!(round_trip(&rule), format!("\"{rule}\""));
        // With an escape, the name is not a part of the text that it is read from.
        let escaped = format!("\"\\u{:04x}{}\"", rule.name().as_bytes()[0], &rule.name()[1..]);
        assert_eq!(from_str::<PrefixExtractor>(&escaped).unwrap(), rule);
    }
}

#[test]
fn the_shape_of_a_filter_is_written_for_logs() {
    let params: Params = Sizing::BitsPerKey(10.0).params(1_000).unwrap();
    assert_eq!(
        to_string(&params).unwrap(),
        r#"{"expected_items":1000,"blocks":20,"probes":6,"pass_all":false}"#
    );
}
