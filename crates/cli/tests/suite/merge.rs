//! `blocked-bloom merge`, run as a user runs it: which filters can be merged, and what is said of
//! those that cannot.

use blocked_bloom::Sizing;

use crate::tool::{Dir, assert_parts, lines, stderr};

#[test]
fn a_union_has_the_keys_of_all() {
    let dir = Dir::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| lines(name, 1_000));
    let all = format!("{a}{b}{c}");
    for (name, keys) in [("a", &a), ("b", &b), ("c", &c), ("all", &all)] {
        let args = format!("build - -o {name} --max-bytes 8KiB --probes 5");
        dir.ok_with(&args, keys);
    }
    let merged = dir.run("merge a b c -o abc");
    assert_parts(&stderr(&merged), &["abc: 3000 keys"]);
    assert_eq!(dir.read("abc"), dir.read("all"));
    assert!(dir.ok_with("query abc", &all) == all.as_bytes());
    assert_eq!(dir.ok("merge a b c -o - -q"), dir.read("all"));
    // The output may be one of the inputs, for those who say so.
    dir.ok("merge a b c -o b --overwrite");
    assert_eq!(dir.read("b"), dir.read("all"));
}

#[test]
fn filters_sized_for_the_same_keys_can_be_merged() {
    let dir = Dir::new();
    dir.write("few", lines("a", 10));
    dir.write("many", lines("b", 900));
    dir.ok("build few -o a -q --keys 1k --fpr 1%");
    dir.ok("build many -o b -q --keys 1_000 --fpr 0.01");
    dir.ok("merge a b -o ab -q");
    let both = dir.read("few").into_iter().chain(dir.read("many")).collect::<Vec<u8>>();
    assert_eq!(dir.ok_with("query ab", &both), both);
    let expected = Sizing::FalsePositiveRate(0.01).params(1_000).unwrap();
    assert_eq!(dir.read("ab").len() as u64, expected.stored_bytes());
    assert_eq!(dir.info("ab")["keys_inserted"], 910);
    assert_parts(&stderr(&dir.run("build few -o c --keys 0")), &["--keys", "whole number above 0"]);
}

#[test]
fn unions_that_cannot_be_name_both_files() {
    let dir = Dir::new();
    let keys = lines("key", 1_000);
    for (name, options) in [
        ("a", "--max-bytes 4KiB --probes 5"),
        ("blocks", "--max-bytes 8KiB --probes 5"),
        ("probes", "--max-bytes 4KiB --probes 6"),
        ("seed", "--max-bytes 4KiB --probes 5 --seed 9"),
    ] {
        dir.ok_with(&format!("build - -o {name} {options}"), &keys);
    }
    dir.ok_with("build - -o empty", "");
    let names = dir.names();
    assert_parts(&dir.fails("merge a blocks -o f"), &["a and blocks: ", "63", "127"]);
    assert_parts(&dir.fails("merge a a probes -o f"), &["a and probes: ", "5 and 6 probes"]);
    assert_parts(&dir.fails("merge a seed -o f"), &["a and seed: ", "seed 0", "seed 9"]);
    // An empty filter has a shape, too.
    assert_parts(&dir.fails("merge empty a -o f"), &["empty and a: ", "1 and 63 blocks"]);
    assert_parts(&dir.fails("merge a empty -o f"), &["a and empty: ", "63 and 1 blocks"]);
    assert_eq!(dir.names(), names);
}

#[test]
fn a_union_that_passes_all_is_warned_of() {
    let dir = Dir::new();
    dir.ok_with("build - -o few --keys 100", lines("few", 10));
    dir.ok_with("build - -o many --keys 1000", lines("many", 20));
    dir.ok_with("build - -o all --bits-per-key 0", lines("all", 5));
    dir.ok_with("build - -o seed --seed 9", lines("seed", 10));
    for inputs in ["few all many", "all few many", "all many few -q"] {
        let merged = dir.run(&format!("merge {inputs} -o f"));
        assert_eq!(merged.status.code(), Some(0), "{inputs}");
        let message = stderr(&merged);
        assert_parts(&message, &["warning: all: ", "so does the union", "\"maybe\" for every key"]);
        assert_eq!(message.lines().count(), if inputs.ends_with("-q") { 1 } else { 2 });
        let info = dir.info("f");
        assert_eq!((&info["pass_all"], &info["keys_inserted"]), (&true.into(), &35.into()));
        assert_eq!(dir.ok_with("query f", "other\n"), b"other\n");
    }
    assert_parts(&dir.fails("merge few many all -o g"), &["few and many: "]);
    assert_parts(&dir.fails("merge all seed -o g"), &["all and seed: ", "seed 0", "seed 9"]);
    assert_parts(&dir.fails("merge seed all -o g"), &["seed and all: ", "seed 9", "seed 0"]);
    assert!(!dir.path("g").exists());
    assert!(!stderr(&dir.run("merge few few -o f")).contains("warning"));
}
