//! Text encodings and containers of key files, a test for each cell of the table in
//! `docs/testing.md`: the keys are found, or the file is refused with the command to type.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fixtures::committed;
use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, text};

/// `apple` and `banana`, a line each.
const KEYS: &str = "apple\nbanana\n";

/// A directory with a filter of these keys, and a table that has them.
fn dir() -> Dir {
    let dir = Dir::new();
    dir.ok_with("build - -o f -q", KEYS);
    dir
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Every command that reads keys or lines finds what it finds in plain text.
fn is_found(file: &[u8], options: &str) {
    let dir = dir();
    dir.write("keys", file);
    dir.ok(&format!("build keys -o g -q {options}"));
    assert!(dir.read("g") == dir.read("f"), "another filter");
    let found = dir.ok(&format!("query f keys --count {options}"));
    assert_eq!(text(found), "2\n");
    assert_eq!(text(dir.ok(&format!("dedup -q --count keys {options}"))), "2\n");
    dir.ok(&format!("planes build -q keys {options}"));
    assert_eq!(text(dir.ok("planes query keys.planes apple")), "0\n");
}

/// Every command that reads keys or lines fails, names what the file is and what to type.
fn is_refused(file: &[u8], options: &str, parts: &[&str]) {
    let dir = dir();
    dir.write("keys", file);
    for command in [
        "build keys -o g",
        "build keys -o g --format rocksdb-block",
        "build keys -o g --keys 10",
        "query f keys",
        "query f keys --absent",
        "planes build keys",
        "dedup keys",
    ] {
        let output = dir.run(&format!("{command} {options}"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert_eq!(output.stdout, b"", "{command}");
        assert_parts(&said, &["keys: "]);
        let items =
            if command.starts_with("planes") || command == "dedup keys" { "lines" } else { "keys" };
        assert!(!said.contains(" list of ") || said.contains(items), "{command}: {said}");
        assert_parts(&said, parts);
    }
    // From a pipe, too.
    let piped = dir.fails_with(&format!("query f {options}"), file);
    assert_parts(&piped, &["standard input: "]);
    assert!(!dir.names().contains(&"g".to_owned()));
    // Bytes are bytes, if they are wanted.
    assert_eq!(dir.run(&format!("dedup -q --raw keys {options}")).status.code(), Some(0));
}

#[test]
fn utf_8_is_found() {
    is_found(KEYS.as_bytes(), "");
    is_found(b"apple\nbanana", "");
}

#[test]
fn utf_8_with_a_mark_is_found() {
    is_found(b"\xef\xbb\xbfapple\nbanana\n", "");
    // The mark is not part of what is printed, but for those who want it.
    let dir = dir();
    let marked = "\u{feff}apple\nbanana\n";
    assert_eq!(text(dir.ok_with("query f", marked)), KEYS);
    assert_eq!(text(dir.ok_with("query f --raw", marked)), "banana\n");
    assert_eq!(text(dir.ok_with("dedup -q", marked)), KEYS);
    assert_eq!(text(dir.ok_with("dedup -q --raw", marked)), marked);
    assert_eq!(text(dir.ok_with("query f --hex", "\u{feff}6170706c65\n")), "6170706c65\n");
    // Only at the start of a file. A mark without text is not a key.
    assert_eq!(dir.run_with("query f", "\n\u{feff}banana\n").status.code(), Some(1));
    dir.ok_with("build - -o empty -q", "\u{feff}");
    assert_eq!(dir.info("empty")["keys_inserted"], 0);
}

fn utf_16(to_bytes: fn(u16) -> [u8; 2], mark: bool) -> Vec<u8> {
    let text = format!("{}{KEYS}", if mark { "\u{feff}" } else { "" });
    text.encode_utf16().flat_map(to_bytes).collect()
}

const UTF_16: &[&str] = &["is UTF-16 text", "iconv -f UTF-16"];

#[test]
fn utf_16_with_a_mark_is_refused() {
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        is_refused(&utf_16(to_bytes, true), "", UTF_16);
        is_refused(&utf_16(to_bytes, true), "--null", &["UTF-16", "iconv -f UTF-16"]);
    }
}

#[test]
fn utf_16_without_a_mark_is_refused() {
    is_refused(&utf_16(u16::to_le_bytes, false), "", &["UTF-16 text", "iconv -f UTF-16LE"]);
    is_refused(&utf_16(u16::to_be_bytes, false), "", &["UTF-16 text", "iconv -f UTF-16BE"]);
}

#[test]
fn utf_16_that_is_not_ascii_is_refused() {
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let text: Vec<u8> =
            "\u{4e2d}\u{6587}\n\u{6587}\u{4e2d}\n".encode_utf16().flat_map(to_bytes).collect();
        let dir = dir();
        for command in ["build - -o g", "query f", "dedup"] {
            let output = dir.run_with(command, &text);
            assert_eq!(output.status.code(), Some(2), "{command}");
            assert_parts(&stderr(&output), &["a NUL byte in a line", "iconv -f UTF-16LE"]);
        }
    }
}

#[test]
fn utf_16_with_the_option_null_is_refused() {
    let dir = dir();
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let file = utf_16(to_bytes, false);
        for command in ["build - -o g --null", "query f --null", "dedup --null"] {
            let output = dir.run_with(command, &file);
            assert_eq!(output.status.code(), Some(2), "{command}");
            assert_parts(&stderr(&output), &["looks like UTF-16 text", "iconv -f UTF-16LE"]);
        }
    }
    // Keys of one byte are keys.
    assert_eq!(dir.ok_with("dedup -q --null", "a\0b\0c\0d\0"), b"a\0b\0c\0d\0");
}

