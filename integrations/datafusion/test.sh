#!/usr/bin/env bash
# integrations/datafusion/test.sh                format, lints and tests of this integration, among
#                                                them a cluster of processes; records what was
#                                                tested in `tested`, to be committed
# integrations/datafusion/test.sh --if-changed   the same, unless `tested` says that these files and
#                                                this interface of the core passed before
set -euo pipefail
cd "$(dirname "$0")"
tested=(
    integrations/datafusion tools/public-api/blocked-bloom.txt
    tools/public-api/blocked-bloom-file-index.txt
)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
cargo fmt --check
# As `cargo clippy --all-targets -- -D warnings`, which would check all of the 360 crates below once
# more, beside those that the tests are compiled with.
RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ \
    cargo test --locked --all-features --no-run
cargo test --locked --all-features
../../tools/if-changed.sh record "${tested[@]}"
