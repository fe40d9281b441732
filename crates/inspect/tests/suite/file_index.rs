//! A file index: the column to look up, and the meaning of text in it.

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};
use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened, PhysicalType, Value};

/// Types of the columns `text`, `number` and `time` in one file. `text` holds "apple", the others
/// 42. `is_unknown`: whether the values of one row group of `text` are unknown.
fn index(types: [&str; 3], is_unknown: bool) -> Vec<u8> {
    let seeds = [("text", 3), ("number", 1), ("time", 6)];
    let columns = seeds.map(|(name, seed)| Column::new(name, KeyHash::Xxh3 { seed }));
    let hashers = columns.each_ref().map(|column| column.hasher().unwrap());
    let mut builder = FileIndexOptions::new(columns.into(), 1).builder().unwrap();
    let file = FileIdentity::new("a.parquet", 1).with_etag("1");
    let mut file = builder.file(file, &types.map(Some), 2).unwrap();
    let number = 42_u64.to_le_bytes();
    file.insert_hashes(0, &[hashers[0].hash("apple")]).unwrap();
    file.insert_hashes(1, &[hashers[1].hash(number)]).unwrap();
    file.insert_hashes(2, &[hashers[2].hash(number)]).unwrap();
    let mut stored = file.end_row_group().unwrap();
    if is_unknown {
        file.set_unknown(0).unwrap();
    }
    stored.extend(file.end_row_group().unwrap());
    file.end().unwrap();
    stored.extend(builder.finish().unwrap());
    stored
}

fn options(column: &str, value_type: Option<PhysicalType>, encoded: bool) -> LookupOptions {
    let mut options = LookupOptions::default();
    (options.column, options.value_type, options.encoded) =
        (Some(column.to_owned()), value_type, encoded);
    options
}

fn open(stored: &[u8]) -> Opened<'_> {
    Opened::new("f", &FileRanges::from(stored), Format::FILE_INDEX, None).unwrap()
}

#[test]
fn text_stands_for_values_of_the_types_of_the_column() {
    let stored = index(["Utf8", "Int64", "Timestamp(ns)"], false);
    let opened = open(&stored);
    let number = 42_u64.to_le_bytes();
    type Case<'a> = (&'a str, Option<PhysicalType>, bool, &'a [&'a [u8]]);
    let cases: [Case<'_>; 7] = [
        ("text", None, false, &[b"apple", b"pear", b"42"]),
        ("text", Some(PhysicalType::ByteArray), false, &[b"apple", b"pear"]),
        ("text", None, true, &[b"apple", b"pear"]),
        ("number", None, false, &[b"42", b"43", b"-42"]),
        ("number", Some(PhysicalType::Int32), false, &[b"42", b"43"]),
        ("number", None, true, &[&number, b"42"]),
        ("time", None, true, &[&number, b"42"]),
    ];
    for (column, value_type, encoded, keys) in cases {
        let lookup = opened.lookup(&options(column, value_type, encoded)).unwrap();
        let warnings: Vec<String> = lookup.warnings().iter().map(|w| w.to_string()).collect();
        let expected = "the answers are of the files as they were when they were indexed";
        assert_eq!(warnings, [expected]);
        let answers = lookup.contains(keys).unwrap();
        assert!(answers.iter().enumerate().all(|(i, &hit)| hit == (i == 0)), "{column}");
    }
    // A key that would be absent whatever the files hold is an error.
    for (column, value_type) in [
        ("time", None),
        ("time", Some(PhysicalType::Int64)),
        ("text", Some(PhysicalType::Int64)),
        ("number", Some(PhysicalType::ByteArray)),
    ] {
        let error = opened.lookup(&options(column, value_type, false)).err().unwrap().to_string();
        assert!(error.starts_with("how values of "), "{error}");
    }
    // Types alone do not determine the hashed bytes: these seeds belong to other kinds of keys.
    let swapped = index(["Int64", "Utf8", "Int64"], false);
    for column in ["text", "number", "time"] {
        let error = open(&swapped).lookup(&options(column, None, false)).err().unwrap().to_string();
        assert!(error.starts_with("how values of "), "{error}");
    }
    let lookup = opened.lookup(&options("number", None, false)).unwrap();
    assert_eq!(lookup.contains(&["42", "x"]).unwrap_err().index, 1);
    for column in [None, Some("Text")] {
        let mut wanted = options("", None, false);
        wanted.column = column.map(str::to_owned);
        let error = opened.lookup(&wanted).err().unwrap().to_string();
        let columns = r#"columns of the index are "text", "number", "time""#;
        assert_eq!(error, format!("give `column`: {columns}"));
    }
}

#[test]
fn values_that_are_not_known_may_be_anywhere() {
    let stored = index(["Utf8", "Int64", "Date32"], true);
    let opened = open(&stored);
    let lookup = opened.lookup(&options("text", None, false)).unwrap();
    assert!(lookup.warnings()[0].is_pass_all());
    assert_eq!(lookup.contains(&["pear"]).unwrap(), [true]);
    let lookup = opened.lookup(&options("number", None, false)).unwrap();
    assert_eq!(lookup.contains(&["43"]).unwrap(), [false]);
}

#[test]
fn columns_are_described() {
    let stored = index(["Utf8", "Int64", "Date32"], true);
    let facts = open(&stored).describe();
    assert_eq!(facts.json().get("files"), Some(&Value::from(1)));
    let list = facts.list.unwrap();
    let text = "text|Utf8|XXH3-64 with seed 3|1|1|1|";
    assert!(list.lines[0].join("|").starts_with(text), "{:?}", list.lines[0]);
    let number = "number|Int64|XXH3-64 with seed 1|2|0|1|";
    assert!(list.lines[1].join("|").starts_with(number), "{:?}", list.lines[1]);
}
