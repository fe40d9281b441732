//! The command-line tool and the filters of Parquet: the answers that arrow-rs, Arrow C++ and
//! parquet-mr gave, values by their types, the description of each file, and errors.

use std::collections::BTreeMap;
use std::fs;

use blocked_bloom_split::SplitBlockFilter;
use serde_json::Value;

use crate::fixtures::{committed, unhex};
use crate::tool::{self, Dir, assert_parts, lines, stderr, text, words};

const FILES: [&str; 5] = [
    "arrowrs_n3000_ndv3000",
    "duckdb_n3000",
    "mr_n100_ndv100",
    "pyarrow_n5000_ndv5000_fpp0.01_2rg",
    "pyarrow_special",
];

const ROW_GROUP_PAIR: &str = "pyarrow_n5000_ndv5000_fpp0.01_2rg";

fn file(name: &str) -> String {
    committed("parquet").join(format!("{name}.parquet")).display().to_string()
}

/// Values of a column in hexadecimal digits, each with the answer of each row group's filter.
type Answers = Vec<(String, Vec<bool>)>;

fn answers(name: &str) -> BTreeMap<String, Answers> {
    let csv = fs::read_to_string(committed("parquet").join(format!("{name}.csv"))).unwrap();
    let mut columns: BTreeMap<String, Answers> = BTreeMap::new();
    for row in csv.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [_, column, _, key, _, expected] = cells[..] else { panic!("{row}") };
        let expected = expected.bytes().map(|answer| answer == b'1').collect();
        columns.entry(column.to_owned()).or_default().push((key.to_owned(), expected));
    }
    columns
}

#[track_caller]
fn assert_selected(dir: &Dir, query: &str, stdin: &str, expected: &str) {
    let output = dir.run_with(query, stdin);
    assert!(text(output.stdout.clone()) == expected, "{query}: {}", stderr(&output));
    assert_eq!(output.status.code(), Some(i32::from(expected.is_empty())), "{query}");
}

fn to_lines<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    keys.map(|key| format!("{key}\n")).collect()
}

#[test]
fn columns_answer_as_in_other_readers() {
    let dir = Dir::new();
    let mut columns = 0;
    for name in FILES {
        for (column, answers) in answers(name) {
            let query = format!("query {} --hex --column {column}", file(name));
            let stdin = to_lines(answers.iter().map(|(key, _)| key));
            let of = |is_hit: &dyn Fn(&[bool]) -> bool| {
                let hits = answers.iter().filter(|(_, groups)| is_hit(groups));
                to_lines(hits.map(|(key, _)| key))
            };
            for group in 0..answers[0].1.len() {
                let query = format!("{query} --row-group {group}");
                assert_selected(&dir, &query, &stdin, &of(&|groups| groups[group]));
            }
            let any = of(&|groups| groups.contains(&true));
            let none = of(&|groups| !groups.contains(&true));
            assert_selected(&dir, &query, &stdin, &any);
            assert_selected(&dir, &format!("{query} --absent"), &stdin, &none);
            columns += 1;
        }
    }
    assert!(columns > 30, "{columns}");
}

#[test]
fn numbers_are_written_in_decimal() {
    let dir = Dir::new();
    let columns = answers(ROW_GROUP_PAIR);
    let decimal = |column: &str, bytes: &[u8]| match column {
        "i64" => i64::from_le_bytes(bytes.try_into().unwrap()).to_string(),
        "i32" => i32::from_le_bytes(bytes.try_into().unwrap()).to_string(),
        "f64" => f64::from_le_bytes(bytes.try_into().unwrap()).to_string(),
        "f32" => f32::from_le_bytes(bytes.try_into().unwrap()).to_string(),
        _ => String::from_utf8(bytes.to_vec()).unwrap(),
    };
    for column in ["i64", "i32", "f64", "f32", "str"] {
        // Keys of any bytes are looked up by --hex, above.
        let is_text = |key: &str| column != "str" || String::from_utf8(unhex(key)).is_ok();
        let answers = columns[column].iter().filter(|(key, _)| is_text(key));
        let answers: Vec<&(String, Vec<bool>)> = answers.collect();
        assert!(answers.len() > 300);
        let write = |(key, _): &&(String, Vec<bool>)| decimal(column, &unhex(key)) + "\n";
        let stdin: String = answers.iter().map(write).collect();
        let hits = answers.iter().filter(|(_, groups)| groups.contains(&true));
        let expected: String = hits.map(write).collect();
        assert!(!expected.is_empty() && expected != stdin);
        let query = format!("query {} --column {column}", file(ROW_GROUP_PAIR));
        assert_selected(&dir, &query, &stdin, &expected);
    }
    // The bits of unsigned columns: -1 as i32 and i64.
    dir.ok_with("build - -o f --format parquet-filter --type int32", "4294967295\n");
    assert_selected(&dir, "query f --type int32", "-1\n4294967295\n1\n", "-1\n4294967295\n");
    dir.ok_with("build - -o f --format parquet-filter --type int64", "18446744073709551615\n");
    assert_selected(&dir, "query f --type int64", "-1\n1\n", "-1\n");
}

