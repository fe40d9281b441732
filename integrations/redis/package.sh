#!/usr/bin/env bash
# integrations/redis/package.sh   builds the module for others, has a server load and use it, and
#                                 packs it: target/blocked-bloom-redis-linux-ARCHITECTURE.tar.gz
#
# It needs libclang and redis-server (Debian: libclang-dev, redis-server). What it is built on
# decides which systems it is for: those with the same or a later glibc.
set -euo pipefail
cd "$(dirname "$0")"

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo build --quiet --locked --release --lib
name=blocked-bloom-redis-linux-$(uname -m)
work=$(mktemp -d /tmp/package.XXXXXX)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
mkdir "$work/$name"
cp "$target/release/libblocked_bloom_redis.so" README.md ../../LICENSE-* "$work/$name"

# At a socket, not at a port, where another server may be.
redis-server --port 0 --unixsocket "$work/socket" --dir "$work" --logfile log --save '' \
    --loadmodule "$work/$name/libblocked_bloom_redis.so" &
server=$!
cli() { redis-cli -s "$work/socket" "$@"; }
for _ in $(seq 600); do
    kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    if [ "$(cli PING 2>/dev/null)" = PONG ]; then break; fi
    sleep 0.1
done
replies=$(cli BF.MADD fruit apple banana apple | xargs)
[ "$replies" = "1 1 0" ] || { echo "package.sh: BF.MADD replied $replies" >&2; exit 1; }

tar -C "$work" --owner=0 --group=0 -czf "$target/$name.tar.gz" "$name"
module=$target/release/libblocked_bloom_redis.so
glibc=$(grep -aoE 'GLIBC_2\.[0-9]+' "$module" | sort -Vu | tail -1)
echo "$target/$name.tar.gz, for ${glibc/_/ } or later"