#[test]
fn utf_32_is_refused() {
    for mark in ["\u{feff}", ""] {
        for to_bytes in [u32::to_le_bytes, u32::to_be_bytes] {
            let file = format!("{mark}{KEYS}");
            let file: Vec<u8> = file.chars().flat_map(|char| to_bytes(char.into())).collect();
            is_refused(&file, "", &["UTF-32 text", "iconv -f UTF-32"]);
        }
    }
}

#[test]
fn lines_of_windows_are_warned_of() {
    let dir = dir();
    let output = dir.run_with("query f", "apple\r\nbanana\r\n");
    assert_eq!(output.status.code(), Some(1));
    assert_parts(&stderr(&output), &["2 of 2 keys end in a carriage return", "tr -d '\\r'"]);
}

#[test]
fn nul_separated_keys_are_found_by_the_option_and_refused_without() {
    let list = b"apple\0banana\0";
    is_found_null(list);
    is_found_null(b"apple\0banana");
    is_refused(list, "", &["a NUL byte in a line", "--null"]);
    // After lines, too: the number is that of the line.
    let dir = dir();
    let many = lines("key", 100_000) + "apple\0banana\n";
    for command in ["build - -o g", "query f", "dedup --count"] {
        let output = dir.run_with(command, &many);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_parts(&stderr(&output), &["standard input: line 100001: a NUL byte in a line"]);
    }
}

fn is_found_null(list: &[u8]) {
    let dir = dir();
    dir.write("keys", list);
    dir.ok("build keys -o g -q --null");
    assert!(dir.read("g") == dir.read("f"));
    assert_eq!(dir.ok("query f keys --null"), b"apple\0banana\0");
    assert_eq!(dir.ok("dedup -q --null keys"), b"apple\0banana\0");
}

#[test]
fn lines_are_refused_with_the_option_null() {
    is_refused(KEYS.as_bytes(), "--null", &["no NUL byte and 2 line feeds", "leave out --null"]);
}

#[test]
fn gzip_is_refused() {
    let file = "1f8b08000000000000034b2c28c849e54a4acc03422e002827f5ee0d000000";
    is_refused(&bytes(file), "", &["is compressed with gzip", "`zcat keys`"]);
    is_refused(&bytes(file), "--null", &["is compressed with gzip", "`zcat keys`"]);
}

