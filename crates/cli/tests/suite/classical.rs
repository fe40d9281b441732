//! The command-line tool and the filters of Guava, Spark and RedisBloom: answers of those systems,
//! descriptions, builds and errors.

use std::fs;

use serde_json::Value;

use crate::fixtures::{committed, external};
use crate::tool::{Dir, assert_parts, stderr, text};

/// Rows of a file of answers.
fn rows(path: &std::path::Path) -> Vec<Vec<String>> {
    let csv = fs::read_to_string(path).unwrap();
    csv.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}

/// Looks keys up, and expects those that the system let pass.
#[track_caller]
fn assert_answers(dir: &Dir, query: &str, keys: &[(&str, bool)]) {
    let input: String = keys.iter().map(|(key, _)| format!("{key}\n")).collect();
    let passed = keys.iter().filter(|(_, answer)| *answer);
    let expected: String = passed.map(|(key, _)| format!("{key}\n")).collect();
    let output = dir.run_with(query, &input);
    assert!(text(output.stdout) == expected, "{query}");
}

#[test]
fn filters_answer_as_guava_does() {
    let dir = Dir::new();
    for name in ["guava_mitz64_n1000_fpp0.03", "guava_mitz64_n5000_fpp0.001"] {
        let path = committed("guava").join(name).display().to_string();
        let rows = rows(format!("{path}.csv").as_ref());
        let keys: Vec<_> = rows.iter().map(|row| (&row[0][..], row[2] == "1")).collect();
        assert_answers(&dir, &format!("query {path}.bin --hex"), &keys);
        let info = dir.info(&format!("{path}.bin"));
        assert_eq!(
            (&info["format"], &info["strategy"]),
            (&"guava".into(), &"MURMUR128_MITZ_64".into())
        );
        assert_eq!(info["checksum"], Value::Null);
        assert!(info["estimated_keys"].as_u64().unwrap() > 900);
    }
    let path = committed("guava").join("guava_mitz64_n1000_fpp0.03.bin");
    let table = text(dir.ok(&format!("info {}", path.display())));
    assert_parts(&table, &["MURMUR128_MITZ_64", "words of 8 bytes", "115", "none: damage"]);
}

#[test]
fn filters_answer_as_spark_does() {
    let dir = Dir::new();
    for (name, version, seed) in
        [("spark_V1_n1000_fpp0.03", 1, 0), ("spark_V2_n5000_fpp0.001", 2, 12_345)]
    {
        let path = committed("spark").join(name).display().to_string();
        let rows = rows(format!("{path}.csv").as_ref());
        for (kind, options) in [("bin", "--hex"), ("long", "--type int64")] {
            let rows = rows.iter().filter(|row| row[0] == kind);
            let keys: Vec<_> = rows.map(|row| (&row[1][..], row[3] == "1")).collect();
            assert_eq!(keys.len(), 1_000);
            assert_answers(&dir, &format!("query {path}.bin {options}"), &keys);
        }
        let info = dir.info(&format!("{path}.bin"));
        assert_eq!(info["format"], "spark");
        assert_eq!((&info["version"], &info["seed"]), (&version.into(), &seed.into()));
        assert_parts(&dir.fails(&format!("query {path}.bin --type double")), &["double", "int64"]);
        let output = dir.run_with(&format!("query {path}.bin --type int64"), "seven\n");
        assert_parts(&stderr(&output), &["seven", "a whole number of 64 bits"]);
    }
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn dumps_answer_as_redisbloom_does() {
    let folder = external("redisbloom").expect("the folder of fixtures");
    let dir = Dir::new();
    for (name, links, size) in [
        ("bf_default_cap100_e0.01_n100", 1, 100),
        ("bf_default_cap100_e0.01_n2000_scaled", 5, 1_987),
    ] {
        let path = folder.join(name).display().to_string();
        let rows = rows(format!("{path}.csv").as_ref());
        let keys: Vec<_> = rows.iter().map(|row| (&row[0][..], row[2] == "1")).collect();
        assert_answers(&dir, &format!("query {path}.scandump --hex"), &keys);
        let info = dir.info(&format!("{path}.scandump"));
        assert_eq!((&info["format"], &info["keys"]), (&"redisbloom".into(), &size.into()));
        assert_eq!(info["links"].as_array().unwrap().len(), links);
        let table = text(dir.ok(&format!("info {path}.scandump")));
        assert_eq!(table.lines().filter(|line| line.ends_with('%')).count(), links + 1, "{table}");
    }
}

#[test]
fn built_filters_hold_their_keys() {
    let dir = Dir::new();
    dir.write("keys", (0..2_000).map(|i| format!("{i}\n")).collect::<String>());
    dir.write("more", (2_000..4_000).map(|i| format!("{i}\n")).collect::<String>());
    for (format, file, query) in [
        ("guava", "keys.guava", ""),
        ("spark", "keys.spark", ""),
        ("spark --spark-version 1 -o v1", "v1", ""),
        ("spark --type int64 -o longs", "longs", "--type int64"),
        ("redisbloom", "keys.scandump", ""),
        ("redisbloom --keys 300 -o grown", "grown", ""),
        ("redisbloom --fpr 0.001 --keys 5000 -o rare", "rare", ""),
        ("guava --fpr 0.0001 --keys 3000 -o large", "large", ""),
    ] {
        dir.ok(&format!("build keys --verify --format {format}"));
        let found = text(dir.ok(&format!("query {file} keys --count {query}")));
        assert_eq!(found, "2000\n", "{format}");
        let passed: u32 = text(dir.run(&format!("query {file} more --count {query}")).stdout)
            .trim()
            .parse()
            .unwrap();
        assert!(passed < 100, "{format}: {passed}");
        let info = dir.info(file);
        assert!(format.starts_with(info["format"].as_str().unwrap()), "{info}");
        let estimate = info["estimated_keys"].as_u64().unwrap();
        assert!((1_950..2_050).contains(&estimate), "{format}: {estimate}");
    }
    assert_eq!(dir.info("grown")["links"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&dir.info("v1")["version"], &dir.info("keys.spark")["version"]),
        (&1.into(), &2.into())
    );
    // An empty list of keys makes a filter all the same.
    dir.write("none", "");
    for format in ["guava", "spark", "redisbloom"] {
        dir.ok(&format!("build none --format {format} -o empty"));
        assert_eq!(text(dir.run("query empty keys --count").stdout), "0\n", "{format}");
    }
}

#[test]
fn options_of_other_formats_and_damage_are_errors() {
    let dir = Dir::new();
    dir.write("keys", "a\nb\n");
    for (arguments, parts) in [
        ("--format guava --bits-per-key 10", ["--bits-per-key is for", "not for guava"]),
        ("--format redisbloom --type int64", ["--type is for", "not for redisbloom"]),
        ("--format guava --spark-version 1", ["--spark-version is for spark", "not for guava"]),
        ("--format spark --type double", ["--type double", "int32, int64 or byte-array"]),
    ] {
        assert_parts(&dir.fails(&format!("build keys {arguments}")), &parts);
    }
    for format in ["guava", "spark", "redisbloom"] {
        dir.ok(&format!("build keys --format {format} -o whole"));
        let mut bytes = dir.read("whole");
        bytes.pop();
        dir.write("cut", &bytes);
        let message = dir.fails(&format!("query cut --format {format}"));
        assert_parts(&message, &["truncated", &format!("read as {format}"), "must not be used"]);
        // Without the option, only the dump is recognised, by its first bytes.
        let expected =
            if format == "redisbloom" { "read as redisbloom" } else { "not a recognised" };
        assert_parts(&dir.fails("info cut"), &[expected]);
    }
}
