#!/usr/bin/env bash
# integrations/datafusion/test.sh                checks format and lints and runs all tests of this
#                                                integration, also in a cluster of processes, and
#                                                records the tested files in `tested`; commit it
# integrations/datafusion/test.sh --if-changed   the same, unless these files and the interface of
#                                                the core are those in `tested`
set -euo pipefail
cd "$(dirname "$0")"
tested=(
    integrations/datafusion tools/public-api/blocked-bloom.txt
    tools/public-api/blocked-bloom-file-index.txt
)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
cargo fmt --check
# Like `cargo clippy --all-targets -- -D warnings`, but without checking the 360 dependencies once
# more in addition to compiling them for the tests.
RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ \
    cargo test --locked --all-features --no-run
cargo test --locked --all-features
../../tools/if-changed.sh record "${tested[@]}"
