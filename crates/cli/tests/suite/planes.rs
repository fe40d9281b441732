//! `blocked-bloom planes`: built, queried by ranges and described as a user does it; damage is an
//! error.

use std::collections::BTreeSet;

use crate::fixtures::committed;
use crate::tool::{Dir, assert_parts, lines, stderr, text};

/// 5,000 lines, of which every 700th names a rare word.
fn log() -> String {
    let line = |i: usize| match i % 700 {
        5 => format!("t={i} ERROR timeout_{i} of disk\n"),
        _ => format!("t={i} INFO request {} served\n", i * 31 % 1_000),
    };
    (0..5_000).map(line).collect()
}

#[test]
fn every_row_that_has_the_words_is_printed() {
    let dir = Dir::new();
    dir.write("app.log", log());
    let output = dir.run("planes build --lines 50 app.log");
    assert_eq!(output.status.code(), Some(0));
    let summary = stderr(&output);
    assert!(
        summary.starts_with("app.log.planes: ") && summary.contains("planes for 1"),
        "{summary}"
    );
    for (words, any) in [
        ("ERROR disk", false),
        ("timeout_2105", false),
        ("served", false),
        ("timeout_705 timeout_2805", true),
    ] {
        let any = if any { "--any " } else { "" };
        let rows = text(dir.ok(&format!("planes query {any}app.log.planes {words}")));
        let rows: BTreeSet<usize> = rows.lines().map(|row| row.parse().unwrap()).collect();
        let has = |line: &str| {
            let mut found = words.split(' ').map(|word| line.split(' ').any(|other| other == word));
            if any.is_empty() { found.all(|found| found) } else { found.any(|found| found) }
        };
        let log = log();
        let expected: BTreeSet<usize> =
            log.lines().enumerate().filter(|(_, line)| has(line)).map(|(i, _)| i / 50).collect();
        assert!(!expected.is_empty() && rows.is_superset(&expected), "{words}: {rows:?}");
        assert!(rows.len() <= expected.len() + 2, "{words}: {rows:?}");
        let count = text(dir.ok(&format!("planes query --count {any}app.log.planes {words}")));
        assert_eq!(count, format!("{}\n", rows.len()));
    }
    let lines = text(dir.ok("planes query --sed app.log.planes timeout_2105"));
    assert_eq!(text(dir.ok("planes query --lines 50 app.log.planes timeout_2105")), lines);
    assert!(lines.lines().any(|line| line == "2101,2150p"), "{lines}");

    let absent = dir.run("-v planes query app.log.planes no_such_word nor_this_one");
    assert_eq!((absent.status.code(), absent.stdout.len()), (Some(1), 0));
    let read: Vec<u64> = stderr(&absent).split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(read[0] * 20 < read[1], "{read:?}");
}

#[test]
fn an_index_of_standard_input_is_that_of_the_file() {
    let dir = Dir::new();
    dir.write("app.log", log());
    dir.ok("planes build -q --items 200 --fpr 1% --tag 7 app.log");
    let args = "planes build -q --items 200 --fpr 1% --tag 7 - -o piped.planes";
    let piped = dir.run_with(args, log());
    assert_eq!(piped.status.code(), Some(0));
    assert_eq!(dir.read("piped.planes"), dir.read("app.log.planes"));
    for args in ["planes build -", "planes build - --items 9", "planes build - -o out.planes"] {
        assert!(dir.fails(args).contains("--items"));
    }
}

#[test]
fn info_verifies_and_damage_is_an_error() {
    let dir = Dir::new();
    dir.write("app.log", log());
    dir.ok("planes build -q app.log");
    let facts: serde_json::Value =
        serde_json::from_slice(&dir.ok("planes info --json app.log.planes")).unwrap();
    assert_eq!((&facts["rows"], &facts["groups"]), (&50.into(), &1.into()));
    assert_eq!(facts["stored_bytes"], dir.read("app.log.planes").len());
    assert!(text(dir.ok("planes info app.log.planes")).contains("all right"));

    let whole = dir.read("app.log.planes");
    for at in [3, 100, whole.len() - 100, whole.len() - 3] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        dir.write("damaged.planes", bytes);
        assert!(dir.fails("planes info damaged.planes").starts_with("damaged.planes: "));
    }
    let mut bytes = whole.clone();
    bytes[64..whole.len() - 128].iter_mut().step_by(72).for_each(|byte| *byte ^= 1);
    dir.write("damaged.planes", bytes);
    assert!(dir.fails("planes query damaged.planes served").contains("plane"));
    for length in [0, 10, 64, whole.len() - 1] {
        dir.write("damaged.planes", &whole[..length]);
        assert!(dir.fails("planes query damaged.planes served").starts_with("damaged.planes: "));
        assert!(dir.fails("planes info damaged.planes").starts_with("damaged.planes: "));
    }
    assert!(dir.fails("planes query missing.planes word").contains("cannot open"));
    dir.write("long.log", "x".repeat(200));
    assert!(
        dir.fails("planes build --max-key-bytes 64 --items 5 long.log").contains("--max-key-bytes")
    );
    assert!(!dir.names().contains(&"long.log.planes".to_owned()));
}

