#!/usr/bin/env bash
# tools/exhaustive.sh A-B/N [CHECK...]
#
# Compares the kernels of this machine with their schemes on slices A to B of N equal parts of the
# 2^32 halves of a hash; 1-30/30 is everything. CHECK: integers, split, tags, insert, single, group,
# batch, or several of the last four, as in `single,group,batch`, which then takes less time
#
#   KERNELS   the kernels, if not avx512, avx2 or neon, whichever this machine has; `all`: these,
#             portable and scalar
#   PROBES    the numbers of probes, if not 6 8 16 30
#   RECORDS   the file of records, if not tools/exhaustive/records.txt
#
# What was recorded for this code, compiler and machine is not run again: a stopped run resumes.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
slices=$1; shift
checks=("$@")
[ $# -gt 0 ] || checks=(integers split tags insert,single,group,batch)
target=${CARGO_TARGET_DIR:-target}/exhaustive
cargo build --quiet --release --locked --manifest-path tools/exhaustive/Cargo.toml \
    --target-dir "$target"
case ${KERNELS:-} in
    "") KERNELS=$("$target/release/exhaustive" kernels | grep -E 'avx|neon' || true) ;;
    all) KERNELS=$("$target/release/exhaustive" kernels) ;;
esac
[ -n "$KERNELS" ] || { echo "exhaustive: no kernel with vectors: set KERNELS" >&2; exit 1; }
for check in "${checks[@]}"; do
    case $check in
        insert* | single* | group* | batch*) probes=${PROBES:-6 8 16 30} ;;
        *) probes=- ;;
    esac
    for probes in $probes; do
        for kernel in $KERNELS; do
            "$target/release/exhaustive" "$check" "$kernel" ${probes/-/} --slice "$slices" \
                ${RECORDS:+--records "$RECORDS"}
        done
    done
done
