//! What people trip over who use the tool for the first time: sizes that cannot be meant, results
//! that replace what they are made of, names that mislead.

use std::fs;

use blocked_bloom::BloomFilter;

use crate::fixtures::committed;
use crate::tool::{Dir, assert_parts, lines, stderr, text};

#[test]
fn more_keys_than_a_file_can_hold_are_refused_before_the_memory_is_taken() {
    let dir = Dir::new();
    dir.write("keys", "a\nb\nc\n");
    let message = dir.fails("build keys --keys 10G");
    assert_parts(
        &message,
        &["keys: a file of 6 bytes", "10000000000 of --keys", "12500000064 bytes", "--oversized"],
    );
    for format in ["compact", "removable", "parquet-filter", "guava", "spark", "redisbloom"] {
        let message = dir.fails(&format!("build keys --keys 10G --format {format}"));
        assert_parts(&message, &["keys: a file of 6 bytes", "--oversized"]);
    }
    assert_eq!(dir.names(), ["keys"]);
    // For those who merge; and what could be meant is not refused.
    dir.ok("build keys --keys 40M --oversized -q");
    assert_eq!(dir.info("keys.bloom")["stored_bytes"], 50_000_064);
    dir.ok("build keys --keys 30M -q");
    assert_parts(&stderr(&dir.run("build keys --oversized")), &["--keys <N>"]);
}

#[test]
fn a_file_without_keys_is_warned_of() {
    let dir = Dir::new();
    dir.write("empty", "");
    dir.write("one", "\n");
    for format in [
        "native",
        "compact",
        "ribbon",
        "range",
        "removable",
        "parquet-filter",
        "guava",
        "spark",
        "redisbloom",
    ] {
        let built = dir.run(&format!("build empty -q -o f --format {format}"));
        assert_eq!(built.status.code(), Some(0), "{format}: {}", stderr(&built));
        assert_parts(&stderr(&built), &["warning: empty: no keys", "\"absent\" for every key"]);
        assert_eq!(stderr(&dir.run(&format!("build one -q -o f --format {format}"))), "");
    }
}

/// The rate of a union follows from its bits: keys that several filters hold are counted for each.
#[test]
fn a_union_with_itself_keeps_its_rate_and_its_input() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 10_000));
    dir.ok("build keys -q -o x");
    let before = dir.read("x");
    for (command, name) in [("merge x x -o x", "x"), ("merge x ./x -o ./x", "./x")] {
        let message = dir.fails(command);
        assert_parts(&message, &[name, "one of the filters, which the union would replace"]);
    }
    assert!(dir.read("x") == before);
    let merged = stderr(&dir.run("merge x x -o y"));
    let rate = dir.info("y")["estimated_false_positive_rate"].as_f64().unwrap();
    assert!(rate < 0.0105, "{rate}");
    let printed = format!("{:.3} % false positives by the bits", rate * 100.0);
    assert_parts(&merged, &["y: 20000 keys, about ", " distinct by the bits", &printed]);
    dir.ok("merge x y -o x --overwrite -q");
    assert_eq!(dir.info("x")["keys_inserted"], 30_000);
}

#[test]
fn the_compact_form_is_built_described_and_queried() {
    let dir = Dir::new();
    let keys = lines("key", 10_000);
    dir.write("keys", &keys);
    let built = stderr(&dir.run("build keys --format compact --fpr 1%"));
    dir.ok("build keys --fpr 1% -q");
    let full = dir.read("keys.bloom");
    let expected = BloomFilter::from_bytes_any_hash(&full).unwrap().to_compact_bytes().unwrap();
    assert!(dir.read("keys.compact") == expected);
    assert_parts(&built, &[&format!("{} bytes stored", expected.len()), "10000 keys"]);
    assert!(dir.ok("query keys.compact keys --format compact") == keys.as_bytes());
    let absent = lines("other", 2_000);
    let passed = dir.run_with("query keys.compact --format compact --count", &absent);
    assert!(text(passed.stdout).trim().parse::<u32>().unwrap() < 60);
    let (info, of_full) = (dir.info("keys.compact --format compact"), dir.info("keys.bloom"));
    assert_eq!(info["format"], "compact");
    for same in ["blocks", "probes", "keys_inserted", "fill_ratio", "estimated_keys"] {
        assert_eq!(info[same], of_full[same], "{same}");
    }
    assert_parts(&text(dir.ok("info keys.compact --format compact")), &["checksum", "none"]);
    // The form has no magic number, so it is not recognised, but the error suggests it. Neither
    // form is mistaken for the other.
    assert_parts(&dir.fails("info keys.compact"), &["not a recognised", "--format compact"]);
    let message = dir.fails("info keys.bloom --format compact");
    assert_parts(&message, &["its bytes are those of format native, not of compact"]);
    assert!(!message.contains("truncated"), "{message}");
    dir.write("short", &expected[..expected.len() - 1]);
    assert_parts(&dir.fails("query short keys --format compact"), &["read as compact"]);
    for option in ["--seed 1", "--prefix fixed:2"] {
        let message = dir.fails(&format!("build keys --format compact {option}"));
        assert_parts(&message, &["not for compact"]);
    }
}

