#!/usr/bin/env bash
# integrations/arrow-rs/test.sh                format, lints and tests of this integration, and that
#                                              the patch fits; records what was tested in `tested`,
#                                              to be committed
# integrations/arrow-rs/test.sh --if-changed   the same, unless `tested` says that these files,
#                                              these interfaces and the code of split blocks passed
#                                              before
# integrations/arrow-rs/test.sh --patched      also the tests of `parquet` about Bloom filters, of
#                                              the published source with the patch: with the feature
#                                              and without it
set -euo pipefail
cd "$(dirname "$0")"
tested=(
    integrations/arrow-rs tools/public-api/blocked-bloom.txt
    tools/public-api/blocked-bloom-formats.txt
    crates/split-block/src crates/formats/tests/fixtures/parquet)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked

# The published source, as the repository has it: `parquet/` with the manifest before publishing.
source=$(cargo metadata --locked --format-version 1 |
    grep -o '"manifest_path":"[^"]*/parquet-60[^"]*"' | head -n 1 | cut -d '"' -f 4)
source=$(dirname "$source")
patched=$PWD/target/patched
rm -rf "$patched"
mkdir -p "$patched"
cp -r "$source" "$patched/parquet"
chmod -R u+w "$patched"
mv "$patched/parquet/Cargo.toml" "$patched/Cargo.toml"
mv "$patched/parquet/Cargo.toml.orig" "$patched/parquet/Cargo.toml"
patch --quiet --directory "$patched" --strip 1 --fuzz 0 <parquet-60.1.0.patch

if [ "${1:-}" = --patched ]; then
    # The published manifest, which needs no workspace, with what the patch adds to it.
    root=$(cd ../.. && pwd)
    sed -e '/^\[features\]/a sbbf_simd = ["dep:blocked-bloom", "dep:blocked-bloom-split"]' \
        "$patched/Cargo.toml" >"$patched/parquet/Cargo.toml"
    cat >>"$patched/parquet/Cargo.toml" <<END

[dependencies.blocked-bloom]
path = "$root"
default-features = false
optional = true

[dependencies.blocked-bloom-split]
path = "$root/crates/split-block"
default-features = false
features = ["std"]
optional = true

[workspace]
END
    rm "$patched/Cargo.toml" "$patched/parquet/Cargo.lock"
    for features in "" sbbf_simd; do
        for target in "--lib bloom_filter" "--test arrow_reader bloom_filter"; do
            # shellcheck disable=SC2086
            cargo test --manifest-path "$patched/parquet/Cargo.toml" --target-dir target/parquet \
                --features "$features" $target
        done
    done
fi
../../tools/if-changed.sh record "${tested[@]}"
