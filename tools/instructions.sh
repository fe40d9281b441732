#!/usr/bin/env bash
# tools/instructions.sh: instructions per key of every kernel's batch query and insert, counted by valgrind (which hides AVX-512).
# Unlike times they repeat exactly, whatever else the machine does. Usage: tools/instructions.sh [PROBES...]   (default: 6)
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "instructions.sh: valgrind is missing: install it" >&2; exit 1; }
cargo build --quiet --release --locked --features cli
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
[ $# -gt 0 ] || set -- 6
for probes; do
    # 16,384 questions of each of three mixes, and one of inserting; each case runs once to warm up and once more. The scalar
    # kernel fills the filters, and inserts for others too: its inserts are not shown.
    BLOCKED_BLOOM_KERNEL=scalar valgrind --quiet --tool=callgrind --callgrind-out-file="$scratch/out" target/release/blocked-bloom \
        bench --json --op query,insert --keys 10000 --batch 4096 --rounds 1 --probes "$probes" >"$scratch/rows"
    callgrind_annotate --inclusive=yes --threshold=100 --auto=no "$scratch/out" 2>/dev/null |
        sed -nE 's/^ *([0-9,]+) .*blocked_bloom::kernel::([a-z0-9]+)::(contains|insert)( .*|$)/\1 \2 \3/p' |
        grep -v 'scalar insert' | sort -u -k2 | while read -r total kernel function; do
            keys=$((16384 * 2 * $([ "$function" = contains ] && echo 3 || echo 1)))
            awk -v total="${total//,/}" -v keys="$keys" -v kernel="$kernel" -v function_="$function" -v probes="$probes" \
                'BEGIN { printf "%-9s %-9s %2d probes  %6.1f instructions per key\n", kernel, function_, probes, total / keys }'
        done
done
