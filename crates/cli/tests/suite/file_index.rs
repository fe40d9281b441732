//! An index of files: described and queried as a user does it; damage is an error.

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};

use crate::tool::{Dir, assert_parts, stderr, text};

/// Of 20 files with 40 identifiers and 40 numbers each, and a row group of which nothing is known
/// of `unknown`, which is one of them.
fn index(unknown: Option<u64>) -> Vec<u8> {
    let columns = [("trace_id", 3), ("number", 1)];
    let columns = columns.map(|(name, seed)| Column::new(name, KeyHash::Xxh3 { seed }));
    let hashers = columns.each_ref().map(|column| column.hasher().unwrap());
    let mut builder = FileIndexOptions::new(columns.into(), 1).builder().unwrap();
    let mut stored = Vec::new();
    for number in 0..20_u64 {
        let name = format!("part-{number:02}.parquet");
        let file = FileIdentity::new(&name, 1_000 + number).with_etag("1");
        let groups = if unknown == Some(number) { 2 } else { 1 };
        let mut file = builder.file(file, &[Some("Utf8View"), Some("Int32")], groups).unwrap();
        for i in 40 * number..40 * number + 40 {
            file.insert_hashes(0, &[hashers[0].hash(format!("trace {i}"))]).unwrap();
            file.insert_hashes(1, &[hashers[1].hash(i.to_le_bytes())]).unwrap();
        }
        stored.extend(file.end_row_group().unwrap());
        if unknown == Some(number) {
            file.set_unknown(0).unwrap();
            stored.extend(file.end_row_group().unwrap());
        }
        file.end().unwrap();
    }
    stored.extend(builder.finish().unwrap());
    stored
}

#[test]
fn an_index_of_files_is_described_and_queried() {
    let dir = Dir::new();
    let stored = index(None);
    dir.write("t.index", &stored);
    let facts = text(dir.ok("info t.index"));
    assert_parts(&facts, &["file-index", "files", "20", "trace_id", "Utf8View", "800", "number"]);
    let json: serde_json::Value = serde_json::from_slice(&dir.ok("info --json t.index")).unwrap();
    assert_eq!((&json["format"], &json["files"]), (&"file-index".into(), &20.into()));
    assert_eq!(json["columns"][1]["values"], 800);
    // The first files, and how many there are besides.
    assert_parts(&facts, &["part-09.parquet (1009 bytes, 1 row group), 10 more\n"]);
    assert!(!facts.contains("part-10"), "{facts}");
    assert_eq!(json["first_files"].as_array().unwrap().len(), 20);
    assert_eq!(json["first_files"][19]["name"], "part-19.parquet");

    let keys =
        |range: std::ops::Range<u64>| -> String { range.map(|i| format!("trace {i}\n")).collect() };
    let output = dir.run_with("query --column trace_id t.index", keys(0..800));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(output.stdout.clone()), keys(0..800));
    assert_parts(&stderr(&output), &["warning: ", "as they were when they were indexed"]);
    let absent = "query --absent --count --column trace_id t.index";
    let count = text(dir.ok_with(absent, keys(900..2_900)));
    assert!(count.trim().parse::<u64>().unwrap() > 1_900, "{count}");
    let numbers = text(dir.ok_with("query --column number t.index", "799\n-5\n0\n123456\n"));
    assert_eq!(numbers, "799\n0\n");

    assert_parts(&dir.fails_with("query t.index", "a\n"), &["give --column", "\"number\""]);
    // After the warning.
    let output = dir.run_with("query --column number t.index", "799\nseven\n");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&stderr(&output), &["line 2", "'seven'", "whole number"]);
    let message = dir.fails_with("query --column number --type byte-array t.index", "799\n");
    assert_parts(&message, &["how values of Int32 were hashed is not known"]);

    for at in [0, 70, stored.len() / 2, stored.len() - 200, stored.len() - 1] {
        let mut damaged = stored.clone();
        damaged[at] ^= 1;
        dir.write("d.index", damaged);
        let format = if at == 0 { " --format file-index" } else { "" };
        let message = dir.fails_with(&format!("query --column trace_id d.index{format}"), "a\n");
        assert_parts(&message, &["d.index"]);
    }
}

#[test]
fn files_and_row_groups_are_listed() {
    let dir = Dir::new();
    dir.write("t.index", index(None));
    let files = "query --files --column trace_id t.index";
    let found = text(dir.ok_with(files, "trace 0\ntrace 799\nnowhere\n"));
    assert_eq!(found, "trace 0\tpart-00.parquet\t0\ntrace 799\tpart-19.parquet\t0\n");
    let numbers = "query --files --column number t.index";
    assert_eq!(text(dir.ok_with(numbers, "41\n")), "41\tpart-01.parquet\t0\n");
    assert_eq!(dir.run_with(files, "nowhere\n").status.code(), Some(1));
    // What is not known is named so.
    dir.write("u.index", index(Some(3)));
    let found = text(dir.ok_with("query --files --column trace_id u.index", "trace 121\nx\n"));
    let unknown = "part-03.parquet\tunknown 1";
    assert_eq!(
        found,
        format!("trace 121\tpart-03.parquet\t0\ntrace 121\t{unknown}\nx\t{unknown}\n")
    );
    // Of the other column it is.
    let numbers = "query --files --column number u.index";
    assert_eq!(dir.run_with(numbers, "-5\n").status.code(), Some(1));
    for option in ["--absent", "--count"] {
        let output = dir.run_with(&format!("{files} {option}"), "x\n");
        assert_eq!(output.status.code(), Some(2));
        assert_parts(&stderr(&output), &["--files", option]);
    }
    dir.ok_with("build - -o t.bloom", "a\n");
    assert_parts(&dir.fails_with("query --files t.bloom", "a\n"), &["--files is for file-index"]);
}