#[test]
fn xz_is_refused() {
    let file = "fd377a585a000004e6d6b4460200210116000000742fe5a301000c6170706c650a62616e616e610a0000\
                000047a1fb20707ffb5d0001250d7119c4b61fb6f37d010000000004595a";
    is_refused(&bytes(file), "", &["is compressed with xz", "`xzcat keys`"]);
}

#[test]
fn bzip2_is_refused() {
    let file = "425a68393141592653595af1a928000002c180001032054000200021a7a8c421803a26d4b5078bb9229c\
                28482d78d49400";
    is_refused(&bytes(file), "", &["is compressed with bzip2", "`bzcat keys`"]);
}

#[test]
fn zstandard_is_refused() {
    let file = "28b52ffd240d6900006170706c650a62616e616e610ad849b028";
    is_refused(&bytes(file), "", &["is compressed with Zstandard", "`zstdcat keys`"]);
}

#[test]
fn lz4_is_refused() {
    let file = "04224d186440a70d0000806170706c650a62616e616e610a000000003e55087e";
    is_refused(&bytes(file), "", &["is compressed with LZ4", "`lz4cat keys`"]);
}

#[test]
fn lzma_is_refused() {
    let file = "5d00008000ffffffffffffffff00309c2cd86612611481ad0ea1548c3affffbba80000";
    is_refused(&bytes(file), "", &["is compressed with LZMA", "`xzcat --format=lzma keys`"]);
}

#[test]
fn zip_is_refused() {
    let file = "504b0304140000000000000021002827f5ee0d0000000d000000080000006b6579732e7478746170706c\
                650a62616e616e610a504b01021403140000000000000021002827f5ee0d0000000d000000080000\
                0000\
                000000000000008001000000006b6579732e747874504b0506000000000100010036000000330000\
                0000\
                00";
    is_refused(&bytes(file), "", &["is a ZIP archive", "`unzip -p keys`"]);
}

#[test]
fn parquet_is_refused() {
    let file = std::fs::read(committed("parquet").join("duckdb_n3000.parquet")).unwrap();
    is_refused(&file, "", &["is a Parquet file", "write them to a text file"]);
}

#[test]
fn other_files_are_refused() {
    for (head, what) in [
        (&b"SQLite format 3\0\x10\0\x01\x01"[..], "an SQLite database"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "an Arrow file"),
        (b"Obj\x01\x04\x16avro", "an Avro file"),
        (b"REDIS0011\xfa\tredis-ver", "a database of Redis"),
    ] {
        is_refused(head, "", &[what]);
    }
}

#[test]
fn a_compressed_filter_is_named() {
    let dir = dir();
    let file = "1f8b08000000000000034b2c28c849e54a4acc03422e002827f5ee0d000000";
    dir.write("f.gz", bytes(file));
    dir.write("f.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    for command in ["query f.gz -", "info f.gz", "merge f f.gz -o g", "dedup --state f.gz -"] {
        let message = dir.fails(command);
        let part =
            "f.gz: not a recognised filter file: it is compressed with gzip: unpack it first";
        assert_parts(&message, &[part, "(zcat)"]);
    }
    assert_parts(&dir.fails("info f.png"), &["recognised filter file: it is a PNG picture (-v"]);
}

#[test]
fn a_filter_as_keys_is_refused() {
    let dir = dir();
    for args in ["query f f --count", "build f -o g -q", "dedup f"] {
        let output = dir.run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert_parts(&stderr(&output), &["f: begins as a stored filter does", "--raw"]);
    }
}

/// Keys that begin like a magic number of letters are keys.
#[test]
fn keys_that_resemble_a_magic_number_are_found() {
    let keys = "PAR1\nPAR1-2024\nBZh9 bus\nORCA\nORC 1\nPK\nREDIS01\nGIF8\n%PD\n";
    for key in keys.lines() {
        let dir = Dir::new();
        dir.ok_with("build - -o f -q", format!("{key}\n{keys}"));
        assert_eq!(text(dir.ok_with("query f", key)), format!("{key}\n"));
    }
}

