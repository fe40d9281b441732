//! The files of the repository, for tests that read them.
//!
//! The published package omits some directories (`exclude` in Cargo.toml); only there, they are
//! skipped.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The path from the root, with `/`.
pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/")
}

/// Files with this extension below a directory of the repository, in order, except for build output
/// and hidden directories.
pub(crate) fn files(directory: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let directory = root().join(directory);
    if directory.exists() || !is_left_out(&directory) {
        walk(&directory, extension, &mut found);
    }
    found.sort();
    found
}

fn walk(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir()
            && !["target", "node_modules"].contains(&&name[..])
            && !name.starts_with('.')
        {
            walk(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// The directories of the workspace's libraries and tools: the root and those below `crates`, with
/// a `/` at the end.
pub(crate) fn packages() -> Vec<String> {
    let manifests = files("crates", "toml");
    let manifests = manifests.iter().map(|path| relative(path));
    let below = manifests.filter_map(|path| Some(path.strip_suffix("Cargo.toml")?.to_owned()));
    let packages: Vec<String> = [String::new()].into_iter().chain(below).collect();
    assert!(packages.len() > 3 || is_published(), "only {packages:?} were found");
    packages
}

/// Whether these files are those of the published package, in which Cargo keeps the original
/// manifest.
pub(crate) fn is_published() -> bool {
    root().join("Cargo.toml.orig").exists()
}

/// Whether the published package omits the directory of this path, if this is the published
/// package.
pub(crate) fn is_left_out(path: &Path) -> bool {
    if !is_published() {
        return false;
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, list) = manifest.split_once("exclude = [").expect("Cargo.toml says what is left out");
    let (list, _) = list.split_once(']').unwrap();
    let mut names = list.split('"').skip(1).step_by(2);
    names.any(|name| path.starts_with(root().join(name.trim_start_matches('/'))))
}
