#!/usr/bin/env bash
# bindings/python/test.sh                format, lints and tests of this package; records what was
#                                        tested in `tested`, to be committed
# bindings/python/test.sh --if-changed   the same, unless `tested` says that these files and all
#                                        that is compiled into them passed before
#
# FILE_HISTORIES=10000 runs so many random histories of folders instead of 300 (over an hour).
# FILE_SPARK=1 tests files that Spark writes: installs pyspark (300 MB), and needs Java 17.
#
# It builds the package as `pip install` does, installs it with the packages it is tested with into
# `target/venv`, and runs pytest: Python 3.11 or later with venv, and PyPI.
set -euo pipefail
cd "$(dirname "$0")"

# All that is compiled into it, as code: an interface says little about answers.
tested=(
    bindings/python Cargo.toml src crates/file-index/Cargo.toml crates/file-index/src
    crates/formats/Cargo.toml crates/formats/src crates/inspect/Cargo.toml crates/inspect/src
    crates/lsm/Cargo.toml crates/lsm/src crates/planes/Cargo.toml crates/planes/src
    crates/range/Cargo.toml crates/range/src crates/removable/Cargo.toml crates/removable/src
    crates/ribbon/Cargo.toml crates/ribbon/src
    crates/scalable/Cargo.toml crates/scalable/src crates/split-block/Cargo.toml
    crates/split-block/src
)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi

cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
# The Rust crates use the same keys.
cargo test --locked

target=${CARGO_TARGET_DIR:-$PWD/target}
venv=$target/venv
if [ -n "${CI:-}" ] && ! python3 -m venv --without-pip "$target/probe" 2>/dev/null; then
    echo "bindings/python: installing python3 with venv"
    apt-get update -qq && apt-get install -y --no-install-recommends python3 python3-venv
fi
rm -rf "$target/probe"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
CARGO_TARGET_DIR=$target "$venv/bin/pip" install --quiet --force-reinstall --no-deps .
"$venv/bin/pip" install --quiet ".[test,s3${FILE_SPARK:+,spark}]"
# Outside of this folder, whose package has no compiled part.
(cd "$target" && "$venv/bin/python" -m pytest -q -p no:cacheprovider "$OLDPWD/tests")
../../tools/if-changed.sh record "${tested[@]}"
