#!/usr/bin/env bash
# integrations/redis/peer-tests.sh [PATH]   RedisBloom's own flow tests of Bloom filters against this module
#
# PATH is a checkout of RedisBloom (github.com/RedisBloom/RedisBloom); nothing of it is part of this repository. The tests need RLTest, which comes from PyPI into
# the target folder. `peer-differences.txt` has the cases that differ, each with its reason: a case that fails and is not there, and one that is there and
# passes, is an error. REDIS_SERVER names the server's program, `redis-server` if it is not set; some cases are for Redis 8.
set -euo pipefail
cd "$(dirname "$0")"

not_run() { echo "integrations/redis/peer-tests.sh: NOT RUN: $*" >&2; exit; }
[ $# -gt 0 ] || not_run "RedisBloom's flow tests; give the path of a checkout of RedisBloom"
flow=$(realpath "$1")/tests/flow
[ -e "$flow/test_overall.py" ] || { echo "peer-tests.sh: $1 has no tests/flow/test_overall.py" >&2; exit 1; }
server=$(command -v "${REDIS_SERVER:-redis-server}") || not_run "no ${REDIS_SERVER:-redis-server}"

target=$(realpath "${CARGO_TARGET_DIR:-target}")
python=$target/peer-tests/bin/python
if ! "$python" -c 'import RLTest' 2>/dev/null; then
    python3 -m venv "$target/peer-tests"
    "$python" -m pip install --quiet 'RLTest==0.7.15' 'setuptools<81' || not_run "RLTest cannot be installed from PyPI"
fi
cargo build --quiet --locked --lib

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$flow"/*.py "$work"
# What the tests import of a submodule: the name of the system.
echo 'class Platform: osnick = os = arch = "linux"' >"$work/paella.py"
cd "$work"
# Each case in a run and a server of its own: those of a class share the count of failures otherwise. The cases of other types are none of this module's.
"$python" - "$target/debug/libblocked_bloom_redis.so" "$server" >cases <<'END'
import ast, re, subprocess, sys

module, server = sys.argv[1:]
names = []
for file in ["overall", "acl", "configs", "defrag", "docs_help", "resp3", "bf_restore_corrupt_rdb"]:
    for item in ast.parse(open(f"test_{file}.py").read()).body:
        if isinstance(item, ast.ClassDef):
            tests = [f"{item.name}.{test.name}" for test in item.body if isinstance(test, ast.FunctionDef)]
        else:
            tests = [item.name] if isinstance(item, ast.FunctionDef) else []
        names += [f"test_{file}:{test}" for test in tests if re.search(r"(^|\.)test", test)]
log = open("log", "w")
for name in sorted(set(names)):
    if re.search(r"_(cf|cms|topk|tdigest)(_|$)", name):
        continue
    run = [sys.executable, "-m", "RLTest", "--module", module, "--oss-redis-path", server, "--no-progress", "--clear-logs", "--enable-debug-command", "-t", name]
    try:
        ended = subprocess.run(run, capture_output=True, text=True, errors="replace", timeout=100)
        text, passed = ended.stdout + ended.stderr, ended.returncode == 0
    except subprocess.TimeoutExpired:
        text, passed = "no end within 100 s", False
    log.write(f"== {name}\n{text}\n")
    print("SKIP" if passed and "[SKIP]" in text else "PASS" if passed else "FAIL", name, flush=True)
END
cd - >/dev/null
[ -z "${KEEP_LOG:-}" ] || cp "$work/log" "$KEEP_LOG"
[ "$(wc -l <"$work/cases")" -ge 50 ] || { echo "peer-tests.sh: only $(wc -l <"$work/cases") cases ran" >&2; exit 1; }
cut -d' ' -f1 "$work/cases" | sort | uniq -c
sed -n 's/^FAIL //p' "$work/cases" | sort >"$work/failed"
sed -n 's/^PASS //p' "$work/cases" | sort >"$work/passed"
# Some are of servers before Redis 8 alone.
old=$("$server" --version | grep -cE 'v=[0-7]\.' || true)
awk -v old="$old" '/^test_/ && ($2 != "(7)" || old > 0) { print $1 }' peer-differences.txt | sort >"$work/known"
wrong=0
while read -r name; do echo "fails, and is not in peer-differences.txt: $name" >&2; wrong=1; done < <(comm -23 "$work/failed" "$work/known")
while read -r name; do echo "passes, and is in peer-differences.txt: $name" >&2; wrong=1; done < <(comm -12 "$work/passed" "$work/known")
exit $wrong
