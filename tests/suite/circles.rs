//! The modules of a crate do not import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::layering::names_after;
use crate::repository::{files, is_published, relative};

/// For each module directly below a crate's root, the modules that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Folders with the root module of a crate.
fn crates() -> Vec<String> {
    let paths = ["src", "crates", "benches/src", "compare/src"].map(|folder| files(folder, "rs"));
    let roots = paths.into_iter().flatten().filter(|path| {
        let name = path.file_name().unwrap();
        (name == "lib.rs" || name == "main.rs")
            && path.components().any(|part| part.as_os_str() == "src")
    });
    let folders: BTreeSet<String> = roots.map(|root| relative(root.parent().unwrap())).collect();
    folders.into_iter().collect()
}

/// The code of a file before its unit tests, without comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    // What follows an annotation of one item is code like any other.
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The first names of paths from the crate's root, those in braces too.
fn paths_from_root(code: &str) -> BTreeSet<&str> {
    let mut names = names_after(code, "crate::");
    for list in code.split("crate::{").skip(1) {
        let mut depth = 0;
        let is_outer = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth < 0 || (depth == 0 && c == ',')
        };
        for item in list.split(is_outer) {
            names.extend(item.split("::").next().map(str::trim));
            if item.contains(';') {
                break;
            }
        }
    }
    names
}

/// The imports of the crate in this folder.
fn imports(folder: &str) -> Imports {
    let prefix = format!("{folder}/");
    let mut code_of: BTreeMap<String, String> = BTreeMap::new();
    let mut exports = BTreeMap::new();
    for path in files(folder, "rs") {
        let name = relative(&path);
        let name = name.strip_prefix(&prefix).unwrap();
        // Programs are separate crates, and a file of tests may import anything.
        if name.starts_with("bin/") || name.ends_with("tests.rs") {
            continue;
        }
        let code = code(&path);
        if name == "lib.rs" || name == "main.rs" {
            for item in code.split("use ").skip(1) {
                let item = item.split(';').next().unwrap();
                let item = item.strip_prefix("crate::").unwrap_or(item);
                let Some((module, names)) = item.split_once("::") else { continue };
                let names = names.split(|c: char| !c.is_alphanumeric() && c != '_');
                exports.extend(names.map(|name| (name.to_owned(), module.to_owned())));
            }
        } else {
            let module = name.trim_end_matches(".rs").split('/').next().unwrap();
            *code_of.entry(module.to_owned()).or_default() += &code;
        }
    }
    let of_module = |(module, code): (&String, &String)| {
        let names = paths_from_root(code).into_iter();
        let names = names.map(|name| exports.get(name).map_or(name, |module| module));
        let others = names.filter(|name| name != module && code_of.contains_key(*name));
        (module.clone(), others.map(str::to_owned).collect())
    };
    code_of.iter().map(of_module).collect()
}

/// Returns the modules that are part of a circle or import one: repeatedly removes modules whose
/// imports were all removed.
fn circle(mut imports: Imports) -> Imports {
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        imports.values_mut().for_each(|others| others.retain(|other| left.contains(other)));
        imports.retain(|_, others| !others.is_empty());
        if imports.len() == left.len() {
            return imports;
        }
    }
}

#[test]
fn modules_are_not_imported_in_circles() {
    let crates = crates();
    assert!(crates.len() >= 14 || is_published(), "only {crates:?}");
    for folder in crates {
        let imports = imports(&folder);
        assert!(!imports.is_empty(), "{folder} has no modules");
        let circle = circle(imports);
        assert!(circle.is_empty(), "{folder}: a circle of imports among {circle:#?}");
    }
}

#[test]
fn a_circle_is_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (module, other) in edges {
            imports.entry((*module).to_owned()).or_default().insert((*other).to_owned());
            imports.entry((*other).to_owned()).or_default();
        }
        circle(imports).into_keys().collect::<Vec<_>>()
    };
    assert!(graph(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    assert_eq!(graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]), ["a", "b", "c"]);
}

#[test]
fn paths_in_braces_are_found() {
    let code = "use crate::a::X;\nuse crate::{b, c::{D, e}, f::G};\nlet x = crate::h::i();";
    let names: Vec<&str> = paths_from_root(code).into_iter().filter(|n| !n.is_empty()).collect();
    assert_eq!(names, ["a", "b", "c", "f", "h"]);
}

#[test]
fn imports_of_the_core_are_found() {
    let imports = imports("src");
    assert!(imports["kernel"].contains("probe"), "{imports:#?}");
    assert!(imports["filter"].contains("header"), "{imports:#?}");
}
