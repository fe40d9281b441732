#!/usr/bin/env bash
# integrations/arrow-rs/test.sh                format, lints and tests of this integration, and that
#                                              the patch fits; records what was tested in `tested`,
#                                              to be committed
# integrations/arrow-rs/test.sh --if-changed   the same, unless `tested` says that these files,
#                                              these interfaces and the code of split blocks passed
#                                              before
# integrations/arrow-rs/test.sh --patched      also the tests of `parquet`, of the published source
#                                              with the patch: those about Bloom filters must pass
#                                              with the feature and without it, and all unit tests
#                                              must have the same results. Without
#                                              PARQUET_TEST_DATA (the folder `data` of the
#                                              repository `parquet-testing`) unit tests that read
#                                              its files fail both times, and two tests of
#                                              `arrow_reader` about Bloom filters are skipped
# integrations/arrow-rs/test.sh --bench        only the benchmark of `parquet` about Bloom filters,
#                                              of the published source with the patch: without
#                                              the feature and with it, twice each
set -euo pipefail
cd "$(dirname "$0")"
tested=(
    integrations/arrow-rs tools/public-api/blocked-bloom.txt
    tools/public-api/blocked-bloom-formats.txt
    crates/split-block/src crates/formats/tests/fixtures/parquet)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
if [ "${1:-}" != --bench ]; then
    cargo fmt --check
    cargo clippy --locked --all-targets -- -D warnings
    cargo test --locked
fi

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

if [ "${1:-}" = --patched ] || [ "${1:-}" = --bench ]; then
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
fi

if [ "${1:-}" = --patched ]; then
    for features in "" sbbf_simd; do
        for target in "--lib bloom_filter" "--test arrow_reader bloom_filter"; do
            if [ "${target:0:6}" = --test ] && [ -z "${PARQUET_TEST_DATA:-}" ]; then
                echo "skipped: $target, since PARQUET_TEST_DATA names no folder"
                continue
            fi
            # shellcheck disable=SC2086
            cargo test --manifest-path "$patched/parquet/Cargo.toml" --target-dir target/parquet \
                --features "$features" $target
        done
        # Some of all fail: what is compared is which.
        cargo test --manifest-path "$patched/parquet/Cargo.toml" --target-dir target/parquet \
            --features "$features" --lib --no-fail-fast >"target/lib-$features.log" || true
        grep '^test .* \.\.\. ' "target/lib-$features.log" | sort >"target/lib-$features.txt"
    done
    diff target/lib-.txt target/lib-sbbf_simd.txt
    echo "unit tests of parquet, with the feature as without it:" \
        "$(grep -c ' ok$' target/lib-.txt) pass, $(grep -c FAILED target/lib-.txt) fail"
fi

if [ "${1:-}" = --bench ]; then
    # A package of the benchmark alone: `parquet` has it among all that it needs for its tests.
    bench=$PWD/target/bench
    mkdir -p "$bench/benches"
    cp "$patched/parquet/benches/bloom_filter.rs" "$bench/benches"
    cat >"$bench/Cargo.toml" <<END
[package]
name = "bench"
edition = "2024"
autolib = false

[dependencies]
parquet = { path = "$patched/parquet", default-features = false }
criterion = { version = "0.8", default-features = false }
rand = { version = "0.10", default-features = false, features = ["std", "std_rng"] }

[features]
sbbf_simd = ["parquet/sbbf_simd"]

[[bench]]
name = "bloom_filter"
harness = false

[workspace]
END
    for features in "" sbbf_simd; do
        cargo bench --manifest-path "$bench/Cargo.toml" --features "$features" \
            --target-dir target/parquet-bench --no-run
    done
    for run in 1 2; do
        for features in "" sbbf_simd; do
            echo "run $run, features: ${features:-none}"
            cargo bench --quiet --manifest-path "$bench/Cargo.toml" --features "$features" \
                --target-dir target/parquet-bench -- --noplot \
                --warm-up-time 0.3 --measurement-time 1 --nresamples 2000
        done
    done
    exit
fi
../../tools/if-changed.sh record "${tested[@]}"
