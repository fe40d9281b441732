//! Filters that the tool was writing when it was killed, when the device was full, when it had no
//! permission, when nobody read: the file that was there is whole, or the new one is, and an error
//! leaves nothing else.
//!
//! Each test prints what came of it:
//! `cargo test -p blocked-bloom-cli crash:: -- --nocapture --test-threads 1`.
#![cfg(unix)]

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blocked_bloom::BloomFilter;

use crate::common::Random;
use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, time_limit};

/// The name of what a killed tool leaves behind begins with this.
const LEFT: &str = ".blocked-bloom-";

/// Options that build filters of other systems, of 100 KB and more from ten thousand keys.
const FORMATS: [&str; 3] = [
    "--format rocksdb-block --bits-per-key 100",
    "--format parquet-filter --keys 1M --oversized",
    "--format cassandra --cassandra-version nb --keys 1M",
];

#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn outcome(of: &str, outcome: &str) {
    println!("{of:<42} {outcome}");
}

fn spawned(dir: &Dir, args: &str) -> Command {
    let mut command = Command::new(TOOL);
    command.current_dir(dir.0.path()).args(args.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// With the default action for SIGINT: a script's background job, `cargo test &`, ignores it, and a
/// child inherits that.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the action for a signal is set between fork and exec")]
fn interruptible(mut command: Command) -> Command {
    let reset = || {
        // SAFETY: `SIG_DFL` is not a function, so no code of this process runs in a handler.
        match unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) } {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec `reset` makes one system call and allocates nothing.
    unsafe { command.pre_exec(reset) };
    command
}

#[cfg(not(target_os = "linux"))]
fn interruptible(command: Command) -> Command {
    command
}

/// What is in the directory besides `expected`: temporary files only.
fn left_behind(dir: &Dir, expected: &[&str]) -> Vec<String> {
    let mut names = dir.names();
    names.retain(|name| !expected.contains(&name.as_str()));
    for name in &names {
        assert!(name.starts_with(LEFT), "{name} was left behind");
    }
    names
}

/// How the file is called that the tool is writing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Written {
    /// Not at all: `/proc` shows a number.
    Unnamed,
    Named,
}

pub(crate) fn written(dir: &Path, running: &Child) -> Option<Written> {
    let dir = fs::canonicalize(dir).unwrap();
    let open = fs::read_dir(format!("/proc/{}/fd", running.id()));
    let mut open =
        open.into_iter().flatten().flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
    let is_number = |path: &Path| {
        path.parent() == Some(&dir) && path.file_name().unwrap().to_string_lossy().starts_with('#')
    };
    if open.any(|path| is_number(&path)) {
        return Some(Written::Unnamed);
    }
    let mut entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    entries.any(|name| name.to_string_lossy().starts_with(LEFT)).then_some(Written::Named)
}

/// Whether the file system has files without a name.
fn has_unnamed(dir: &Dir) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        options.write(true).custom_flags(libc::O_TMPFILE).open(dir.0.path()).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        _ = dir;
        false
    }
}

pub(crate) fn wait_for_temporary(dir: &Path, running: &mut Child) {
    while written(dir, running).is_none() && running.try_wait().unwrap().is_none() {}
}