#[test]
fn zeros_are_equal_and_nan_is_an_error() {
    let dir = Dir::new();
    for (values, physical_type) in [("0.0\n", "double"), ("-0\n", "float")] {
        dir.ok_with(
            &format!("build - -o f --format parquet-filter --type {physical_type}"),
            values,
        );
        let query = format!("query f --type {physical_type}");
        assert_selected(&dir, &query, "0\n-0\n1\ninf\n0.0\n", "0\n-0\n0.0\n");
        assert_parts(&dir.fails_with(&query, "1\nNaN\n"), &["line 2: found 'NaN'", "--hex"]);
        assert_parts(&dir.fails_with(&query, "1e999\n"), &["line 1: ", "range"]);
    }
    // By its bytes, one zero is not the other.
    dir.ok_with("build - -o f --format parquet-filter --type float --hex", "00000080\n");
    assert_selected(&dir, "query f --type float --hex", "00000080\n00000000\n", "00000080\n");
    let special = format!("query {} --column d", file("pyarrow_special"));
    assert_selected(
        &dir,
        &special,
        "0\n-0\ninf\n-inf\n1.5\n2.5\n5e-324\n",
        "0\n-0\ninf\n-inf\n1.5\n5e-324\n",
    );
}

#[test]
fn values_that_are_none_are_located() {
    let dir = Dir::new();
    let query = |column: &str| format!("query {} --column {column}", file(ROW_GROUP_PAIR));
    for (query, stdin, parts) in [
        (query("i64"), "1\n2\nx\n", ["line 3: found 'x'", "9223372036854775807"]),
        (query("i32"), "1\n4294967296\n", ["line 2: ", "2147483647"]),
        (query("i32"), "1.5\n", ["line 1: ", "2147483647"]),
        (query("i64"), "\n", ["line 1: found ''", "9223372036854775807"]),
        (query("f64"), "1\r\n", [r"line 1: found '1\r'", "DOUBLE"]),
        (query("i64") + " --hex", "00\n", ["line 1: found 1 bytes", "INT64"]),
        (query("fsb"), "12345\n123456\n", ["line 2: a value of 6 bytes", "have 5"]),
        (query("fsb") + " --hex", "3132333435\n\n", ["line 2: a value of 0 bytes", "have 5"]),
    ] {
        assert_parts(&dir.fails_with(&query, stdin), &parts);
    }
    let message =
        dir.fails_with("build - -o f --format parquet-filter --type int32", "1\n1\n2 3\n");
    assert_parts(&message, &["standard input: line 3: found '2 3'"]);
    let message = dir.fails_with("build - -o f --format parquet-filter --type int96", "1\n");
    assert_parts(&message, &["line 1: ", "INT96", "--hex"]);
    assert!(dir.names().is_empty());
    // Far from the start of a batch, too.
    let stdin = lines("", 5_000) + "end\n";
    assert_parts(&dir.fails_with(&query("i64"), &stdin), &["line 5001: found 'end'"]);
}

#[test]
fn a_lookup_without_a_filter_is_warned_of() {
    let dir = Dir::new();
    let two = file(ROW_GROUP_PAIR);
    let names = "columns with filters are i64, i32, f64, f32, str, fsb, nulls, lst.list.element";
    assert_parts(&dir.fails(&format!("query {two}")), &["give --column", names]);
    let message = dir.fails(&format!("query {two} --column id"));
    assert_parts(&message, &["no column \"id\"", names]);
    let message = dir.fails(&format!("query {two} --column i64 --row-group 2"));
    assert_parts(&message, &["no row group 2", "there are 2"]);
    let message = dir.fails(&format!("query {two} --column i64 --type int32"));
    assert_parts(&message, &["values of INT64, not INT32"]);
    let without = dir.run_with(&format!("query {two} --column nobloom"), "1\n");
    assert_eq!((without.status.code(), &without.stdout[..]), (Some(0), &b"1\n"[..]));
    assert_parts(&stderr(&without), &["warning: ", "no filter in row group 0, 1", names]);

    let bare = committed("parquet/raw").join("arrowrs_ndv900_fpp0.01.sbbf").display().to_string();
    for (option, formats) in
        [("--column a", "file-index and parquet"), ("--row-group 0", "parquet")]
    {
        let message = dir.fails(&format!("query {bare} {option}"));
        assert_parts(&message, &[&format!("is for {formats}, not for parquet-filter")]);
    }
    // Without the type, 1 as text would be absent from a filter of numbers that has it.
    assert_parts(&dir.fails_with(&format!("query {bare}"), "1\n"), &["give --type", "int64"]);
    dir.ok_with("build - -o native", "a\n");
    for option in ["--column a", "--row-group 0", "--type double"] {
        assert_parts(&dir.fails(&format!("query native {option}")), &["not for native"]);
    }
    assert_eq!(dir.run("query native --type int33").status.code(), Some(2));
}

