//! No name of a function, type, constant or module starts with a bare preposition or pronoun, or is
//! a word without a meaning of its own.

use std::collections::BTreeSet;
use std::fs;

use crate::repository::{files, is_published, relative};

/// Words that no name may start with.
const FORBIDDEN: &str = "\
    about above after again ahead along among around at before behind below beneath beside besides
    between beyond but by down during elsewhere he her his how if in inside it its me my near
    nobody nothing of off on onto out outside over own per said she since so somebody something such
    that their them then they this those through till toward under until up upon via we what
    whatever when where which whichever who whoever whom whose why within without you your";

/// Words that only the names of tests, which are sentences, may start with.
const DETERMINERS: &str = "\
    another both each either every few four less many more most much neither none not once one other
    others our same some three two";

/// Words that may start a name (`with_probes`) but cannot be the whole name.
const BARE: &str = "and as for from has into is no only to with";

/// Names and starts of names that are terms of the field or ordinary English.
const ALLOWED: &[&str] = &[
    // Set operations, of whole sets and of bytes.
    "and",
    "any",
    "or",
    "or_assign",
    "or_blocks",
    // Python's operators.
    "__and__",
    "__or__",
    // Callbacks around a fork of the process, named as in `pthread_atfork`.
    "after_fork",
    "before_fork",
    "after_help",
    // An adjective.
    "out_of_range",
    // Rust's term.
    "where_clause",
    // The trait `From`.
    "from",
    // The rule by which a file counts as unchanged.
    "same_file",
    // An instruction's operation: `a | (b & c)`.
    "or_and",
];

/// Folders that the rule covers.
const FOLDERS: [&str; 11] = [
    "src",
    "crates",
    "examples",
    "tests",
    "bindings",
    "web",
    "fuzz",
    "benches",
    "compare",
    "tools",
    "integrations",
];

/// The keywords that precede the name of an item.
const KEYWORDS: &str = "fn struct enum union trait type const static mod";

/// Returns the names that a line of code defines.
fn defined(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    // A word in a string is not a definition.
    let code = code.split('"').next().unwrap_or_default();
    let words: Vec<&str> = code.split_whitespace().collect();
    let keyword = |word: &str| KEYWORDS.split(' ').any(|keyword| keyword == word);
    let pairs = words.windows(2).filter(|pair| keyword(pair[0].trim_start_matches('(')));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let names = pairs.map(|pair| pair[1].split(|c| !is_word(c)).next().unwrap_or_default());
    names
        .filter(|name| !name.is_empty() && !KEYWORDS.split(' ').any(|word| word == *name))
        .collect()
}

/// Converts a name to lower case, with `_` between its words.
fn snake_case(name: &str) -> String {
    let is_camel = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let mut words = String::new();
    for (i, c) in name.char_indices() {
        if is_camel && i > 0 && c.is_uppercase() {
            words.push('_');
        }
        words.extend(c.to_lowercase());
    }
    words
}

fn is_forbidden(name: &str, is_test: bool) -> bool {
    let name = snake_case(name);
    if ALLOWED.iter().any(|allowed| name == *allowed || name.starts_with(&format!("{allowed}_"))) {
        return false;
    }
    let name = name.trim_matches('_');
    let first = name.split('_').next().unwrap_or_default();
    FORBIDDEN.split_whitespace().any(|word| word == first)
        || BARE.split_whitespace().any(|word| word == name)
        || !is_test && DETERMINERS.split_whitespace().any(|word| word == first)
}

#[test]
fn rejects_names_without_a_noun_or_verb() {
    for name in ["of", "of_key", "by_fours", "NOBODY", "Elsewhere", "Of", "beyond", "OfEight"] {
        assert!(is_forbidden(name, true), "{name}");
    }
    for name in ["with_probes", "from_bytes", "is_empty", "offset", "PrefetchPlan", "ONES", "byte"]
    {
        assert!(!is_forbidden(name, false), "{name}");
    }
    assert!(is_forbidden("one_key", false) && !is_forbidden("one_key_is_found", true));
    assert_eq!(defined("    pub(crate) const fn of<T>(self) -> T {"), ["of"]);
    assert_eq!(defined("async fn one(word: u64); // fn two"), ["one"]);
}

#[test]
fn names_begin_with_a_noun_or_verb() {
    let (mut wrong, mut count) = (BTreeSet::new(), 0);
    let paths = FOLDERS.iter().flat_map(|folder| files(folder, "rs"));
    for path in paths {
        let mut is_test = false;
        for line in fs::read_to_string(&path).unwrap().lines() {
            is_test |= line.contains("#[test]") || line.contains("::test]");
            for name in defined(line) {
                count += 1;
                if is_forbidden(name, is_test) {
                    wrong.insert(format!("{}: {name}", relative(&path)));
                }
                is_test = false;
            }
        }
    }
    assert!(count > if is_published() { 500 } else { 4_000 }, "only {count} names: how written?");
    assert!(wrong.is_empty(), "begin with a noun or a verb: {wrong:#?}");
}
