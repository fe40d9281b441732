//! Sources of keys and filters: files that Windows wrote, files that are not lists of keys,
//! standard input.

use std::process::{Command, Stdio};

use crate::fixtures::committed;
use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, text};

/// Keys that are read twice, since their list does not fit its memory.
#[test]
fn a_warning_of_keys_is_printed_once() {
    let dir = Dir::new();
    dir.write("keys", "apple\r\nbanana\r\n");
    let built = stderr(&dir.run("build keys -o f -q --max-memory 0"));
    assert_eq!(built.matches("2 of 2 keys end in a carriage return").count(), 1, "{built}");
}

#[test]
fn a_filter_may_come_from_standard_input() {
    let dir = Dir::new();
    dir.write("keys", "apple\nbanana\n");
    dir.ok("build keys -o f -q");
    let filter = dir.read("f");
    let described = text(dir.ok_with("info -", &filter));
    assert_eq!(described.replace("standard input", "f"), text(dir.ok("info f")));
    let json = text(dir.ok_with("info - --json", &filter));
    assert_parts(&json, &[r#""file": "standard input""#]);
    assert_eq!(dir.ok_with("query - keys", &filter), b"apple\nbanana\n");
    assert_parts(&dir.fails_with("info -", &filter[..100]), &["standard input: offset 100: "]);
    assert_parts(&dir.fails_with("info -", "words\n"), &["standard input: not a recognised"]);
    for args in ["query -", "query - -", "query --count -"] {
        let message = dir.fails_with(args, &filter);
        assert_parts(&message, &["filter and keys", "standard input", "give the keys as a file"]);
    }
    let message = dir.fails_with("merge f - - -o g", &filter);
    assert_parts(&message, &["standard input", "one filter"]);
    dir.ok_with("merge f - -o g -q", &filter);
    assert_eq!(dir.info("g")["keys_inserted"], 4);
}

/// A regular file as standard input is read as one: its end is known.
#[cfg(unix)]
#[test]
fn a_file_may_be_standard_input() {
    let dir = Dir::new();
    let sst = committed("rocksdb").join("bloom_b10_n5000_str.sst");
    let run = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("TOOL", TOOL).env("FILE", &sst);
        command.current_dir(dir.0.path()).stdin(Stdio::null()).output().unwrap()
    };
    let described = run("\"$TOOL\" info - --json < \"$FILE\"");
    assert_parts(&text(described.stdout), &["rocksdb-sst"]);
    // From a pipe, and from the middle of a file, only the start is.
    for script in [
        "cat \"$FILE\" | \"$TOOL\" info -",
        "(dd bs=10 count=1 of=/dev/null 2>&- ; \"$TOOL\" info -) < \"$FILE\"",
    ] {
        let output = run(script);
        assert_eq!(output.status.code(), Some(2), "{script}");
        assert_parts(&stderr(&output), &["not a recognised filter file", "give --format"]);
    }
}

/// Keys are read in batches of 2^18, or of 8 MiB: equal neighbours count once where one ends, too.
#[test]
fn equal_neighbours_count_once_across_batches() {
    let dir = Dir::new();
    let full = lines("key", 1 << 18);
    let last = format!("key{}\n", (1 << 18) - 1);
    dir.write("many", format!("{full}{last}{last}end\n"));
    dir.write(
        "long",
        ('a'..='i')
            .map(|char| format!("{0}\n{0}\n", String::from(char).repeat(1 << 20)))
            .collect::<String>(),
    );
    for (keys, distinct) in [("many", (1 << 18) + 1), ("long", 9)] {
        for options in ["", "--keys 1M", "--max-memory 0"] {
            dir.ok(&format!("build {keys} -q -o f {options}"));
            assert_eq!(dir.info("f")["keys_inserted"], distinct, "{keys} {options}");
        }
    }
}

/// Several files of keys are read as if they were one, each with its own line numbers and warnings.
#[test]
fn a_filter_is_built_from_several_files() {
    let dir = Dir::new();
    for (name, keys) in [("a", lines("a", 500)), ("b", "b1\nb2".to_owned()), ("c", lines("c", 9))] {
        dir.write(name, keys);
    }
    dir.write("empty", "");
    let all = lines("a", 500) + "stdin\n" + "b1\nb2\n" + &lines("c", 9);
    for options in ["", "--keys 1K", "--max-memory 0 --format native", "--format removable"] {
        let built = dir.run_with(&format!("build a empty - b c {options} -o f"), "stdin\n");
        // A stream cannot be read a second time.
        if options.starts_with("--max-memory") {
            assert_eq!(built.status.code(), Some(2));
            dir.ok(&format!("build a empty b c {options} -o f"));
            assert_eq!(dir.info("f")["keys_inserted"], 511);
            continue;
        }
        assert_eq!(built.status.code(), Some(0), "{options}: {}", stderr(&built));
        dir.write("all", &all);
        dir.ok(&format!("build all {options} -o expected"));
        assert!(dir.read("f") == dir.read("expected"), "{options}");
    }
    let message = dir.fails("build a b");
    assert_parts(&message, &["a and 1 more: several files of keys: give -o"]);
    assert_parts(&dir.fails("build a b none -o f"), &["none: cannot open: "]);
    assert_parts(&dir.fails("build a b -o b"), &["the file of keys"]);
    dir.write("hex", "00\n0x\n");
    dir.write("zeros", "00\n00\n00\n");
    assert_parts(&dir.fails("build zeros hex --hex -o f"), &["hex: line 2: "]);
    dir.write("windows", "a\r\nb\n");
    let said = stderr(&dir.run("build windows a -q -o f"));
    assert_parts(&said, &["warning: windows: 1 of 2 keys end"]);
    assert_eq!(said.lines().count(), 1, "{said}");
}
