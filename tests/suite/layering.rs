//! Modules of the core use only lower modules, only kernels name instruction sets, and only `par_*`
//! functions use threads.
//!
//! The compiler checks that other packages use only the public interface.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::repository::{files, relative, root};

/// The modules of the core, lowest first. Each may use the preceding ones.
const ORDER: [&str; 20] = [
    "probe", "kernel", "checksum", "error", "bitmask", "prefix", "hash", "unmixed", "header",
    "params", "buffer", "threads", "stored", "batch", "filter", "parallel", "options", "builder",
    "make", "parts",
];

/// Modules with fewer allowed modules: kernels use only the probe scheme.
const ALLOWED: [(&str, &[&str]); 2] = [("probe", &[]), ("kernel", &["probe"])];

/// A file of the core's source, without comments and without unit tests, which are last in a file.
struct Source {
    name: String,
    /// The module below the crate's root that contains the file, and the depth of the file's
    /// module.
    module: String,
    depth: usize,
    code: String,
}

fn sources() -> Vec<Source> {
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
        let code: Vec<&str> = code.map(|line| line.split("//").next().unwrap()).collect();
        let name = relative(&path);
        let place = name.trim_start_matches("src/").trim_end_matches(".rs");
        let place = place.trim_end_matches("/mod");
        Source {
            module: place.split('/').next().unwrap().to_owned(),
            depth: place.split('/').count(),
            code: code.join("\n"),
            name,
        }
    };
    // The guides are documentation, not a compiled module.
    let is_layer = |source: &Source| !["src/lib.rs", "src/guides.rs"].contains(&&source.name[..]);
    files("src", "rs").into_iter().map(read).filter(is_layer).collect()
}

/// The first name of every path that begins with `start`, as in `crate::probe::bits`.
pub(crate) fn names_after<'c>(code: &'c str, start: &str) -> BTreeSet<&'c str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let paths = code.match_indices(start).filter(|&(at, _)| !code[..at].ends_with(is_word));
    let names = paths.map(|(at, _)| code[at + start.len()..].split(|c| !is_word(c)).next());
    names.flatten().collect()
}

/// The modules from which the crate's root re-exports names.
fn exported() -> BTreeMap<String, String> {
    let library = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let mut exported = BTreeMap::new();
    for (module, rest) in library.split("pub use ").skip(1).filter_map(|rest| rest.split_once("::"))
    {
        let names =
            rest.split(';').next().unwrap().split(|c: char| !c.is_alphanumeric() && c != '_');
        let names = names.filter(|name| !name.is_empty());
        exported.extend(names.map(|name| (name.to_owned(), module.to_owned())));
    }
    exported
}

/// The modules that a module may use.
fn allowed(module: &str) -> BTreeSet<&'static str> {
    let of = |list: &[(&str, &'static [&'static str])]| {
        list.iter().find(|(name, _)| *name == module).map(|(_, names)| names.to_vec())
    };
    if let Some(only) = of(&ALLOWED) {
        return only.into_iter().collect();
    }
    let place = ORDER.iter().position(|name| *name == module);
    let place = place.unwrap_or_else(|| panic!("give the module `{module}` its place in `ORDER`"));
    ORDER[..place].iter().copied().collect()
}

#[test]
fn modules_use_what_is_below_them() {
    let mut wrong = Vec::new();
    let (mut used, mut modules) = (BTreeSet::new(), BTreeSet::new());
    let exported = exported();
    for Source { name, module, depth, code } in sources() {
        let allowed = allowed(&module);
        // Macros write `$crate::` for paths in the crate that uses them.
        for path in names_after(&code.replace("$crate::", ""), "crate::") {
            // A list in braces has an empty name, which is not allowed.
            let other = exported.get(path).map_or(path, |module| module);
            if other != module && !allowed.contains(other) {
                wrong.push(format!("{name}: crate::{path}"));
            }
            used.insert((module.clone(), other.to_owned()));
        }
        // The check above would not detect paths from the root by `super`.
        if code.contains(&"super::".repeat(depth)) {
            wrong.push(format!("{name}: write crate:: for the root"));
        }
        modules.insert(module);
    }
    assert!(wrong.is_empty(), "uses that are not allowed: {wrong:#?}");
    for (module, names) in &ALLOWED {
        for name in *names {
            let pair = ((*module).to_owned(), (*name).to_owned());
            assert!(used.contains(&pair), "{module} no longer uses {name}: forbid it");
        }
    }
    assert!(ORDER.iter().all(|&name| modules.contains(name)), "in `ORDER`: what is not in src");
}

#[test]
fn instruction_sets_are_named_in_kernels_only() {
    let marks = ["core::arch", "std::arch", "target_feature", "is_x86_feature_detected"];
    let paths = files("src", "rs").into_iter().chain(files("crates", "rs"));
    let names = paths.filter_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        marks.into_iter().any(|mark| text.contains(mark)).then(|| relative(&path))
    });
    let (kernels, others): (Vec<String>, Vec<String>) =
        names.partition(|name| name.contains("/kernel/") || name.ends_with("/kernel.rs"));
    assert!(kernels.len() >= 5, "only {kernels:?}: are they written in another way?");
    assert!(others.is_empty(), "instruction sets are for kernels only, not for {others:?}");
}

/// Only functions whose names say so use threads.
#[test]
fn threads_are_named_in_parallel_functions_only() {
    let mut named = BTreeSet::new();
    for Source { name, mut code, .. } in sources() {
        if name == "src/buffer.rs" {
            let start = code.find("fn par_zeroed").expect("the function that clears in parallel");
            let end = start + code[start..].find("\n    }\n").unwrap();
            assert!(code[start..end].contains("rayon::"));
            code.replace_range(start..end, "");
        }
        if code.contains("rayon::") || code.contains("std::thread") {
            named.insert(name);
        }
    }
    let allowed = ["src/builder/collect.rs", "src/parallel.rs"].map(str::to_owned);
    assert_eq!(named, BTreeSet::from(allowed), "where threads are used");
}

#[test]
fn names_are_found_in_paths() {
    let code = "use crate::probe::{self, Block};\n(crate::error::E, my_crate::no, crate::Root, crate::{a})";
    assert_eq!(names_after(code, "crate::"), BTreeSet::from(["", "Root", "error", "probe"]));
}
