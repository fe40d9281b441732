#!/usr/bin/env bash
# integrations/redis/test.sh                format, lints and tests of this integration; records
#                                           what was tested in `tested`, to be committed
# integrations/redis/test.sh --if-changed   the same, unless `tested` says that these files, the
#                                           core's interface and the code of growing filters and
#                                           formats passed before
#
# It needs redis-server (7.0 or later) and libclang, Debian's packages redis-server and
# libclang-dev. If CI is set, it installs them by apt, or fails; otherwise it says what did not run,
# and records nothing.
set -euo pipefail
cd "$(dirname "$0")"

# Of the growing filters the code, and of the formats that which reads RedisBloom's filters and
# finds its fixtures: an interface says little about bytes.
tested=(
    integrations/redis tools/public-api/blocked-bloom{,-formats,-scalable}.txt
    crates/scalable/src crates/formats/src/{redis,classical}
    crates/formats/tests/suite/common/fixtures.rs
)

# Not libclang-cpp, which has another interface, and is often there alone.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] ||
        { ldconfig -p 2>/dev/null; compgen -G '/usr/lib/llvm-*/lib/libclang*' || true; } |
        grep 'libclang[-.].*so' | grep -v libclang-cpp >/dev/null
}

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
if [ -n "${CI:-}" ] && ! { has_libclang && command -v redis-server >/dev/null; }; then
    echo "integrations/redis: installing redis-server and libclang-dev"
    apt-get update -qq && apt-get install -y --no-install-recommends redis-server libclang-dev
fi
cargo fmt --check
if ! has_libclang; then
    echo "integrations/redis: NOT RUN: no libclang, which redis-module needs to be built" \
        "(Debian: libclang-dev)" >&2
    exit
fi
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked
if command -v redis-server >/dev/null; then
    ../../tools/if-changed.sh record "${tested[@]}"
else
    echo "integrations/redis: NOT RUN: no redis-server (Debian: redis-server)" >&2
fi
