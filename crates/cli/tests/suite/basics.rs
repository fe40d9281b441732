//! The command-line tool, run as a user runs it: answers, files, messages and exit statuses.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use blocked_bloom::{BloomFilter, KeyHash, Sizing};
use serde_json::Value;

use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, text, words};

#[test]
fn every_word_is_found_and_few_others() {
    let dir = Dir::new();
    let words = words();
    dir.write("words", &words);
    let built = dir.run("build words");
    assert!(built.status.success() && built.stdout.is_empty());
    assert_parts(&stderr(&built), &["words.bloom: 104334 keys", "10.00 bits/key", "6 probes"]);
    assert_eq!(dir.names(), ["words", "words.bloom"]);
    let stored = dir.read("words.bloom");
    assert_eq!(BloomFilter::from_bytes_any_hash(&stored).unwrap().keys_inserted(), 104_334);

    assert!(dir.ok("query words.bloom words") == words.as_bytes());
    assert!(dir.ok_with("query words.bloom", &words) == words.as_bytes());

    let others: String = words.lines().map(|word| format!("{word}_\n")).collect();
    let hits = text(dir.ok_with("query words.bloom - --count", &others));
    let rate = hits.trim_end().parse::<f64>().unwrap() / 104_334.0;
    assert!((0.008..0.012).contains(&rate), "{rate}");
}

#[test]
fn hits_and_absent_are_all_keys() {
    let dir = Dir::new();
    let (present, others) = (lines("present", 5_000), lines("other", 20_000));
    dir.write("keys", &present);
    dir.write("both", format!("{present}{others}"));
    dir.ok("build keys -q");
    let hits = text(dir.ok("query keys.bloom both"));
    let absent = text(dir.ok("query keys.bloom both --absent"));
    assert!(hits.starts_with(&present));
    assert!(!absent.contains("present"));

    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&(hits.clone() + &absent)), sorted(&(present + &others)));
    let count = |args| text(dir.ok(args)).trim_end().parse::<usize>().unwrap();
    assert_eq!(count("query keys.bloom both --count"), hits.lines().count());
    assert_eq!(count("query keys.bloom both --count --absent"), absent.lines().count());
}

#[test]
fn query_exits_as_grep_does() {
    let dir = Dir::new();
    dir.write("keys", "apple\nbanana\n");
    dir.ok("build keys -o f --bits-per-key 100");
    for (args, stdin, status, stdout) in [
        ("query f", "apple\n", 0, "apple\n"),
        ("query f", "cherry\n", 1, ""),
        ("query f", "", 1, ""),
        ("query f --absent", "cherry\n", 0, "cherry\n"),
        ("query f --absent", "apple\n", 1, ""),
        ("query f --count", "cherry\n", 1, "0\n"),
        ("query f --count", "apple\ncherry\nbanana\n", 0, "2\n"),
        ("query f --count --absent", "apple\n", 1, "0\n"),
        ("query missing", "apple\n", 2, ""),
    ] {
        let output = dir.run_with(args, stdin);
        assert_eq!(output.status.code(), Some(status), "{args} of {stdin:?}");
        assert_eq!(text(output.stdout), stdout, "{args} of {stdin:?}");
    }
}

#[test]
fn lines_are_kept_byte_for_byte() {
    let dir = Dir::new();
    dir.ok_with("build - -o f --bits-per-key 100", b" a\r\n\xff\n\nlast");
    let lines = b" a\r\n a\na\r\n\xff\n\nlast";
    assert_eq!(dir.ok_with("query f", lines), b" a\r\n\xff\n\nlast\n");
    assert_eq!(dir.info("f")["keys_inserted"], 4);

    dir.ok_with("build - -o ended", b" a\r\n\xff\n\nlast\n");
    dir.ok_with("build - -o unended", b" a\r\n\xff\n\nlast");
    assert_eq!(dir.read("ended"), dir.read("unended"));
}

