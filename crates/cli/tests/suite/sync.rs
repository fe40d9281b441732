//! The system calls that make a new filter last. Each of them fails in turn, which must be an
//! error: one that is left out cannot fail. Kills do not show it, since what was written and not
//! flushed survives the end of a process.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![expect(unsafe_code, reason = "a filter of system calls is set between fork and exec")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::tool::{Dir, TOOL, assert_parts, lines, stderr};

/// Runs the tool so that `fsync` of a descriptor fails.
fn run_where_fsync_fails(dir: &Dir, args: &str, descriptor: u32) -> io::Result<Output> {
    let op = |code: u32, if_not: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: if_not,
        k,
    };
    let (load, equals, answer) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    // Of `seccomp_data` the number of the call, and the lower half of its first argument.
    let filter = [
        op(load, 0, 0),
        op(equals, 3, libc::SYS_fsync as u32),
        op(load, 0, 16),
        op(equals, 1, descriptor),
        op(answer, 0, libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
        op(answer, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let set = move || {
        let program =
            libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        let set = |option: libc::c_int, mode: libc::c_ulong, pointer: *const libc::sock_fprog| {
            // SAFETY: both calls only read `program` and the filter that it points to, which
            // outlive them.
            match unsafe { libc::prctl(option, mode, pointer, 0, 0) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        set(libc::PR_SET_NO_NEW_PRIVS, 1, std::ptr::null())?;
        set(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER.into(), &program)
    };
    let mut command = Command::new(TOOL);
    command.current_dir(dir.0.path()).args(args.split_whitespace());
    // SAFETY: between fork and exec `set` makes two system calls and allocates nothing.
    unsafe { command.pre_exec(set) };
    command.output()
}

#[expect(clippy::print_stdout, reason = "what was not run")]
#[test]
fn a_file_and_its_directory_are_flushed_to_disk() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_000));
    let build = |seed| format!("build keys --threads 1 -q --seed {seed} -o f");
    dir.ok(&build(1));
    let old = dir.read("f");
    dir.ok(&build(2));
    let new = dir.read("f");
    for is_there in [true, false] {
        let (mut of_file, mut of_directory) = (0, 0);
        // Which numbers the two have is not said anywhere.
        for descriptor in 3..24 {
            match is_there {
                true => dir.write("f", &old),
                false => std::fs::remove_file(dir.path("f")).unwrap(),
            }
            let output = match run_where_fsync_fails(&dir, &build(2), descriptor) {
                Ok(output) => output,
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    // An emulated machine has no filters of system calls.
                    println!("NOT RUN: {error}");
                    return;
                }
                Err(error) => panic!("{error}"),
            };
            let message = stderr(&output);
            if message.is_empty() {
                assert_eq!(output.status.code(), Some(0), "{descriptor}");
                assert!(dir.read("f") == new);
                continue;
            }
            assert_eq!(output.status.code(), Some(2), "{message}");
            assert_parts(&message, &["f: cannot flush ", "(os error 5)"]);
            if message.contains("directory") {
                of_directory += 1;
                assert!(dir.read("f") == new);
            } else {
                // Flushed before it has its name.
                of_file += 1;
                match is_there {
                    true => assert!(dir.read("f") == old),
                    false => assert!(!dir.path("f").exists()),
                }
                dir.write("f", &old);
            }
            assert_eq!(dir.names(), ["f", "keys"]);
        }
        assert_eq!((of_file, of_directory), (1, 1), "an old file: {is_there}");
    }
}