/// Half of the kills at any moment of a run, half once its temporary file is there.
#[test]
fn killed_at_any_moment_the_old_file_or_the_new_one_is_whole() {
    const KILLS: usize = 200;
    let (inputs, dir, mut random) = (Dir::new(), Dir::new(), Random(21));
    inputs.write("keys", lines("key", 10_000));
    let input = |name: &str| inputs.path(name).display().to_string();
    // A new file of 1.25 MB by each command that writes one, and of each format.
    let mut writers = Vec::new();
    for seed in [1, 2] {
        let build = format!("build {} --keys 1M --threads 1 --seed {seed} -q -o", input("keys"));
        inputs.ok(&format!("{build} f{seed}"));
        let built = input(&format!("f{seed}"));
        let merge = format!("merge {built} {built} -q -o");
        inputs.ok(&format!("{merge} m{seed}"));
        writers.push((build, inputs.read(&format!("f{seed}"))));
        writers.push((merge, inputs.read(&format!("m{seed}"))));
    }
    for (_, bytes) in &writers {
        assert!(bytes.len() > 1 << 20 && BloomFilter::from_bytes_any_hash(bytes).is_ok());
    }
    for format in FORMATS {
        let build = format!("build {} {format} -q -o", input("keys"));
        inputs.ok(&format!("{build} foreign"));
        writers.push((build, inputs.read("foreign")));
        assert!(writers[writers.len() - 1].1.len() > 100_000, "{format}");
    }
    symlink("f", dir.path("link")).unwrap();
    let start = Instant::now();
    dir.ok(&format!("{} f", writers[0].0));
    let mut usual = start.elapsed();

    let mut current = Some(0);
    let (mut killed, mut finished, mut kept, mut replaced) = (0, 0, 0, 0);
    let (mut partial, mut complete) = (0, 0);
    let (mut unnamed, mut named) = (0, 0);
    while killed < KILLS {
        assert!(finished < 3 * KILLS, "nearly every run finished before it was killed");
        let new = random.next() as usize % writers.len();
        let (command, bytes) = &writers[new];
        // At times there is no old file, at times there is a link to it.
        if random.next().is_multiple_of(4) && current.take().is_some() {
            fs::remove_file(dir.path("f")).unwrap();
        }
        let output = if random.next().is_multiple_of(2) { "f" } else { "link" };
        let start = Instant::now();
        let mut running = spawned(&dir, &format!("{command} {output}")).spawn().unwrap();
        if killed % 2 == 1 {
            wait_for_temporary(dir.0.path(), &mut running);
        }
        let share = (random.next() % 1_000) as u32;
        thread::sleep(usual / 1_000 * share / if killed % 2 == 1 { 4 } else { 1 });
        let file = written(dir.0.path(), &running);
        running.kill().unwrap();
        let status = running.wait().unwrap();
        let found = fs::read(dir.path("f")).ok();
        let is_new = found.as_ref() == Some(bytes);
        if status.signal() == Some(9) {
            killed += 1;
            assert!(
                is_new || found.as_ref() == current.map(|old: usize| &writers[old].1),
                "neither the old file nor the new one: {:?} bytes",
                found.map(|found| found.len())
            );
            *(if is_new && current != Some(new) { &mut replaced } else { &mut kept }) += 1;
            unnamed += usize::from(file == Some(Written::Unnamed));
            named += usize::from(file == Some(Written::Named));
        } else {
            finished += 1;
            assert!(status.success() && is_new, "{status}");
            // The machine may have become slower or faster.
            usual = (3 * usual + start.elapsed()) / 4;
        }
        current = if is_new { Some(new) } else { current };
        assert!(fs::symlink_metadata(dir.path("link")).unwrap().is_symlink());
        let left = left_behind(&dir, &["f", "link"]);
        assert!(left.is_empty() || status.signal() == Some(9), "{left:?} by a run that finished");
        for name in left {
            let size = fs::metadata(dir.path(&name)).unwrap().len();
            *(if size < bytes.len() as u64 { &mut partial } else { &mut complete }) += 1;
            fs::remove_file(dir.path(&name)).unwrap();
        }
    }
    outcome(
        &format!("SIGKILL, {killed} times"),
        &format!(
            "{kept} old whole, {replaced} new whole, 0 mixed; {finished} others finished first"
        ),
    );
    outcome(
        "",
        &format!(
            "while it wrote a file without a name {unnamed}, with one {named}; left: {partial} \
             partial, {complete} complete"
        ),
    );
    assert!(unnamed + named >= 10, "nearly no run was killed while it wrote");
    // What has no name is gone with the tool that wrote it.
    if has_unnamed(&dir) {
        assert_eq!((named, partial), (0, 0), "files with a name, and partial ones that were left");
    }
}

