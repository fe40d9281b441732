//! Code shared by the classical filters of Guava, Spark and RedisBloom. Compact filters have the
//! same description.

use blocked_bloom_formats::ClassicalError;

use crate::facts::{Bits, Facts, Summary, sizes};
use crate::system::{Evidence, Mark};
use crate::value::Value;

/// Returns the facts of a filter: those of its header, each with a name for programs and a name for
/// people, and those of its bits.
pub(super) fn facts(
    about: &Summary,
    header: Vec<(&'static str, &'static str, Value)>,
    bits: &Bits,
) -> Facts {
    let mut fields = vec![("stored_bytes", about.length.into())];
    let mut rows = vec![("format", about.format.to_owned()), ("stored size", sizes(about.length))];
    for (field, name, value) in header {
        let text = match &value {
            Value::Text(text) => text.clone(),
            Value::Null => "none".to_owned(),
            value => value.to_string(),
        };
        fields.push((field, value));
        rows.push((name, text));
    }
    fields.extend([
        ("fill_ratio", bits.fill_ratio.into()),
        ("estimated_keys", bits.keys.into()),
        ("estimated_false_positive_rate", bits.false_positive_rate.into()),
        ("checksum", Value::Null),
    ]);
    rows.push(("distinct keys, estimated", bits.keys()));
    rows.push(("fill ratio", bits.fill()));
    rows.push(("false positives, from the bits", bits.rate()));
    rows.push(("checksum", "none: damage in the bits cannot be seen".to_owned()));
    Facts::new(about, Value::Object(fields), rows)
}

/// Recognises a file that has the length given by its first numbers. `error` is the error about its
/// first bytes alone.
pub(super) fn recognise(file: &Evidence<'_>, error: Option<ClassicalError>) -> Option<Mark> {
    let (_, length) = file.end?;
    let expected = match error {
        None => file.head.len() as u64,
        Some(ClassicalError::Length { expected, .. }) => expected,
        Some(_) => return None,
    };
    (expected == length).then_some(Mark::Length)
}
