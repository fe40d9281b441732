//! Common mistakes of new users do not compile, and the compiler's errors show the correction. The
//! programs are in `tests/hints/examples`; the first lines of each are the expected hints.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::repository::{files, root};

#[test]
fn errors_of_the_compiler_say_what_to_write() {
    let folder = root().join("tests/hints");
    if !folder.exists() {
        return eprintln!("not in a package: only the repository has these programs");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), Into::into);
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--locked", "--examples", "--keep-going"])
        .arg("--message-format=json")
        .args(["--manifest-path".into(), folder.join("Cargo.toml")])
        .args(["--target-dir".into(), target.join("hints")])
        // The flags of the tests would compile the core in another way.
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let mut messages: BTreeMap<String, String> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if line["reason"] == "compiler-message" && line["message"]["level"] == "error" {
            let program = line["target"]["name"].as_str().unwrap_or_default().to_owned();
            let text = line["message"]["rendered"].as_str().unwrap_or_default();
            messages.entry(program).or_default().push_str(text);
        }
    }
    let programs = files("tests/hints/examples", "rs");
    assert!(programs.len() >= 7, "only {programs:?}");
    let mut wrong = Vec::new();
    for path in programs {
        let program = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let hints: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//! ")).collect();
        assert!(!hints.is_empty(), "{program} names no hint");
        let message = messages.remove(&program).unwrap_or_default();
        for hint in hints {
            if !message.contains(hint) {
                wrong.push(format!("{program}: no \"{hint}\" in:\n{message}"));
            }
        }
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(wrong.is_empty(), "{}\n{errors}", wrong.join("\n"));
    assert!(messages.is_empty(), "errors elsewhere: {messages:?}");
}
