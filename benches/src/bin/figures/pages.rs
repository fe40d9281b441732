//! Finds the marks in a page and fills them.

/// Returns the text of a block or a number, or an error.
pub(crate) type Source<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

const BLOCK: &str = "<!-- figures: ";
const BLOCK_END: &str = "<!-- /figures -->";
const NUMBER: &str = "<!--=";
const NUMBER_END: &str = "<!--/-->";

/// A filled page, and the lines that were wrong before.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) text: String,
    /// What differed from the results.
    pub(crate) differences: Vec<(usize, String)>,
    /// What cannot be filled: marks without an end, and keys without a figure.
    pub(crate) errors: Vec<(usize, String)>,
}

/// Fills the numbers and blocks of a page from their sources.
pub(crate) fn fill(text: &str, number: &Source<'_>, block: &Source<'_>) -> Page {
    let mut page = Page::default();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut at, mut in_code) = (0, false);
    while let Some(&line) = lines.get(at) {
        at += 1;
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            page.text += line;
            continue;
        }
        if line.trim() == BLOCK_END {
            page.errors.push((at, format!("{BLOCK_END} without a block before it")));
        }
        let Some(name) = line.strip_prefix(BLOCK).and_then(|rest| rest.trim().strip_suffix(" -->"))
        else {
            page.fill_line(at, line, number);
            continue;
        };
        page.text += line;
        let rest = &lines[at..];
        let is_mark = |line: &&str| line.trim() == BLOCK_END || line.starts_with(BLOCK);
        let length = rest.iter().position(is_mark).unwrap_or(rest.len());
        if rest.get(length).is_none_or(|line| line.starts_with(BLOCK)) {
            page.errors.push((at, format!("the block {name} has no end")));
            continue;
        }
        let found = &rest[..length];
        match block(name) {
            Ok(expected) => {
                let expected = format!("\n{}\n\n", expected.trim_end());
                page.compare_block(at, found, &expected);
                page.text += &expected;
            }
            Err(error) => {
                page.errors.push((at, error));
                page.text.extend(found.iter().copied());
            }
        }
        at += length;
        page.text += lines[at];
        at += 1;
    }
    page
}

impl Page {
    /// Fills the numbers of a line.
    fn fill_line(&mut self, at: usize, line: &str, number: &Source<'_>) {
        let mut rest = line;
        if line.trim_start().starts_with(NUMBER) {
            let what = "a line that begins with a mark is HTML to Markdown: let a word precede it";
            self.errors.push((at, what.to_owned()));
        }
        while let Some((before, after)) = rest.split_once(NUMBER) {
            self.text += before;
            self.text += NUMBER;
            rest = after;
            // In code it is an example.
            if before.ends_with('`') {
                continue;
            }
            let parts = after.split_once("-->");
            let Some((key, (found, after))) =
                parts.and_then(|(key, after)| Some((key, after.split_once(NUMBER_END)?)))
            else {
                self.errors.push((at, format!("{NUMBER} without {NUMBER_END} in the line")));
                continue;
            };
            let expected = number(key).unwrap_or_else(|error| {
                self.errors.push((at, error));
                found.to_owned()
            });
            if found != expected {
                let what = format!("found {found}, expected {expected} ({key})");
                self.differences.push((at, what));
            }
            self.text += &format!("{key}-->{expected}{NUMBER_END}");
            rest = after;
        }
        self.text += rest;
    }

    /// Notes the first line in which a block, whose mark is in line `at`, differs.
    fn compare_block(&mut self, at: usize, found: &[&str], expected: &str) {
        let expected: Vec<&str> = expected.split_inclusive('\n').collect();
        let line = |lines: &[&str], i: usize| match lines.get(i) {
            Some(line) => line.trim_end().to_owned(),
            None => "the end of the block".to_owned(),
        };
        let count = found.len().max(expected.len());
        if let Some(i) = (0..count).find(|&i| found.get(i) != expected.get(i)) {
            let (found, expected) = (line(found, i), line(&expected, i));
            self.differences.push((at + 1 + i, format!("found {found}\n  expected {expected}")));
        }
    }
}
