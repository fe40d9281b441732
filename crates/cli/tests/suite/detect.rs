//! How the tool recognises formats: by first bytes, last bytes and names; and pipes, whose end is
//! not known.

use std::collections::BTreeSet;
use std::fs;

use blocked_bloom_formats::rocksdb::FilterBlockBuilder;
use serde_json::Value;

use crate::fixtures::committed;
use crate::tool::{self, Dir, assert_parts, files, lines, stderr, text};

/// Every file of the repository is recognised as the format of its folder, or not at all.
#[test]
fn no_file_is_taken_for_another() {
    let dir = Dir::new();
    let mut seen = BTreeSet::new();
    let folders = [
        ("rocksdb", ".sst", "rocksdb-sst"),
        ("rocksdb/raw", ".filter", "rocksdb-block"),
        ("rocksdb/crafted", ".filter", "rocksdb-block"),
        ("cassandra", "-Filter.db", "cassandra"),
        ("guava", ".bin", "guava"),
        ("spark", ".bin", "spark"),
        ("parquet", ".parquet", "parquet"),
        ("parquet/raw", ".sbbf", "parquet-filter"),
        ("parquet", ".csv", "none"),
        ("rocksdb", ".csv", "none"),
        ("rocksdb/raw", ".hex", "none"),
        ("../../../../tests/fixtures/keys", ".txt", "none"),
    ];
    for (folder, end, format) in folders {
        for file in files(&committed(folder), end) {
            let output = dir.run(&format!("info --json {}", file.display()));
            if output.status.code() == Some(2) {
                let message = stderr(&output);
                let read_as = format!("read as {format}");
                assert!(
                    message.contains("not a recognised filter file") || message.contains(&read_as)
                );
                continue;
            }
            let info: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(info["format"], format, "{}", file.display());
            seen.insert(format);
        }
    }
    assert_eq!(seen.len(), 7);
}

/// An SST file that is cut off behind its filter ends as a filter block does: its other blocks are
/// taken for lines, so that it would answer "absent" for keys that are there.
#[test]
fn a_part_of_a_file_is_not_taken_for_a_filter() {
    let dir = Dir::new();
    let file = committed("rocksdb").join("bloom_b10_n5000_str.sst");
    let bytes = fs::read(&file).unwrap();
    let none = FilterBlockBuilder::new(10.0).unwrap().finish().unwrap();
    let end = bytes.windows(5).rposition(|window| window == none).unwrap() + 5;
    // Cut at the start too, so that the trailer follows a whole number of 64-byte lines.
    let part = &bytes[(end - 5) % 64..end];
    dir.write("part.filter", part);
    assert_eq!(dir.info("part.filter")["format"], "rocksdb-block");
    for name in ["part.sst", "part.SST", "part.parquet", "part.db", "nb-1-big-Filter.db"] {
        dir.write(name, part);
        for command in ["info", "query"] {
            let message = dir.fails(&format!("{command} {name}"));
            assert_parts(&message, &["not a recognised filter file", "truncated", "--format"]);
        }
        dir.ok(&format!("info {name} --format rocksdb-block"));
    }
}

/// The trailer of a filter block of RocksDB counts behind whole lines alone: at any other length it
/// is a part of something else.
#[test]
fn a_trailer_behind_a_part_of_a_line_is_no_filter() {
    let dir = Dir::new();
    for (length, is_block) in [
        (0, false),
        (1, false),
        (63, false),
        (64, true),
        (65, false),
        (96, false),
        (128, true),
        (130, false),
        (640, true),
        (700, false),
    ] {
        let bytes = [vec![7; length], vec![0xff, 0, 6, 0, 0]].concat();
        dir.write("block.filter", bytes);
        match is_block {
            true => assert_eq!(dir.info("block.filter")["format"], "rocksdb-block", "{length}"),
            false => {
                assert_parts(&dir.fails("info block.filter"), &["not a recognised filter file"])
            }
        }
    }
}