/// The issue's examples, as a shell runs them.
#[cfg(unix)]
#[test]
fn a_list_of_find_is_found_by_the_option_null() {
    let dir = Dir::new();
    dir.write("a.txt", "");
    dir.write("b.txt", "");
    let run = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("TOOL", TOOL).current_dir(dir.0.path());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let refused = run("find . -name '*.txt' -print0 | \"$TOOL\" build - -o f");
    assert_eq!(refused.status.code(), Some(2));
    assert_parts(&stderr(&refused), &["give --null if NUL bytes end the keys"]);
    let built = run("find . -name '*.txt' -print0 | \"$TOOL\" build --null - -o f");
    assert_eq!(built.status.code(), Some(0));
    assert_eq!(dir.info("f")["keys_inserted"], 2);
}

#[test]
fn quoted_csv_is_found_by_the_option_and_refused_without() {
    let dir = Dir::new();
    let table = "1,\"Smith, John\"\n2,\"Smith, Anna\"\n3,\"Smith, John\"\n";
    let all = "dedup -q --field 2 --delimiter ,";
    let message = dir.fails_with(all, table);
    assert_parts(&message, &["line 1: field 2 begins with a quote", "--csv", "--raw"]);
    assert_eq!(text(dir.ok_with(&format!("{all} --raw"), table)), "1,\"Smith, John\"\n");
    let kept = "1,\"Smith, John\"\n2,\"Smith, Anna\"\n";
    assert_eq!(text(dir.ok_with(&format!("{all} --csv"), table)), kept);
    assert_eq!(text(dir.ok_with("dedup -q --field 2 --csv", table)), kept);
    // A quoted field before the compared one shifts it.
    let names = "\"Smith, John\",1\n\"Smith, John\",2\n";
    assert_parts(&dir.fails_with(all, names), &["line 1: field 1 begins with a quote"]);
    assert_eq!(text(dir.ok_with("dedup -q --field 2 --csv", names)), names);
    // A quoted field behind it that has several lines divides the record.
    let notes = "1,a,\"first\nsecond\"\n2,b,\"first\nsecond\"\n";
    let message = dir.fails_with("dedup -q --field 1 --delimiter ,", notes);
    assert_parts(&message, &["line 1: field 3 begins with a quote"]);
    assert_eq!(text(dir.ok_with("dedup -q --field 1 --csv", notes)), notes);
    assert_eq!(text(dir.ok_with("dedup -q --field 3 --csv", notes)), notes[..19]);
    // A field has the same value with quotes and without, and at the end of a line of Windows.
    let mixed = "1,apple\n2,\"apple\"\r\n3,apple\r\n4,\"app\"\"le\"\n";
    let kept = "1,apple\n4,\"app\"\"le\"\n";
    assert_eq!(text(dir.ok_with("dedup -q --field 2 --csv", mixed)), kept);
    let tabs = "1\t\"a\tb\"\n2\t\"a\tc\"\n";
    assert_eq!(text(dir.ok_with("dedup -q --field 2 --csv --delimiter \\t", tabs)), tabs);
}

#[test]
fn csv_that_is_not_whole_is_refused() {
    let dir = Dir::new();
    let message = dir.fails_with("dedup -q --field 2 --csv", "1,a\n2,\"b\n3,c\n");
    assert_parts(&message, &["record 2: a quoted field does not end"]);
    let message = dir.fails_with("dedup -q --field 2 --csv", "1, \"Smith, John\"\n");
    assert_parts(&message, &["record 1: blanks before the quote of field 2"]);
    for options in ["--csv", "--csv --field 1 --null"] {
        assert_eq!(dir.run(&format!("dedup {options}")).status.code(), Some(2), "{options}");
    }
}

