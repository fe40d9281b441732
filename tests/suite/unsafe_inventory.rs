//! `docs/unsafe.md` lists every `unsafe` there is, and no test that is gone: a block that nobody argued for turns this red.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::repository::{files, is_left_out, is_published, relative, root};

const INVENTORY: &str = include_str!("../../docs/unsafe.md");

/// `unsafe` blocks, functions and impls of a file.
type Counts = [usize; 3];

/// Every `.rs` file of the library, the other packages, the bindings, the benches, the comparison, the examples and the tests, with its path from the
/// root, but for the program without std, which is not about the library's memory.
fn all_sources() -> BTreeMap<String, String> {
    let folders = ["src", "crates", "bindings", "benches", "compare", "examples", "tests"];
    let paths = folders.into_iter().flat_map(|folder| files(folder, "rs"));
    let paths = paths.filter(|path| !path.starts_with(root().join("tests/no_std")));
    let all: BTreeMap<String, String> =
        paths.map(|path| (relative(&path), fs::read_to_string(&path).unwrap())).collect();
    let least = if is_published() { 70 } else { 150 };
    assert!(all.len() > least, "only {} files were found", all.len());
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
        .filter(|(name, _)| name != "tests/suite/unsafe_inventory.rs")
        .map(|(name, source)| (name, count(&source)))
        .filter(|(_, counts)| *counts != [0; 3])
        .collect();

    let mut listed = BTreeMap::new();
    for row in INVENTORY.lines().filter(|line| line.starts_with('|') && line.contains(".rs` | ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let counts = [2, 3, 4].map(|cell| cells[cell].parse().unwrap());
        assert_eq!(listed.insert(cells[1].trim_matches('`').to_string(), counts), None, "{row}");
    }
    listed.retain(|name, _| !is_left_out(&root().join(name)));
    let names: BTreeSet<&String> = found.keys().chain(listed.keys()).collect();
    let differing: Vec<String> = names
        .into_iter()
        .filter(|name| listed.get(*name) != found.get(*name))
        .map(|name| format!("{name}: listed {:?}, found {:?}", listed.get(name), found.get(name)))
        .collect();
    assert!(differing.is_empty(), "blocks, functions, impls: {differing:#?}");
}

/// Names of tests are those of more than three words.
#[test]
fn the_tests_it_names_exist() {
    let all: String = all_sources().into_values().collect();
    let mut names = 0;
    for name in INVENTORY.split('`').skip(1).step_by(2) {
        let words = name.split('_').filter(|word| !word.is_empty()).count();
        if words > 3
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        {
            // The published package has not the tests of the others.
            assert!(is_published() || all.contains(&format!("fn {name}(")), "no test {name}");
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