/// Only what may be a number of probes makes a file of that name Cassandra's.
#[test]
fn other_formats_are_recognised_under_the_name_of_cassandras() {
    let dir = Dir::new();
    let name = "nb-1-big-Filter.db";
    for (folder, file, format) in [
        ("rocksdb", "bloom_b10_n5000_str.sst", "rocksdb-sst"),
        ("parquet/raw", "arrowrs_ndv900_fpp0.01.sbbf", "parquet-filter"),
        ("parquet", "duckdb_n3000.parquet", "parquet"),
        ("cassandra", "nb-1-big-Filter.db", "cassandra"),
    ] {
        dir.copy(&committed(folder).join(file), name);
        assert_eq!(dir.info(name)["format"], format);
    }
    let mut bytes = dir.read(name);
    bytes[3] = 99;
    dir.write(name, &bytes);
    assert_parts(&dir.fails(&format!("info {name}")), &["probes 99", "read as cassandra"]);
    bytes[0] = 1;
    dir.write(name, &bytes);
    assert_parts(&dir.fails(&format!("info {name}")), &["not a recognised", "--format"]);
    let reasons = stderr(&dir.run(&format!("-v info {name}")));
    assert_parts(&reasons, &["its name ends in .db, but", "and begins with a number of probes"]);
    for option in ["--format cassandra", "--cassandra-version nb"] {
        let message = dir.fails(&format!("info {name} {option}"));
        assert_parts(&message, &["probes 16777315", "read as cassandra"]);
    }
}

#[cfg(unix)]
#[test]
fn pipes_are_read_by_a_format_that_is_given() {
    let dir = Dir::new();
    let file = committed("rocksdb").join("bloom_b10_n5000_str.sst");
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).env("TOOL", tool::TOOL).env("FILE", &file);
        command.current_dir(dir.0.path()).output().unwrap()
    };
    let given = shell("cat \"$FILE\" | \"$TOOL\" info /dev/stdin --format rocksdb-sst");
    assert_parts(&text(given.stdout), &["/dev/stdin", "98 of 64 bytes"]);
    let unknown = shell("cat \"$FILE\" | \"$TOOL\" info /dev/stdin");
    assert_eq!(unknown.status.code(), Some(2));
    assert_parts(
        &stderr(&unknown),
        &["a pipe, whose end is not known", "give --format, such as rocksdb-sst"],
    );
    let endless = shell("\"$TOOL\" info /dev/zero");
    assert_eq!(endless.status.code(), Some(2));
    assert_parts(&stderr(&endless), &["/dev/zero: not a recognised filter file"]);
}

/// One line: the contents of the file, then a suggestion. `-v` adds the reasons.
#[test]
fn an_unrecognised_file_is_explained_on_request() {
    let dir = Dir::new();
    dir.write("words", lines("word", 1_000));
    dir.write("bytes", [0xc3, 0, 1, 2, 200].repeat(100));
    dir.ok("build words -o f -q");
    let why = ["magic number", "ff 00 k 00 00", "Filter.db", "LegacyBloom"];
    for (command, hint) in [
        ("info words", "it is text"),
        ("info bytes", "give --format"),
        ("query bytes", "give --format"),
        ("query words", "it is text: the filter comes first, then the keys"),
        ("query words words", "it is text: the filter comes first, then the keys"),
        ("query words f", "f is a filter (native): give the filter first, then the keys"),
        ("query bytes f", "f is a filter (native): give the filter first, then the keys"),
        ("merge words f -o g", "it is text"),
    ] {
        let message = dir.fails(command);
        let file = command.split(' ').nth(1).unwrap();
        assert!(message.starts_with(&format!("{file}: not a recognised filter file")), "{message}");
        assert_parts(&message, &[hint, "-v"]);
        assert!(message.len() < 160, "{message}");
        assert!(!why.iter().any(|why| message.contains(why)), "{message}");
        for explained in [format!("{command} -v"), format!("--verbose {command}")] {
            let explained = stderr(&dir.run(&explained));
            assert_parts(&explained, &[&format!("error: {file}: not a recognised"), hint]);
            assert_parts(&explained, &why);
        }
    }
    // A directory, a pipe or a missing file does not suggest that the arguments are swapped.
    for command in ["query words .", "query words nothing", "query words -"] {
        assert_parts(&dir.fails(command), &["it is text"]);
    }
    for command in ["info", "query"] {
        assert_parts(&text(dir.ok(&format!("{command} --help"))), &why);
    }
    dir.write("empty", "");
    for (name, file) in [("empty", "empty"), ("-", "standard input")] {
        let message = dir.fails(&format!("info {name}"));
        assert_parts(&message, &[&format!("{file}: not a recognised filter file: it is empty")]);
    }
}
