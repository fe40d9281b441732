#!/usr/bin/env bash
# tools/public-api.sh           compares the public interface of every library with its listing,
#                               tools/public-api/PACKAGE.txt
# tools/public-api.sh --write   writes the listings
# It fails, too, if a public type, trait or module has no example that rustdoc compiles, and with
# --most-types N if the core has more than N public types (structs, enums, unions, traits and
# aliases).
#
# The libraries are the core and those in crates/. A listing has one line for each public item, with
# everything that its signature says; it is made from rustdoc's JSON, which needs a nightly
# toolchain. A change of an interface shows in a diff; and integrations, whose tests take long, are
# tested again where the listing of what they link changed.
set -euo pipefail
cd "$(dirname "$0")/.."
write='' most=''
while [ $# -gt 0 ]; do
    case $1 in
        --write) write=yes ;;
        --most-types) most=${2:?"--most-types takes a number"} && shift ;;
        *) echo "usage: tools/public-api.sh [--most-types N] [--write]" >&2; exit 2 ;;
    esac
    shift
done

packages=(blocked-bloom)
for library in crates/*/src/lib.rs; do
    packages+=("$(sed -n '/^name = /{s/.*"\(.*\)".*/\1/p;q;}' "${library%src/lib.rs}Cargo.toml")")
done

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/public-api
cargo build --quiet --locked --manifest-path tools/public-api/Cargo.toml --target-dir "$target/tool"
# One call of cargo for all, or the core would be compiled once for each set of its features. Lints
# are left to clippy.
rm -rf "$target/doc"
RUSTFLAGS=--cap-lints=allow \
    RUSTDOCFLAGS="--cap-lints=allow -Z unstable-options --output-format json" \
    cargo +nightly doc --quiet --locked --no-deps --lib \
    --all-features "${packages[@]/#/--package=}" --target-dir "$target"

listings=$(mktemp -d)
trap 'rm -r "$listings"' EXIT
failed='' changed=''
for package in "${packages[@]}"; do
    limit=()
    if [ -n "$most" ] && [ "$package" = blocked-bloom ]; then limit=(--most-types "$most"); fi
    # Above the limit there is a listing nonetheless.
    "$target/tool/debug/public-api" --examples ${limit[@]+"${limit[@]}"} \
        "$target/doc/${package//-/_}.json" >"$listings/$package.txt" || failed=yes
    [ -s "$listings/$package.txt" ] || exit 1
done

if [ -n "$write" ]; then
    rm -f tools/public-api/*.txt
    cp "$listings"/*.txt tools/public-api
else
    for listing in $({ ls tools/public-api "$listings"; } | grep '\.txt$' | LC_ALL=C sort -u); do
        diff -uN "tools/public-api/$listing" "$listings/$listing" || changed=yes
    done
    if [ -n "$changed" ]; then
        echo "public-api: an interface changed: look at the differences, then" \
            "tools/public-api.sh --write" >&2
        failed=yes
    fi
fi
[ -z "$failed" ]
