//! An index of files: described and queried as a user does it; damage is an error.

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};

use crate::tool::{Dir, assert_parts, stderr, text};

/// Of 20 files with 40 identifiers and 40 numbers each.
fn index() -> Vec<u8> {
    let columns = [("trace_id", 3), ("number", 1)];
    let columns = columns.map(|(name, seed)| Column::new(name, KeyHash::Xxh3 { seed }));
    let hashers = columns.each_ref().map(|column| column.hasher().unwrap());
    let mut builder = FileIndexOptions::new(columns.into(), 1).builder().unwrap();
    let mut stored = Vec::new();
    for number in 0..20_u64 {
        let name = format!("part-{number:02}.parquet");
        let file = FileIdentity::new(&name, 1_000 + number).with_etag("1");
        let mut file = builder.file(file, &[Some("Utf8View"), Some("Int32")], 1).unwrap();
        for i in 40 * number..40 * number + 40 {
            file.insert_hashes(0, &[hashers[0].hash(format!("trace {i}"))]).unwrap();
            file.insert_hashes(1, &[hashers[1].hash(i.to_le_bytes())]).unwrap();
        }
        stored.extend(file.end_row_group().unwrap());
        file.end().unwrap();
    }
    stored.extend(builder.finish().unwrap());
    stored
}

#[test]
fn an_index_of_files_is_described_and_queried() {
    let dir = Dir::new();
    let stored = index();
    dir.write("t.index", &stored);
    let facts = text(dir.ok("info t.index"));
    assert_parts(&facts, &["file-index", "files", "20", "trace_id", "Utf8View", "800", "number"]);
    let json: serde_json::Value = serde_json::from_slice(&dir.ok("info --json t.index")).unwrap();
    assert_eq!((&json["format"], &json["files"]), (&"file-index".into(), &20.into()));
    assert_eq!(json["columns"][1]["values"], 800);

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
