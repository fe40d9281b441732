//! The README's counts of code lines and of `unsafe`.

use std::fs;
use std::path::Path;

/// Counts lines, and `unsafe` outside comments, in the files below a folder.
fn count(folder: &Path) -> (usize, usize) {
    let (mut lines, mut places) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let (more_lines, more_places) = count(&path);
            lines += more_lines;
            places += more_places;
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        lines += text.lines().count();
        let code = text.lines().map(|line| line.split("//").next().unwrap());
        let words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        places += words.filter(|&word| word == "unsafe").count();
    }
    (lines, places)
}

#[test]
fn the_readme_says_how_much_code_there_is() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (lines, places) = count(&package.join("src"));
    let hundreds = (lines + 50) / 100;
    let readme = fs::read_to_string(package.join("README.md")).unwrap();
    for text in [format!("{},{}00 lines", hundreds / 10, hundreds % 10), format!("{places} places")]
    {
        assert!(readme.contains(&text), "{lines} lines, {places} unsafe: {text}");
    }
}
