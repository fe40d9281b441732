//! Messages on standard error: the one error of the tool, and warnings.

use std::fmt::Display;
use std::io::{self, Write, stderr};

use clap::builder::styling::Style;

use crate::terminal::{RED, YELLOW, printable, styled};

/// What went wrong, in one sentence that names the file or option and the value; the tool then
/// exits with status 2.
pub(crate) struct Failure {
    message: String,
    /// Lines below the message.
    advice: Vec<String>,
    /// Lines below it, printed with `--verbose`.
    reasons: Vec<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Display) -> Self {
        Failure { message: message.to_string(), advice: Vec::new(), reasons: Vec::new() }
    }

    pub(crate) fn for_file(file: &str, message: impl Display) -> Self {
        Failure::new(format!("{file}: {message}"))
    }

    pub(crate) fn io(file: &str, operation: &str, error: &io::Error) -> Self {
        Failure::new(format!("{file}: cannot {operation}: {error}"))
    }

    /// The same with these lines below the message.
    pub(crate) fn with_advice(self, lines: &str) -> Self {
        Failure { advice: lines.lines().map(str::to_owned).collect(), ..self }
    }

    /// The same with these lines below it, printed with `--verbose`.
    pub(crate) fn with_reasons(self, lines: &str) -> Self {
        Failure { reasons: lines.lines().map(str::to_owned).collect(), ..self }
    }

    /// Prints `error:` and the message, as the parser of the command line does for its own.
    pub(crate) fn report(&self, verbose: bool) {
        let hint = match self.reasons.is_empty() || verbose {
            true => "",
            false => " (-v says why)",
        };
        line(&prefix("error:", RED), &format!("{}{hint}", self.message));
        let reasons = self.reasons.iter().filter(|_| verbose);
        self.advice.iter().chain(reasons).for_each(|text| line("", text));
    }
}

/// Prints a warning about a result that is returned nevertheless.
pub(crate) fn warn(message: impl Display) {
    line(&prefix("warning:", YELLOW), &message.to_string());
}

/// Prints a report.
pub(crate) fn inform(message: impl Display) {
    line("", &message.to_string());
}

fn prefix(word: &str, style: Style) -> String {
    styled(word, style, &stderr()) + " "
}

fn line(prefix: &str, message: &str) {
    // If standard error is gone, there is no place left to report that.
    let _ = writeln!(stderr().lock(), "{prefix}{}", printable(message));
}
