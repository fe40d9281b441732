#!/usr/bin/env bash
# Runs fuzz targets side by side, one process per core, and prints a line for each. Without
# arguments: help.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# = 0 ]; then
    cat <<'HELP'
fuzz/run.sh SECONDS [TARGET...]   fuzzes each target, or each of `cargo +nightly fuzz list`, for so
                                  long
fuzz/run.sh seeds [TARGET...]     adds to fuzz/seeds what fuzz/corpus reaches and the seeds do not

A target starts from fuzz/corpus/TARGET, where new inputs are kept, and fuzz/seeds/TARGET, with the
words of fuzz/dict/TARGET.dict. As many run at a time as there are cores; JOBS=N sets another
number. An input that takes more than 30 seconds or 2 GB is a find. Its exit status is 1 if there is
a find; the input is then in fuzz/artifacts/TARGET, what the target said in
fuzz/artifacts/TARGET.log.
HELP
    exit 2
fi
mode=$1
shift
case $mode in
    seeds) ;;
    "" | *[!0-9]* | 0*) echo "fuzz/run.sh: \"$mode\" is not a number of seconds" >&2; exit 2 ;;
esac
known=$(cargo +nightly fuzz list)
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets <<<"$known"
for target in "${targets[@]}"; do
    grep -qxF -- "$target" <<<"$known" && continue
    echo "fuzz/run.sh: no target \"$target\", but:" $known >&2
    exit 2
done

# One target; its only output is its line of the table, and of a find where it is and how to see it
# again.
run() {
    local target=$1 log=fuzz/artifacts/$1.log status=0 words=() finds=() before artifact
    mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target" "fuzz/artifacts/$target"
    [ ! -f "fuzz/dict/$target.dict" ] || words=("-dict=fuzz/dict/$target.dict")
    before=$(mktemp)
    "$programs/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" "${words[@]}" \
        -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$mode" -timeout=30 \
        -print_final_stats=1 >"$log" 2>&1 || status=$?
    [ $status = 0 ] || mapfile -t finds < <(find "fuzz/artifacts/$target" -type f -newer "$before")
    rm "$before"
    printf '%-16s %11s %8s %9s %6s\n' "$target" "$(figure number_of_executed_units)" \
        "$(figure average_exec_per_sec)" "$(grep -oP '\bcov: \K\d+' "$log" | tail -1)" ${#finds[@]}
    if [ $status != 0 ] && [ ${#finds[@]} = 0 ]; then
        echo "  $target did not run; see $log"
    fi
    for artifact in "${finds[@]}"; do
        echo "  find: $artifact; log: $log"
        echo "  again: cargo +nightly fuzz run $target $artifact"
        echo "  smaller: cargo +nightly fuzz tmin $target $artifact"
    done
    [ $status = 0 ]
}

figure() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }

# With the seeds first, and without counting how often a branch is taken, few of many thousand
# inputs are taken over.
seeds() {
    local target=$1
    mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target"
    printf '%-16s ' "$target"
    "$programs/$target" "fuzz/seeds/$target" "fuzz/corpus/$target" -merge=1 -use_counters=0 2>&1 |
        grep -oE '[0-9]+ new files with.*|no new files.*|ERROR.*'
}

# No lines of the source in traces: without them compiling takes less time, and what `again:` prints
# compiles the target with them. The programs run without cargo, which would look at every source
# again for each.
triple=$(rustc +nightly -vV | sed -n 's/^host: //p')
programs=${CARGO_TARGET_DIR:-fuzz/target}/$triple/release
build=(cargo +nightly fuzz build --target "$triple")
export RUSTFLAGS="${RUSTFLAGS:-} -Cdebuginfo=0"
if [ $# -gt 0 ]; then
    for target in "${targets[@]}"; do "${build[@]}" "$target"; done
else
    "${build[@]}"
fi
# As cargo-fuzz sets it.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_odr_violation=0
if [ "$mode" = seeds ]; then
    for target in "${targets[@]}"; do seeds "$target"; done
    exit
fi
printf '%-16s %11s %8s %9s %6s\n' target executions exec/s coverage finds
export mode programs
export -f run figure
printf '%s\n' "${targets[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'run {}' || exit 1