/// A log whose rows of ten lines each have words of their own, between characters that divide
/// words.
const TOKENS: [&str; 6] =
    ["node-3", "/api/v1", "alice@example.com", "err-code=17", "disk_full", "gr\u{fc}n"];

fn divided_log() -> String {
    let line = |i: usize| match TOKENS.get(i / 10) {
        Some(token) if i % 10 == 4 => format!("INFO id{i} {token}\n"),
        _ => format!("INFO id{i} idle\n"),
    };
    (0..60).map(line).collect()
}

#[test]
fn words_of_a_query_are_divided_as_the_text_was() {
    let dir = Dir::new();
    dir.write("app.log", divided_log());
    dir.ok("planes build -q --lines 10 --fpr 0.001% app.log");
    for (row, token) in TOKENS.into_iter().enumerate() {
        for any in ["", "--any "] {
            let found = text(dir.ok(&format!("planes query {any}app.log.planes {token}")));
            assert_eq!(found, format!("{row}\n"), "{any}{token}");
        }
    }
    // All of the words of each, of one or of the other; of a row that has one half, neither.
    assert_eq!(text(dir.ok("planes query --any app.log.planes node-3 err-code=17")), "0\n3\n");
    assert_eq!(dir.run("planes query app.log.planes node-3 err-code=17").status.code(), Some(1));
    assert_eq!(dir.run("planes query --any app.log.planes node-17 api=3").status.code(), Some(1));
    assert_parts(&dir.fails("planes query app.log.planes INFO --any -- -"), &["no word in '-'"]);
}

#[test]
fn an_index_knows_the_lines_of_its_rows() {
    let dir = Dir::new();
    dir.write("app.log", divided_log());
    dir.ok("planes build -q --lines 10 app.log");
    assert_eq!(text(dir.ok("planes query --sed app.log.planes err-code")), "31,40p\n");
    assert_eq!(text(dir.ok("planes query --lines 10 app.log.planes err-code")), "31,40p\n");
    assert_parts(
        &dir.fails("planes query --lines 5 app.log.planes err-code"),
        &["app.log.planes: ", "rows are of 10 lines, not 5"],
    );
    let facts = dir.info("app.log.planes");
    assert_eq!((&facts["lines_in_a_row"], &facts["tokenizer"]), (&10.into(), &"words".into()));
    for lines in ["0", "4294967296", "-1"] {
        let output = dir.run(&format!("planes build --lines {lines} app.log -o x"));
        assert_eq!(output.status.code(), Some(2), "{lines}");
        assert_parts(&stderr(&output), &["'--lines <N>'"]);
    }
}

/// Rows are numbered, and counted, over all groups.
#[test]
fn rows_of_every_group_are_printed() {
    let dir = Dir::new();
    let options = blocked_bloom_planes::Shape::for_rate(2, 0.000_01).unwrap();
    let options = blocked_bloom_planes::PlanesOptions::new(options).with_group_rows(512).unwrap();
    let hasher = options.hasher().unwrap();
    let rows = (0..1_300_u32).map(|row| [hasher.hash(format!("item_{row}")), hasher.hash("all")]);
    let planes = blocked_bloom_planes::Planes::from_hashes(&options, rows).unwrap();
    assert_eq!(planes.layout().groups(), 3);
    dir.write("f.planes", planes.as_bytes());
    for row in [0, 511, 512, 513, 1_023, 1_024, 1_299] {
        let found = text(dir.ok(&format!("planes query f.planes item_{row}")));
        assert_eq!(found, format!("{row}\n"));
        let lines = text(dir.ok(&format!("planes query f.planes --lines 10 item_{row}")));
        assert_eq!(lines, format!("{},{}p\n", 10 * row + 1, 10 * row + 10));
    }
    let all: String = (0..1_300).map(|row| format!("{row}\n")).collect();
    assert_eq!(text(dir.ok("planes query f.planes all")), all);
    assert_eq!(text(dir.ok("planes query f.planes all --count")), "1300\n");
}

