//! Filters that other systems wrote, with those systems' own answers.
//!
//! Some are in `tests/fixtures`. Others are files of those systems' projects and are not part of
//! this repository: they are read from the folder that the environment variable
//! `BLOCKED_BLOOM_FIXTURES` names, or from `../shared/fixtures`. A test whose files are missing
//! says so and passes, unless `BLOCKED_BLOOM_REQUIRE_FIXTURES` is set.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};

/// A folder of fixtures that are part of the repository.
pub(crate) fn committed(folder: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/fixtures").join(folder);
    assert!(path.is_dir(), "{} is missing", path.display());
    path
}

/// A folder of fixtures that are not part of the repository, if they are there.
#[allow(clippy::print_stdout, reason = "a run shows what it left out")]
pub(crate) fn external(folder: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("BLOCKED_BLOOM_FIXTURES") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"),
    };
    let path = root.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    let required = std::env::var_os("BLOCKED_BLOOM_REQUIRE_FIXTURES").is_some();
    assert!(!required, "{} is missing, and BLOCKED_BLOOM_REQUIRE_FIXTURES is set", path.display());
    println!("NOT RUN: no folder {}", path.display());
    None
}

/// The bytes of hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    assert!(digits.len().is_multiple_of(2), "{digits}");
    digits.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