#[test]
fn carriage_returns_are_kept_and_warned_of() {
    let dir = Dir::new();
    dir.write("keys", "apple\r\nbanana\r\ncherry\n");
    let built = dir.run("build keys -o f");
    assert_parts(&stderr(&built), &["warning: keys: 2 of 3 keys end in a carriage return"]);
    assert_eq!(dir.ok("query f keys"), dir.read("keys"));
    assert_eq!(dir.run_with("query f", "apple\n").status.code(), Some(1));
    assert_parts(&stderr(&dir.run("query f keys")), &["2 of 3 keys"]);
    assert!(stderr(&dir.run_with("query f", "cherry\n")).is_empty());
    // With --null they may be meant.
    let built = dir.run_with("build - -q -o other --null", "apple\r\0banana\r\0");
    assert_eq!((built.status.code(), stderr(&built)), (Some(0), String::new()));
    // Among hex digits they are an error, which is all that is printed.
    let message = dir.fails_with("build - -q -o other --hex", "61\r\n62\r\n");
    assert_parts(&message, &["line 1: found '\\r' at column 3"]);
    assert!(!message.contains("carriage"), "{message}");
}

/// The number is that of the line in the file, in the first batch of keys or a later one. Keys
/// before it are answered.
#[test]
fn a_bad_key_is_named_by_its_line() {
    let dir = Dir::new();
    let line = |number: usize| format!("{number}\n");
    let all: String = (0..12_000).map(line).collect();
    dir.ok_with("build - -o f --format parquet-filter --type int32", &all);
    for before in [0, 1, 2, 63, 64, 65, 4_095, 4_096, 4_097, 10_000] {
        let keys: String = (0..before).map(line).collect();
        let output = dir.run_with("query f --type int32", format!("{keys}x\n7\n"));
        assert_eq!((output.status.code(), text(output.stdout.clone())), (Some(2), keys));
        assert_parts(&stderr(&output), &[&format!("line {}: ", before + 1), "'x'"]);
    }
    // A blank line is a line, too, and no number.
    let output = dir.run_with("query f --type int32", "1\n\nx\n");
    assert_parts(&stderr(&output), &["line 2: "]);
}

#[test]
fn keys_ended_by_nul_may_hold_line_feeds() {
    let dir = Dir::new();
    dir.ok_with("build - --null -o f --bits-per-key 100", "a\nb\0c\0last");
    assert_eq!(dir.info("f")["keys_inserted"], 3);
    let hits = dir.ok_with("query f --null", "a\nb\0a\0c\0last");
    assert_eq!(hits, b"a\nb\0c\0last\0");
}

#[test]
fn hex_is_another_way_to_write_the_same_keys() {
    let dir = Dir::new();
    dir.ok_with("build - --hex -o hex --bits-per-key 100", "ff10\nAbCd\n\n");
    dir.ok_with("build - -o raw --bits-per-key 100", b"\xff\x10\n\xab\xcd\n\n");
    assert_eq!(dir.read("hex"), dir.read("raw"));
    // Printed as read.
    let hits = dir.ok_with("query hex --hex", "FF10\n00\nabCD");
    assert_eq!(hits, b"FF10\nabCD\n");
}

#[test]
fn bad_hex_is_located() {
    let dir = Dir::new();
    dir.write("keys", "00\n01\n0g\n");
    let message = dir.fails("build keys --hex");
    assert_parts(&message, &["keys: line 3: ", "found 'g' at column 2", "hex digit"]);
    let message = dir.fails_with("build - -o f --hex", "00\r\n");
    assert_parts(&message, &["standard input: line 1: ", r"found '\r' at column 3"]);
    let message = dir.fails_with("build - -o f --hex", "00\n123");
    assert_parts(&message, &["line 2: ", "odd number", "(3)"]);
    let message = dir.fails_with("build - -o f --hex --null", "00\x0001\x00 2\x00");
    assert_parts(&message, &["key 3: ", "found ' ' at column 1"]);
    assert_eq!(dir.names(), ["keys"]);

    dir.ok_with("build - -o f --hex", "00\n");
    assert_parts(&dir.fails_with("query f --hex", "00\nx"), &["line 2: ", "found 'x'"]);
}

#[test]
fn standard_streams() {
    let dir = Dir::new();
    assert_parts(&dir.fails_with("build -", "a\n"), &["standard input", "-o"]);
    dir.ok_with("build - -o file", "a\nb\n");
    assert_eq!(dir.ok_with("build - -o -", "a\nb\n"), dir.read("file"));
    assert_eq!(dir.names(), ["file"]);
    let quiet = dir.run_with("build - -o - --quiet", "a\n");
    assert_eq!(stderr(&quiet), "");
}