/// An index of version 1 says nothing of its text: no row of it is lost.
#[test]
fn an_index_of_the_first_version_is_queried_for_words_and_parts() {
    let dir = Dir::new();
    let golden = committed("../../../planes/tests/golden");
    dir.copy(&golden.join("small.planes"), "old.planes");
    // Its items are "item 0" to "item 39", and "all": whole, though a text would have been divided.
    let info = dir.info("old.planes");
    assert_eq!((&info["format_version"], &info["rows"]), (&1.into(), &40.into()));
    assert!(info["lines_in_a_row"].is_null());
    let query = |args: &[&str]| {
        let mut command = assert_cmd::Command::new(crate::tool::TOOL);
        let output = command.current_dir(dir.0.path()).args(args).output().unwrap();
        (output.status.code(), text(output.stdout))
    };
    let (status, rows) = query(&["planes", "query", "old.planes", "item 7"]);
    assert_eq!(status, Some(0));
    assert!(rows.lines().any(|row| row == "7"), "{rows}");
    let (_, lines) = query(&["planes", "query", "old.planes", "item 7", "--lines", "50"]);
    assert!(lines.lines().any(|line| line == "351,400p"), "{lines}");
    assert_parts(&dir.fails("planes query --sed old.planes all"), &["give --lines"]);
    let found = dir.ok_with("query old.planes", "item 7\nitem 39\nno such item\n");
    assert!(text(found).starts_with("item 7\nitem 39\n"));

    // Built of divided lines by that release, as `planes build` did: made here by the library.
    let options = blocked_bloom_planes::Shape::for_rate(20, 0.0001).unwrap();
    let options = blocked_bloom_planes::PlanesOptions::new(options);
    let hasher = options.hasher().unwrap();
    let words = |line: &str| {
        let words: Vec<u64> =
            line.split([' ', '-', '/', '@', '.', '=']).map(|word| hasher.hash(word)).collect();
        words
    };
    let rows: Vec<Vec<u64>> = TOKENS.iter().map(|line| words(line)).collect();
    let planes = blocked_bloom_planes::Planes::from_hashes(&options, rows).unwrap();
    dir.write("divided.planes", planes.as_bytes());
    for (row, token) in TOKENS.into_iter().enumerate() {
        let (_, found) = query(&["planes", "query", "divided.planes", token]);
        assert!(found.lines().any(|line| line == row.to_string()), "{token}: {found}");
    }
}

#[test]
fn the_text_is_not_replaced_by_its_index() {
    let dir = Dir::new();
    dir.write("app.log", divided_log());
    dir.write("empty.log", "");
    let mut outputs = vec!["app.log", "./app.log"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("app.log", dir.path("link")).unwrap();
        std::os::unix::fs::symlink("link", dir.path("link2")).unwrap();
        outputs.extend(["link", "link2"]);
    }
    for text in outputs.clone() {
        for output in &outputs {
            let message = dir.fails(&format!("planes build {text} -o {output}"));
            assert_parts(&message, &["is the text, which the index would replace"]);
        }
    }
    #[cfg(unix)]
    for (args, what) in [("planes build --items 9", "the text"), ("build", "the file of keys")] {
        let script = format!("\"$TOOL\" {args} - -o app.log < app.log");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).env("TOOL", crate::tool::TOOL);
        let output = command.current_dir(dir.0.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_parts(&stderr(&output), &["app.log: is ", what]);
    }
    assert_eq!(dir.read("app.log"), divided_log().into_bytes());
    let built = dir.run("planes build empty.log");
    assert_eq!(built.status.code(), Some(0));
    assert_parts(&stderr(&built), &["warning: empty.log: no lines", "0 rows of 100 lines"]);
}