#[test]
fn bare_filters_answer_as_in_other_readers() {
    let dir = Dir::new();
    let folder = committed("parquet/raw");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let keys = read("keys_added.hex") + &read("keys_absent.hex");
    for row in read("answers.csv").lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let query = format!("query {} --type byte-array --hex", folder.join(cells[0]).display());
        // Trailing bytes are ignored by one of the readers, and an error here.
        if cells[1].starts_with("ERR") || cells[0] == "odd_trailing.sbbf" {
            dir.fails(&query);
            dir.fails(&format!("{query} --format parquet-filter"));
            continue;
        }
        let answers = if cells[1] == "ok" { cells[2] } else { cells[1] };
        let hits = keys.lines().zip(answers.bytes()).filter(|(_, answer)| *answer == b'1');
        let expected: String = hits.map(|(key, _)| format!("{key}\n")).collect();
        let stdin: String =
            keys.lines().take(answers.len()).map(|key| format!("{key}\n")).collect();
        assert_selected(&dir, &query, &stdin, &expected);
    }
}

#[test]
fn info_of_filters_and_files() {
    let dir = Dir::new();
    let two = dir.info(&file(ROW_GROUP_PAIR));
    assert_eq!((&two["format"], &two["rows"]), (&"parquet".into(), &5_000.into()));
    assert_eq!((&two["row_groups"], &two["filters"]), (&2.into(), &16.into()));
    let columns = two["column_chunks"].as_array().unwrap();
    assert_eq!(columns.len(), 18);
    // Column by column, as the file has them.
    let list = &columns[2 * 7 + 1];
    for (field, value) in [
        ("row_group", Value::from(1)),
        ("column", "lst.list.element".into()),
        ("type", "INT32".into()),
        ("filter_length", (16 + 4_096).into()),
        ("blocks", 128.into()),
        ("error", Value::Null),
    ] {
        assert_eq!(list[field], value, "{field}");
    }
    assert_eq!((&columns[16]["column"], &columns[16]["blocks"]), (&"nobloom".into(), &Value::Null));
    // Against the answers about values that are in no row group: 49 + 33 + 2 * 2 of 2 * 2400.
    let rate = columns[0]["estimated_false_positive_rate"].as_f64().unwrap();
    assert!((0.002..0.006).contains(&rate), "{rate}");
    let table = text(dir.ok(&format!("info {}", file(ROW_GROUP_PAIR))));
    assert_eq!(table.lines().filter(|line| line.ends_with("no filter")).count(), 2);
    assert_parts(&table, &["16, with bitsets of", "lst.list.element", "FIXED_LEN_BYTE_ARRAY"]);

    let folder = committed("parquet/raw");
    let bare = folder.join("arrowrs_ndv900_fpp0.01.sbbf");
    let info = dir.info(&bare.display().to_string());
    let bytes = fs::read(&bare).unwrap();
    let filter = SplitBlockFilter::from_bytes(&bytes).unwrap();
    assert_eq!((&info["format"], &info["blocks"]), (&"parquet-filter".into(), &64.into()));
    assert_eq!(info["fill_ratio"], filter.fill_ratio());
    assert_eq!(info["estimated_false_positive_rate"], filter.estimated_false_positive_rate());
    let odd = folder.join("odd_blocks3.sbbf").display().to_string();
    assert_parts(&text(dir.ok(&format!("info {odd}"))), &["3 of 32 bytes", "some readers reject"]);
}