#[test]
fn rejects_empty_input() {
    let dir = Dir::new();
    dir.ok_with("build - -o empty", "");
    assert_eq!(dir.read("empty").len(), 128);
    assert_eq!(dir.ok_with("query empty --absent", "\na\n"), b"\na\n");
    let info = dir.info("empty");
    assert_eq!(info["keys_inserted"], 0);
    assert_eq!(info["estimated_keys"], 0);
    assert_eq!(info["bits_per_key"], Value::Null);
    assert_parts(&text(dir.ok("info empty")), &["no keys"]);
}

#[test]
fn build_options_shape_the_filter() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 10_000));
    let shape = |options: &str| {
        dir.ok(&format!("build keys -o f {options}"));
        let stored = dir.read("f");
        let filter = BloomFilter::from_bytes_any_hash(&stored).unwrap();
        (filter.params().blocks(), filter.params().probes(), filter.key_hash())
    };
    let expected = |sizing: Sizing| {
        let params = sizing.params(10_000).unwrap();
        (params.blocks(), params.probes(), KeyHash::default())
    };
    assert_eq!(shape(""), expected(Sizing::BitsPerKey(10.0)));
    assert_eq!(shape("--bits-per-key 15.5"), expected(Sizing::BitsPerKey(15.5)));
    assert_eq!(shape("--fpr 0.001"), expected(Sizing::FalsePositiveRate(0.001)));
    assert_eq!(shape("--fpr 0.1%"), expected(Sizing::FalsePositiveRate(0.001)));
    assert_eq!(shape("--max-bytes 16KiB"), expected(Sizing::MaxBytes(16 << 10)));
    assert_eq!(shape("--max-bytes 16K"), expected(Sizing::MaxBytes(16_000)));
    let (_, probes, key_hash) = shape("--probes 3 --seed 18446744073709551615");
    assert_eq!((probes, key_hash), (3, KeyHash::Xxh3 { seed: u64::MAX }));
    assert_eq!(dir.info("f")["seed"], u64::MAX);
}

#[test]
fn bad_options_are_errors_before_reading() {
    let dir = Dir::new();
    // The message is about the option although the file is missing too.
    assert_parts(&dir.fails("build nothing --max-bytes 127"), &["127", "128"]);
    for (args, part) in [
        ("build k --bits-per-key 10 --fpr 0.1", "cannot be used with"),
        ("build k --fpr 0", "above 0 and up to 1"),
        ("build k --probes 31", "1..=30"),
        ("build k --max-bytes 10XB", "64KiB"),
        ("plan --keys many", "1_000_000"),
        ("plan --keys 0", "above 0"),
        ("plan", "--keys"),
        ("merge a -o f", "2 values required"),
        ("merge a b", "--output"),
        ("frobnicate", "unrecognized"),
    ] {
        let output = dir.run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert_parts(&stderr(&output), &[part]);
    }
    assert!(dir.names().is_empty());
}

#[test]
fn build_errors_name_the_file() {
    let dir = Dir::new();
    dir.write("keys", "a\n");
    fs::create_dir(dir.path("dir")).unwrap();
    assert_parts(&dir.fails("build nothing"), &["nothing: cannot open: "]);
    assert_parts(&dir.fails("build dir"), &["dir: cannot "]);
    assert_parts(&dir.fails("build keys -o dir"), &["dir: is a directory"]);
    assert_parts(&dir.fails("build keys -o no/f"), &["no/f: cannot write: no directory no"]);
    assert_parts(&dir.fails("build keys -o dir/../keys"), &["keys: is the file of keys"]);
    assert_eq!(dir.read("keys"), b"a\n");
    assert_eq!(dir.names(), ["dir", "keys"]);
}