/// Keys of the text, by `query`: those lines whose words some row has.
#[test]
fn info_and_query_recognise_planes() {
    let dir = Dir::new();
    dir.write("app.log", divided_log());
    dir.ok("planes build -q --lines 10 app.log -o index");
    let facts = dir.info("index");
    assert_eq!((&facts["format"], &facts["format_version"]), (&"planes".into(), &2.into()));
    assert_eq!(text(dir.ok("info index")), text(dir.ok("planes info index")));
    assert_parts(&text(dir.ok("info index")), &["planes, version 2", "words of 10 lines"]);
    let looked_up = "node-3\nalice@example.com\nnode 17 err\nbob@example.com\n";
    assert_eq!(text(dir.ok_with("query index", looked_up)), "node-3\nalice@example.com\n");
    assert_eq!(
        text(dir.ok_with("query - app.log --count", dir.read("index"))),
        format!("{}\n", divided_log().lines().count())
    );
    // The error names the format of a file that is not an index.
    dir.ok("build app.log -o f -q");
    for command in ["planes query f word", "planes info f"] {
        let message = dir.fails(command);
        assert!(message.is_ascii() && !message.contains("89, 49"), "{message}");
    }
    assert_parts(
        &dir.fails("planes query f word"),
        &["f: a filter of format native, not planes", "blocked-bloom query"],
    );
    assert_parts(&dir.fails("planes query app.log word"), &["app.log: not planes"]);
}

#[test]
fn every_index_has_a_tag_of_its_own() {
    let dir = Dir::new();
    dir.write("app.log", divided_log());
    let tag = |options: &str| {
        dir.ok(&format!("planes build -q app.log -o index {options}"));
        dir.info("index")["tag"].as_u64().unwrap()
    };
    assert_eq!((tag("--tag 0"), tag("--tag 18446744073709551615")), (0, u64::MAX));
    let tags: BTreeSet<u64> = (0..8).map(|_| tag("")).collect();
    assert!(tags.len() == 8 && !tags.contains(&0), "{tags:?}");
}

/// Nearly every line of common words is selected, which is not what a key's answer is.
#[test]
fn a_query_for_any_row_says_so() {
    let dir = Dir::new();
    dir.write("log", lines("word ", 1_000));
    dir.ok("planes build --lines 10 log");
    let output = dir.run_with("query log.planes", "word\n");
    assert_eq!((text(output.stdout.clone()), output.status.code()), ("word\n".into(), Some(0)));
    let said = stderr(&output);
    assert_parts(&said, &["warning: log.planes: lines are selected whose words any row may have"]);
    assert_parts(&said, &["planes query says which rows\n"]);
}

/// Sets the time of a file's last modification back, as if it had been written long ago.
fn age(dir: &Dir, name: &str, seconds: u64) {
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
    let file = std::fs::File::options().write(true).open(dir.path(name)).unwrap();
    file.set_modified(time).unwrap();
}

/// 105 lines in rows of ten, of which the last has five.
fn indexed(ending: &str) -> (Dir, String) {
    let (dir, log) = (Dir::new(), lines("id", 105));
    let log = log.trim_end().to_owned() + ending;
    dir.write("app.log", &log);
    age(&dir, "app.log", 1_000);
    dir.ok("planes build -q --lines 10 --fpr 0.001% app.log");
    (dir, log)
}

#[test]
fn the_new_lines_of_a_text_are_never_absent() {
    for (ending, first, rest) in [("\n", 106, "new1\nnew2\n"), ("", 105, "new1\nnew2")] {
        let (dir, log) = indexed(ending);
        assert_eq!(dir.run("planes query app.log.planes new2").status.code(), Some(1));
        dir.write("app.log", log + rest);
        let last = if ending.is_empty() { 106 } else { 107 };
        let warning = format!(
            "warning: app.log: has grown since it was indexed: lines {first} to {last} are not \
             indexed, and are printed: run planes build again to search them, too\n"
        );
        let (sed, one) = (format!("{},$p\n", 101), "10\n".to_owned());
        for (args, expected) in [
            ("app.log.planes new2", one.clone()),
            ("--sed app.log.planes new2", sed.clone()),
            ("--count app.log.planes new2", "1\n".to_owned()),
            ("app.log.planes id42", format!("4\n{one}")),
            ("--any --sed app.log.planes id42 no_such", format!("41,50p\n{sed}")),
            ("app.log.planes id104", one),
        ] {
            let output = dir.run(&format!("planes query {args}"));
            assert_eq!(output.status.code(), Some(0), "{args}");
            assert_eq!((text(output.stdout.clone()), stderr(&output)), (expected, warning.clone()));
        }
        // Whether a word is anywhere is not known of new lines.
        let message = dir.fails_with("query app.log.planes --absent", "new2\n");
        assert_parts(&message, &["app.log: has grown since it was indexed", "planes build again"]);
        dir.ok("planes build -q --lines 10 app.log");
        assert_eq!(dir.run("planes query app.log.planes no_such").status.code(), Some(1));
        assert_eq!(stderr(&dir.run("planes query app.log.planes no_such")), "");
    }
    // Many rows of new lines.
    let (dir, log) = indexed("\n");
    dir.write("app.log", log + &lines("new", 1_000));
    let rows: String = (10..111).map(|row| format!("{row}\n")).collect();
    assert_eq!(text(dir.ok("planes query app.log.planes new999")), rows);
}

