#!/usr/bin/env bash
# integrations/datafusion/test.sh                format, lints and tests of this integration, among them a cluster of processes; records what
#                                                was tested in `tested`, to be committed
# integrations/datafusion/test.sh --if-changed   the same, unless `tested` says that these files and this interface of the core passed before
set -euo pipefail
cd "$(dirname "$0")"

# This folder as git knows it, but for the record itself, and the core's public interface.
state() {
    git ls-files -z --cached --others --exclude-standard . ':!tested' ../../tools/public-api/blocked-bloom.txt | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64
}

if [ "${1:-}" = --if-changed ] && [ "$(cat tested 2>/dev/null)" = "$(state)" ]; then
    echo "integrations/datafusion: these files and this interface of the core passed before"
    exit
fi
cargo fmt --check
# As `cargo clippy --all-targets -- -D warnings`, which would check all of the 360 crates below once more, beside those that the tests
# are compiled with.
RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ cargo test --locked --no-run
cargo test --locked
state >tested