#[test]
fn a_misnamed_filter_of_cassandra_is_noticed() {
    let dir = Dir::new();
    let known = "apple\nbanana\ncherry\n";
    dir.write("known", known);
    dir.copy(&committed("cassandra").join("nb-1-big-Filter.db"), "nb-1-big-Filter.db");
    for name in ["me-1-big-Filter.db", "la-1-big-Filter.db"] {
        fs::copy(dir.path("nb-1-big-Filter.db"), dir.path(name)).unwrap();
        let looked_up = dir.run(&format!("query {name} known"));
        assert_eq!((looked_up.status.code(), looked_up.stdout.len()), (Some(1), 0));
        assert_parts(
            &stderr(&looked_up),
            &["warning: ", name, "none of 3 keys", "all are", "--cassandra-version nb"],
        );
    }
    for (name, lookup) in [("me-1-big-Filter.db", "apple\nbanana\n"), ("nb-1-big-Filter.db", known)]
    {
        assert_eq!(stderr(&dir.run_with(&format!("query {name}"), lookup)), "", "{name}");
    }
    let other = dir.run_with("query me-1-big-Filter.db", "x1\nx2\nx3\nx4\n");
    assert_eq!(stderr(&other), "");

    let found = text(dir.ok("diagnose me-1-big-Filter.db known"));
    let counts: Vec<&str> = found.lines().collect();
    assert_eq!(counts.len(), 3, "{found}");
    assert!(counts[2].starts_with("3 of 3 keys  --cassandra-version nb"), "{found}");
    assert!(counts[..2].iter().all(|line| !line.starts_with("3 of 3")), "{found}");
    for (keys, part) in [("", "no keys were given"), ("no such key\n", "no layout finds every key")]
    {
        let output = dir.run_with("diagnose me-1-big-Filter.db", keys);
        assert_eq!(output.status.code(), Some(1));
        assert_parts(&stderr(&output), &[part]);
    }
    dir.write("da-1-bti-Filter.db", "");
    let several = dir.run("diagnose da-1-bti-Filter.db known");
    assert_eq!(several.status.code(), Some(1));
    assert_parts(&stderr(&several), &["several layouts"]);
    assert_parts(&dir.fails_with("diagnose - -", "a"), &["as in blocked-bloom diagnose - KEYS"]);
}

#[test]
fn help_lists_what_can_be_built() {
    let dir = Dir::new();
    let help = text(dir.ok("build --help"));
    let (_, formats) = help.split_once("--format <FORMAT>").unwrap();
    let (formats, _) = formats.split_once("--cassandra-version").unwrap();
    for format in [
        "native",
        "compact",
        "ribbon",
        "range",
        "removable",
        "rocksdb-block",
        "rocksdb-ribbon",
        "parquet-filter",
        "cassandra",
        "guava",
        "spark",
        "redisbloom",
    ] {
        assert!(formats.contains(&format!("- {format}:")), "{format}: {formats}");
    }
    for read in ["rocksdb-sst", "- parquet:", "planes"] {
        assert!(!formats.contains(read), "{read}: {formats}");
    }
    assert!(!help.contains("--kind"));
}

/// Whatever is built, the line about it says how many bytes that are.
#[test]
fn every_summary_says_the_bytes() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_000));
    dir.ok("build keys -q -o x");
    for command in [
        "build keys -o f",
        "build keys -o f --format compact",
        "build keys -o f --format ribbon",
        "build keys -o f --format removable",
        "build keys -o f --format rocksdb-block",
        "build keys -o f --format rocksdb-ribbon",
        "build keys -o f --format parquet-filter",
        "build keys -o f --cassandra-version nb",
        "build keys -o f --format guava",
        "build keys -o f --format spark",
        "build keys -o f --format redisbloom",
        "merge x x -o f",
        "planes build keys -o f",
    ] {
        let summary = stderr(&dir.run(command));
        assert_parts(&summary, &[&format!(" {} bytes stored", dir.read("f").len())]);
    }
}