#[test]
fn info_tells_what_the_library_tells() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 10_000));
    dir.ok("build keys -o f --seed 7");
    let stored = dir.read("f");
    let filter = BloomFilter::from_bytes_any_hash(&stored).unwrap();
    let params = filter.params();
    let info = dir.info("f");
    for (field, value) in [
        ("file", "f".into()),
        ("format_version", 1.into()),
        ("probe_scheme", 1.into()),
        ("pass_all", false.into()),
        ("hash", "xxh3-64".into()),
        ("seed", 7.into()),
        ("tag", Value::Null),
        ("stored_bytes", stored.len().into()),
        ("blocks", params.blocks().into()),
        ("probes", params.probes().into()),
        ("keys_inserted", 10_000.into()),
        ("bits_per_key", params.bits_per_key().into()),
        ("fill_ratio", filter.fill_ratio().into()),
        ("estimated_keys", filter.estimated_keys().into()),
        ("predicted_false_positive_rate", params.false_positive_rate().into()),
        ("estimated_false_positive_rate", filter.estimated_false_positive_rate().into()),
        ("header_checksum_ok", true.into()),
        ("block_checksum_ok", true.into()),
        ("kernel", filter.kernel().name().into()),
    ] {
        assert_eq!(info[field], value, "{field}");
    }
    assert_eq!(info["block_checksum_stored"], info["block_checksum_computed"]);
    let kernels = info["kernels_supported"].as_array().unwrap();
    assert!(kernels.contains(&info["kernel"]) && kernels.contains(&"scalar".into()));

    let blocks = format!("{} of 64 bytes", params.blocks());
    let size = format!("{} bytes", stored.len());
    let table = text(dir.ok("info f"));
    assert_parts(&table, &["XXH3-64 with seed 7", &blocks, &size, "10000", "0.9", "ok ("]);
}

#[test]
fn a_kernel_can_be_named() {
    let dir = Dir::new();
    dir.write("keys", lines("a", 500));
    dir.ok("build keys -o f -q");
    let info = |kernel: &str| {
        let mut command = Command::new(TOOL);
        command.current_dir(dir.0.path()).env("BLOCKED_BLOOM_KERNEL", kernel);
        command.args(["info", "f"]).output().unwrap()
    };
    for kernel in blocked_bloom::Kernel::supported() {
        let described = text(info(kernel.name()).stdout);
        let expected = format!("{} (named by BLOCKED_BLOOM_KERNEL", kernel.name());
        assert_parts(&described, &["kernel here", &expected]);
    }
    let unknown = info("avx1024");
    assert_eq!(unknown.status.code(), Some(2));
    assert_parts(&stderr(&unknown), &["BLOCKED_BLOOM_KERNEL: no kernel \"avx1024\"", "scalar"]);
}

#[test]
fn info_of_a_filter_that_passes_all() {
    let dir = Dir::new();
    dir.ok_with("build - -o f --bits-per-key 0", "a\nb\n");
    let info = dir.info("f");
    assert_eq!(info["pass_all"], true);
    assert_eq!(info["keys_inserted"], 2);
    assert_eq!(info["estimated_keys"], Value::Null);
    assert_eq!(info["predicted_false_positive_rate"], 1.0);
    assert_parts(&text(dir.ok("info f")), &["pass-all", "saturated", "100.000 %"]);
    assert_eq!(dir.ok_with("query f", "c\n"), b"c\n");
}

#[test]
fn filters_of_other_hashes_answer_maybe_and_say_so() {
    let dir = Dir::new();
    let params = Sizing::BitsPerKey(10.0).params(10).unwrap();
    let filter = BloomFilter::with_params(params, KeyHash::Caller { tag: 42 }).unwrap();
    dir.write("f", filter.to_bytes());
    let info = dir.info("f");
    assert_eq!((&info["hash"], &info["seed"]), (&"caller".into(), &Value::Null));
    assert_eq!(info["tag"], 42);
    let output = dir.run_with("query f", "a\n");
    assert_eq!(output.stdout, b"a\n");
    assert_parts(&stderr(&output), &["warning: f: ", "tag 42", "maybe"]);
}

#[test]
fn a_damaged_block_is_described_but_not_queried() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_000));
    dir.ok("build keys -o f");
    let sound = dir.info("f");
    let mut bytes = dir.read("f");
    bytes[100] ^= 1;
    dir.write("f", &bytes);

    let output = dir.run("info --json f");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&stderr(&output), &["f: offset 48: checksum ", "expected ", "\"absent\""]);
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(info["block_checksum_ok"], false);
    assert_eq!(info["header_checksum_ok"], true);
    assert_eq!(info["block_checksum_stored"], sound["block_checksum_stored"]);
    assert_ne!(info["block_checksum_computed"], sound["block_checksum_computed"]);
    for same in ["keys_inserted", "blocks", "probes", "predicted_false_positive_rate"] {
        assert_eq!(info[same], sound[same], "{same}");
    }
    for unknown in ["fill_ratio", "estimated_keys", "estimated_false_positive_rate"] {
        assert_eq!(info[unknown], Value::Null, "{unknown}");
    }
    let output = dir.run("info f");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&text(output.stdout), &["DAMAGED", "1000"]);

    assert_parts(&dir.fails("query f keys"), &["f: offset 48: "]);
    assert_parts(&dir.fails("merge f f -o g"), &["f: offset 48: "]);
    assert_eq!(dir.names(), ["f", "keys"]);
}

