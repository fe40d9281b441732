//! Numbers that cannot be meant, and keys that are too long: errors before the memory is used, and
//! warnings with the figures.

use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, time_limit, words};

#[test]
fn a_key_may_be_as_long_as_the_limit() {
    let dir = Dir::new();
    dir.write("keys", format!("{}\nshort\n{}", "a".repeat(64), "b".repeat(64)));
    dir.ok("build keys -o f --max-key-bytes 64");
    assert_eq!(dir.info("f")["keys_inserted"], 3);
    assert_eq!(dir.ok("query f keys --count --max-key-bytes 64"), b"3\n");
    // The default takes a mebibyte, and no byte more.
    dir.write("keys", format!("{}\nshort\n", "a".repeat(1 << 20)));
    dir.ok("build keys -o f");
    dir.write("keys", format!("short\n{}\n", "a".repeat((1 << 20) + 1)));
    assert_parts(&dir.fails("build keys -o g"), &["keys: line 2: ", "1048577", "1048576"]);
    assert_eq!(dir.names(), ["f", "keys"]);
}

#[test]
fn a_key_that_is_too_long_is_an_error_that_says_what_to_do() {
    let dir = Dir::new();
    dir.ok_with("build - -o f", "a\n");
    let keys = format!("short\n{}", "a".repeat(65));
    for command in
        ["build - -o g", "build - -o g --format rocksdb-block", "query f", "query f --count"]
    {
        let message = dir.fails_with(&format!("{command} --max-key-bytes 64"), &keys);
        let start = "standard input: line 2: 65 bytes and no end of the line";
        assert_parts(&message, &[start, "more than the 64", "--max-key-bytes", "--null"]);
    }
    // What else may be meant depends on the terminator; hex digits are two for each byte.
    let null = dir.fails_with("build - -o g --null --max-key-bytes 8", "a\x00123456789\n");
    assert_parts(&null, &["key 2: 9 bytes and no NUL", "more than the 8", "leave out --null"]);
    dir.ok_with("build - -o g --hex --max-key-bytes 8", "0123456789abcdef\n");
    let hex = dir.fails_with("build - -o h --hex --max-key-bytes 8", "00\n0123456789abcdef0\n");
    assert_parts(&hex, &["line 2: 17 hex digits", "two for each of the 8 bytes"]);
    assert_eq!(dir.names(), ["f", "g"]);
    for (options, length, whole) in [
        (
            "",
            65,
            "65 bytes and no end of the line yet, more than the 64 bytes of --max-key-bytes: give \
             --null if NUL bytes end the keys, or a larger --max-key-bytes\n",
        ),
        (
            "--null --hex",
            129,
            "129 hex digits and no NUL yet, more than two for each of the 64 bytes of \
             --max-key-bytes: leave out --null if line feeds end the keys, or give a larger \
             --max-key-bytes\n",
        ),
    ] {
        let command = format!("build - -o h --max-key-bytes 64 {options}");
        assert!(dir.fails_with(&command, "a".repeat(length)).ends_with(whole), "{options}");
    }
    for (limit, part) in [("0", "1 or more"), ("-1", "1 or more"), ("10XB", "64KiB")] {
        let output = dir.run(&format!("build k --max-key-bytes={limit}"));
        assert_eq!(output.status.code(), Some(2), "{limit}");
        assert_parts(&stderr(&output), &["--max-key-bytes", part]);
    }
}

/// A line without an end takes no more memory than the longest key, and neither do many long keys
/// that are looked up at a time.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded_while_long_lines_are_read() {
    let dir = Dir::new();
    dir.ok_with("build - -o f", "a\n");
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).env("TOOL", crate::tool::TOOL);
        command.current_dir(dir.0.path()).output().unwrap()
    };
    // At most 200 MiB of writable memory. Without a limit per key, the tool would use all of it.
    for command in ["build - -o g --threads 1", "query f", "build - -o g --format rocksdb-block"] {
        let output = shell(&format!("ulimit -d 204800; \"$TOOL\" {command} < /dev/zero"));
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_parts(&stderr(&output), &["error: standard input: line 1: 1048577 bytes"]);
    }
    // 300 MB of keys, fewer than are looked up at a time.
    let script = "yes \"$(head -c 100000 /dev/zero | tr '\\0' x)\" | head -n 3000 \
                  | (ulimit -d 204800; \"$TOOL\" query f --absent --count)";
    let output = shell(script);
    assert_eq!((stderr(&output), output.stdout), (String::new(), b"3000\n".to_vec()));
}

