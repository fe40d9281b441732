#!/usr/bin/env bash
# integrations/slatedb/test.sh                format, lints and tests of this integration; records
#                                             what was tested in `tested`, to be committed
# integrations/slatedb/test.sh --if-changed   the same, unless `tested` says that these files and
#                                             this interface of the core passed before
set -euo pipefail
cd "$(dirname "$0")"
tested=(integrations/slatedb tools/public-api/blocked-bloom.txt
    tools/public-api/blocked-bloom-range.txt)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked
../../tools/if-changed.sh record "${tested[@]}"
