//! The command-line tool and what a Unix system gives it: pipes, links, permissions, full devices.
#![cfg(unix)]

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, time_limit, words};

/// Runs a script in which `$TOOL` is the tool.
fn shell(dir: &Dir, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("TOOL", TOOL);
    command.current_dir(dir.0.path()).output().unwrap()
}

#[test]
fn an_endless_tail_is_not_read_to_its_end() {
    let dir = Dir::new();
    dir.write("keys", "a\n");
    dir.ok("build keys -o f -q");
    let output = shell(&dir, "(cat f; cat /dev/zero) | \"$TOOL\" info /dev/stdin");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&stderr(&output), &["/dev/stdin: offset 128: ", "followed by other bytes"]);
}

fn mode(dir: &Dir, name: &str) -> u32 {
    fs::metadata(dir.path(name)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = Dir::new();
    dir.write("keys", words());
    dir.ok("build keys -o f");
    let mut tool = Command::new(TOOL)
        .args(["query", "f", "keys"])
        .current_dir(dir.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _limit = time_limit(&tool);
    let mut line = String::new();
    let mut stdout = BufReader::with_capacity(16, tool.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let output = tool.wait_with_output().unwrap();
    assert_eq!(line, "A\n");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

/// Whoever reads may leave at once, or after a line: every command ends, and says nothing.
#[test]
fn a_closed_pipe_ends_every_command_quietly() {
    let dir = Dir::new();
    dir.write("keys", words());
    dir.write("returns", "a\r\n".repeat(50_000));
    dir.ok("build keys -o f -q");
    dir.ok("build returns -o r -q");
    for command in [
        "query f keys",
        "query f keys --count",
        "query r returns",
        "info f",
        "info f --json",
        "plan --keys 1M",
        "plan --levels 1M,10M --budget 1MiB",
        // Sizes that cannot be measured: an error if the tool went on.
        "bench --rounds 1 --keys 1000,18446744073709551615",
        "bench --rounds 1 --keys 1000,18446744073709551615 --json",
        "--help",
        "build --help",
        "--version",
    ] {
        let mut tool = Command::new(TOOL)
            .args(command.split_whitespace())
            .current_dir(dir.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _limit = time_limit(&tool);
        drop(tool.stdout.take());
        let output = tool.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{command}");
    }
    // The error is not lost with the reader of the description.
    let mut bytes = dir.read("f");
    bytes[100] ^= 1;
    dir.write("f", bytes);
    let output = shell(&dir, "(\"$TOOL\" info f; echo $? >&2) | true");
    assert_parts(&stderr(&output), &["error: f: offset 48: ", "\n2\n"]);
}

#[test]
fn keys_that_come_one_by_one_are_answered_one_by_one() {
    let dir = Dir::new();
    dir.ok_with("build - -o f", "apple\n");
    let mut tool = Command::new(TOOL)
        .args(["query", "f"])
        .current_dir(dir.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = tool.stdin.take().unwrap();
    stdin.write_all(b"apple\n").unwrap();
    let stdout = tool.stdout.take().unwrap();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        send.send(line).unwrap();
    });
    // The answer is what is waited for; without it the test fails, after as long as no machine is
    // busy.
    let answer = receive.recv_timeout(Duration::from_secs(600));
    drop(stdin);
    assert_eq!(answer.as_deref(), Ok("apple\n"));
    assert!(tool.wait().unwrap().success());
}

#[test]
fn permissions_are_those_of_the_umask_or_of_the_file_replaced() {
    let dir = Dir::new();
    dir.write("keys", "a\n");
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let script = format!("umask {umask}; \"$TOOL\" build keys -o f{umask}");
        assert!(shell(&dir, &script).status.success());
        assert_eq!(mode(&dir, &format!("f{umask}")), expected, "umask {umask}");
    }
    fs::set_permissions(dir.path("f022"), Permissions::from_mode(0o640)).unwrap();
    dir.ok("build keys -o f022 --seed 1");
    assert_eq!(mode(&dir, "f022"), 0o640);
    assert_eq!(dir.info("f022")["seed"], 1);
}

#[test]
fn an_existing_filter_is_replaced_not_overwritten() {
    let dir = Dir::new();
    dir.ok_with("build - -o f", "a\n");
    let before = dir.read("f");
    let mut opened_before = File::open(dir.path("f")).unwrap();
    dir.ok_with("build - -o f", lines("key", 1_000));
    assert_eq!(dir.info("f")["keys_inserted"], 1_000);
    let mut seen = Vec::new();
    opened_before.read_to_end(&mut seen).unwrap();
    assert_eq!(seen, before);
    assert_eq!(dir.names(), ["f"]);
}

#[test]
fn links_are_followed_and_stay() {
    let dir = Dir::new();
    fs::create_dir(dir.path("there")).unwrap();
    symlink("there/f", dir.path("link")).unwrap();
    symlink("link", dir.path("link of link")).unwrap();
    // First the file does not exist yet, then it does.
    for seed in [1, 2] {
        let script = format!("echo a | \"$TOOL\" build - --seed {seed} -o 'link of link'");
        let output = shell(&dir, &script);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(fs::symlink_metadata(dir.path("link")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(dir.path("link of link")).unwrap().is_symlink());
        assert_eq!(dir.info("there/f")["seed"], seed);
    }
    assert_eq!(dir.names(), ["link", "link of link", "there"]);
    symlink("loop", dir.path("loop")).unwrap();
    assert_parts(&dir.fails_with("build - -o loop", "a\n"), &["loop: cannot write: "]);
}

#[test]
fn pipes_and_devices_are_written_and_stay() {
    let dir = Dir::new();
    dir.ok_with("build - -o f", "a\n");
    let expected = dir.read("f");

    let fifo = dir.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Open for both, so that neither side waits for the other.
    let mut both = File::options().read(true).write(true).open(&fifo).unwrap();
    dir.ok_with("build - -o fifo", "a\n");
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    let mut piped = vec![0; expected.len()];
    both.read_exact(&mut piped).unwrap();
    assert_eq!(piped, expected);

    // Through a link: a tool that renamed over its output would not harm the machine.
    symlink("/dev/stdout", dir.path("stdout")).unwrap();
    assert_eq!(dir.ok_with("build - -o stdout", "a\n"), expected);
    assert!(fs::symlink_metadata(dir.path("stdout")).unwrap().is_symlink());
    assert_eq!(dir.names(), ["f", "fifo", "stdout"]);
}

#[test]
fn a_failed_write_leaves_the_old_filter_and_nothing_else() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 100_000));
    dir.ok_with("build - -o f", "a\n");
    let before = dir.read("f");
    // A limit on the size of files makes the write fail half way.
    for output in ["f", "new"] {
        let script = format!("trap '' XFSZ; ulimit -f 8; \"$TOOL\" build keys -o {output}");
        let failed = shell(&dir, &script);
        assert_eq!(failed.status.code(), Some(2), "{}", stderr(&failed));
        assert_parts(&stderr(&failed), &[&format!("{output}: cannot write: ")]);
    }
    assert_eq!(dir.read("f"), before);
    assert_eq!(dir.names(), ["f", "keys"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error() {
    let dir = Dir::new();
    dir.ok_with("build - -o f", "a\n");
    let one_block = dir.ok_with("build - --format parquet-filter -o -", "a\n");
    assert!(one_block.len() < 64 && !one_block.contains(&b'\n'));
    for command in [
        "echo a | \"$TOOL\" query f > /dev/full",
        "echo a | \"$TOOL\" query f --count > /dev/full",
        "\"$TOOL\" info f > /dev/full",
        "\"$TOOL\" plan --keys 1M > /dev/full",
        "\"$TOOL\" merge f f -o - > /dev/full",
        // Without a line feed nothing is written before the end.
        "echo a | \"$TOOL\" build - --format parquet-filter -o - > /dev/full",
    ] {
        let output = shell(&dir, command);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_parts(&stderr(&output), &["standard output: cannot write: "]);
    }
}

#[test]
fn closed_standard_streams_are_survived() {
    let dir = Dir::new();
    dir.ok_with("build - -o f", "a\n");
    assert_eq!(shell(&dir, "\"$TOOL\" info f >&-").status.code(), Some(0));
    assert_eq!(shell(&dir, "\"$TOOL\" query f <&-").status.code(), Some(1));
    assert_eq!(shell(&dir, "\"$TOOL\" info nothing 2>&-").status.code(), Some(2));
}
