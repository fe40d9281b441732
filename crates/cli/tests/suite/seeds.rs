//! A seed given to `build` is that of every lookup: no key is lost, whatever built the filter.

use crate::tool::{Dir, assert_parts, lines, stderr};

/// Options of `build` for a hundred thousand keys, and the seed that the filter then has.
const BUILDS: [(&str, u64); 10] = [
    ("--seed 7", 7),
    ("--seed 7 --threads 2", 7),
    ("--seed 7 --threads 2 --keys 100k", 7),
    ("--seed 7 --threads 2 --max-memory 100K", 7),
    ("--seed 7 --threads 2 --prefix fixed:6", 7),
    ("--seed 18446744073709551615 --verify", u64::MAX),
    ("--format ribbon --seed 7", 7),
    ("--format ribbon --seed 7 --threads 2", 7),
    ("--format ribbon --seed 7 --verify", 7),
    // Has no seed to give.
    ("--format removable", 0),
];

#[test]
fn every_key_is_found_again() {
    let dir = Dir::new();
    let (keys, others) = (lines("key", 100_000), lines("other", 20_000));
    dir.write("keys", &keys);
    for (options, seed) in BUILDS {
        dir.ok(&format!("build keys -o f -q {options}"));
        assert_eq!(dir.info("f")["seed"], seed, "{options}");
        assert!(dir.ok("query f keys") == keys.as_bytes(), "{options}: a key is lost");
        // Not because every answer is "maybe".
        let passed = dir.run_with("query f", &others).stdout;
        let passed = passed.iter().filter(|&&byte| byte == b'\n').count();
        assert!(passed < 400, "{options}: {passed} of 20000");
    }
}

#[test]
fn prefixes_and_unions_have_the_seed_of_their_keys() {
    let dir = Dir::new();
    let [a, b] = ["a", "b"].map(|name| lines(name, 50_000));
    let both = format!("{a}{b}");
    for (name, keys) in [("a", &a), ("b", &b)] {
        dir.ok_with(&format!("build - -o {name} -q --keys 100k --seed 7 --threads 2"), keys);
    }
    dir.ok("merge a b -o ab -q");
    assert_eq!(dir.info("ab")["seed"], 7);
    assert!(dir.ok_with("query ab", &both) == both.as_bytes());

    let rule = "--prefix fixed:3";
    dir.ok_with(&format!("build - -o prefixes -q --seed 7 --only-prefixes {rule}"), &both);
    let found = dir.run_with(&format!("query prefixes {rule}"), &both);
    assert!(found.stdout == both.as_bytes());
    assert_parts(&stderr(&dir.run_with("query prefixes", "a\n")), &["not keys"]);
}
