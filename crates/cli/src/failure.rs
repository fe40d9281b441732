//! Messages on standard error: the one error of the tool, and warnings.

use std::fmt::Display;
use std::io::{self, Write};

/// What went wrong, in one sentence that names the file or option and the value; the tool then exits with status 2.
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

    /// Prints `error:` and the message, as the parser of the command line does for its own.
    pub(crate) fn report(&self) {
        line("error: ", &self.0);
    }
}

/// Prints what the user should know about a result that is given all the same.
pub(crate) fn warn(message: impl Display) {
    line("warning: ", &message.to_string());
}

/// Prints what was done.
pub(crate) fn inform(message: impl Display) {
    line("", &message.to_string());
}

fn line(prefix: &str, message: &str) {
    // Nobody is left to tell if standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{prefix}{}", printable(message));
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