/// Written directly: the device is full, and there is nothing to rename over.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_stays_a_device() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 10_000));
    dir.ok("build keys -o f");
    symlink("/dev/full", dir.path("link")).unwrap();
    let mut failed = 0;
    for output in ["/dev/full", "link"] {
        let foreign = FORMATS.map(|format| format!("build keys {format} -o {output}"));
        let native = [format!("build keys -o {output}"), format!("merge f f -o {output}")];
        for args in native.iter().chain(&foreign) {
            let message = dir.fails(args);
            assert_parts(&message, &[&format!("{output}: cannot write: No space left on device")]);
            failed += 1;
        }
    }
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    assert!(fs::symlink_metadata(dir.path("link")).unwrap().is_symlink());
    assert_eq!(dir.names(), ["f", "keys", "link"]);
    outcome(
        "/dev/full, and a link to it",
        &format!("{failed} failed with status 2; the device stays"),
    );
}

/// Runs a script as the root of a mount namespace of its own, if that is allowed here.
#[cfg(target_os = "linux")]
fn mounted(dir: &Dir, script: &str) -> Option<Output> {
    for namespace in ["-m", "-rm"] {
        let run = |script: &str| {
            let mut command = Command::new("unshare");
            command.args([namespace, "sh", "-c", script]).env("TOOL", TOOL);
            command.current_dir(dir.0.path()).output().ok()
        };
        if run("mount -t tmpfs none small").is_some_and(|output| output.status.success()) {
            return run(script);
        }
    }
    None
}

/// Once without space for the bytes, once without an inode for one more file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_file_system_keeps_what_it_had() {
    let dir = Dir::new();
    fs::create_dir(dir.path("small")).unwrap();
    dir.write("keys", lines("key", 10_000));
    dir.ok_with("build - -o f", "a\n");
    for (limit, message) in [
        ("size=256k", "cannot write: No space left on device"),
        ("nr_inodes=3", "cannot create a temporary file next to it: No space left on device"),
    ] {
        let script = format!(
            "mount -t tmpfs -o {limit} none small && cp f small/f && ln -s f small/link || exit 9
             for output in small/f small/link small/new; do
                 \"$TOOL\" build keys --keys 1M -o $output && exit 8
                 [ $? = 2 ] || exit 7
             done
             cmp f small/f && [ -L small/link ] &&
             [ \"$(ls -A small | tr '\\n' ' ')\" = 'f link ' ]"
        );
        let Some(done) = mounted(&dir, &script) else {
            outcome(&format!("tmpfs, {limit}"), "NOT RUN: no file system may be mounted here");
            continue;
        };
        assert!(done.status.success(), "{limit}: {:?}: {}", done.status.code(), stderr(&done));
        let messages = stderr(&done);
        assert_eq!(messages.lines().count(), 3, "{messages}");
        for (line, output) in messages.lines().zip(["small/f", "small/link", "small/new"]) {
            assert_parts(line, &[&format!("error: {output}: {message}")]);
        }
        outcome(
            &format!("tmpfs, {limit}"),
            "3 of 3 failed with status 2; the old file whole, no other left",
        );
    }
}

/// Runs the tool without the privileges of root, which permissions do not stop.
fn as_nobody(dir: &Dir, args: &str) -> io::Result<Output> {
    let mut command = Command::new(dir.path("tool"));
    command.current_dir(dir.0.path()).args(args.split_whitespace());
    if fs::metadata(dir.0.path()).unwrap().uid() == 0 {
        command.gid(65_534).uid(65_534);
    }
    command.output()
}

