//! What `info` prints of a filter: a JSON object, or rows of names and values with a list below them.

use blocked_bloom::{KERNEL_VARIABLE, Kernel, KeyHash};
use indicatif::BinaryBytes;
use serde_json::Value;

use crate::numbers::percent;
use crate::terminal::printable;

/// How the value of a damaged part begins.
pub(crate) const DAMAGED: &str = "DAMAGED";

pub(crate) struct Facts {
    pub(crate) json: Value,
    pub(crate) rows: Vec<(&'static str, String)>,
    /// Parts of the filter.
    pub(crate) list: Option<List>,
}

impl Facts {
    /// For people. `mark` gives the word for damage its colour.
    pub(crate) fn table(&self, mark: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        for (name, value) in &self.rows {
            let value = printable(value);
            let value = match value.strip_prefix(DAMAGED) {
                // Not the name of a file.
                Some(rest) if name.ends_with("checksum") => mark(DAMAGED) + rest,
                _ => value,
            };
            text += &format!("{name:<32}{value}\n");
        }
        if let Some(list) = &self.list {
            text.push('\n');
            text += &list.table(mark);
        }
        text
    }
}

/// Lines of cells below a line of heads.
pub(crate) struct List {
    /// How many cells of a line, from the left, are words: these are aligned to the left.
    pub(crate) words: usize,
    /// The heads first.
    pub(crate) lines: Vec<Vec<String>>,
}

impl List {
    pub(crate) fn new(words: usize, heads: &[&str]) -> Self {
        List { words, lines: vec![heads.iter().map(|&head| head.to_owned()).collect()] }
    }

    fn table(&self, mark: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        let lines: Vec<Vec<String>> = self
            .lines
            .iter()
            .map(|line| line.iter().map(|cell| printable(cell)).collect())
            .collect();
        let cells = |at: usize| lines.iter().map(move |line| line[at].chars().count());
        let widths: Vec<usize> =
            (0..lines[0].len()).map(|at| cells(at).max().unwrap_or(0)).collect();
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(at, (cell, width))| match at < self.words {
                    true => format!("{cell:<width$}"),
                    // Marked when it is as wide as its column: a mark takes no space.
                    false if cell == DAMAGED => {
                        format!("{cell:>width$}").replace(DAMAGED, &mark(DAMAGED))
                    }
                    false => format!("{cell:>width$}"),
                })
                .collect();
            text += cells.join("  ").trim_end();
            text.push('\n');
        }
        text
    }
}

/// What is estimated from the bits of a filter.
pub(crate) struct Bits {
    /// 0 to 1.
    pub(crate) fill_ratio: f64,
    /// None if saturated.
    pub(crate) keys: Option<u64>,
    /// 0 to 1.
    pub(crate) false_positive_rate: f64,
}

impl Bits {
    pub(crate) fn fill(&self) -> String {
        format!("{:.2} % of all bits", self.fill_ratio * 100.0)
    }

    pub(crate) fn keys(&self) -> String {
        match self.keys {
            Some(keys) => keys.to_string(),
            None => "saturated: a block has no zero bit".to_owned(),
        }
    }

    pub(crate) fn rate(&self) -> String {
        percent(self.false_positive_rate)
    }
}

/// The hash of a filter's keys for a JSON object: its name, and its seed or tag.
pub(crate) fn hash_parts(hash: KeyHash) -> (&'static str, Option<u64>, Option<u64>) {
    match hash {
        KeyHash::Xxh3 { seed } => ("xxh3-64", Some(seed), None),
        KeyHash::Caller { tag } => ("caller", None, Some(tag)),
        _ => ("other", None, None),
    }
}

/// The kernel of this process, and why it is the one.
pub(crate) fn kernel() -> String {
    let (name, kernels) = (Kernel::default().name(), kernels().join(", "));
    match std::env::var_os(KERNEL_VARIABLE) {
        Some(_) => format!("{name} (named by {KERNEL_VARIABLE}; this CPU can run {kernels})"),
        None => format!("{name} (the fastest this CPU can run of {kernels})"),
    }
}

pub(crate) fn kernels() -> Vec<&'static str> {
    Kernel::supported().map(Kernel::name).collect()
}

pub(crate) fn sizes(bytes: u64) -> String {
    format!("{bytes} bytes ({})", BinaryBytes(bytes))
}
