//! The documents hold together: every link and picture exists, every page's Rust code is compiled, every public item has an example.
//!
//! Links to other sites are not followed. The published package leaves some directories out (`exclude` in Cargo.toml); there, and
//! only there, links into them are passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files with this extension below `directory`, but for build output and hidden directories.
fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/")
}

/// The directories that the package leaves out, if this is the package: Cargo keeps the original manifest in it.
fn left_out() -> Vec<PathBuf> {
    if !root().join("Cargo.toml.orig").exists() {
        return Vec::new();
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, list) = manifest.split_once("exclude = [").expect("Cargo.toml says what is left out");
    let (list, _) = list.split_once(']').unwrap();
    let names = list.split('"').skip(1).step_by(2);
    names.map(|name| root().join(name.trim_start_matches('/'))).collect()
}

/// A document as a reader's browser has it.
struct Page {
    /// The names that `#` can lead to.
    anchors: BTreeSet<String>,
    /// Targets of links and pictures, and the lines they are on.
    links: Vec<(usize, String)>,
    /// The words after the opening fence of each block of code, and its line.
    fences: Vec<(usize, String)>,
}

impl Page {
    fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap();
        let mut page = Page { anchors: BTreeSet::new(), links: Vec::new(), fences: Vec::new() };
        let mut seen = BTreeMap::new();
        let mut in_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(words) = line.trim_start().strip_prefix("```") {
                if !in_code {
                    page.fences.push((number, words.trim().to_owned()));
                }
                in_code = !in_code;
                continue;
            }
            if in_code {
                continue;
            }
            let title = line.trim_start_matches('#');
            if title.len() < line.len() && title.starts_with(' ') {
                let anchor = anchor(title.trim());
                let count = seen.entry(anchor.clone()).or_insert(0);
                page.anchors.insert(match *count {
                    0 => anchor,
                    count => format!("{anchor}-{count}"),
                });
                *count += 1;
            }
            page.links.extend(links(line).into_iter().map(|link| (number, link)));
        }
        assert!(!in_code, "{}: a block of code does not end", relative(path));
        page
    }

    /// Whether rustdoc would compile something of it.
    fn has_rust(&self) -> bool {
        self.fences.iter().any(|(_, words)| words.split(',').next() == Some("rust"))
    }
}

/// What GitHub makes of a title: its links' texts, small letters, digits, `-` and `_`, with `-` for blanks.
fn anchor(title: &str) -> String {
    let mut text = String::new();
    let mut rest = title;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// The targets in a line: `[text](target)`, `![text](target "title")`, `[name]: target`, `src="target"`, `href="target"`.
fn links(line: &str) -> Vec<String> {
    // Every second part is code.
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let mut found = Vec::new();
    let mut take = |target: &str| {
        let target = target.split([' ', '"']).next().unwrap_or_default();
        found.push(target.trim_matches(['<', '>']).to_owned());
    };
    for after in text.split("](").skip(1) {
        take(after.split(')').next().unwrap_or_default());
    }
    for attribute in ["src=\"", "href=\"", "srcset=\""] {
        text.split(attribute).skip(1).for_each(&mut take);
    }
    if text.starts_with('[')
        && let Some((_, target)) = text.split_once("]: ")
    {
        take(target.trim());
    }
    found
}

/// The path without `..`: it need not exist.
fn resolve(from: &Path, target: &str) -> PathBuf {
    let mut path = from.parent().unwrap().to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_link_leads_somewhere() {
    let left_out = left_out();
    let mut paths = Vec::new();
    files(root(), "md", &mut paths);
    let pages: BTreeMap<PathBuf, Page> =
        paths.into_iter().map(|path| (path.clone(), Page::read(&path))).collect();
    let mut broken = Vec::new();
    let mut followed = 0;
    for (path, page) in &pages {
        for (line, link) in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { resolve(path, file) };
            if left_out.iter().any(|directory| target.starts_with(directory)) {
                continue;
            }
            followed += 1;
            // Outside of the repository is nowhere, whatever lies beside it here.
            let exists = target.starts_with(root()) && target.exists();
            let has_anchor =
                || pages.get(&target).is_some_and(|page| page.anchors.contains(anchor));
            if !exists || !anchor.is_empty() && !has_anchor() {
                broken.push(format!("{}:{line}: {link}", relative(path)));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    assert!(followed > 30, "only {followed} links were found: are they written in another way?");
}

#[test]
fn every_page_can_be_reached() {
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    let mut reached = BTreeSet::new();
    let mut next = vec![root().join("README.md")];
    while let Some(path) = next.pop() {
        if path.extension().is_some_and(|extension| extension == "md")
            && path.exists()
            && reached.insert(path.clone())
        {
            let links = Page::read(&path).links;
            let files = links.iter().map(|(_, link)| link.split('#').next().unwrap_or_default());
            next.extend(files.map(|file| resolve(&path, file)));
        }
    }
    pages.retain(|page| !reached.contains(page));
    let lost: Vec<String> = pages.iter().map(|page| relative(page)).collect();
    assert!(lost.is_empty(), "no way leads from README.md to {lost:?}");
}

/// rustdoc compiles and runs what `documents` in src/lib.rs includes.
#[test]
fn the_code_of_every_page_is_compiled() {
    let library = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let mut paths = vec![root().join("README.md")];
    files(&root().join("docs"), "md", &mut paths);
    for path in paths {
        let (page, name) = (Page::read(&path), relative(&path));
        for (line, words) in &page.fences {
            assert!(!words.is_empty(), "{name}:{line}: say which language it is, or `text`");
            let skipped =
                ["ignore", "no_run", "compile_fail"].into_iter().find(|word| words.contains(word));
            assert_eq!(skipped, None, "{name}:{line}: code that does not run");
        }
        let included = library.contains(&format!("#[doc = include_str!(\"../{name}\")]"));
        assert!(included || !page.has_rust(), "{name} belongs into `documents` in src/lib.rs");
    }
}

/// By the source: an item that is written `pub` can be reached from outside, or the lint `unreachable_pub` objects.
#[test]
fn every_public_item_has_an_example() {
    let mut paths = Vec::new();
    files(&root().join("src"), "rs", &mut paths);
    paths.retain(|path| !path.starts_with(root().join("src/bin")));
    let mut lacking = Vec::new();
    let mut items = 0;
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let mut has_example = false;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_start();
            if line.starts_with("///") {
                has_example |= line.contains("```");
                continue;
            }
            let declares =
                |kind: &str| line.strip_prefix("pub ").is_some_and(|rest| rest.starts_with(kind));
            if ["const ", "enum ", "fn ", "static ", "struct ", "trait ", "type "]
                .into_iter()
                .any(declares)
            {
                items += 1;
                if !has_example {
                    lacking.push(format!("{}:{number}: {line}", relative(&path)));
                }
            }
            // Attributes, over one line or several, stand between the example and the item.
            if line.ends_with(['{', '}', ';', ',']) || line.is_empty() {
                has_example = false;
            }
        }
    }
    assert!(lacking.is_empty(), "without an example:\n{}", lacking.join("\n"));
    assert!(items > 300, "only {items} public items were found: are they written in another way?");
}
