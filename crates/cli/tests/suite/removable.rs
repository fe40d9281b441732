//! The command-line tool and removable filters: built, recognised, described, looked up, and
//! refused where they are damaged.

use blocked_bloom_removable::{RemovableFilter, RemovableOptions};

use crate::tool::{Dir, assert_parts, stderr, words};

#[test]
fn filters_are_built_described_and_looked_up() {
    let dir = Dir::new();
    dir.write("words.txt", words());
    let output = dir.run("build words.txt --format removable --verify");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_parts(&stderr(&output), &["removable", "104334 keys", "3727 lines", "load 87.5 %"]);
    // Lookups of the finished filter are counted, so that none can be left out.
    assert_parts(&stderr(&output), &["stored, 104334 keys looked up again"]);
    let unverified = stderr(&dir.run("build words.txt --format removable"));
    assert!(!unverified.contains("looked up"), "{unverified}");
    let stored = dir.read("words.txt.tags");
    let filter = RemovableFilter::from_bytes_any_hash(&stored).unwrap();
    assert_eq!(filter.keys_inserted(), 104_334);
    // Recognised by its bytes, whatever its name.
    let selected = dir.ok("query words.txt.tags words.txt");
    assert_eq!(selected, words().into_bytes());
    dir.write("other", &stored);
    assert_eq!(
        dir.ok_with("query other - --absent", "apple\nqzqzq1\nqzqzq2\n"),
        b"qzqzq1\nqzqzq2\n"
    );
    let info = dir.info("other");
    assert_eq!(info["format"], "removable");
    assert_eq!((&info["keys"], &info["lines"]), (&104_334.into(), &3_727.into()));
    assert_eq!((&info["hash"], &info["seed"]), (&"xxh3-64".into(), &0.into()));
    assert_eq!(info["line_checksum_ok"], true);
    assert!((info["load"].as_f64().unwrap() - filter.load()).abs() < 1e-12);
    let table = String::from_utf8(dir.ok("info other")).unwrap();
    assert_parts(
        &table,
        &["removable, version 1", "3727 of 32 tags", "87.48 % of 119264", "0.085"],
    );
    // From a pipe, whose length is known from the header.
    let piped = String::from_utf8(dir.ok_with("info -", &stored)).unwrap();
    assert_parts(&piped, &["removable, version 1", "104334"]);
    // For more keys than there are.
    dir.ok("build words.txt --format removable --keys 200000 -o large.tags");
    assert_eq!(dir.info("large.tags")["lines"], 200_000_u32.div_ceil(28));
}

#[test]
fn rejects_filters_that_do_not_fit() {
    let dir = Dir::new();
    dir.write("same", "key\n".repeat(65));
    assert_parts(
        &dir.fails("build same --format removable"),
        &["both of its lines", "more than 64 times"],
    );
    dir.write("keys", "a\nb\n");
    for option in ["--bits-per-key 10", "--fpr 0.01", "--probes 3", "--seed 1"] {
        let message = dir.fails(&format!("build keys --format removable {option}"));
        assert_parts(&message, &["not for removable"]);
    }
    dir.ok("build keys --format removable");
    assert_parts(&dir.fails("merge keys.tags keys.tags -o both"), &["removable", "native filters"]);
    assert_parts(&dir.fails("query keys.tags keys --prefix fixed:1"), &["--prefix", "removable"]);
}

#[test]
fn damage_is_described_and_refused() {
    let dir = Dir::new();
    let mut filter = RemovableOptions::new(50).empty_filter().unwrap();
    filter.insert("apple").unwrap();
    let good = filter.to_bytes();
    let mut bytes = good.clone();
    bytes[100] ^= 1;
    dir.write("lines", &bytes);
    let output = dir.run("info lines");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&String::from_utf8(output.stdout).unwrap(), &["DAMAGED", "removable"]);
    assert_parts(&dir.fails_with("query lines -", "apple\n"), &["checksum", "absent"]);
    let mut bytes = good.clone();
    bytes[24] ^= 1;
    dir.write("header", &bytes);
    assert_parts(&dir.fails("info header"), &["header checksum"]);
    dir.write("short", &good[..150]);
    assert_parts(&dir.fails("info short"), &["150 bytes in all", "truncated"]);
}
