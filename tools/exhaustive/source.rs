//! The code that a record stands for: the source that this program was compiled with, without
//! comments, blanks and line ends.
//!
//! A kernel is its own files and, of files that it shares with others, the functions that it calls
//! to compute positions and answers. Prefetching, the sizes of caches, and the choice of a kernel
//! do not belong to it: they change no answer of a kernel.

use xxhash_rust::xxh3::xxh3_64;

/// The text of a file of the repository, and the items that count. None: the whole file.
type Part = (&'static str, &'static [&'static str]);

macro_rules! file {
    ($path:literal) => {
        file!($path, [])
    };
    ($path:literal, [$($item:literal),*]) => {
        (include_str!(concat!("../../", $path)), &[$($item),*] as &[&str])
    };
}

const PROBE: Part =
    file!("src/probe.rs", ["MULTIPLIER", "block_index", "bits", "contains", "insert"]);
const TABLE: Part = file!("src/kernel/table.rs", ["address", "powers", "index"]);
/// The scalar kernel, whose functions others call.
const SCALAR: Part = file!("src/kernel/scalar.rs", ["contains_one", "group", "batch", "insert"]);

/// The code that the kernels of a Bloom filter share. It excludes the loops of other calls, so that
/// a faster call of one kind leaves the records of the others current.
fn shared(check: &str) -> Vec<Part> {
    let driver = match check {
        "batch" => file!("src/kernel/driver.rs", ["for_each_word", "batch_for"]),
        "group" => {
            file!("src/kernel/driver.rs", ["for_each_word", "for_each_of_few", "batch_for"])
        }
        _ => return vec![PROBE, TABLE, SCALAR],
    };
    vec![PROBE, driver, TABLE, SCALAR]
}

const AVX2_INSERT: Part = file!(
    "src/kernel/avx2.rs",
    ["insert", "fill_for", "fill", "with_bit", "load", "new", "products", "positions", "halves"]
);
const AVX2_SINGLE: Part = file!(
    "src/kernel/avx2.rs",
    ["contains_one", "probing_lanes", "words_and_bits", "all_set", "load", "new", "products"]
);
const AVX2_BATCH: Part = file!(
    "src/kernel/avx2.rs",
    [
        "KEYS",
        "batch",
        "batch_of",
        "new",
        "test_four",
        "missing",
        "halves",
        "keep_in_registers",
        "probing_lanes",
        "words_and_bits",
        "zero_mask",
        "load",
        "products"
    ]
);
/// A group also runs the code of single calls and of batches.
const AVX2_GROUP: Part =
    file!("src/kernel/avx2.rs", ["MAX_SINGLE_TESTS", "group", "test_one", "test_few", "group_of"]);

/// The functions of the AVX2 kernel that a check runs.
fn avx2(check: &str) -> Vec<Part> {
    match check {
        "insert" => vec![AVX2_INSERT],
        "single" => vec![AVX2_SINGLE],
        "batch" => vec![AVX2_BATCH],
        _ => vec![AVX2_SINGLE, AVX2_BATCH, AVX2_GROUP],
    }
}

/// The files of the AVX-512 kernel that a check runs.
fn avx512(check: &str) -> Vec<Part> {
    let mut parts = vec![file!("src/kernel/avx512.rs")];
    parts.extend(match check {
        "insert" => vec![file!("src/kernel/avx512/insert.rs")],
        "single" => vec![file!("src/kernel/avx512/single.rs")],
        _ => vec![file!("src/kernel/avx512/group.rs"), file!("src/kernel/avx512/single.rs")],
    });
    parts.push(file!("src/kernel/avx2.rs", ["probing_lanes"]));
    parts
}

const SCHEME: Part = file!(
    "crates/split-block/src/split_block.rs",
    ["SALTS", "block_index", "bits", "contains", "insert"]
);
const LOOPS: Part = file!(
    "crates/split-block/src/kernel.rs",
    ["for_each_word", "for_each_block", "for_each_ahead", "address", "for_each_group"]
);
const SPLIT: [Part; 3] = [SCHEME, LOOPS, file!("crates/split-block/src/kernel/scalar.rs")];

const TAGS: [Part; 4] = [
    file!(
        "crates/removable/src/tags.rs",
        [
            "MULTIPLIER",
            "KEEP_EMPTY",
            "new",
            "scale",
            "lane",
            "find",
            "set",
            "empty_lanes",
            "insert",
            "remove"
        ]
    ),
    file!("crates/removable/src/kernel/driver.rs"),
    // Single keys.
    file!("crates/removable/src/kernel/portable.rs"),
    file!("crates/removable/src/kernel/scalar.rs"),
];

const INTEGERS: Part =
    file!("src/hash/kernel.rs", ["MULTIPLIER_8", "flip_8", "integers", "integer_keys", "bytes_of"]);

/// Returns the parts of a kernel, or none if there is no such kernel.
fn parts(check: &str, kernel: &str) -> Vec<Part> {
    if matches!(check, "insert" | "single" | "group" | "batch") {
        let own = match kernel {
            "avx512" => avx512(check),
            "avx2" => avx2(check),
            "neon" => vec![file!("src/kernel/neon.rs")],
            "portable" => vec![file!("src/kernel/portable.rs")],
            "scalar" => vec![],
            _ => return vec![],
        };
        return [shared(check), own].concat();
    }
    let (shared, own): (&[Part], &[Part]) = match (check, kernel) {
        ("split", "avx512") => (
            &SPLIT,
            &[
                file!("crates/split-block/src/kernel/avx512.rs"),
                file!("crates/split-block/src/kernel/avx2.rs"),
            ],
        ),
        ("split", "avx2") => (&SPLIT, &[file!("crates/split-block/src/kernel/avx2.rs")]),
        ("split", "neon") => (&SPLIT, &[file!("crates/split-block/src/kernel/neon.rs")]),
        ("split", "portable") => (&SPLIT, &[file!("crates/split-block/src/kernel/portable.rs")]),
        ("split", "scalar") => (&SPLIT, &[]),
        ("tags", "avx512") => (
            &TAGS,
            &[
                file!("crates/removable/src/kernel/avx512.rs"),
                file!("crates/removable/src/kernel/avx2.rs"),
            ],
        ),
        ("tags", "avx2") => (&TAGS, &[file!("crates/removable/src/kernel/avx2.rs")]),
        ("tags", "neon") => (&TAGS, &[file!("crates/removable/src/kernel/neon.rs")]),
        ("tags", "portable" | "scalar") => (&TAGS, &[]),
        ("integers", "avx512") => (&[INTEGERS], &[file!("src/hash/kernel/avx512.rs")]),
        ("integers", "avx2") => (&[INTEGERS], &[file!("src/hash/kernel/avx2.rs")]),
        ("integers", _) => (&[INTEGERS], &[]),
        _ => (&[], &[]),
    };
    [shared, own].concat()
}

/// Returns the hash of a kernel's code, in hexadecimal digits.
pub(crate) fn hash(check: &str, kernel: &str) -> Result<String, String> {
    let mut code = String::new();
    for (text, items) in parts(check, kernel) {
        match items {
            [] => code += &strip_comments(text),
            items => {
                for item in items {
                    code += &strip_comments(&find(text, item)?);
                }
            }
        }
    }
    match code.is_empty() {
        true => Err(format!("no code is listed for {check} {kernel}")),
        false => Ok(format!("{:016x}", xxh3_64(code.as_bytes()))),
    }
}

/// Returns every function, macro or constant of this name, up to the line that ends it.
fn find(text: &str, item: &str) -> Result<String, String> {
    let starts = |line: &str| {
        ["fn ", "const ", "macro_rules! "].into_iter().any(|kind| {
            let after = line.split_once(&format!("{kind}{item}")).map(|(_, after)| after);
            after.is_some_and(|after| after.starts_with(['(', '<', ':', ' ']))
                && !line.trim_start().starts_with("//")
        })
    };
    let mut found = String::new();
    let mut end = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if end.is_none() && starts(line) {
            end = Some(indent);
        }
        if let Some(start) = end {
            found += line;
            found.push('\n');
            let is_last = line.ends_with(['}', ';']) && indent == start;
            if is_last {
                end = None;
            }
        }
    }
    if found.is_empty() { Err(format!("there is no {item}")) } else { Ok(found) }
}

fn strip_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    code.flat_map(str::split_whitespace).collect()
}
