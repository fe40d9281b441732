//! The command-line tool and prefixes: built, queried and described.

use blocked_bloom::{FilterOptions, PrefixExtractor, Sizing};

use crate::tool::{Dir, assert_parts, stderr, text};

/// Directories 0 to 99 of 20 files each, and a file outside of any.
fn paths() -> String {
    let files = (0..2_000).map(|i| format!("dir{:02}/file{i}\n", i / 20));
    files.chain(["vmlinuz\n".to_owned()]).collect()
}

#[test]
fn scans_are_ruled_out_by_the_rule_they_were_built_with() {
    let dir = Dir::new();
    dir.write("paths", paths());
    let rule = "--prefix delimiter:2f:1";
    dir.ok(&format!("build paths -o both {rule}"));
    dir.ok(&format!("build paths -o only {rule} --only-prefixes"));
    let starts: String = (0..200).map(|i| format!("dir{i:02}/x\n")).collect();
    for filter in ["both", "only"] {
        let there = text(dir.ok_with(&format!("query {filter} {rule}"), &starts));
        let there: Vec<&str> = there.lines().collect();
        assert!(there.starts_with(&starts.lines().take(100).collect::<Vec<_>>()), "{filter}");
        assert!(there.len() < 110, "{} prefixes of 200", there.len());
        let absent = dir.ok_with(&format!("query {filter} {rule} --absent --count"), &starts);
        assert_eq!(text(absent), format!("{}\n", 200 - there.len()));
        // What the rule cannot answer is maybe.
        assert_eq!(dir.ok_with(&format!("query {filter} {rule}"), "xyz\n"), b"xyz\n");
    }
    // The library builds the same bytes.
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0))
        .with_prefixes(PrefixExtractor::delimiter(b'/', 1));
    let mut builder = options.builder();
    builder.extend(paths().lines()).unwrap();
    assert_eq!(dir.read("both"), builder.finish().unwrap().to_bytes());
    assert!(dir.read("only").len() * 10 < dir.read("both").len());
}

#[test]
fn lookups_that_a_filter_cannot_answer_are_warned_of() {
    let dir = Dir::new();
    dir.write("paths", paths());
    dir.ok("build paths -o keys");
    dir.ok("build paths -o only --prefix fixed:5 --only-prefixes");
    for (query, parts) in [
        ("query keys --prefix fixed:5", ["holds whole keys", "not prefixes by fixed:5"]),
        ("query only", ["holds prefixes by extractor", ", not keys"]),
        (
            "query only --prefix capped:5",
            ["holds prefixes by extractor", "not prefixes by capped:5"],
        ),
    ] {
        let output = dir.run_with(query, "absent\n");
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"absent\n"[..]));
        assert_parts(&stderr(&output), &parts);
        assert_parts(&stderr(&output), &["warning: ", "\"maybe\" for every key"]);
    }
    assert_eq!(stderr(&dir.run_with("query only --prefix fixed:5", "absent\n")), "");
}

#[test]
fn info_prints_the_contents() {
    let dir = Dir::new();
    dir.write("paths", paths());
    dir.ok("build paths -o keys");
    dir.ok("build paths -o only --prefix fixed:5 --only-prefixes");
    let id = format!("{:016x}", PrefixExtractor::fixed(5).id());
    let (keys, only) = (dir.info("keys"), dir.info("only"));
    assert_eq!((&keys["whole_keys"], &keys["prefix_extractor"]), (&true.into(), &().into()));
    assert_eq!((&only["whole_keys"], &only["prefix_extractor"]), (&false.into(), &id.into()));
    assert_parts(&text(dir.ok("info keys")), &["whole keys"]);
    assert_parts(&text(dir.ok("info only")), &["prefixes by extractor"]);
}

#[test]
fn a_list_that_does_not_fit_is_read_again_with_prefixes_too() {
    let dir = Dir::new();
    dir.write("paths", paths());
    let rule = "--prefix delimiter:2f:1 --verify";
    dir.ok(&format!("build paths -o once {rule}"));
    dir.ok(&format!("build paths -o twice {rule} --max-memory 4K"));
    assert_eq!(dir.read("once"), dir.read("twice"));
    let message = dir.fails_with(&format!("build - -o f {rule} --max-memory 4K"), paths());
    assert_parts(&message, &["standard input", "2101 keys", "more memory"]);
    assert!(!message.contains("--keys"), "{message}");
}

#[test]
fn rules_that_are_none_are_errors() {
    let dir = Dir::new();
    dir.write("paths", paths());
    for (args, part) in [
        ("--prefix first:3", "fixed:BYTES"),
        ("--prefix fixed:x", "fixed:BYTES"),
        ("--only-prefixes", "--prefix"),
        ("--prefix fixed:3 --keys 100", "--keys"),
    ] {
        let output = dir.run(&format!("build paths -o f {args}"));
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert_parts(&stderr(&output), &[part]);
    }
    assert_eq!(dir.names(), ["paths"]);
}