#[test]
fn damage_is_an_error_and_no_answer() {
    let dir = Dir::new();
    let bytes = fs::read(file(ROW_GROUP_PAIR)).unwrap();
    dir.write("short", &bytes[..bytes.len() - 1]);
    dir.write("head", &bytes[..100]);
    for name in ["short", "head"] {
        let message = dir.fails(&format!("query {name} --column i64"));
        assert_parts(&message, &[&format!("{name}: no Parquet file"), "read as parquet"]);
    }
    // One filter's header: the others are described, and queried.
    let offset =
        dir.info(&file(ROW_GROUP_PAIR))["column_chunks"][0]["filter_offset"].as_u64().unwrap();
    let mut damaged = bytes;
    damaged[offset as usize] ^= 0xff;
    dir.write("damaged", &damaged);
    for option in ["", "--json"] {
        let output = dir.run(&format!("info damaged {option}"));
        assert_eq!(output.status.code(), Some(2));
        assert_parts(&stderr(&output), &["damaged: i64, row group 0: ", "\"absent\""]);
        assert_parts(&text(output.stdout), &["lst.list.element"]);
    }
    let message = dir.fails_with("query damaged --column i64", "1\n");
    assert_parts(&message, &["column \"i64\", row group 0: ", "--row-group", "read as parquet"]);
    dir.fails_with("query damaged --column i64 --row-group 0", "1\n");
    assert_selected(&dir, "query damaged --column i64 --row-group 1", "-997\n", "");
    let sound = dir.run_with("query damaged --column i32 --count", "");
    assert_eq!((sound.status.code(), text(sound.stdout)), (Some(1), "0\n".to_owned()));
}

#[test]
fn filters_are_built() {
    let dir = Dir::new();
    dir.write("words", words());
    let built = dir.run("build words --format parquet-filter --verify");
    assert_parts(
        &stderr(&built),
        &["words.sbbf: parquet-filter, 104334 distinct values of BYTE_ARRAY (no --type given), \
             4096"],
    );
    let mut filter = SplitBlockFilter::new(104_334, 0.01).unwrap();
    for word in words().lines() {
        filter.insert(word);
    }
    assert!(dir.read("words.sbbf") == filter.to_bytes());
    assert!(dir.ok("query words.sbbf words --type byte-array") == words().as_bytes());
    let others: String = words().lines().map(|word| format!("{word}_\n")).collect();
    let hits = text(dir.ok_with("query words.sbbf --count --type byte-array", others));
    let rate = hits.trim_end().parse::<f64>().unwrap() / 104_334.0;
    let estimated = dir.info("words.sbbf")["estimated_false_positive_rate"].as_f64().unwrap();
    assert!((rate / estimated - 1.0).abs() < 0.2, "{rate}, {estimated}");

    // Byte for byte what arrow-rs wrote for the same number of values, the same rate and the same
    // keys.
    let folder = committed("parquet/raw");
    let keys = folder.join("keys_added.hex").display().to_string();
    for (values, rate) in [(900, "0.01"), (10_000, "0.001"), (100, "0.5")] {
        dir.ok(&format!(
            "build {keys} --hex --format parquet-filter --keys {values} --fpr {rate} -o built \
             --oversized"
        ));
        let theirs = fs::read(folder.join(format!("arrowrs_ndv{values}_fpp{rate}.sbbf"))).unwrap();
        assert!(dir.read("built") == theirs, "{values} values");
        // Otherwise it is folded as Arrow does, to what fewer values need.
        dir.ok(&format!(
            "build {keys} --hex --format parquet-filter --keys {values} --fpr {rate} -o folded"
        ));
        let unfolded = SplitBlockFilter::from_bytes(&theirs[..]).unwrap();
        let mut folded = unfolded.to_filter().unwrap();
        let by = folded.shrink_to_false_positive_rate(rate.parse().unwrap());
        assert_eq!(by > 1, values == 10_000, "{values} values");
        assert!(dir.read("folded") == folded.to_bytes(), "{values} values");
    }
    // Equal values count once.
    dir.ok_with("build - -o twice --format parquet-filter", lines("a", 100).repeat(3));
    assert_eq!(dir.read("twice").len(), 16 + 4 * 32);
    let over = dir.run_with("build - -o over --format parquet-filter --keys 9 -q", lines("a", 10));
    assert_parts(
        &stderr(&over),
        &["warning: standard input: 10 keys were read, more than the 9 of --keys"],
    );
    dir.ok_with("build - -o none --format parquet-filter", "");
    assert_selected(&dir, "query none --type byte-array", "a\n", "");

    // The largest filter there is.
    for (values, rate, is_warned) in
        [("104M", "1%", false), ("200M", "1%", true), ("200M", "20%", false)]
    {
        let args = format!("--format parquet-filter --keys {values} --fpr {rate} -o most -q");
        let warning = stderr(&dir.run_with(&format!("build - {args}"), "a\n"));
        assert_eq!(warning.contains("largest filter"), is_warned, "{values}, {rate}: {warning}");
        if is_warned {
            assert_parts(&warning, &["warning: ", "134217728 bytes", "not 1.000 %"]);
        }
    }

    for (args, parts) in [
        ("--format parquet-filter --fpr 1", ["false-positive rate 1", "above 0 and below 1"]),
        ("--format parquet-filter --bits-per-key 10", ["--bits-per-key", "not for parquet-filter"]),
        ("--type double", ["--type: not for native", "uuid, int64"]),
    ] {
        assert_parts(&dir.fails(&format!("build words -o f {args}")), &parts);
    }
    let output = dir.run("build words -o f --format parquet");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&stderr(&output), &["'parquet' for '--format", "parquet-filter"]);
}

