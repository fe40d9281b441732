//! What the tool prints on a terminal and nowhere else: colours and progress bars. The terminal is
//! that of `script` from util-linux; where there is none, the tests say so and pass.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, text};

const RED: &str = "\x1b[1m\x1b[31m";
const RESET: &str = "\x1b[0m";

/// What a command in which `$TOOL` is the tool writes to a terminal; None if there is none here.
#[expect(clippy::print_stdout, reason = "a test that could not run says so")]
fn terminal(dir: &Dir, command: &str) -> Option<String> {
    let mut script = Command::new("script");
    script.args(["-qec", command, "/dev/null"]).current_dir(dir.0.path());
    script.env("TOOL", TOOL).env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR");
    let Ok(output) = script.stdin(Stdio::null()).output() else {
        println!("NOT RUN: no `script` to get a terminal from");
        return None;
    };
    Some(text(output.stdout).replace("\r\n", "\n"))
}

fn damaged(dir: &Dir) {
    dir.write("keys", lines("key", 1_000));
    dir.ok("build keys -o f -q");
    let mut bytes = dir.read("f");
    bytes[100] ^= 1;
    dir.write("f", &bytes);
}

#[test]
fn damage_is_red_on_a_terminal() {
    let dir = Dir::new();
    damaged(&dir);
    let red = format!("{RED}DAMAGED{RESET}: stored ");
    let Some(shown) = terminal(&dir, "\"$TOOL\" info f") else { return };
    assert_parts(&shown, &[&red]);
    for plain in [
        "NO_COLOR=1 \"$TOOL\" info f",
        "CLICOLOR=0 \"$TOOL\" info f",
        "TERM=dumb \"$TOOL\" info f",
        "\"$TOOL\" info f | cat",
    ] {
        let shown = terminal(&dir, plain).unwrap();
        assert_parts(&shown, &["block checksum                  DAMAGED: stored "]);
    }
    let shown = terminal(&dir, "NO_COLOR= \"$TOOL\" info f").unwrap();
    assert_parts(&shown, &[&red]);
    assert!(!text(dir.run("info f").stdout).contains('\x1b'));
    assert!(!terminal(&dir, "\"$TOOL\" info --json f").unwrap().contains("\x1b[1m\x1b[31mDAMAGED"));
}

/// Errors of the command line and of the work, and warnings.
#[test]
fn messages_have_one_style() {
    let dir = Dir::new();
    damaged(&dir);
    dir.write("returns", "a\r\n");
    let commands =
        ["plan", "plan --keys x", "merge f", "query f keys", "info f", "info nothing", "info keys"];
    for command in commands {
        let output = dir.run(command);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(stderr(&output).starts_with("error: "), "{command}: {}", stderr(&output));
        assert_eq!(stderr(&output).matches("error: ").count(), 1, "{}", stderr(&output));
        let shown = terminal(&dir, &format!("\"$TOOL\" {command} > /dev/null"));
        let Some(shown) = shown else { return };
        assert!(shown.starts_with(&format!("{RED}error:{RESET} ")), "{command}: {shown:?}");
        let shown = terminal(&dir, &format!("NO_COLOR=1 \"$TOOL\" {command} > /dev/null"));
        assert!(shown.unwrap().starts_with("error: "), "{command}");
    }
    let shown = terminal(&dir, "\"$TOOL\" build returns -q").unwrap();
    assert!(shown.starts_with("\x1b[1m\x1b[33mwarning:\x1b[0m returns: "), "{shown:?}");
}

/// Bars are drawn for inputs of 16 MiB and more, and are gone at the end.
#[test]
fn long_work_shows_its_progress() {
    let dir = Dir::new();
    dir.write("small", "key1\n");
    dir.write("keys", lines("key", 2_000_000));
    dir.ok("build small -o f --keys 30M -q");
    dir.ok("build small -o few -q");
    for (command, parts) in [
        ("build keys -o g", vec!["keys ", " of 19.92 MiB"]),
        ("dedup keys > /dev/null", vec!["keys ", " of 19.92 MiB"]),
        ("dedup --count keys small", vec!["keys ", " of 19.92 MiB"]),
        (
            "plan > /dev/null 2>&1; cat keys | \"$TOOL\" dedup --count",
            vec!["standard input ", "MiB, "],
        ),
        ("query few keys --count", vec!["keys ", " of 19.92 MiB"]),
        ("query few keys > /dev/null", vec!["keys ", " of 19.92 MiB"]),
        ("query f small", vec!["f ", " of 35.76 MiB"]),
        ("info f", vec!["f ", " of 35.76 MiB"]),
        ("merge f f f -o g", vec!["f ", " of 107.29 MiB"]),
    ] {
        let Some(shown) = terminal(&dir, &format!("\"$TOOL\" {command}")) else { return };
        assert_parts(&shown, &parts);
        // Cleared, before anything else is printed.
        let last = shown.rfind("MiB, ").unwrap();
        assert_parts(&shown[last..], &["\r\x1b[2K"]);
    }
    for command in [
        "query few small",
        "query few keys",
        "info few",
        "merge few few -o g",
        "merge f f -o g -q",
        "build keys -o g -q",
    ] {
        let shown = terminal(&dir, &format!("\"$TOOL\" {command}")).unwrap();
        assert!(!shown.contains("\x1b["), "{command}");
    }
    // Not on a terminal.
    for command in ["query f keys", "info f", "merge f f -o g", "build keys -o g"] {
        assert!(!stderr(&dir.run(command)).contains(" of "), "{command}");
    }
}