#[test]
fn a_missing_permission_changes_nothing() {
    let dir = Dir::new();
    let allow = |name: &str, mode: u32| {
        fs::set_permissions(dir.path(name), Permissions::from_mode(mode)).unwrap();
    };
    // Puts the tool where any user can run it, by a link if possible: a copy cannot be run while a
    // child of another test still has it open for writing.
    if fs::hard_link(TOOL, dir.path("tool")).is_err() {
        fs::copy(TOOL, dir.path("tool")).unwrap();
    }
    allow("tool", 0o755);
    allow("", 0o755);
    dir.write("keys", lines("key", 1_000));
    if let Err(error) = as_nobody(&dir, "--version") {
        outcome(
            "without permission",
            &format!("NOT RUN: no other user can run the tool here: {error}"),
        );
        return;
    }
    dir.write("secret", "a\n");
    allow("secret", 0o000);
    for name in ["closed", "hidden", "open"] {
        fs::create_dir(dir.path(name)).unwrap();
        dir.ok_with(&format!("build - -o {name}/f"), "a\n");
    }
    let before = dir.read("open/f");
    let fifo = dir.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    allow("fifo", 0o000);
    symlink("closed/f", dir.path("link")).unwrap();
    allow("closed", 0o555);
    allow("hidden", 0o000);
    allow("open", 0o777);

    let expected = [
        ("build keys -o closed/f", "closed/f: cannot create a temporary file next to it: "),
        ("build keys -o closed/new", "closed/new: cannot create a temporary file next to it: "),
        ("build keys -o link", "link: cannot create a temporary file next to it: "),
        (
            "merge open/f open/f -o closed/f",
            "closed/f: cannot create a temporary file next to it: ",
        ),
        ("build keys -o hidden/f", "hidden/f: cannot write: "),
        ("build keys -o fifo", "fifo: cannot open: "),
        ("build secret -o open/f", "secret: cannot "),
        ("merge open/f hidden/f -o open/f --overwrite", "hidden/f: cannot "),
    ];
    for (args, message) in expected {
        let output = as_nobody(&dir, args).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}: {}", stderr(&output));
        assert_parts(&stderr(&output), &[message, "Permission denied"]);
    }
    // Where a new file may be made, the old one is replaced whoever owns it.
    let output = as_nobody(&dir, "build keys -q -o open/f").unwrap();
    assert!(output.status.success(), "{}", stderr(&output));

    allow("closed", 0o755);
    allow("hidden", 0o755);
    assert_eq!(dir.info("open/f")["keys_inserted"], 1_000);
    for name in ["closed", "hidden", "open"] {
        let names: Vec<_> = fs::read_dir(dir.path(name)).unwrap().collect();
        assert_eq!(names.len(), 1, "{name}");
        assert!(name == "open" || dir.read(&format!("{name}/f")) == before, "{name}");
    }
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    assert!(fs::symlink_metadata(dir.path("link")).unwrap().is_symlink());
    outcome(
        "without permission, as another user",
        &format!(
            "{0} of {0} failed with status 2; every file whole, no other left",
            expected.len()
        ),
    );
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error() {
    let dir = Dir::new();
    // Every filter is larger than the 64 KiB that a pipe takes before anybody reads.
    dir.write("keys", lines("key", 10_000));
    dir.ok("build keys --keys 1M -q -o f");
    let broken = |output: Output, name: &str| {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_parts(&stderr(&output), &[&format!("error: {name}: cannot write: Broken pipe")]);
    };
    let native =
        ["build keys --keys 1M -o -", "merge f f -o -", "build keys --keys 1M -o /dev/stdout"];
    let foreign = FORMATS.map(|format| format!("build keys {format} -o -"));
    let mut failed = 1;
    for args in native.into_iter().chain(foreign.iter().map(String::as_str)) {
        failed += 1;
        let mut command = spawned(&dir, args);
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _limit = time_limit(&running);
        drop(running.stdout.take());
        let name = if args.ends_with("/dev/stdout") { "/dev/stdout" } else { "standard output" };
        broken(running.wait_with_output().unwrap(), name);
    }
    // A reader of a named pipe that has had enough after a byte.
    let fifo = dir.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || File::open(fifo).unwrap().read_exact(&mut [0]).unwrap()
    });
    let running = spawned(&dir, "build keys --keys 1M -o fifo").stderr(Stdio::piped()).spawn();
    let running = running.unwrap();
    let _limit = time_limit(&running);
    broken(running.wait_with_output().unwrap(), "fifo");
    reader.join().unwrap();
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    assert_eq!(dir.names(), ["f", "fifo", "keys"]);
    outcome("a pipe closed by its reader", &format!("{failed} failed with status 2; no file left"));
}