/// A column's name is whatever the file says.
#[test]
fn names_do_not_steer_the_terminal() {
    let dir = Dir::new();
    let mut bytes = fs::read(file(ROW_GROUP_PAIR)).unwrap();
    let names: Vec<usize> =
        (0..bytes.len() - 7).filter(|&at| &bytes[at..at + 7] == b"nobloom").collect();
    for at in names {
        bytes[at] = 0x1b;
    }
    dir.write("steering", &bytes);
    assert_parts(&text(dir.ok("info steering")), &[r"\u{1b}obloom"]);
    let output = dir.run("info steering --json");
    assert!(!output.stdout.contains(&0x1b));
}

#[cfg(unix)]
#[test]
fn pipes_are_recognised_by_their_first_bytes() {
    let dir = Dir::new();
    dir.ok_with("build - -o f --format parquet-filter", "a\n");
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).env("TOOL", tool::TOOL).env("FILE", file("duckdb_n3000"));
        command.current_dir(dir.0.path()).output().unwrap()
    };
    let whole = shell("cat \"$FILE\" | \"$TOOL\" info /dev/stdin");
    assert_eq!((whole.status.code(), stderr(&whole)), (Some(0), String::new()));
    let bare = shell("cat f | \"$TOOL\" info /dev/stdin");
    assert_parts(&text(bare.stdout), &["parquet-filter", "1 of 32 bytes"]);
    let endless = shell("(cat f; cat /dev/zero) | \"$TOOL\" info /dev/stdin");
    assert_eq!(endless.status.code(), Some(2));
    assert_parts(&stderr(&endless), &["expected 47", "followed by other bytes"]);
}

#[test]
fn values_of_logical_types_are_found() {
    let dir = Dir::new();
    let name = file("typed/logical");
    let uuid = format!("{:032x}\n", 7 * 0x0123_4567_89ab_cdef_0011_u128);
    let absent = "00112233-4455-6677-8899-aabbccddeeff\n";
    for option in ["", " --type uuid", " --type fixed-len-byte-array"] {
        let found =
            dir.ok_with(&format!("query {name} --column id{option}"), uuid.clone() + absent);
        assert_eq!(text(found), uuid, "{option}");
    }
    let fixed = "07".repeat(16) + "\n";
    assert_eq!(
        text(dir.ok_with(&format!("query {name} --column fixed --type uuid"), &fixed)),
        fixed
    );
    let message = dir.fails_with(&format!("query {name} --column price --type uuid"), absent);
    assert_parts(&message, &["INT32"]);
    let info = text(dir.ok(&format!("info {name}")));
    assert_parts(&info, &["FIXED_LEN_BYTE_ARRAY UUID", "INT32 DECIMAL(9,2)"]);
}

/// If schema and columns disagree, a number may be a decimal.
#[test]
fn numbers_without_a_known_meaning_are_refused() {
    let dir = Dir::new();
    let mut bytes = fs::read(file("typed/logical")).unwrap();
    // The physical type of the leaf, OPTIONAL, and its name.
    let leaf = b"\x15\x02\x25\x02\x18\x05price";
    let at = bytes.windows(leaf.len()).position(|found| found == leaf).unwrap();
    bytes[at + 1] = 4;
    dir.write("odd", &bytes);
    let message = dir.fails_with("query odd --column price", "5\n");
    assert_parts(&message, &["line 1: found '5', expected a value of an unknown logical type"]);
    assert_eq!(text(dir.ok_with("query odd --column price --hex", "05000000\n")), "05000000\n");
}