#[test]
fn records_keep_their_bytes() {
    let dir = Dir::new();
    let csv = "1,\"a, b\",x\n\n\r\n2,\"say \"\"hi\"\"\"\r\n3,c\r\n\"4\n4\",d\n";
    // Lines without the field count as empty, and values are those without quotes.
    let same = "5,\"a, b\"\n6,\"say \"\"hi\"\"\"\n7,\"c\"\n8,\"d\"\r\n9,\"\"\n";
    let output = dir.run_with("dedup -q --field 2 --csv", format!("{csv}{same}"));
    assert_eq!(text(output.stdout.clone()), csv.replace("\n\n\r\n", "\n\n"));
    assert_parts(&stderr(&output), &["3 of 11 lines have no field 2"]);
    let open = format!("{csv}5,\"open\n");
    let message = dir.fails_with("dedup -q --field 2 --csv", open);
    assert_parts(&message, &["record 7: a quoted field does not end"]);
    // Longer than the buffers, in bytes and in fields.
    let long = format!("{},\"{}\"\n", "a,".repeat(300), "b".repeat(9_000));
    let unquoted = long.replace('"', "");
    let found = dir.ok_with("dedup -q --field 302 --csv", format!("{long}{unquoted}"));
    assert!(text(found) == long);
}

#[test]
fn quotes_that_matter_are_a_problem() {
    let dir = Dir::new();
    let is_problem = |line: &str, field, options: &str| {
        let command = format!("dedup -q --field {field} --delimiter , {options}");
        dir.run_with(&command, format!("{line}\n")).status.code() == Some(2)
    };
    for (line, field) in [
        ("1,\"Smith, John\"", 2),
        ("\"Smith, John\",1", 2),
        ("1,'Smith, John'", 2),
        ("'Smith, John',1", 2),
        ("'", 1),
        ("1, \"Smith, John\"", 2),
        ("1,2,\"two", 1),
        ("1,5\" pipe,\"", 5),
    ] {
        assert!(is_problem(line, field, ""), "{line}");
        assert!(!is_problem(line, field, "--raw"), "{line}");
    }
    for (line, field) in
        [("1,'Smith'", 2), ("1,2,'s", 2), ("1,2,\"Smith, John\"", 1), ("1,5\" pipe", 2)]
    {
        assert!(!is_problem(line, field, ""), "{line}");
    }
    for line in
        ["1,\"a\\\"b, c\"", "1,\"a\"b,c", "1,'a, b'", "\"a\" ,b", "\"a\"\"b\"c,d", "1, \"a, b\""]
    {
        assert!(is_problem(line, 2, "--csv") && !is_problem(line, 2, "--csv --raw"), "{line}");
    }
    for line in [
        "\"C:\\\",\"D:\\\",\"say \"\"hi\"\"\"",
        "1,'s",
        "1,'a'",
        "1,5\" pipe\r",
        "\"\",\"\"",
        "\"\"\"a\",\"b\"\"\"\r",
    ] {
        assert!(!is_problem(line, 2, "--csv"), "{line}");
    }
}

/// Files whose writers quote in another way: two records would have equal fields, and one be lost.
#[test]
fn csv_with_other_quotes_is_refused() {
    let dir = Dir::new();
    for (table, part) in [
        (
            "1,\"Smith\\\", John\"\n2,\"Smith\\\", Anna\"\n",
            "record 1: a backslash before the quote of field 2",
        ),
        ("1,a\n2,\"Smith\"son\n", "record 2: text after the quote of field 2"),
        ("1,'Smith, John'\n2,'Smith, Anna'\n", "record 1: an apostrophe as the quote of field 2"),
    ] {
        assert_parts(&dir.fails_with("dedup -q --field 2 --csv", table), &[part, "--raw"]);
        assert_eq!(dir.run_with("dedup -q --field 2 --csv --raw", table).status.code(), Some(0));
    }
    let town = "1,'s-Hertogenbosch,NL\n2,'t Zand,NL\n3,O'Hara,IE\n";
    assert_eq!(text(dir.ok_with("dedup -q --field 2 --csv", town)), town);
    // Quotes and apostrophes within one field do not enclose parts of others.
    let paths = "1,\"5\"\" disk C:\\\",NL\n2,\"D:\\\",IE\n3,'Ann' ,IE\n";
    assert_eq!(text(dir.ok_with("dedup -q --field 2 --csv", paths)), paths);
}

