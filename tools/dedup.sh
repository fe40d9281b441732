#!/usr/bin/env bash
# CPU seconds (user and system) and elapsed seconds of `blocked-bloom dedup`, of reading the same
# lines, and of other ways to deduplicate them: a run is in benches/results.
#
#   tools/dedup.sh [LINES [WAY...]]    by default 20000000 lines (1 GB, in a temporary file) and
#                                      every way: the median of $ROUNDS (3) interleaved rounds
# LINES may also be a file that exists, which is kept.
set -euo pipefail
cd "$(dirname "$0")/.."

lines=${1:-20000000}
shift || true
ways=${*:-cat wc read keys memory grows state awk sort set}
rounds=${ROUNDS:-3}
export LC_ALL=C

target=${CARGO_TARGET_DIR:-target}/release
[ -n "${NO_BUILD:-}" ] || cargo build --quiet --release -p blocked-bloom-cli \
    -p blocked-bloom-benches --bin blocked-bloom --example lines
tool=$target/blocked-bloom read=$target/examples/lines
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
file=$lines
if [ ! -f "$file" ]; then
    file=$directory/lines
    "$read" make "$lines" "$file"
fi

name() { # way: what is run
    case $1 in
        cat) echo 'cat LINES > /dev/null' ;;
        wc) echo 'wc -l LINES' ;;
        read) echo 'read_until of a BufReader, every line' ;;
        keys) echo 'blocked-bloom dedup --keys 12M LINES' ;;
        memory) echo 'blocked-bloom dedup --memory 32M --fpr 0.01% LINES' ;;
        grows) echo 'blocked-bloom dedup LINES' ;;
        state) echo 'blocked-bloom dedup --keys 12M --state NEW LINES' ;;
        awk) echo "awk '!s[\$0]++' LINES" ;;
        sort) echo 'sort -u LINES' ;;
        set) echo 'HashSet of lines' ;;
        *) echo "dedup.sh: no way $1" >&2; return 1 ;;
    esac
}

run() {
    case $1 in
        cat) cat "$file" ;;
        wc) wc -l "$file" ;;
        read) "$read" read "$file" ;;
        keys) "$tool" dedup -q --keys 12M "$file" ;;
        memory) "$tool" dedup -q --memory 32M --fpr 0.01% "$file" ;;
        grows) "$tool" dedup -q "$file" ;;
        state)
            rm -f "$directory/state"
            "$tool" dedup -q --keys 12M --state "$directory/state" "$file"
            ;;
        awk) awk '!s[$0]++' "$file" ;;
        sort) sort -u -T "$directory" "$file" ;;
        set) "$read" set "$file" ;;
    esac
}

for way in $ways; do name "$way" > /dev/null; done
TIMEFORMAT='%U %S %R'
for ((round = 0; round < rounds; round++)); do
    for way in $ways; do
        { time run "$way" > /dev/null 2>&1; } 2>> "$directory/$way.times"
    done
done
for way in $ways; do
    awk '{ print $1 + $2, $3 }' "$directory/$way.times" | sort -n |
        awk -v name="$(name "$way")" '{ cpu[NR] = $1; elapsed[NR] = $2 }
            END {
                i = int((NR + 1) / 2)
                printf "%-55s %7.2f s CPU %7.2f s elapsed\n", name, cpu[i], elapsed[i]
            }'
done
