//! Descriptions of filters: facts for programs, rows of names and values for people, and a list of
//! parts.

use blocked_bloom::{KERNEL_VARIABLE, Kernel, KeyHash};

use crate::error::Error;
use crate::numbers::{binary_bytes, percent};
use crate::value::Value;

/// Prefix of the value of a damaged part, in [`Facts::rows`] and the cells of [`Facts::list`].
pub const DAMAGED: &str = "DAMAGED";

/// The description of a stored filter, returned by [`Opened::describe`](crate::Opened::describe).
///
/// ```
/// # use blocked_bloom::FilterOptions;
/// # use blocked_bloom_inspect::{FileRanges, Format, Opened, Value};
/// # let stored = FilterOptions::default().empty_filter(1_000)?.to_bytes();
/// # let file = FileRanges::from(&stored[..]);
/// let facts = Opened::new("keys.bloom", &file, Format::NATIVE, None)?.describe();
/// assert_eq!(facts.json().get("format"), Some(&Value::from("native")));
/// assert!(facts.rows.contains(&("probes", "6".to_owned())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// Facts for programs, in order. [`json`](Self::json) returns them as an object.
    pub fields: Vec<(&'static str, Value)>,
    /// Names and values for people. Text from the file is not escaped and may contain control
    /// characters.
    pub rows: Vec<(&'static str, String)>,
    /// Parts of the filter: row groups, partitions, links.
    pub list: Option<List>,
    /// Damage of a filter that could still be described. It must not be used to answer "absent".
    pub damage: Option<Error>,
}

impl Facts {
    /// Creates facts that begin with the file's name and, for programs, the name of its format.
    pub(crate) fn new(about: &Summary, json: Value, rows: Vec<(&'static str, String)>) -> Self {
        let mut fields = vec![("file", about.name.clone().into()), ("format", about.format.into())];
        if let Value::Object(facts) = json {
            fields.extend(facts);
        }
        let rows = [("file", about.name.clone())].into_iter().chain(rows).collect();
        Facts { fields, rows, list: None, damage: None }
    }

    /// Returns the fields as one object.
    pub fn json(&self) -> Value {
        Value::Object(self.fields.clone())
    }
}

/// A table with headings.
///
/// ```
/// # use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// # let mut seen = blocked_bloom_scalable::ScalableOptions::new(0.01, 1_000).build()?;
/// # seen.insert("apple")?;
/// # let stored = seen.to_bytes();
/// let opened = Opened::new("seen", &FileRanges::from(&stored[..]), Format::GROWING, None)?;
/// let list = opened.describe().list.unwrap();
/// assert_eq!(list.heads[0], "link");
/// assert_eq!(list.lines[0][0], "1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct List {
    /// Number of leading cells of each line that contain words and are aligned to the left.
    pub words: usize,
    /// Headings of the cells.
    pub heads: Vec<&'static str>,
    /// Lines with one cell per heading.
    pub lines: Vec<Vec<String>>,
}

impl List {
    pub(crate) fn new(words: usize, heads: &[&'static str]) -> Self {
        List { words, heads: heads.to_vec(), lines: Vec::new() }
    }
}

/// The beginning of a description.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) name: String,
    pub(crate) format: &'static str,
    /// Length of the file in bytes.
    pub(crate) length: u64,
}

/// Estimates from the bits of a filter.
#[derive(Clone, Copy)]
pub(crate) struct Bits {
    /// Fraction of bits that are set, 0 to 1.
    pub(crate) fill_ratio: f64,
    /// Number of keys; `None` if saturated.
    pub(crate) keys: Option<u64>,
    /// False-positive rate, 0 to 1.
    pub(crate) false_positive_rate: f64,
}

impl Bits {
    pub(crate) fn fill(&self) -> String {
        format!("{:.2} % of all bits", self.fill_ratio * 100.0)
    }

    pub(crate) fn keys(&self) -> String {
        match self.keys {
            Some(keys) => keys.to_string(),
            None => "saturated: a block, or the filter, has no zero bit".to_owned(),
        }
    }

    pub(crate) fn rate(&self) -> String {
        percent(self.false_positive_rate)
    }
}

/// Estimates from the bits of this filter.
macro_rules! bits {
    ($filter:expr) => {
        $crate::facts::Bits {
            fill_ratio: $filter.fill_ratio(),
            keys: $filter.estimated_keys(),
            false_positive_rate: $filter.estimated_false_positive_rate(),
        }
    };
}

pub(crate) use bits;

/// Returns the name of a hash, and its seed or tag.
pub(crate) fn hash_parts(hash: KeyHash) -> (&'static str, Option<u64>, Option<u64>) {
    match hash {
        KeyHash::Xxh3 { seed } => ("xxh3-64", Some(seed), None),
        KeyHash::Caller { tag } => ("caller", None, Some(tag)),
        _ => ("other", None, None),
    }
}

/// Describes the kernel of this process and why it was chosen.
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
    format!("{bytes} bytes ({})", binary_bytes(bytes))
}

pub(crate) fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}
