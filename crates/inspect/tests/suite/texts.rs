//! Descriptions as people and programs read them.

use std::collections::{BTreeMap, BTreeSet};

use blocked_bloom_inspect::{Format, Value};
use serde_json::Value as Json;

use crate::stored::{StoredFilter, all_filters};

fn as_json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => u64::try_from(*value).map_or((*value as i64).into(), Json::from),
        Value::Number(value) => (*value).into(),
        Value::Text(text) => text.clone().into(),
        Value::List(values) => values.iter().map(as_json).collect(),
        Value::Object(facts) => {
            facts.iter().map(|(name, value)| ((*name).to_owned(), as_json(value))).collect()
        }
        _ => Json::Null,
    }
}

/// Compares values, ignoring the last digits of numbers, which this parser rounds.
fn is_same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| is_same(a, b))
        }
        (Json::Number(a), Json::Number(b)) if a.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-15 * a.abs()
        }
        (a, b) => a == b,
    }
}

pub(crate) fn check_descriptions(filters: &[StoredFilter]) {
    for stored in filters {
        let facts = stored.open().unwrap().describe();
        let text = facts.json().to_string();
        let parsed: Json = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert!(is_same(&parsed, &as_json(&facts.json())), "{}: {text}", stored.name);
        assert_eq!(parsed["file"], stored.name);
        assert_eq!(parsed["format"], stored.format.name());
        assert_eq!(facts.rows[0], ("file", stored.name.clone()));
        let rows: BTreeSet<&str> = facts.rows.iter().map(|row| row.0).collect();
        assert_eq!(rows.len(), facts.rows.len(), "{}: a name twice", stored.name);
        if let Some(list) = &facts.list {
            let whole = list.lines.iter().all(|line| line.len() == list.heads.len());
            assert!(whole, "{}", stored.name);
        }
    }
}

#[test]
fn descriptions_are_json() {
    check_descriptions(&all_filters());
}

/// A field is a number, a text or a list in every format alike.
pub(crate) fn check_shapes(filters: &[StoredFilter]) {
    fn shapes(value: &Value, name: &str, found: &mut BTreeMap<String, BTreeSet<&'static str>>) {
        let shape = match value {
            Value::Null => return,
            Value::Bool(_) => "bool",
            Value::Integer(_) | Value::Number(_) => "number",
            Value::Text(_) => "text",
            Value::List(values) => {
                values.iter().for_each(|value| shapes(value, &format!("{name}[]"), found));
                "list"
            }
            Value::Object(facts) => {
                facts.iter().for_each(|(name, value)| shapes(value, name, found));
                "object"
            }
            _ => "other",
        };
        found.entry(name.to_owned()).or_default().insert(shape);
    }
    let mut found = BTreeMap::new();
    for stored in filters {
        shapes(&stored.open().unwrap().describe().json(), "", &mut found);
    }
    let several: Vec<_> = found.iter().filter(|(_, shapes)| shapes.len() > 1).collect();
    assert!(several.is_empty(), "{several:?}");
    assert!(found.contains_key("solution_columns") && found.contains_key("column_chunks"));
}

#[test]
fn a_field_has_one_shape() {
    check_shapes(&all_filters());
}

#[test]
fn text_is_escaped_as_json_wants_it() {
    let text = Value::from("a\"b\\c\n\u{1}\u{7f}\u{2028}é");
    assert_eq!(text.to_string(), "\"a\\\"b\\\\c\\u000a\\u0001\u{7f}\u{2028}é\"");
}

#[test]
fn numbers_read_back_as_themselves() {
    for number in [0.0, 1.0, 0.1, 9.665e-3, 1e-7, 5e-324, 1e300, u64::MAX as f64] {
        assert_eq!(Value::from(number).to_string().parse(), Ok(number));
    }
    assert_eq!(Value::from(1.0).to_string(), "1.0");
    assert_eq!(Value::from(u64::MAX).to_string(), "18446744073709551615");
    assert_eq!(Value::from(f64::INFINITY), Value::Null);
}

/// The header has the checksum of the body at byte 48 and its own at byte 56.
#[test]
fn checksums_are_those_of_the_header() {
    let filters = all_filters();
    for (format, of) in [(Format::NATIVE, "block"), (Format::REMOVABLE, "line")] {
        let stored = filters.iter().find(|stored| stored.format == format).unwrap();
        let at = |at: usize| {
            let number = stored.bytes[at..].first_chunk().unwrap();
            Some(Value::from(format!("{:016x}", u64::from_le_bytes(*number))))
        };
        let json = stored.open().unwrap().describe().json();
        assert_eq!(json.get("header_checksum").cloned(), at(56));
        for which in ["stored", "computed"] {
            assert_eq!(json.get(&format!("{of}_checksum_{which}")).cloned(), at(48), "{format}");
        }
    }
}

/// Filters with damage in blocks or lines alone: the expected and the actual checksums.
#[test]
fn both_checksums_of_a_damaged_filter_are_described() {
    use blocked_bloom::{BloomFilter, FormatError, parts::HeaderError};
    use blocked_bloom_removable::RemovableFilter;
    let filters = all_filters();
    for (format, of) in [(Format::NATIVE, "block"), (Format::REMOVABLE, "line")] {
        let sound = filters.iter().find(|stored| stored.format == format).unwrap();
        let mut bytes = sound.bytes.clone();
        *bytes.last_mut().unwrap() ^= 1;
        let error = match of {
            "block" => BloomFilter::from_bytes_any_hash(&bytes).unwrap_err(),
            _ => RemovableFilter::from_bytes_any_hash(&bytes).unwrap_err(),
        };
        let FormatError::Header(HeaderError::BodyChecksum { stored, computed, .. }) = error else {
            panic!("{error}");
        };
        assert_ne!(stored, computed);
        let json = sound.open_bytes(&bytes).unwrap().describe().json();
        let field = |name: &str| json.get(&format!("{of}_checksum_{name}")).cloned();
        assert_eq!(field("ok"), Some(Value::from(false)));
        assert_eq!(field("stored"), Some(Value::from(format!("{stored:016x}"))));
        assert_eq!(field("computed"), Some(Value::from(format!("{computed:016x}"))));
    }
}

/// The last five bytes of a block are not one of its lines.
#[test]
fn the_fill_of_a_legacy_block_is_that_of_its_lines() {
    let filters = all_filters();
    let legacy = filters
        .iter()
        .filter(|stored| stored.format == Format::ROCKSDB_BLOCK && stored.name.contains("legacy"));
    let mut described = 0;
    for stored in legacy {
        let json = stored.open().unwrap().describe().json();
        let found: f64 = json.get("fill_ratio").unwrap().to_string().parse().unwrap();
        let lines = &stored.bytes[..stored.bytes.len() - 5];
        let ones: u32 = lines.iter().map(|byte| byte.count_ones()).sum();
        let expected = f64::from(ones) / (8.0 * lines.len() as f64);
        assert!((found - expected).abs() < 1e-9, "{}: {found}, not {expected}", stored.name);
        described += 1;
    }
    assert!(described > 0);
}
