// The build script: `cfg(fixtures)` says that the filters which other systems wrote are there.
// Without them the tests that read them are ignored, and so counted as such.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fixtures)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=tests/suite/common/build.rs");
    println!("cargo::rerun-if-env-changed=BLOCKED_BLOOM_FIXTURES");
    println!("cargo::rerun-if-env-changed=BLOCKED_BLOOM_REQUIRE_FIXTURES");
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let folder = env::var_os("BLOCKED_BLOOM_FIXTURES").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        println!("cargo::rustc-cfg=fixtures");
    } else {
        let required = env::var_os("BLOCKED_BLOOM_REQUIRE_FIXTURES").is_some();
        assert!(!required, "no folder {}, which the environment requires", folder.display());
    }
}
