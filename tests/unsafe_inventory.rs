//! `docs/unsafe.md` lists every `unsafe` there is, and no test that is gone: a block that nobody argued for turns this red.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const INVENTORY: &str = include_str!("../docs/unsafe.md");

/// `unsafe` blocks, functions and impls of a file.
type Counts = [usize; 3];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every `.rs` file below `folder` with its path from the root, but those of other crates.
fn sources(folder: &Path, into: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.join("Cargo.toml").exists() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            into.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

fn all_sources() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for folder in ["src", "tests", "examples", "benches"] {
        sources(&root().join(folder), &mut all);
    }
    assert!(all.len() > 100);
    all
}

/// The words and marks of the code and of literals, without comments.
fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for line in source.lines() {
        let code = line.find("//").map_or(line, |comment| &line[..comment]);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut rest = code.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match is_word(first) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            tokens.push(&rest[..length]);
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

fn count(source: &str) -> Counts {
    let tokens = tokens(source);
    let mut counts = [0; 3];
    for (i, _) in tokens.iter().enumerate().filter(|(_, token)| **token == "unsafe") {
        match tokens[i + 1..] {
            ["{", ..] => counts[0] += 1,
            // The type of a pointer.
            ["fn", "(", ..] => {}
            ["fn", ..] | ["extern", "\"", _, "\"", "fn", ..] => counts[1] += 1,
            ["impl", ..] => counts[2] += 1,
            ["extern" | "(", ..] | ["trait", _, "{" | ":" | "<", ..] => {
                panic!("an `unsafe` that the inventory has no column for: {:?}", &tokens[i..][..4])
            }
            // A word in a literal.
            _ => {}
        }
    }
    counts
}

#[test]
fn the_inventory_has_every_unsafe() {
    let found: BTreeMap<String, Counts> = all_sources()
        .into_iter()
        // It names what it looks for.
        .filter(|(name, _)| name != "tests/unsafe_inventory.rs")
        .map(|(name, source)| (name, count(&source)))
        .filter(|(_, counts)| *counts != [0; 3])
        .collect();

    let mut listed = BTreeMap::new();
    for row in INVENTORY.lines().filter(|line| line.starts_with('|') && line.contains(".rs` | ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let counts = [2, 3, 4].map(|cell| cells[cell].parse().unwrap());
        assert_eq!(listed.insert(cells[1].trim_matches('`').to_string(), counts), None, "{row}");
    }
    let names: BTreeSet<&String> = found.keys().chain(listed.keys()).collect();
    let differing: Vec<String> = names
        .into_iter()
        .filter(|name| listed.get(*name) != found.get(*name))
        .map(|name| format!("{name}: listed {:?}, found {:?}", listed.get(name), found.get(name)))
        .collect();
    assert!(differing.is_empty(), "blocks, functions, impls: {differing:#?}");
}

/// Names of tests are told from other code by their length.
#[test]
fn the_tests_it_names_exist() {
    let all: String = all_sources().into_values().collect();
    let mut names = 0;
    for name in INVENTORY.split('`').skip(1).step_by(2) {
        let words = name.split('_').filter(|word| !word.is_empty()).count();
        if words > 3
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        {
            assert!(all.contains(&format!("fn {name}(")), "no test {name}");
            names += 1;
        }
    }
    assert!(names > 15);
}

#[test]
fn counting_sees_code_and_not_comments() {
    let code = "unsafe impl Send for A {} // unsafe { b() }\npub unsafe fn c(d: unsafe fn(u8)) { unsafe\n{ e() } }\n\
                unsafe extern \"C\" fn f() {}";
    assert_eq!(count(code), [1, 2, 1]);
}
