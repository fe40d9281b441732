#!/usr/bin/env bash
# tools/codegen.sh          counts the instructions per key of the hot loops and compares them with
#                           tools/codegen/pinned.txt: a function that is no longer inlined, or a
#                           narrower register, is an error; so is a loop that got shorter
# tools/codegen.sh --pin    writes the counts into that table instead, and fails only if a count
#                           cannot be determined
#
# Loops up to AVX2 run under valgrind's callgrind. The counts of two runs with different numbers of
# rounds are subtracted, which removes everything outside the loop; the result is exact, whatever
# else the machine does. Valgrind does not support AVX-512, so its loops and those of NEON are
# counted in the compiler's assembly, which must contain the loop's instructions and no calls.
# tools/cross-test.sh compiles NEON. Not counted: time, the linker's work, WebAssembly, i686, and
# loops without a row in pinned.txt.
#
# Counts depend on the compiler: after a change of compiler, review the differences, then pin. Takes
# about two minutes; needs valgrind and an x86-64 with AVX2.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "codegen: $*" >&2; exit 1; }
case ${1:-} in "" | --pin) ;; *) fail "usage: tools/codegen.sh [--pin]" ;; esac
command -v valgrind >/dev/null || fail "valgrind is missing: apt-get install valgrind"

table=tools/codegen/pinned.txt
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/codegen
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

# Symbols that name constants, and the units of a release build, which --emit would otherwise merge.
flags="--emit asm -C symbol-mangling-version=v0 -C codegen-units=16"
build=(build --quiet --release --locked --manifest-path tools/codegen/Cargo.toml)
# Assembly of an older source must not lie beside the new: the two libraries are always compiled.
rm -f "$target"/{native,cross/aarch64-unknown-linux-gnu}/release/deps/*blocked_bloom{,_split}-*
RUSTFLAGS=$flags cargo "${build[@]}" --target-dir "$target/native"
CROSS_TEST_RUSTFLAGS=$flags CROSS_TEST_TARGET_DIR=$target/cross tools/cross-test.sh \
    aarch64-unknown-linux-gnu "${build[@]}"
cat "$target"/native/release/deps/blocked_bloom{,_split}-*.s >"$scratch/x86_64.s"
cat "$target"/cross/aarch64-unknown-linux-gnu/release/deps/blocked_bloom{,_split}-*.s \
    >"$scratch/aarch64.s"
compiler() { sed -nE 's/.*\.ident.*"rustc version ([^ "]*).*/\1/p' "$scratch/$1.s" | head -n 1; }

instructions() { # case kernel probes rounds
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$target/native/release/codegen" "$@" \
        </dev/null 2>"$scratch/err" ||
        { cat "$scratch/err" >&2; return 1; }
    sed -nE 's/.*Collected : ([0-9]+).*/\1/p' "$scratch/err"
}

printf '%-9s %-13s %6s %9s %9s %5s\n' kernel case probes counted pinned +-%
red=0
while read -r kernel case probes pinned tolerance function keys wanted; do
    if [ -z "$function" ]; then
        few=$(instructions "$case" "$kernel" "${probes/-/6}" 1)
        many=$(instructions "$case" "$kernel" "${probes/-/6}" 9)
        count=$(awk -v n=$((many - few)) 'BEGIN { printf "%.1f", n / (8 * 4096) }')
    else
        arch=x86_64
        [ "$kernel" != neon ] || arch=aarch64
        count=$(awk -v name="$function" -v wanted="$wanted" \
            -f tools/codegen/loop.awk "$scratch/$arch.s")
        case $count in
            [0-9]*)
                count=$(awk -v n="$count" -v keys="$keys" 'BEGIN { printf "%.1f", n / keys }')
                ;;
            *)
                printf '%-9s %-13s %6s  RED: %s\n' "$kernel" "$case" "$probes" "$count"
                red=$((red + 1))
                continue
                ;;
        esac
    fi
    verdict=$(awk -v n="$count" -v pinned="$pinned" -v tolerance="$tolerance" '
        BEGIN {
            off = n - pinned
            if (off < 0) off = -off
            if (off > pinned * tolerance / 100 + 0.05) print "RED"
        }')
    echo "$kernel $case $probes $count" >>"$scratch/counts"
    [ "${1:-}" != --pin ] || verdict=""
    [ -z "$verdict" ] || red=$((red + 1))
    printf '%-9s %-13s %6s %9s %9s %5s %s\n' "$kernel" "$case" "$probes" "$count" "$pinned" \
        "$tolerance" "$verdict"
done < <(grep -v '^#' "$table")

[ -s "$scratch/counts" ] || fail "no loop was counted"
compilers="# Compilers: rustc $(compiler x86_64) (x86-64), rustc $(compiler aarch64) (aarch64)"
if [ "$red" -gt 0 ]; then
    grep -qxF "$compilers" "$table" ||
        echo "codegen: pinned by other compilers: $(grep '^# Compilers' "$table");" \
            "now $compilers" >&2
    fail "$red loops are not what they were; if that is meant, tools/codegen.sh --pin"
fi
if [ "${1:-}" = --pin ]; then
    # The fourth column is replaced where it stands.
    awk -v compilers="$compilers" '
        FILENAME == ARGV[1] { count[$1, $2, $3] = $4; next }
        /^# Compilers/ { print compilers; next }
        /^#/ { print; next }
        {
            match($0, /^[^ ]+ +[^ ]+ +[^ ]+/)
            rest = substr($0, RLENGTH + 1)
            match(rest, /^ +[^ ]+/)
            printf "%s%" RLENGTH "s%s\n", substr($0, 1, length($0) - length(rest)),
                count[$1, $2, $3], substr(rest, RLENGTH + 1)
        }
    ' "$scratch/counts" "$table" >"$scratch/pinned"
    cp "$scratch/pinned" "$table"
fi