#[test]
fn memory_use_is_printed_to_those_who_want_to_know() {
    let dir = Dir::new();
    dir.write("words", words());
    let usual = stderr(&dir.run("build words -o w"));
    assert_eq!(usual.lines().count(), 1, "{usual}");
    for option in ["-v", "--verbose"] {
        let verbose = stderr(&dir.run(&format!("build words -o w {option}")));
        assert_eq!(verbose.lines().next(), usual.lines().next());
        assert_parts(&verbose, &["memory beside the filter: ", "KiB for the list of keys"]);
    }
    // The longest key is part of what is promised.
    let memory = |options: &str| {
        let printed = stderr(&dir.run(&format!("-v build words -o w --threads 1 {options}")));
        let (_, most) = printed.split_once("up to ").unwrap();
        most.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(memory("--max-key-bytes 64MiB") > memory("") + 128.0);
}

#[test]
fn many_more_keys_expected_than_read_are_warned_of() {
    let dir = Dir::new();
    dir.write("three", "a\nb\nc\n");
    let warned = stderr(&dir.run("build three -o f --keys 10M -q"));
    assert_parts(
        &warned,
        &[
            "warning: three: 3 keys were read, --keys 10000000 sized it for 3333333 times as many",
            "the filter takes 12500096 bytes, these keys need 128",
            "false-positive rate is 3.62e-13 %",
        ],
    );
    for (options, bytes, needed) in [
        ("--format parquet-filter --keys 1M --oversized -o g", "2097170", "47"),
        ("--format cassandra --keys 10M -o nb-1-big-Filter.db", "12500016", "16"),
    ] {
        let warned = stderr(&dir.run(&format!("build three {options} -q")));
        let taken = format!("the filter takes {bytes} bytes, these keys need {needed}");
        assert_parts(&warned, &["warning: three: 3 keys were read, --keys 10", &taken]);
        assert_parts(&warned, &["false-positive rate is "]);
    }
    let warned = stderr(&dir.run_with("build - -o f --keys 10M -q", "a\n"));
    assert_parts(&warned, &["warning: standard input: 1 key was read, --keys 10000000"]);
    // Filters that will be merged are sized for the union, and small ones harm nobody.
    dir.write("keys", lines("key", 10_000));
    for args in ["build keys -o f --keys 1M -q", "build three -o f --keys 100K -q"] {
        assert_eq!(stderr(&dir.run(args)), "", "{args}");
    }
}

#[test]
fn too_little_memory_for_the_keys_is_warned_of() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 100_000));
    let warned = stderr(&dir.run("build keys -o f --max-bytes 128 -q"));
    assert_parts(
        &warned,
        &[
            "warning: keys: 100000 keys were read, more than fit in --max-bytes 128",
            "the filter takes 128 bytes, these keys need 125120",
            "false-positive rate is 100.000 %",
        ],
    );
    assert_eq!(stderr(&dir.run("build keys -o f --max-bytes 64KiB -q")), "");
    let warned = stderr(&dir.run("build keys -o f --keys 1K -q"));
    assert_parts(
        &warned,
        &[
            "warning: keys: 100000 keys were read, more than the 1000 of --keys",
            "the filter takes 1344 bytes, these keys need 125120",
            "false-positive rate is 100.000 %",
        ],
    );
    let warned = stderr(&dir.run("build keys --format parquet-filter --keys 1K -o g -q"));
    assert_parts(&warned, &["more than the 1000 of --keys", "takes 2064 bytes", "need 131089"]);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let dir = Dir::new();
    dir.write("k", "a\n");
    for command in ["build k", "build k --format rocksdb-block", "plan --keys 10", "bench"] {
        for bits in ["1e400", "inf", "nan", "-1", "100.1", "ten"] {
            let output = dir.run(&format!("{command} --bits-per-key={bits}"));
            assert_eq!(output.status.code(), Some(2), "{command} {bits}");
            assert!(output.stdout.is_empty(), "{command} {bits}");
            let message = stderr(&output);
            assert_parts(&message, &[&format!("'{bits}' for '--bits-per-key"), "0 to 100"]);
        }
    }
    let output = dir.run("plan --levels 1M --budget 1M --bits-per-key 10,1e400");
    assert_parts(&stderr(&output), &["'1e400' for '--bits-per-key", "0 to 100"]);
    dir.ok("build k -q");
    for command in ["build k -o f", "query k.bloom"] {
        for (rule, part) in [
            ("fixed:0", "1 byte or more"),
            ("capped:0", "1 byte or more"),
            ("delimiter:2f:0", "1 or more"),
        ] {
            let output = dir.run(&format!("{command} --prefix {rule}"));
            assert_eq!(output.status.code(), Some(2), "{command} {rule}");
            assert_parts(&stderr(&output), &[&format!("'{rule}' for '--prefix"), part]);
        }
    }
    assert_eq!(dir.names(), ["k", "k.bloom"]);
}

