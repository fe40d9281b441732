//! `blocked-bloom planes`: built, queried by ranges and described as a user does it; damage is an error.

use std::collections::BTreeSet;

use crate::tool::{Dir, stderr, text};

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
    let lines = text(dir.ok("planes query --lines 50 app.log.planes timeout_2105"));
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
    dir.ok("planes build -q --items 200 --fpr 1% app.log");
    let piped = dir.run_with("planes build -q --items 200 --fpr 1% - -o piped.planes", log());
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
