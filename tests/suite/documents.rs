//! Links in the documents: every link and picture exists, every page can be reached, and every
//! page's Rust code is compiled.
//!
//! Links to other sites are not followed. The lint `missing_docs` checks that every public item is
//! documented, and `tools/public-api.sh` that every public type has an example.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::repository::{files, is_left_out, is_published, packages, relative, root};

/// The README and the guides of every package.
fn guides() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for package in packages() {
        let readme = root().join(&package).join("README.md");
        pages.extend(readme.exists().then_some(readme));
        if root().join(&package).join("docs").exists() {
            pages.extend(files(&format!("{package}docs"), "md"));
        }
    }
    pages
}

/// A document as a browser shows it.
struct Page {
    /// The names of anchors, after `#`.
    anchors: BTreeSet<String>,
    /// Targets of links and pictures, and their lines.
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

    /// Whether rustdoc would compile part of it.
    fn has_rust(&self) -> bool {
        self.fences.iter().any(|(_, words)| words.split(',').next() == Some("rust"))
    }

    /// The pages and files of the repository to which it links.
    fn targets<'p>(&'p self, path: &'p Path) -> impl Iterator<Item = PathBuf> + 'p {
        let files = self.links.iter().map(|(_, link)| link.split('#').next().unwrap_or_default());
        files.map(move |file| resolve(path, file))
    }
}

/// GitHub's anchor of a title: the texts of its links, small letters, digits, `-` and `_`, with `-`
/// for blanks.
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

/// The targets in a line: `[text](target)`, `![text](target "title")`, `[name]: target`,
/// `src="target"`, `href="target"`.
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

/// Returns the path without `..`; it need not exist.
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
    let paths = files("", "md").into_iter();
    let pages: BTreeMap<PathBuf, Page> =
        paths.map(|path| (path.clone(), Page::read(&path))).collect();
    let mut broken = Vec::new();
    let mut followed = 0;
    for (path, page) in &pages {
        for (line, link) in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { resolve(path, file) };
            if is_left_out(&target) {
                continue;
            }
            followed += 1;
            // No path may leave the repository.
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
    let mut reached = BTreeSet::new();
    let mut next = vec![root().join("README.md")];
    while let Some(path) = next.pop() {
        if path.extension().is_some_and(|extension| extension == "md")
            && path.exists()
            && reached.insert(path.clone())
        {
            next.extend(Page::read(&path).targets(&path));
        }
    }
    let lost: Vec<String> = guides()
        .iter()
        .filter(|&page| !reached.contains(page))
        .map(|page| relative(page))
        .collect();
    assert!(lost.is_empty(), "no way leads from README.md to {lost:?}");
}

/// The names in `pages!(..)` of `src/guides.rs`, and whether their code is compiled there.
fn guides_by_name(text: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (before, list) in text.match_indices("pages!(").map(|(at, _)| text.split_at(at)) {
        let is_shown_only = before.trim_end().ends_with("#[cfg(not(doctest))]");
        let list = list.trim_start_matches("pages!(").split(");").next().unwrap();
        found.extend(list.split(',').map(|name| (name.trim().to_owned(), !is_shown_only)));
    }
    found
}

/// The pages whose code rustdoc compiles and runs together with a package's own code: those that
/// `src/lib.rs` and `src/guides.rs` include.
fn compiled() -> BTreeSet<PathBuf> {
    let mut pages = BTreeSet::new();
    // A separate package compiles the pages of the packages in `crates`.
    for package in packages().into_iter().chain(["tests/guides".into()]) {
        for file in ["src/lib.rs", "src/guides.rs", "lib.rs"] {
            let path = root().join(&package).join(file);
            let text = fs::read_to_string(&path).unwrap_or_default();
            let included = text.lines().filter_map(|line| line.split_once("include_str!(\""));
            pages.extend(included.map(|(_, rest)| resolve(&path, rest.split('"').next().unwrap())));
            // Some pages are only shown, since another package compiles them.
            let shown = guides_by_name(&text).into_iter().filter(|(_, is_compiled)| *is_compiled);
            pages.extend(shown.map(|(name, _)| root().join(format!("docs/{name}.md"))));
        }
    }
    pages
}

#[test]
fn the_code_of_every_page_is_compiled() {
    let compiled = compiled();
    let mut with_rust = 0;
    for path in guides() {
        let (page, name) = (Page::read(&path), relative(&path));
        for (line, words) in &page.fences {
            assert!(!words.is_empty(), "{name}:{line}: say which language it is, or `text`");
            let skipped =
                ["ignore", "no_run", "compile_fail"].into_iter().find(|word| words.contains(word));
            assert_eq!(skipped, None, "{name}:{line}: code that does not run");
        }
        // The package has pages that other packages compile.
        let is_compiled = compiled.contains(&path) || is_published();
        assert!(is_compiled || !page.has_rust(), "{name} must be in a `mod documents`");
        with_rust += u32::from(page.has_rust());
    }
    assert!(with_rust > 10, "only {with_rust} pages with code were found");
}

/// rustdoc shows the guides as modules, where links to files are broken. Every target is therefore
/// a named definition at the end of a page, which `docs/rustdoc-links.txt` redefines as the module.
#[test]
fn links_between_guides_lead_to_modules_in_rustdoc() {
    let modules = fs::read_to_string(root().join("src/guides.rs")).unwrap();
    let definitions = fs::read_to_string(root().join("docs/rustdoc-links.txt")).unwrap();
    let mut checked = 0;
    for path in files("docs", "md").into_iter().chain([root().join("SECURITY.md")]) {
        let text = fs::read_to_string(&path).unwrap();
        let page = format!("/{}\"));", relative(&path));
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_shown = guides_by_name(&modules).iter().any(|(shown, _)| shown == name);
        let about = relative(&path);
        assert!(is_shown || modules.contains(&page), "src/guides.rs does not show {about}");
        for name in text.split("][").skip(1).filter_map(|rest| rest.split_once(']')) {
            let definition = format!("\n[{}]: ", name.0);
            let is_link = name.0.contains(".md") || name.0.contains(".svg");
            assert!(
                !is_link || text.contains(&definition),
                "{}: define [{}]",
                relative(&path),
                name.0
            );
        }
        for (line, link) in Page::read(&path).links {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            let place = format!("{}:{line}: {link}", relative(&path));
            let name = link.trim_start_matches("../").trim_start_matches("docs/");
            let definition = format!("[{name}]: {link}");
            assert!(text.lines().any(|line| line == definition), "{place}: write [text][{name}]");
            let module = format!("\n[{name}]: crate::guides");
            assert!(definitions.contains(&module), "{place}: define it in docs/rustdoc-links.txt");
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} links were found: are they written in another way?");
}
