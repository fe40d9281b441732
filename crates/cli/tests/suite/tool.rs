//! The command-line tool, run in a directory of its own as a user runs it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_blocked-bloom");

/// A directory of its own in which the tool is run.
pub(crate) struct Dir(pub(crate) TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Dir(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Copies a file to a name here; returns its bytes.
    pub(crate) fn copy(&self, file: &Path, name: &str) -> Vec<u8> {
        let bytes = fs::read(file).unwrap();
        self.write(name, &bytes);
        bytes
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Runs with arguments separated by spaces; those in the path of the repository separate none.
    pub(crate) fn run(&self, args: &str) -> Output {
        self.run_with(args, "")
    }

    pub(crate) fn run_with(&self, args: &str, stdin: impl AsRef<[u8]>) -> Output {
        let repository = env!("CARGO_MANIFEST_DIR");
        let args = args.replace(repository, "\0");
        Command::new(TOOL)
            .current_dir(self.0.path())
            .args(args.split_whitespace().map(|arg| arg.replace('\0', repository)))
            .write_stdin(stdin.as_ref())
            .output()
            .unwrap()
    }

    pub(crate) fn ok(&self, args: &str) -> Vec<u8> {
        self.ok_with(args, "")
    }

    pub(crate) fn ok_with(&self, args: &str, stdin: impl AsRef<[u8]>) -> Vec<u8> {
        let output = self.run_with(args, stdin);
        assert_eq!(output.status.code(), Some(0), "{args}: {}", stderr(&output));
        output.stdout
    }

    /// Runs what must fail with status 2 and one error; returns its message.
    pub(crate) fn fails(&self, args: &str) -> String {
        self.fails_with(args, "")
    }

    pub(crate) fn fails_with(&self, args: &str, stdin: impl AsRef<[u8]>) -> String {
        let output = self.run_with(args, stdin);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        let message = message.strip_prefix("error: ").expect("an error");
        assert!(!message.starts_with("error"), "{message}");
        message.to_owned()
    }

    pub(crate) fn info(&self, filter: &str) -> Value {
        serde_json::from_slice(&self.ok(&format!("info --json {filter}"))).unwrap()
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

pub(crate) fn words() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/keys/words.txt");
    fs::read_to_string(path).unwrap()
}

/// The files of a folder that end so, in the order of their names.
pub(crate) fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    files.sort();
    assert!(!files.is_empty(), "no {end} in {}", folder.display());
    files
}

/// `count` lines that begin with `name`.
pub(crate) fn lines(name: &str, count: usize) -> String {
    (0..count).map(|i| format!("{name}{i}\n")).collect()
}

#[track_caller]
pub(crate) fn assert_parts(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no {part:?} in {message:?}");
    }
}

/// Kills a program two minutes after it started unless the result is dropped before. A test that
/// reads the program's output then fails instead of waiting forever.
pub(crate) fn time_limit(child: &std::process::Child) -> std::sync::mpsc::Sender<()> {
    let (sender, ended) = std::sync::mpsc::channel();
    let id = child.id().to_string();
    std::thread::spawn(move || {
        let limit = std::time::Duration::from_secs(120);
        if ended.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("process {id} has not ended after {limit:?}: killed");
            _ = std::process::Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    sender
}
