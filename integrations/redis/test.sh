#!/usr/bin/env bash
# integrations/redis/test.sh                format, lints and tests of this integration; records
#                                           what was tested in `tested`, to be committed
# integrations/redis/test.sh --if-changed   the same, unless `tested` says that these files, the
#                                           core's interface and the code of growing filters and
#                                           formats passed before
#
# It needs redis-server (7.0 or later), libclang and prlimit: Debian's packages redis-server,
# libclang-dev and util-linux. It installs them with apt-get if they are missing, or fails.
set -euo pipefail
cd "$(dirname "$0")"

# The code of the growing filters and of RedisBloom's format, and its fixtures: an interface says
# little about bytes.
tested=(
    integrations/redis tools/public-api/blocked-bloom{,-formats,-scalable}.txt
    crates/scalable/src crates/formats/src/{redis,classical}
    crates/formats/tests/suite/common/fixtures.rs
)

# libclang-cpp has another interface.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] ||
        { ldconfig -p 2>/dev/null; compgen -G '/usr/lib/llvm-*/lib/libclang*' || true; } |
        grep 'libclang[-.].*so' | grep -v libclang-cpp >/dev/null
}

missing=()
find_missing() {
    missing=()
    has_libclang || missing+=(libclang-dev)
    command -v "${REDIS_SERVER:-redis-server}" >/dev/null || missing+=(redis-server)
    command -v prlimit >/dev/null || missing+=(util-linux)
}

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
find_missing
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "integrations/redis: installing ${missing[*]}"
    apt-get update -qq && apt-get install -y --no-install-recommends "${missing[@]}"
    find_missing
fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "integrations/redis: NOT RUN: missing ${missing[*]} (Debian packages)" >&2
    exit 1
fi
cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
# Tests that cannot run fail.
CI=${CI:-true} cargo test --locked
../../tools/if-changed.sh record "${tested[@]}"