/// Columns that blanks align: the delimiter cuts empty fields, and all lines but one would be lost.
#[test]
fn fields_that_are_empty_in_most_lines_are_refused() {
    let dir = Dir::new();
    let table = "1   Smith\n22  Anna\n333 John\n";
    dir.write("table", table);
    for options in ["", "--csv"] {
        let mut command = Command::new(TOOL);
        let args = ["dedup", "-q", "--field", "2", "--delimiter", " ", "table"];
        command.args(args).args(options.split_whitespace()).current_dir(dir.0.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{options}");
        assert_parts(&stderr(&output), &["2 of the first 3 lines have no field 2 with --delimit"]);
    }
    let output = dir.run_with("dedup -q --field 2 --delimiter ,", "a,1\nb,\nc,2\nd,\ne,3\n");
    assert_eq!(text(output.stdout.clone()), "a,1\nb,\nc,2\ne,3\n");
    assert_parts(
        &stderr(&output),
        &["2 of 5 lines have no field 2: of those only the first is new"],
    );
}

/// Records over many pieces of the input: nothing is lost, and a set agrees.
#[test]
fn large_csv_is_divided_as_it_should_be() {
    let dir = Dir::new();
    let name = |i: usize| format!("name, {}\n{}", i % 7_000, "x".repeat(i % 90));
    let record = |i: usize| format!("{i},\"{}\",{}\n", name(i % 9_000), "\"\"".repeat(i % 3));
    let table: String = (0..20_000).map(record).collect();
    let expected: String = (0..9_000).map(record).collect();
    let found = text(dir.ok_with("dedup -q --fpr 1e-8 --field 2 --csv", &table));
    assert!(found == expected);
    let long = format!("1,\"{}\"\n2,b\n", "long\n".repeat(200_000));
    assert_eq!(text(dir.ok_with("dedup -q --field 2 --csv", &long)), long);
    let message = dir.fails_with("dedup -q --field 2 --csv --max-line-bytes 600K", &long);
    assert_parts(&message, &["record 1: ", "--max-line-bytes"]);
}

#[test]
fn lines_that_end_in_carriage_returns_are_refused() {
    let parts = ["one line with 2 carriage returns in it", r"`tr '\r' '\n'`", "--raw"];
    is_refused(b"apple\rbanana\rcherry\r", "", &parts);
    is_refused(b"apple\rbanana\rcherry", "", &parts);
}

#[test]
fn one_line_is_refused_with_the_option_null() {
    for file in [&b"apple\n"[..], b"apple\nbanana"] {
        is_refused(file, "--null", &["no NUL byte and 1 line feed:", "leave out --null"]);
    }
}

#[test]
fn utf_16_of_more_than_ascii_is_refused_with_the_option_null() {
    let units = "apple 5€\nbanana\n".encode_utf16();
    let file: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    is_refused(&file, "--null", &["looks like UTF-16 text", "iconv -f UTF-16LE"]);
}

#[test]
fn utf_16_without_ascii_is_refused_with_the_option_null() {
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        for text in ["\u{4e2d}\u{6587}\n", "\u{44f}\u{431}\n\u{4e0a}\u{4e00}\r\n\n"] {
            let file: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
            is_refused(&file, "--null", &["looks like UTF-16 text", "iconv -f UTF-16LE"]);
        }
    }
    // Keys with line feeds in them, and at their ends.
    let dir = Dir::new();
    for list in ["a\nb\0cd\ne\0", "ab\n\0c\n\0d\n\0", "one\n\0three\n\0four\n\0"] {
        assert_eq!(text(dir.ok_with("dedup -q --null", list)), list);
        dir.ok_with("build - -q -o f --null", list);
        assert_eq!(text(dir.ok_with("query f --null", list)), list);
    }
}