/// Whatever ends the tool while it writes, the system frees what has no name.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_while_writing_leaves_nothing() {
    for signal in [2, 15, 9] {
        let dir = Dir::new();
        dir.ok_with("build - -q -o old", "a\n");
        for output in ["old", "new"] {
            // It has its file, and waits for more of the text.
            let command = spawned(&dir, &format!("planes build --items 9 -q - -o {output}"));
            let mut running = interruptible(command).stdin(Stdio::piped()).spawn().unwrap();
            wait_for_temporary(dir.0.path(), &mut running);
            let file = written(dir.0.path(), &running);
            let kill = format!("kill -{signal} {}", running.id());
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
            assert_eq!(running.wait().unwrap().signal(), Some(signal));
            if !has_unnamed(&dir) {
                outcome("an interrupt", "NOT RUN: this file system has no files without a name");
                return;
            }
            assert_eq!(file, Some(Written::Unnamed));
            assert_eq!(dir.names(), ["old"], "signal {signal}");
            assert_eq!(dir.info("old")["format"], "native");
        }
    }
    outcome("SIGINT, SIGTERM, SIGKILL while it writes", "the old file whole, no other left");
}

/// Where a file cannot get its name by `/proc`, it has one from the start.
#[cfg(target_os = "linux")]
#[test]
fn files_are_named_at_once_if_proc_is_missing() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 10_000));
    dir.ok_with("build - -q -o f", "a\n");
    let script = "mount -t tmpfs none /proc && mkfifo pipe && exec 3<>pipe || exit 9
        \"$TOOL\" planes build --items 9 -q - -o new < pipe &
        for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            ls -A | grep -q '^.blocked-bloom-' && break
            sleep 0.2
        done
        kill -9 $!; wait $! 2> died
        rm .blocked-bloom-* pipe died || exit 8
        \"$TOOL\" build keys -q -o f && \"$TOOL\" build keys -q -o g && cmp f g || exit 7
        trap '' XFSZ; ulimit -f 8; \"$TOOL\" build keys -q -o f && exit 6
        [ \"$(ls -A | tr '\\n' ' ')\" = 'f g keys small ' ]";
    fs::create_dir(dir.path("small")).unwrap();
    let Some(done) = mounted(&dir, script) else {
        outcome("without /proc", "NOT RUN: no file system may be mounted here");
        return;
    };
    assert!(done.status.success(), "{:?}: {}", done.status.code(), stderr(&done));
    assert_parts(&stderr(&done), &["error: f: cannot write: "]);
    outcome("without /proc", "written by a temporary name");
}

/// A reader that opens the file again and again, while it is replaced, never sees a part.
#[test]
fn readers_see_whole_filters_while_they_are_replaced() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_000));
    dir.ok("build keys --keys 1M -q -o f");
    let (mut opened, mut runs) = (0, 0);
    let start = Instant::now();
    while runs < 20 && (runs < 3 || start.elapsed() < Duration::from_secs(5)) {
        let command = format!("build keys --keys 1M --threads 1 --seed {runs} -q -o f");
        let mut running = spawned(&dir, &command).spawn().unwrap();
        let mut finished = false;
        while !finished {
            finished = running.try_wait().unwrap().is_some();
            let error = BloomFilter::from_bytes_any_hash(&dir.read("f")).err();
            assert_eq!(error, None, "after {opened} readings");
            opened += 1;
        }
        assert!(running.wait().unwrap().success());
        assert_eq!(dir.info("f")["seed"], runs);
        runs += 1;
    }
    outcome(
        &format!("{runs} replacements, a reader beside them"),
        &format!("{opened} readings, every one a whole filter"),
    );
}
