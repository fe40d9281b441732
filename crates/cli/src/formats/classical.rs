//! What the classical filters of Guava, Spark and RedisBloom have in common: their description, which is that of a compact filter too, and
//! the numbers of a finished one.

use serde_json::{Map, Value, json};

use super::builder::Fit;
use crate::facts::{Bits, Facts, sizes};
use crate::stored::Stored;

/// Facts of a filter: those of its header, each with a name for programs and one for people, and those of its bits.
pub(super) fn facts(
    stored: &Stored,
    header: Vec<(&str, &'static str, Value)>,
    bits: &Bits,
) -> Facts {
    let bytes = stored.bytes.len() as u64;
    let mut json = Map::new();
    let mut rows = vec![("file", stored.name.clone()), ("format", stored.format.to_string())];
    json.insert("file".to_owned(), json!(stored.name));
    json.insert("format".to_owned(), json!(stored.format.to_string()));
    json.insert("stored_bytes".to_owned(), json!(bytes));
    rows.push(("stored size", sizes(bytes)));
    for (field, name, value) in header {
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Null => "none".to_owned(),
            value => value.to_string(),
        };
        json.insert(field.to_owned(), value);
        rows.push((name, text));
    }
    json.insert("fill_ratio".to_owned(), json!(bits.fill_ratio));
    json.insert("estimated_keys".to_owned(), json!(bits.keys));
    json.insert("estimated_false_positive_rate".to_owned(), json!(bits.false_positive_rate));
    json.insert("checksum".to_owned(), Value::Null);
    rows.push(("distinct keys, estimated", bits.keys()));
    rows.push(("fill ratio", bits.fill()));
    rows.push(("false positives, from the bits", bits.rate()));
    rows.push(("checksum", "none: damage in the bits cannot be seen".to_owned()));
    Facts { json: Value::Object(json), rows, list: None }
}

/// How a filter fits its keys; none if it was sized for them.
pub(super) fn fit(
    expected_keys: Option<u64>,
    keys: u64,
    bytes: u64,
    needed: Option<u64>,
    false_positive_rate: f64,
) -> Option<Fit> {
    expected_keys.map(|_| Fit { keys, bytes, needed, false_positive_rate })
}
