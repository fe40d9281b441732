//! What a description has: facts for programs, rows of names and values for people, and a list
//! below them.

use blocked_bloom::{KERNEL_VARIABLE, Kernel, KeyHash};

use crate::error::Error;
use crate::numbers::{binary_bytes, percent};
use crate::value::Value;

/// How the value of a damaged part begins, in [`Facts::rows`] and cells of [`Facts::list`].
pub const DAMAGED: &str = "DAMAGED";

/// What is known of a stored filter: [`Opened::describe`](crate::Opened::describe) has an example.
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
    /// For programs, in the order of the description: the object of [`json`](Self::json).
    pub fields: Vec<(&'static str, Value)>,
    /// For people: name and value. Texts from the file are in them as they are, control characters
    /// included.
    pub rows: Vec<(&'static str, String)>,
    /// Parts of the filter: row groups, partitions, links.
    pub list: Option<List>,
    /// What is wrong with a filter that could be described all the same: it must not be used to
    /// answer "absent".
    pub damage: Option<Error>,
}

impl Facts {
    /// These facts, after the name of the file and, for programs, that of its format.
    pub(crate) fn new(about: &Summary, json: Value, rows: Vec<(&'static str, String)>) -> Self {
        let mut fields = vec![("file", about.name.clone().into()), ("format", about.format.into())];
        if let Value::Object(facts) = json {
            fields.extend(facts);
        }
        let rows = [("file", about.name.clone())].into_iter().chain(rows).collect();
        Facts { fields, rows, list: None, damage: None }
    }

    /// The fields as one object.
    pub fn json(&self) -> Value {
        Value::Object(self.fields.clone())
    }
}

/// Lines of cells below a line of heads.
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
    /// How many cells of a line, from the left, are words, which are aligned to the left.
    pub words: usize,
    /// What the cells of each line are.
    pub heads: Vec<&'static str>,
    /// As many cells as there are heads in each.
    pub lines: Vec<Vec<String>>,
}

impl List {
    pub(crate) fn new(words: usize, heads: &[&'static str]) -> Self {
        List { words, heads: heads.to_vec(), lines: Vec::new() }
    }
}

/// What a description begins with.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) name: String,
    pub(crate) format: &'static str,
    /// Bytes of the file.
    pub(crate) length: u64,
}

/// What is estimated from the bits of a filter.
#[derive(Clone, Copy)]
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
            None => "saturated: a block, or the filter, has no zero bit".to_owned(),
        }
    }

    pub(crate) fn rate(&self) -> String {
        percent(self.false_positive_rate)
    }
}

/// What is estimated from the bits of this filter.
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

/// The hash of a filter's keys: its name, and its seed or tag.
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
    format!("{bytes} bytes ({})", binary_bytes(bytes))
}

pub(crate) fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}
