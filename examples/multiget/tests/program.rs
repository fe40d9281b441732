//! The program as it is run: what it answers, how it fails, and that it ends quietly when nobody reads on.

use std::error::Error;
use std::fs;
use std::process::{Command, Output, Stdio};

fn multiget() -> Command {
    Command::new(env!("CARGO_BIN_EXE_multiget"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs with keys and paths of its own, and these arguments.
fn run(arguments: &[&str]) -> Result<Output, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (keys, paths) = (folder.path().join("keys"), folder.path().join("paths"));
    fs::write(&keys, (0..3_000).map(|i| format!("key {i}\n")).collect::<String>())?;
    let path = |i| format!("/usr/share/doc/{}/{i}\n", i % 300);
    fs::write(&paths, (0..3_000).map(path).collect::<String>())?;
    let mut command = multiget();
    Ok(command.arg("--keys").arg(&keys).arg("--paths").arg(&paths).args(arguments).output()?)
}

#[test]
fn every_answer_is_right() -> Result<(), Box<dyn Error>> {
    for arguments in [
        &[][..],
        &["--tables", "1", "--batch", "1", "--absent", "100"],
        &["--tables", "70", "--batch", "4096", "--absent", "0", "--bits-per-key", "16.5"],
        &["--bits-per-key", "0"],
    ] {
        let output = run(arguments)?;
        let (report, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {errors}");
        assert!(report.contains("\nwrong answers      0\n"), "{report}");
        // The column of wrong answers, one row for each kind of filter.
        assert_eq!(report.lines().rev().take_while(|line| line.ends_with(" 0")).count(), 4);
    }
    Ok(())
}

#[test]
fn errors_are_told_and_fail() -> Result<(), Box<dyn Error>> {
    let output = multiget().args(["--tables", "0"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    let error = "error: --tables 0: give a whole number from 1 to 65535\n";
    assert!(text(&output.stderr).starts_with(error), "{}", text(&output.stderr));

    let output = multiget().args(["--keys", "no such file"]).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error: no such file: "));
    Ok(())
}

#[test]
fn a_closed_pipe_is_no_error() -> Result<(), Box<dyn Error>> {
    for argument in ["--help", "--version", "--tables=2"] {
        let mut command = multiget();
        let mut child =
            command.arg(argument).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let output = child.wait_with_output()?;
        assert!(output.status.success(), "{argument}");
        assert_eq!(text(&output.stderr), "", "{argument}");
    }
    Ok(())
}
