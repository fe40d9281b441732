#!/usr/bin/env bash
# web/test.sh                format, lints and tests of the page, in Chromium and in node; records
#                            what was tested in `tested`, to be committed
# web/test.sh --if-changed   the same, unless `tested` says that these files and the code that they
#                            link passed before
#
# It needs node (18 or later) with npm, and Chromium: Debian's packages nodejs, npm and chromium,
# which it installs if it is root on a Debian machine, firefox-esr too; otherwise it says what did
# not run, and records nothing (without Firefox it records, and says so).
# playwright-core, puppeteer-core (for Firefox) and axe-core come from npm, by the lock file.
# Pictures of the page are left in target/scratch/shots.
set -euo pipefail
cd "$(dirname "$0")"

# Not interfaces alone: what a page says of a filter is what these packages do.
tested=(
    web crates/{inspect,formats,lsm,planes,removable,ribbon,scalable,split-block}/src
    tools/public-api/blocked-bloom.txt
)
if [ "${1:-}" = --if-changed ] && ../tools/if-changed.sh passed "${tested[@]}"; then exit; fi

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
cargo fmt --check
cargo clippy --quiet --locked --all-targets -- -D warnings
cargo test --quiet --locked --release --target-dir "$CARGO_TARGET_DIR"
./build.sh

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
[ -n "$chromium" ] || missing+=(chromium)
firefox=$(command -v firefox-esr || command -v firefox || true)
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "web: installing ${missing[*]}"
        install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
        apt-get update -qq && install "${missing[@]}"
        chromium=$(command -v chromium)
        [ -n "$firefox" ] || install firefox-esr || true
        firefox=$(command -v firefox-esr || true)
    else
        echo "web: NOT RUN in a browser: no ${missing[*]}" \
            "(Debian: apt-get install ${missing[*]})" >&2
        exit
    fi
fi
npm --prefix test ci --silent --no-audit --no-fund

# The tool, whose descriptions and plans the page's are compared with, and filters that it builds.
cargo build --quiet --locked --package blocked-bloom-cli --manifest-path ../Cargo.toml
export PAGE=$CARGO_TARGET_DIR/blocked-bloom.html TOOL=$CARGO_TARGET_DIR/debug/blocked-bloom
export CHROMIUM=$chromium SCRATCH=$CARGO_TARGET_DIR/scratch
if [ -d "${BLOCKED_BLOOM_FIXTURES:-}" ]; then
    FIXTURES=$BLOCKED_BLOOM_FIXTURES
elif [ -n "${BLOCKED_BLOOM_REQUIRE_FIXTURES:-}" ]; then
    echo "web: no fixtures in BLOCKED_BLOOM_FIXTURES" >&2
    exit 1
else
    echo "web: only the fixtures of the repository" >&2
    FIXTURES=$PWD/../crates/formats/tests/fixtures
fi
export FIXTURES
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/native"
awk 'NR % 5 == 0' ../tests/fixtures/keys/words.txt >"$SCRATCH/words.txt"
build() { "$TOOL" build "$SCRATCH/words.txt" --quiet --output "$SCRATCH/native/$1" "${@:2}"; }
build words.bloom
build words.compact --format compact
build words.ribbon --format ribbon
build words.tags --format removable
build words.filter --format rocksdb-block
build words.sbbf --format parquet-filter
build words.guava --format guava
build words.spark --format spark
build words.scandump --format redisbloom
build nb-1-big-Filter.db --format cassandra
"$TOOL" dedup --state "$SCRATCH/native/words.growing" --quiet "$SCRATCH/words.txt" >"$SCRATCH/once"
"$TOOL" planes build --lines 100 --output "$SCRATCH/native/words.planes" "$SCRATCH/words.txt"

if [ -n "$firefox" ]; then
    (cd test && FIREFOX=$firefox node firefox.mjs)
else
    echo "web: not tested in Firefox, which is not installed" >&2
fi

# The two run at the same time, because they rarely compete for a core.
(cd test && exec node damaged.mjs "${WEB_DAMAGED_SECONDS:-60}") &
damaged=$!
# It ends with this script, also where the other one fails.
trap 'kill $damaged 2>/dev/null || true' EXIT
(cd test && node browser.mjs)
wait $damaged
../tools/if-changed.sh record "${tested[@]}"
echo "web: all good (${SECONDS} s)"
