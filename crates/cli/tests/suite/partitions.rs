//! The command-line tool and partitioned filters: an index, and the file of its partitions.

use std::fmt::Write;
use std::path::Path;

use crate::tool::{Dir, assert_parts, stderr, text};

/// A directory with the index and the partitions of the golden filter `name`.
fn golden(name: &str) -> Dir {
    let dir = Dir::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lsm/tests/golden");
    for (ending, to) in [("index", "index"), ("blooms", "parts")] {
        dir.copy(&folder.join(format!("{name}.{ending}")), to);
    }
    dir
}

/// The keys of these numbers, as the golden filters have them.
fn keys(numbers: impl Iterator<Item = u32>) -> String {
    numbers.fold(String::new(), |mut keys, number| {
        writeln!(keys, "{number:08x}").unwrap();
        keys
    })
}

/// The golden filter has the multiples of 7 below 2,100; others that it passes are written down.
#[test]
fn a_partitioned_filter_is_queried_by_its_index_and_its_partitions() {
    let dir = golden("partitions");
    let passed = [
        23, 44, 495, 755, 1014, 1070, 1135, 1138, 1221, 1266, 1290, 1314, 1347, 1376, 1399, 1784,
        1856,
    ];
    let all = keys(0..2_300);
    let is_maybe =
        |number: &u32| (number.is_multiple_of(7) && *number < 2_100) || passed.contains(number);
    let query = "query index - --partitions parts --hex";
    let output = dir.run_with(query, &all);
    assert_eq!((output.status.code(), &stderr(&output)[..]), (Some(0), ""));
    assert_eq!(text(output.stdout), keys((0..2_300).filter(is_maybe)));
    let absent = text(dir.ok_with(&format!("{query} --absent"), &all));
    assert_eq!(absent, keys((0..2_300).filter(|number| !is_maybe(number))));
    let output = dir.run_with(query, "00000001\n");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    // The index from standard input.
    dir.write("keys", &all);
    let from_stdin =
        dir.ok_with("query - keys --partitions parts --hex --count", dir.read("index"));
    assert_eq!(text(from_stdin), format!("{}\n", 300 + passed.len()));

    assert_eq!(dir.info("index")["estimated_false_positive_rate"], serde_json::Value::Null);
    let facts = dir.info("index --partitions parts");
    assert_eq!(facts["format"], "partition-index");
    let rate = facts["estimated_false_positive_rate"].as_f64().unwrap();
    assert!((0.001..0.1).contains(&rate), "{rate}");
}

#[test]
fn prefixes_are_queried_by_the_rule_they_were_built_with() {
    let dir = golden("partitions-prefixes");
    let query = "query index - --partitions parts --hex";
    let all = keys(0..2_100);
    assert_eq!(text(dir.ok_with(&format!("{query} --prefix fixed:3"), &all)), all);
    let absent = keys((10..40).map(|number| number << 8));
    let output = dir.run_with(&format!("{query} --prefix fixed:3 --count"), absent);
    assert!(text(output.stdout).trim().parse::<u32>().unwrap() < 10);
    assert_parts(&dir.fails(&format!("{query} --prefix own")), &["index: ", "not own"]);
    let output = dir.run_with(&format!("{query} --prefix fixed:2 --count"), "ffffffff\n");
    assert_parts(&stderr(&output), &["warning: index: ", "\"maybe\" for every key"]);
}

#[test]
fn damage_and_wrong_files_are_named() {
    let dir = golden("partitions");
    let message = dir.fails("query index");
    assert_parts(&message, &["index: this is the index of a partitioned", "by --partitions"]);
    let query = "query index - --partitions parts --hex";

    let mut parts = dir.read("parts");
    parts[100] ^= 1;
    dir.write("parts", &parts);
    let output = dir.run_with(query, "00000001\n");
    // The key belongs to the damaged first partition, so the answer is "maybe".
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"00000001\n"[..]));
    assert_parts(
        &stderr(&output),
        &["warning: index: 1 of ", "partitions cannot be used (partition 0: ", "\"maybe\""],
    );
    let output = dir.run("info index --partitions parts");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&text(output.stdout.clone()), &["DAMAGED: 1 of "]);
    assert_parts(&stderr(&output), &["error: index: 1 of "]);

    dir.write("parts", &parts[..parts.len() - 64]);
    let (found, expected) = (parts.len() - 64, parts.len());
    let lengths = format!(": {found} bytes in all, expected {expected}");
    assert_parts(&dir.fails(query), &["parts: ", &lengths]);
    dir.write("swapped", dir.read("index"));
    assert_parts(&dir.fails("query index - --partitions swapped"), &["swapped: "]);
    assert_parts(&dir.fails("query index - --partitions nothing"), &["nothing: cannot open: "]);
    let message = dir.fails("query index keys --partitions -");
    assert_parts(&message, &["--partitions: give a file, not standard input"]);
    dir.ok_with("build - -o native", "apple\n");
    let message = dir.fails("query native - --partitions parts");
    assert_parts(&message, &["--partitions is for partition-index, not for native"]);
    let mut index = dir.read("index");
    index[70] ^= 1;
    dir.write("index", index);
    assert_parts(&dir.fails(query), &["index: offset 48: checksum "]);
    assert_parts(&dir.fails("merge index native -o out"), &["index: ", "only native filters"]);
}
