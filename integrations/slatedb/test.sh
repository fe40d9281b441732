#!/usr/bin/env bash
# integrations/slatedb/test.sh                format, lints and tests of this integration; records what was tested in `tested`, to be committed
# integrations/slatedb/test.sh --if-changed   the same, unless `tested` says that these files and this interface of the core passed before
set -euo pipefail
cd "$(dirname "$0")"

# This folder as git knows it, but for the record itself, and the core's public interface.
state() {
    git ls-files -z --cached --others --exclude-standard . ':!tested' ../../tools/public-api/blocked-bloom.txt | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64
}

if [ "${1:-}" = --if-changed ] && [ "$(cat tested 2>/dev/null)" = "$(state)" ]; then
    echo "integrations/slatedb: these files and this interface of the core passed before"
    exit
fi
cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked
state >tested
