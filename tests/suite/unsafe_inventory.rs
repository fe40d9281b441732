//! `docs/unsafe.md` names every file with `unsafe` code, and no test that does not exist. Clippy
//! checks that each block has its argument (`undocumented_unsafe_blocks`,
//! `multiple_unsafe_ops_per_block`, `missing_safety_doc`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::repository::{files, is_left_out, is_published, relative, root};

const INVENTORY: &str = include_str!("../../docs/unsafe.md");

/// Every `.rs` file except those of separate programs, with its path from the root.
fn all_sources() -> BTreeMap<String, String> {
    let folders = ["src", "crates", "bindings", "benches", "compare", "examples", "tests"];
    let paths = folders.into_iter().flat_map(|folder| files(folder, "rs"));
    let paths = paths.filter(|path| !path.starts_with(root().join("tests/no_std")));
    paths.map(|path| (relative(&path), fs::read_to_string(&path).unwrap())).collect()
}

fn has_unsafe(source: &str) -> bool {
    let code = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = ["unsafe {", "unsafe fn ", "unsafe extern ", "unsafe impl"];
    code.into_iter().any(|line| words.iter().any(|word| line.contains(word)))
}

#[test]
fn the_inventory_has_every_file_with_unsafe() {
    let sources = all_sources().into_iter();
    // This file contains the words that it searches for.
    let sources = sources.filter(|(name, _)| name != "tests/suite/unsafe_inventory.rs");
    let found: BTreeSet<String> =
        sources.filter(|(_, source)| has_unsafe(source)).map(|(name, _)| name).collect();
    let (_, list) = INVENTORY.split_once("## Files").expect("the list of files");
    let list = list.split("\n## ").next().unwrap();
    let listed = list.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs"));
    let listed: BTreeSet<String> =
        listed.filter(|name| !is_left_out(&root().join(name))).map(str::to_owned).collect();
    let least = if is_published() { 15 } else { 45 };
    assert!(found.len() > least, "only {found:?}: is it written in another way?");
    let differing: Vec<_> = found.symmetric_difference(&listed).collect();
    assert!(differing.is_empty(), "listed or unsafe, but not both: {differing:#?}");
}

/// Names with more than three words are those of tests.
#[test]
fn the_tests_it_names_exist() {
    let all: String = all_sources().into_values().collect();
    let is_name = |name: &&str| {
        name.split('_').filter(|word| !word.is_empty()).count() > 3
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let names: Vec<&str> = INVENTORY.split('`').skip(1).step_by(2).filter(is_name).collect();
    // The published package does not contain the tests of the other packages.
    let lost = names.iter().filter(|name| !all.contains(&format!("fn {name}(")));
    let lost: Vec<_> = lost.filter(|_| !is_published()).collect();
    assert!(lost.is_empty() && names.len() > 15, "no test {lost:?}, of {} names", names.len());
}
