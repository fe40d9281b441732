//! The one error of the tool: a message that says which file, what was done and what went wrong.

use std::fmt::Display;
use std::io::{self, Write};

/// A message for the user; the tool then exits with status 2.
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Display) -> Self {
        Failure(message.to_string())
    }

    pub(crate) fn of(file: &str, message: impl Display) -> Self {
        Failure(format!("{file}: {message}"))
    }

    pub(crate) fn io(file: &str, operation: &str, error: &io::Error) -> Self {
        Failure(format!("{file}: cannot {operation}: {error}"))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One line on standard error.
pub(crate) fn report(message: &impl Display) {
    // Nobody is left to tell if standard error is gone.
    let message = printable(&message.to_string());
    let _ = writeln!(io::stderr().lock(), "blocked-bloom: {message}");
}

/// The text with control characters escaped: names within files that are read must not steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => printable.extend(char.escape_default()),
            false => printable.push(char),
        }
    }
    printable
}
