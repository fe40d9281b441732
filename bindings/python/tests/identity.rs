//! The Python package and the Rust crates have the same keys: the same golden hashes and the same
//! golden filter.
//!
//! `BLOCKED_BLOOM_BLESS=1 cargo test --test identity` rewrites them. Use it only to add new keys.

use std::path::Path;

use blocked_bloom::{BloomFilter, FilterOptions, KeyHasher, Sizing};

enum Key {
    Str(&'static str),
    Bytes(&'static [u8]),
    Int(i128),
}
use Key::{Bytes, Int, Str};

impl Key {
    /// The bytes of a key, as in the README's table.
    fn bytes(&self) -> Vec<u8> {
        match *self {
            Str(text) => text.as_bytes().to_vec(),
            Bytes(bytes) => bytes.to_vec(),
            Int(number) if number < 0 => i64::try_from(number).unwrap().to_le_bytes().to_vec(),
            Int(number) => u64::try_from(number).unwrap().to_le_bytes().to_vec(),
        }
    }

    fn json(&self) -> String {
        match self {
            Str(text) => format!(
                "{{\"str\": {}}}",
                text.chars().map(escaped).fold(String::from("\""), |all, c| all + &c) + "\""
            ),
            Bytes(bytes) => format!(
                "{{\"bytes\": \"{}\"}}",
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
            ),
            Int(number) => format!("{{\"int\": {number}}}"),
        }
    }
}

fn escaped(c: char) -> String {
    if c.is_ascii_graphic() && c != '"' && c != '\\' || c == ' ' {
        return c.into();
    }
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Keys of one part and of several parts.
fn keys() -> Vec<(bool, Vec<Key>)> {
    const LONG: &[u8] = &[b'x'; 300];
    let mut keys: Vec<(bool, Vec<Key>)> = Vec::new();
    for text in [
        "",
        "a",
        "apple",
        "12345678",
        "äöü",
        "日本語",
        "😀",
        "user-0123456789abcdef",
        "a\0b",
        "a quote \" and a \\",
    ] {
        keys.push((true, vec![Str(text)]));
    }
    for bytes in [b"".as_slice(), b"\0", b"\xff\xfe", LONG] {
        keys.push((true, vec![Bytes(bytes)]));
    }
    for number in [
        0,
        1,
        -1,
        7,
        255,
        -128,
        1 << 31,
        i128::from(i64::MIN),
        i128::from(i64::MAX),
        i128::from(u64::MAX),
    ] {
        keys.push((true, vec![Int(number)]));
    }
    keys.push((false, vec![]));
    keys.push((false, vec![Str("a")]));
    keys.push((false, vec![Str("ab"), Str("c")]));
    keys.push((false, vec![Str("a"), Str("bc")]));
    keys.push((false, vec![Str("tenant"), Int(7)]));
    keys.push((false, vec![Int(-1), Bytes(LONG), Str("ä")]));
    keys
}

fn hash(hasher: KeyHasher, one: bool, parts: &[Key]) -> u64 {
    let bytes: Vec<_> = parts.iter().map(Key::bytes).collect();
    if one { hasher.hash(&bytes[0]) } else { hasher.hash_parts(&bytes) }
}

#[test]
fn golden_keys_have_the_hashes_that_python_expects() {
    let mut cases = Vec::new();
    for seed in [0, 1, u64::MAX] {
        for (one, parts) in keys() {
            let hash = hash(KeyHasher::with_seed(seed), one, &parts);
            let parts = parts.iter().map(Key::json).collect::<Vec<_>>().join(", ");
            cases.push(format!(
                "  {{\"seed\": {seed}, \"one\": {one}, \"key\": [{parts}], \
                 \"hash\": \"{hash:016x}\"}}"
            ));
        }
    }
    let mut filter = FilterOptions::new(Sizing::BitsPerKey(10.0)).empty_filter(100).unwrap();
    let hasher = filter.hasher().unwrap();
    for (one, parts) in keys() {
        filter.insert_hash(hash(hasher, one, &parts)).unwrap();
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let (golden, stored) = (format!("[\n{}\n]\n", cases.join(",\n")), filter.to_bytes());
    if std::env::var_os("BLOCKED_BLOOM_BLESS").is_some() {
        std::fs::write(folder.join("golden_keys.json"), &golden).unwrap();
        std::fs::write(folder.join("golden.bloom"), &stored).unwrap();
    }
    assert_eq!(std::fs::read_to_string(folder.join("golden_keys.json")).unwrap(), golden);
    assert_eq!(std::fs::read(folder.join("golden.bloom")).unwrap(), stored);
    assert!(BloomFilter::from_bytes_any_hash(&stored).unwrap().contains("apple"));
}