/// A pipe that delivers a file in pieces: the positions of bytes are those in the file.
#[test]
fn utf_16_from_a_slow_pipe_is_refused_with_the_option_null() {
    let dir = dir();
    let script = "printf '\\055\\116a\\0'; sleep 0.3; printf 'b\\0\\12\\0'";
    for command in ["build --null - -o g", "query --null f"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("({script}) | \"$TOOL\" {command}")]).env("TOOL", TOOL);
        let output = shell.current_dir(dir.0.path()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_parts(&stderr(&output), &["looks like UTF-16 text"]);
    }
}

#[test]
fn other_encodings_are_warned_of() {
    let dir = Dir::new();
    dir.ok_with("build - -o f -q", "gr\u{fc}n\nrot\n");
    let output = dir.run_with("query f", b"gr\xfcn\nrot\n");
    assert_eq!(text(output.stdout.clone()), "rot\n");
    let parts = ["1 of 2 keys are not UTF-8, and are hashed as they are", "iconv -f WINDOWS-1252"];
    assert_parts(&stderr(&output), &parts);
    assert_parts(&stderr(&dir.run_with("build - -o g -q", b"gr\xfcn\nrot\n")), &parts);
    assert_eq!(stderr(&dir.run_with("build - -o g -q --raw", b"gr\xfcn\n")), "");
    assert_eq!(stderr(&dir.run_with("query f", "gr\u{fc}n\n")), "");
}

#[test]
fn a_text_of_another_encoding_is_warned_of() {
    let dir = Dir::new();
    dir.write("t", b"gr\xfcn\nrot\r\n\xff\xfd\x01\n");
    let parts = ["t: 2 of 3 lines are not UTF-8, and are hashed as they are", "iconv -f WINDOWS"];
    for options in ["", "--items 9"] {
        let output = dir.run(&format!("planes build -q t {options}"));
        assert_eq!(output.status.code(), Some(0));
        // Once, though the text is read twice; the carriage return is not part of a word.
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        assert_parts(&stderr(&output), &parts);
    }
    assert_eq!(stderr(&dir.run("planes build -q t --raw")), "");
    dir.write("t", "gr\u{fc}n\nrot\r\n");
    assert_eq!(stderr(&dir.run("planes build -q t")), "");
    let piped = dir.run_with("planes build -q --items 9 - -o p", b"gr\xfcn\n");
    assert_parts(&stderr(&piped), &["standard input: 1 of 1 lines are not UTF-8"]);
    // Keys of a diagnosis are keys, too.
    dir.ok_with("build - -o nb-1-big-Filter.db -q --format cassandra", "gr\u{fc}n\n");
    let output = dir.run_with("diagnose nb-1-big-Filter.db -", b"gr\xfcn\n");
    assert_parts(&stderr(&output), &["1 of 1 keys are not UTF-8"]);
}

#[test]
fn words_that_begin_other_formats_are_keys() {
    let dir = Dir::new();
    let keys = "ORC\napple\n";
    dir.ok_with("build - -o f -q", keys);
    assert_eq!(text(dir.ok_with("query f", keys)), keys);
}

#[test]
fn every_test_of_the_table_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/testing.md")).unwrap();
    let (_, section) = page.split_once("## Text encodings and containers").unwrap();
    let (table, _) = section.split_once("\n## ").unwrap();
    let tests: String = ["encodings", "types", "dedup", "planes"]
        .map(|name| fs::read_to_string(root.join(format!("tests/suite/{name}.rs"))).unwrap())
        .concat();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 20, "{rows:?}");
    for row in &rows[1..] {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in cell.split(", ") {
            let test = format!("#[test]\nfn {}()", name.trim_matches('`'));
            assert!(tests.contains(&test), "{row}: no test {name}");
        }
    }
}
