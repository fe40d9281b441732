#!/usr/bin/env bash
# integrations/redis/test.sh                format, lints and tests of this integration; records what was tested in `tested`, to be committed
# integrations/redis/test.sh --if-changed   the same, unless `tested` says that these files, the core's interface and the formats' code passed before
#
# It needs redis-server (7.0 or later) and libclang, Debian's packages redis-server and libclang-dev. If CI is set, it installs them by apt, or fails;
# otherwise it says what did not run, and records nothing.
set -euo pipefail
cd "$(dirname "$0")"

# This folder as git knows it, but for the record itself; the core's public interface; the code that reads RedisBloom's filters, and that finds its fixtures.
state() {
    git ls-files -z --cached --others --exclude-standard . ':!tested' ../../tools/public-api/blocked-bloom.txt ../../crates/formats/src/redis ../../crates/formats/src/classical \
        ../../crates/formats/tests/suite/common/fixtures.rs |
        LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64
}

has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] || ldconfig -p 2>/dev/null | grep -q 'libclang[-.]' || compgen -G '/usr/lib/llvm-*/lib/libclang[-.]*so*' >/dev/null
}

if [ "${1:-}" = --if-changed ] && [ "$(cat tested 2>/dev/null)" = "$(state)" ]; then
    echo "integrations/redis: these files, this interface of the core and this code of the formats passed before"
    exit
fi
if [ -n "${CI:-}" ] && ! { has_libclang && command -v redis-server >/dev/null; }; then
    echo "integrations/redis: installing redis-server and libclang-dev"
    apt-get update -qq && apt-get install -y --no-install-recommends redis-server libclang-dev
fi
cargo fmt --check
if ! has_libclang; then
    echo "integrations/redis: NOT RUN: no libclang, which redis-module needs to be built (Debian: libclang-dev)" >&2
    exit
fi
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked
if command -v redis-server >/dev/null; then
    state >tested
else
    echo "integrations/redis: NOT RUN: no redis-server (Debian: redis-server)" >&2
fi
