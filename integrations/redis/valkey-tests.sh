#!/usr/bin/env bash
# integrations/redis/valkey-tests.sh [PATH]   valkey-bloom's own tests, on this module
#
# PATH is a checkout of valkey-bloom (github.com/valkey-io/valkey-bloom) that has its test framework
# (tests/valkeytests); nothing of it is part of this repository. REDIS_SERVER names the server's
# program, `valkey-server` if it is not set. pytest and the client come from PyPI into the target
# folder. `valkey-differences.txt` has the cases that differ, each with its reason: a case that
# fails and is not there, and one that is there and passes, is an error. KEEP_LOG names a file for
# what the cases print.
#
# The framework takes ports that are free, and each server listens at 127.0.0.1 alone.
set -euo pipefail
cd "$(dirname "$0")"

not_run() { echo "integrations/redis/valkey-tests.sh: NOT RUN: $*" >&2; exit; }
[ $# -gt 0 ] || not_run "valkey-bloom's tests; give the path of a checkout of valkey-bloom"
tests=$(realpath "$1")/tests
[ -e "$tests/valkeytests/valkey_test_case.py" ] ||
    { echo "valkey-tests.sh: $1 has no tests/valkeytests/valkey_test_case.py" >&2; exit 1; }
server=$(command -v "${REDIS_SERVER:-valkey-server}") || not_run "no ${REDIS_SERVER:-valkey-server}"

target=$(realpath "${CARGO_TARGET_DIR:-target}")
python=$target/valkey-tests/bin/python
if ! "$python" -c 'import pytest, valkey' 2>/dev/null; then
    python3 -m venv "$target/valkey-tests"
    "$python" -m pip install --quiet 'pytest==8.4.2' 'valkey==6.1.1' ||
        not_run "pytest and valkey cannot be installed from PyPI"
fi
cargo build --quiet --locked --lib

work=$(mktemp -d /tmp/valkey-tests.XXXXXX)
cases=
finish() {
    # The group of the cases, their servers among it.
    [ -z "$cases" ] || { kill -KILL -- "-$cases" && wait "$cases"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
cp -r "$tests"/* "$work"
mkdir -p "$work/.build/binaries/unstable"
cat >"$work/.build/binaries/unstable/valkey-server" <<END
#!/bin/sh
exec '$server' "\$@" --bind 127.0.0.1
END
chmod +x "$work/.build/binaries/unstable/valkey-server"
# What pytest did up to version 4, for which the tests are.
cat >"$work/conftest.py" <<'END'
import pytest


@pytest.fixture(autouse=True)
def as_before(request, port_tracker_fixture, server_id_fixture):
    request.instance.setup()
    yield
    request.instance.teardown()
    for server in request.instance.server_list:
        if server.server:
            server.server.kill()
END
export SERVER_VERSION=unstable MODULE_PATH=$target/debug/libblocked_bloom_redis.so
cd "$work"
export PYTHONPATH=$work:$work/valkeytests
setsid "$python" -m pytest -q -rA --tb=short -p no:cacheprovider >log 2>&1 &
cases=$!
wait "$cases" || true
cd - >/dev/null
[ -z "${KEEP_LOG:-}" ] || cp "$work/log" "$KEEP_LOG"
sed -nE 's/^(PASSED|FAILED|ERROR|SKIPPED) ([^ ]+).*/\1 \2/p' "$work/log" | sort -u >"$work/cases"
ran=$(wc -l <"$work/cases")
[ "$ran" -ge 20 ] || { tail -50 "$work/log" >&2; echo "only $ran cases ran" >&2; exit 1; }
cut -d' ' -f1 "$work/cases" | sort | uniq -c
sed -nE 's/^(FAILED|ERROR) //p' "$work/cases" | sort -u >"$work/failed"
sed -n 's/^PASSED //p' "$work/cases" | sort >"$work/passed"
awk '/^test_/ { print $1 }' valkey-differences.txt | sort >"$work/known"
wrong=0
while read -r name; do
    echo "fails, and is not in valkey-differences.txt: $name" >&2
    wrong=1
done < <(comm -23 "$work/failed" "$work/known")
while read -r name; do
    echo "passes, and is in valkey-differences.txt: $name" >&2
    wrong=1
done < <(comm -12 "$work/passed" "$work/known")
exit $wrong