#[test]
fn a_filter_that_passes_all_is_warned_of() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 100));
    for size in ["--fpr 1", "--fpr 100%", "--bits-per-key 0"] {
        let output = dir.run(&format!("build keys -q -o f {size}"));
        assert_eq!(output.status.code(), Some(0), "{size}");
        let warning = "warning: keys: no filter by this size: every answer will be \"maybe\"\n";
        assert_eq!(stderr(&output), warning, "{size}");
    }
}

/// Hashes that RocksDB's builders keep a second time, to look them up again, are memory, too.
#[test]
fn lists_of_keys_for_rocksdb_fit_their_memory() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_000));
    for format in ["rocksdb-block", "rocksdb-ribbon"] {
        let build = format!("build keys -o f --format {format}");
        dir.ok(&format!("{build} --max-memory 8000"));
        dir.ok(&format!("{build} --max-memory 16000 --verify"));
        let message = dir.fails(&format!("{build} --max-memory 15999 --verify"));
        assert_parts(&message, &["more than 999 keys", "--max-memory 15999"]);
        let message = dir.fails(&format!("{build} --max-memory 7999"));
        assert_parts(&message, &["more than 999 keys"]);
    }
}

/// Each key of a range filter takes 24 bytes, however long it is: `--verify` reads the keys again.
#[cfg(target_os = "linux")]
#[test]
fn verifying_a_range_filter_keeps_no_keys() {
    let dir = Dir::new();
    let keys: String = (0..2_000).map(|i| format!("{i:04}{}\n", "a".repeat(60_000))).collect();
    dir.write("keys", &keys);
    let build = "build keys -o f --format range --verify --max-memory";
    let mut command = std::process::Command::new("sh");
    let script = format!("ulimit -d 65536; \"$TOOL\" {build} 48000");
    command.args(["-c", &script]).env("TOOL", TOOL).current_dir(dir.0.path());
    let output = command.output().unwrap();
    assert_parts(&stderr(&output), &["2000 keys looked up again"]);
    assert!(output.status.success());
    let message = dir.fails(&format!("{build} 47999"));
    assert_parts(&message, &["more than 1999 keys", "--max-memory 47999"]);
    let message = dir.fails_with("build - -o g --format range --verify", "a\nb\n");
    assert_parts(&message, &["standard input: --verify reads", "twice: give a file by its name"]);
    dir.ok_with("build - -o g --format range", "a\nb\n");
    assert_eq!(dir.names(), ["f", "g", "keys"]);
}

/// A file that gets more keys between the two times that it is read would fill a filter that is too
/// small for them.
#[cfg(unix)]
#[test]
fn a_file_that_grows_while_it_is_read_twice_is_an_error() {
    use std::io::{BufRead, BufReader, Write};
    let dir = Dir::new();
    let args = ["build", "keys", "-o", "f", "--max-memory", "0"];
    // The keys may have been read to the end before there are more.
    for _ in 0..20 {
        dir.write("keys", lines("key", 1_000_000));
        let mut command = std::process::Command::new(TOOL);
        command.args(args).current_dir(dir.0.path()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _limit = time_limit(&child);
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_parts(&line, &["1000000 keys", "reading them again"]);
        let file = std::fs::OpenOptions::new().append(true).open(dir.path("keys"));
        file.unwrap().write_all(lines("more", 500).as_bytes()).unwrap();
        line.clear();
        said.read_line(&mut line).unwrap();
        let code = child.wait().unwrap().code();
        if code == Some(2) {
            let message = "1000500 keys were read the second time, 1000000 the first";
            assert_parts(&line, &[message, "do not change the file"]);
            return;
        }
        assert_parts(&line, &["f: 1000000 keys"]);
        assert_eq!(dir.info("f")["keys_inserted"], 1_000_000);
    }
    panic!("never seen to grow");
}
