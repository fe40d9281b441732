//! Output for terminals only: colours, and progress bars on standard error.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr};

use clap::builder::styling::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

/// For damage; clap prints `error:` in it.
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// The text in a style, if the stream is a terminal that shows styles.
pub(crate) fn styled(text: &str, style: Style, stream: &impl IsTerminal) -> String {
    match shows_styles(stream.is_terminal(), |name| std::env::var_os(name)) {
        true => format!("{style}{text}{style:#}"),
        false => text.to_owned(),
    }
}

/// By the rules of <https://no-color.org> and <https://bixense.com/clicolors>. `TERM` is what
/// terminals set that know the escape sequences: consoles of Windows do not.
fn shows_styles(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    is_terminal
        && variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && variable("CLICOLOR").is_none_or(|value| value != "0")
        && variable("TERM").is_some_and(|value| value != "dumb")
}

/// Smaller files are read before a progress bar could be noticed.
const PROGRESS_FROM: u64 = 16 << 20;

/// A progress bar of the bytes read from a file: hidden if it is not wanted, if the file is small,
/// and if standard error is not a terminal. It vanishes when it is finished or dropped.
pub(crate) fn progress_bar(name: &str, bytes: u64, is_wanted: bool) -> ProgressBar {
    if !is_wanted || bytes < PROGRESS_FROM || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left";
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(bytes)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(printable(name))
        .with_finish(ProgressFinish::AndClear)
}

/// A count of the bytes read from a stream of unknown length. Hidden until it is given a
/// target to draw to.
pub(crate) fn stream_progress(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {binary_bytes}, {binary_bytes_per_sec}");
    ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(printable(name))
        .with_finish(ProgressFinish::AndClear)
}

/// The text with control characters escaped: names within files that are read must not steer the
/// terminal.
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

#[cfg(test)]
mod tests {
    use super::shows_styles;

    #[test]
    fn styles_are_shown_unless_somebody_objects() {
        let shown = |is_terminal: bool, variables: &[(&str, &str)]| {
            shows_styles(is_terminal, |name| {
                variables.iter().find(|variable| variable.0 == name).map(|&(_, value)| value.into())
            })
        };
        assert!(shown(true, &[("TERM", "xterm")]));
        assert!(shown(true, &[("TERM", "xterm"), ("NO_COLOR", ""), ("CLICOLOR", "1")]));
        for variables in [
            &[][..],
            &[("TERM", "dumb")],
            &[("TERM", "xterm"), ("NO_COLOR", "0")],
            &[("TERM", "xterm"), ("CLICOLOR", "0")],
        ] {
            assert!(!shown(true, variables), "{variables:?}");
        }
        assert!(!shown(false, &[("TERM", "xterm")]));
    }
}