#[test]
fn a_text_whose_indexed_lines_changed_is_an_error() {
    let (dir, log) = indexed("\n");
    for changed in [
        log.replace("id50", "id5x"),
        log[..log.len() - 6].to_owned(),
        format!("first\n{log}"),
        log.replace("id50", "id5x") + "more\n",
        String::new(),
    ] {
        dir.write("app.log", &changed);
        for (command, input) in
            [("planes query app.log.planes id5x", ""), ("query app.log.planes", "id5x\n")]
        {
            let message = dir.fails_with(command, input);
            assert_parts(&message, &["app.log: lines that were indexed have changed"]);
            assert_parts(&message, &["run planes build again"]);
        }
    }
    // The same bytes at another time.
    dir.write("app.log", &log);
    let output = dir.run("planes query app.log.planes no_such");
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    // A change right after the index was built, in the same step of the clock.
    dir.ok("planes build -q --lines 10 app.log");
    dir.write("app.log", log.replace("id50", "id5x"));
    dir.fails("planes query app.log.planes id5x");
}

#[test]
fn an_index_without_its_text_is_warned_of() {
    let (dir, log) = indexed("\n");
    dir.ok("planes build -q --lines 10 app.log -o index");
    let output = dir.run("planes query index id42");
    assert_eq!(text(output.stdout.clone()), "4\n");
    assert_parts(&stderr(&output), &["warning: index: the text is not found", "give it by --text"]);
    let query = "planes query index id42 --text app.log";
    assert_eq!(stderr(&dir.run(query)), "");
    dir.write("app.log", log.replace("id42", "id4x"));
    assert_parts(&dir.fails(query), &["app.log: lines that were indexed have changed"]);
    assert_parts(&dir.fails("planes query index id42 --text none"), &["none: cannot open"]);
    // Of standard input, too, and of lines that end with NUL bytes.
    dir.ok_with("planes build -q --lines 10 --items 20 - -o piped", &log);
    dir.write("app.log", log.clone() + "new\n");
    let said = stderr(&dir.run("planes query piped no_such --text app.log"));
    assert_parts(&said, &["lines 106 to 106 are not indexed"]);
    let nul = log.replace('\n', "\0");
    dir.write("nul", &nul);
    dir.ok("planes build -q --null --lines 10 nul");
    dir.write("nul", nul + "new\0newer\0");
    assert_parts(&stderr(&dir.run("planes query nul.planes x")), &["lines 106 to 107 are not"]);
}

/// An index of an earlier release does not record the state of its text.
#[test]
fn an_index_that_is_older_than_its_text_is_warned_of() {
    let dir = Dir::new();
    dir.copy(&committed("../../../planes/tests/golden").join("text.planes"), "old.log.planes");
    dir.write("old.log", "line\n");
    age(&dir, "old.log.planes", 1_000);
    let said = stderr(&dir.run("planes query old.log.planes word"));
    assert_parts(
        &said,
        &["warning: old.log: has changed since it was indexed, and the index does"],
    );
    age(&dir, "old.log", 2_000);
    assert_eq!(stderr(&dir.run("planes query old.log.planes word")), "");
}

#[test]
fn a_text_of_the_time_0_may_have_changed() {
    let (dir, log) = (Dir::new(), lines("id", 100));
    let write = |text: &str| {
        dir.write("app.log", text);
        let file = std::fs::File::options().write(true).open(dir.path("app.log")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    write(&log);
    dir.ok("planes build -q --lines 10 app.log");
    assert_eq!(dir.run("planes query app.log.planes id7").status.code(), Some(0));
    write(&log.replace("id7\n", "xy7\n"));
    let message = dir.fails("planes query app.log.planes id7");
    assert_parts(&message, &["lines that were indexed have changed"]);
}
