//! Fills the marked blocks and numbers of the pages from the files in `benches/results`, and draws
//! a picture. With `--check` it only reports differences.
//!
//! A block is the text between the lines `<!-- figures: NAME -->` and `<!-- /figures -->`; `blocks`
//! defines the names. A number stands between `<!--=KEY-->` and `<!--/-->` in a line; `store`
//! defines the keys. Marks in code blocks are ignored.

mod blocks;
mod cells;
mod names;
mod pages;
mod pictures;
mod store;
#[cfg(test)]
mod tests;
mod wins;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::store::Store;

/// Fills the pages with the figures of benches/results.
#[derive(Debug, Parser)]
struct Arguments {
    /// Write nothing; fail if a page differs from the results.
    #[arg(long = "check")]
    is_check: bool,

    /// The repository.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    root: PathBuf,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments { is_check, root } = Arguments::parse();
    let problems = run(&root, is_check)?;
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    if !problems.is_empty() {
        let how = "cargo run -p blocked-bloom-benches --bin figures";
        eprintln!("figures: pages do not agree with benches/results; `{how}` fills them");
    }
    Ok(ExitCode::from(u8::from(!problems.is_empty())))
}

/// Fills or checks all pages, and returns each problem with its page and line.
fn run(root: &Path, is_check: bool) -> Result<Vec<String>, Box<dyn Error>> {
    let store = Store::read(&root.join("benches/results"))?;
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    let mut problems = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let page = pages::fill(&text, &|key| store.text(key), &|name| blocks::text(&store, name));
        let name = path.strip_prefix(root).unwrap_or(&path).display();
        let differences = page.differences.iter().filter(|_| is_check);
        let found = page.errors.iter().chain(differences);
        problems.extend(found.map(|(line, what)| format!("{name}:{line}: {what}")));
        if !is_check && page.text != text {
            fs::write(&path, page.text)?;
        }
    }
    let (picture, drawn) = (root.join(names::FILES_PICTURE), pictures::files(&store)?);
    match is_check {
        true if fs::read_to_string(&picture).is_ok_and(|found| found == drawn) => {}
        true => problems.push(format!("{}: not drawn from the results", names::FILES_PICTURE)),
        false => fs::write(picture, drawn)?,
    }
    Ok(problems)
}

/// The pages of the repository.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&&*name)
        {
            collect(&path, paths)?;
        } else if kind.is_file() && name.ends_with(".md") {
            paths.push(path);
        }
    }
    Ok(())
}