#[test]
fn the_version_has_the_name_of_the_tool() {
    let version = text(Dir::new().ok("--version"));
    assert_eq!(version, format!("blocked-bloom {}\n", env!("CARGO_PKG_VERSION")));
}

/// One of a thing is not many; and a Bloom filter is called one.
#[test]
fn words_are_those_of_the_number() {
    let dir = Dir::new();
    dir.write("key", "a\n");
    assert!(text(dir.ok("plan --levels 1M --budget 1MiB")).starts_with("1 level, 1048576 bytes"));
    assert!(text(dir.ok("plan --keys 1")).starts_with("1 key\n"));
    for format in
        ["ribbon", "rocksdb-block", "compact", "guava", "spark", "redisbloom", "removable"]
    {
        let summary = stderr(&dir.run(&format!("build key -o f --format {format}")));
        assert!(
            !["1 keys", "1 distinct keys", "1 lines", "1 links", "1 blocks"]
                .iter()
                .any(|part| summary.contains(&format!(" {part}"))),
            "{summary}"
        );
    }
    dir.ok("build key -q");
    let info = text(dir.ok("info key.bloom"));
    assert!(info.contains("blocked Bloom") && !info.contains("ordinary"), "{info}");
}

#[test]
fn a_plan_of_kinds_has_the_total_of_bloom_alone() {
    let dir = Dir::new();
    let args = "plan --levels 100k,1M,100M --budget 100MiB --ribbon-query-cost 0.0032";
    let table = text(dir.ok(args));
    let totals: Vec<&str> =
        table.lines().filter(|line| line.trim_start().starts_with("all")).collect();
    assert_eq!(totals.len(), 2, "{table}");
    let cost = |line: &str| line.split_whitespace().last().unwrap().parse::<f64>().unwrap();
    assert!(totals[1].contains("bloom") && cost(totals[0]) < cost(totals[1]), "{table}");
    let json: serde_json::Value =
        serde_json::from_slice(&dir.ok(&format!("{args} --json"))).unwrap();
    let bloom = &json["bloom_only"];
    assert!((bloom["expected_cost"].as_f64().unwrap() - cost(totals[1])).abs() < 1e-6);
    assert!(bloom["bytes"].as_f64().unwrap() <= 104_857_600.0);
}

/// The error of a negative number names the number, and does not advise to write it elsewhere.
#[test]
fn negative_numbers_are_errors_that_name_the_option() {
    let dir = Dir::new();
    dir.write("keys", "a\n");
    for (args, option) in [
        ("build keys --keys -5", "--keys <N>"),
        ("build keys --keys -5M", "--keys <N>"),
        ("build keys --fpr -1%", "--fpr <RATE>"),
        ("build keys --bits-per-key -0.5", "--bits-per-key <BITS>"),
        ("build keys --max-bytes -64", "--max-bytes <BYTES>"),
        ("build keys --seed -1", "--seed <N>"),
        ("build keys --probes -1", "--probes <N>"),
        ("plan --keys -5", "--keys <N>"),
        ("plan --levels 1M --budget -1M", "--budget <BYTES>"),
        ("planes build keys --lines -5", "--lines <N>"),
        ("bench --keys -5", "--keys <"),
    ] {
        let output = dir.run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        let message = stderr(&output);
        let value = args.rsplit(' ').next().unwrap();
        assert_parts(&message, &[&format!("invalid value '{value}' for '{option}")]);
        assert!(!message.contains("-- -"), "{message}");
    }
    let failed = dir.run("plan --levels 1M --budget 1M --ribbon-query-cost -1");
    assert_parts(&stderr(&failed), &["cost -1.0: must be between 0 and 1e15"]);
    assert_eq!(dir.names(), ["keys"]);
}

/// Which key of a file was one too many is said as people count.
#[test]
fn the_key_that_fills_a_removable_filter_is_named() {
    let dir = Dir::new();
    dir.write("same", "key\n".repeat(65));
    let message = dir.fails("build same --format removable");
    assert_parts(
        &message,
        &[
            "same: key 33: both of its lines are full, with 32 of 128 lanes taken",
            "32 if its two lines are one",
        ],
    );
}
