#!/usr/bin/env bash
# integrations/redis/peer-tests.sh [PATH]   RedisBloom's flow tests of Bloom filters, on this module
#
# PATH is a checkout of RedisBloom (github.com/RedisBloom/RedisBloom); nothing of it is part of this
# repository. The tests need RLTest, which comes from PyPI into the target folder.
# `peer-differences.txt` has the cases that differ, each with its reason: a case that fails and is
# not there, and one that is there and passes, is an error. REDIS_SERVER names the server's program,
# `redis-server` if it is not set; some cases are for Redis 8. KEEP_LOG names a file for what the
# cases print.
#
# No server of a case listens at a port: each is reached by a Unix socket in this run's own folder.
# The cases call FLUSHALL, and by a port they could reach a server that was there before.
set -euo pipefail
cd "$(dirname "$0")"

not_run() { echo "integrations/redis/peer-tests.sh: NOT RUN: $*" >&2; exit; }
[ $# -gt 0 ] || not_run "RedisBloom's flow tests; give the path of a checkout of RedisBloom"
flow=$(realpath "$1")/tests/flow
[ -e "$flow/test_overall.py" ] ||
    { echo "peer-tests.sh: $1 has no tests/flow/test_overall.py" >&2; exit 1; }
server=$(command -v "${REDIS_SERVER:-redis-server}") || not_run "no ${REDIS_SERVER:-redis-server}"

target=$(realpath "${CARGO_TARGET_DIR:-target}")
python=$target/peer-tests/bin/python
if ! "$python" -c 'import RLTest' 2>/dev/null; then
    python3 -m venv "$target/peer-tests"
    "$python" -m pip install --quiet 'RLTest==0.7.15' 'setuptools<81' ||
        not_run "RLTest cannot be installed from PyPI"
fi
cargo build --quiet --locked --lib

# In /tmp, whatever TMPDIR says: the path of a Unix socket has at most 107 bytes.
work=$(mktemp -d /tmp/peer-tests.XXXXXX)
cases=
finish() {
    # It ends the case that runs, with its servers.
    [ -z "$cases" ] || { kill "$cases" && wait "$cases"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
cp "$flow"/*.py "$work"
# What the tests import of a submodule: the name of the system.
echo 'class Platform: osnick = os = arch = "linux"' >"$work/paella.py"
cd "$work"
# Each case in a run and a server of its own: those of a class share the count of failures
# otherwise. The cases of other types are none of this module's.
"$python" - "$target/debug/libblocked_bloom_redis.so" "$server" >cases <<'END' &
import ast, os, re, signal, subprocess, sys, time

SECONDS = 100
FILES = ["overall", "acl", "configs", "defrag", "docs_help", "resp3", "bf_restore_corrupt_rdb"]
module, server = sys.argv[1:]
# The script's, when it is ended itself: as an exception, so that `run` ends what it started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def run(name):
    """What RLTest prints for a case, and whether it passes. No server of it is left."""
    words = ["--module", module, "--oss-redis-path", server, "--unix", "--no-progress"]
    words += ["--clear-logs", "--enable-debug-command", "-t", name]
    with open("output", "w+", errors="replace") as output:
        # A session of its own, of which RLTest's servers are part.
        started = subprocess.Popen([sys.executable, "-m", "RLTest", *words], stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            # RLTest is not reaped here: the group keeps its number until it has been ended.
            state = os.WEXITED | os.WNOHANG | os.WNOWAIT
            until = time.monotonic() + SECONDS
            while not (ended := os.waitid(os.P_PID, started.pid, state)):
                if time.monotonic() > until:
                    break
                time.sleep(0.02)
        finally:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        output.seek(0)
        text = output.read()
    if not ended:
        return f"{text}\nno end within {SECONDS} s\n", False
    return text, started.returncode == 0


names = []
for file in FILES:
    for item in ast.parse(open(f"test_{file}.py").read()).body:
        tests = [item.name] if isinstance(item, ast.FunctionDef) else []
        if isinstance(item, ast.ClassDef):
            functions = [test for test in item.body if isinstance(test, ast.FunctionDef)]
            tests = [f"{item.name}.{test.name}" for test in functions]
        names += [f"test_{file}:{test}" for test in tests if re.search(r"(^|\.)test", test)]
log = open("log", "w")
for name in sorted(set(names)):
    if re.search(r"_(cf|cms|topk|tdigest)(_|$)", name):
        continue
    text, passed = run(name)
    print(f"== {name}\n{text}", file=log, flush=True)
    skipped = passed and "[SKIP]" in text
    print("SKIP" if skipped else "PASS" if passed else "FAIL", name, flush=True)
END
cases=$!
wait "$cases"
cases=
cd - >/dev/null
[ -z "${KEEP_LOG:-}" ] || cp "$work/log" "$KEEP_LOG"
ran=$(wc -l <"$work/cases")
[ "$ran" -ge 50 ] || { echo "peer-tests.sh: only $ran cases ran" >&2; exit 1; }
cut -d' ' -f1 "$work/cases" | sort | uniq -c
sed -n 's/^FAIL //p' "$work/cases" | sort >"$work/failed"
sed -n 's/^PASS //p' "$work/cases" | sort >"$work/passed"
# Some are of servers before Redis 8 alone.
old=$("$server" --version | grep -cE 'v=[0-7]\.' || true)
awk -v old="$old" '/^test_/ && ($2 != "(7)" || old > 0) { print $1 }' peer-differences.txt |
    sort >"$work/known"
wrong=0
while read -r name; do
    echo "fails, and is not in peer-differences.txt: $name" >&2
    wrong=1
done < <(comm -23 "$work/failed" "$work/known")
while read -r name; do
    echo "passes, and is in peer-differences.txt: $name" >&2
    wrong=1
done < <(comm -12 "$work/passed" "$work/known")
exit $wrong
