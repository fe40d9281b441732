//! Large files: their length is compared with their header before anything is read, and they are
//! mapped, not read into memory.

use std::fs::File;

use crate::fixtures::committed;
use crate::tool::{Dir, assert_parts, lines};

/// Cut off, or followed by what cannot be seen to be a mistake before it is read: holes of 256 GiB.
#[test]
fn a_length_that_the_header_does_not_give_is_an_error_before_reading() {
    let dir = Dir::new();
    dir.write("keys", "a\nb\n");
    dir.ok("build keys -o f -q");
    dir.copy(&committed("parquet/raw").join("arrowrs_ndv900_fpp0.01.sbbf"), "g");
    for (name, format, commands) in [
        ("f", "native", ["info f", "query f keys", "merge f f -o h"]),
        ("g", "parquet-filter", ["info g", "query g keys --type int64", "info g --json"]),
    ] {
        let expected = format!("expected {}", dir.read(name).len());
        let file = File::options().write(true).open(dir.path(name)).unwrap();
        if file.set_len(1 << 38).is_err() {
            // A file system without holes.
            continue;
        }
        for command in commands {
            let message = dir.fails(command);
            let read_as = format!("read as {format}");
            assert_parts(
                &message,
                &[name, "274877906944 bytes", &expected, &read_as, "\"absent\""],
            );
        }
    }
}

/// Neither mapped nor read: there is no memory for the file, in a process of 600 MiB.
#[cfg(target_os = "linux")]
#[test]
fn a_length_that_is_wrong_is_an_error_without_memory_for_the_file() {
    let dir = Dir::new();
    dir.write("keys", "a\nb\n");
    for format in ["native", "ribbon", "removable", "parquet-filter"] {
        dir.ok(&format!("build keys -o f -q --format {format}"));
        let expected = format!("expected {}", dir.read("f").len());
        let file = File::options().write(true).open(dir.path("f")).unwrap();
        if file.set_len(1 << 38).is_err() {
            continue;
        }
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -v 614400; \"$TOOL\" info f"]).env("TOOL", crate::tool::TOOL);
        let output = command.current_dir(dir.0.path()).output().unwrap();
        let message = crate::tool::stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{format}: {message}");
        assert_parts(&message, &["274877906944 bytes", &expected, "read as "]);
    }
}

/// Checksums cover all of a large file.
#[test]
fn damage_at_the_end_of_a_large_filter_is_noticed() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 2_000_000));
    for format in ["native", "ribbon", "removable"] {
        dir.ok(&format!("build keys -o f -q --format {format}"));
        let whole = dir.read("f");
        assert!(whole.len() > 3 << 19, "{format}");
        for at in [(1 << 20) + 100, 3 << 19, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            dir.write("f", bytes);
            let message = dir.fails("query f keys --count");
            assert_parts(&message, &["f: ", "checksum", &format!("read as {format}")]);
        }
    }
}

/// A filter that is larger than the memory that the tool may write to.
#[cfg(target_os = "linux")]
#[test]
fn large_filters_are_mapped() {
    let dir = Dir::new();
    dir.write("keys", "a\nb\nc\n");
    dir.ok("build keys -o f -q --keys 80M --oversized");
    assert!(dir.read("f").len() > 100_000_000);
    for (args, status, stdout) in
        [("query f keys --count", 0, "3"), ("info f", 0, "block checksum                  ok")]
    {
        let mut command = std::process::Command::new("sh");
        let script = format!("ulimit -d 65536; \"$TOOL\" {args}");
        command.args(["-c", &script]).env("TOOL", crate::tool::TOOL);
        let output = command.current_dir(dir.0.path()).output().unwrap();
        let message = crate::tool::stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{args}: {message}");
        assert_parts(&crate::tool::text(output.stdout), &[stdout]);
    }
    // Damage is found in mapped bytes, too.
    let mut bytes = dir.read("f");
    bytes[50_000_000] ^= 1;
    dir.write("f", &bytes);
    assert_parts(&dir.fails("query f keys"), &["f: offset 48: checksum "]);
    dir.write("f", &bytes[..bytes.len() - 1]);
    assert_parts(&dir.fails("query f keys"), &["bytes in all, expected ", "truncated"]);
}