#[test]
fn files_that_are_no_filters_are_errors() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_000));
    dir.ok("build keys -o f");
    let bytes = dir.read("f");
    let len = bytes.len();
    dir.write("short", &bytes[..len - 1]);
    dir.write("long", [bytes.as_slice(), b"x"].concat());
    let mut header = bytes.clone();
    header[33] ^= 1;
    dir.write("header", header);
    dir.write("empty", "");
    fs::create_dir(dir.path("dir")).unwrap();

    let (found, expected) = (format!("{} bytes in all", len - 1), format!("expected {len}"));
    let offset = format!("short: offset {}: ", len - 1);
    let message = dir.fails("query short keys");
    assert_parts(&message, &[&offset, &found, &expected, "truncated", "\"absent\""]);
    assert_parts(&dir.fails("query long keys"), &["long: offset ", "followed by other bytes"]);
    assert_parts(&dir.fails("info header"), &["header: offset 56: ", "header checksum"]);
    assert_parts(&dir.fails("info keys"), &["keys: not a recognised filter file", "--format"]);
    assert_parts(&dir.fails("info dir"), &["dir: cannot "]);
    assert_parts(&dir.fails("info nothing"), &["nothing: cannot open: "]);
    assert_parts(&dir.fails("query f nothing"), &["nothing: cannot open: "]);
    assert_parts(&dir.fails("merge f nothing -o g"), &["nothing: cannot open: "]);
}

#[test]
fn other_containers_of_the_library_are_named() {
    let dir = Dir::new();
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    dir.copy(&packages.join("lsm/tests/golden/partitions.index"), "index");
    assert_eq!(dir.info("index")["format"], "partition-index");
    dir.copy(&packages.join("scalable/tests/golden/scalable.bloom"), "chain");
    assert_eq!(dir.info("chain")["format"], "growing");
}

#[test]
fn threads_verification_and_memory_change_no_byte() {
    let dir = Dir::new();
    // Equal neighbours count once, in one pass and in two.
    dir.write("words", format!("first\nfirst\nfirst\n{}", words()));
    dir.ok("build words -o expected");
    for options in [
        "--threads 1",
        "--threads 7",
        "--verify",
        "--max-memory 0",
        "--max-memory 100K --verify --threads 2",
        "--keys 104335 --verify",
        "--keys 104335 --threads 3",
    ] {
        dir.ok(&format!("build words -o filter {options}"));
        assert!(dir.read("filter") == dir.read("expected"), "{options}");
    }
}

#[test]
fn a_list_that_does_not_fit_its_memory_is_read_again_or_an_error() {
    let dir = Dir::new();
    dir.write("words", words());
    let printed = stderr(&dir.run("build words -o w --max-memory 500K -v"));
    let parts = ["list of 104334 keys", "--max-memory 500000", "again", "488.28 KiB for the list"];
    assert_parts(&printed, &parts);
    let piped = dir.run_with("build - -o p --max-memory 500K", words());
    assert_eq!(piped.status.code(), Some(2));
    assert_parts(
        &stderr(&piped),
        &["standard input: ", "104334 keys", "--max-memory 500000", "--keys 104334"],
    );
    assert!(!dir.path("p").exists());
    // Enough for the list, and for its sixteenth.
    let printed = stderr(&dir.run("build words -o w --max-memory 900K -v"));
    assert!(!printed.contains("again"), "{printed}");
    assert_parts(&printed, &["memory beside the filter: 8", "KiB for the list of keys"]);
    assert_parts(&stderr(&dir.run("build words --threads 0")), &["--threads", "1..=256"]);
    assert_parts(&stderr(&dir.run("build words --max-memory x")), &["--max-memory", "64KiB"]);
}

#[test]
fn help_and_version() {
    let dir = Dir::new();
    let help = text(dir.ok("--help"));
    assert_parts(&help, &["EXAMPLES", "EXIT STATUS", "build", "query", "info", "merge", "plan"]);
    assert_parts(&text(dir.ok("--version")), &[env!("CARGO_PKG_VERSION")]);
    for command in ["build", "query", "info", "merge", "plan"] {
        assert_parts(&text(dir.ok(&format!("{command} --help"))), &["Usage", command]);
    }
}
