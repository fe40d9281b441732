#!/usr/bin/env bash
# integrations/fjall/test.sh               applies the patches to the crates from the registry, then
#                                          format, lints and tests of this integration and unit
#                                          tests of both patched crates; records what was tested in
#                                          `tested`, to be committed
# integrations/fjall/test.sh --if-changed  the same, unless `tested` says that these files and this
#                                          interface of the core passed before
# integrations/fjall/test.sh --patched [STATE...]
#                                          only the tests of both crates: as published (0), after
#                                          each patch (1 to 3), and after the last one with its
#                                          feature (all), or only in the named states. Packages in
#                                          the registry have no `tests/`: LSM_TREE_REPOSITORY and
#                                          FJALL_REPOSITORY name checkouts that have them,
#                                          otherwise only unit tests run
# integrations/fjall/test.sh --prepare     only applies the patches, for `cargo` in `patched`
# integrations/fjall/test.sh --bench [CASE...] [ROUNDS]
#                                          only the benchmark, of all cases or of the named ones
set -euo pipefail
cd "$(dirname "$0")"
tested=(integrations/fjall tools/public-api/blocked-bloom.txt)
patches=(patches/1-multi-get.patch patches/2-visit-tables-first.patch
    patches/3-blocked-filter.patch)
root=$(cd ../.. && pwd)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi

# The folder of a published crate. Its Cargo.toml.orig is the manifest in the repository.
published() { # crate
    cargo metadata --locked --format-version 1 |
        grep -o "\"manifest_path\":\"[^\"]*/$1-3[^\"]*\"" | head -n 1 | cut -d '"' -f 4 |
        xargs dirname
}

# Copies both crates into a folder and applies patches.
prepare() { # folder, patches
    local folder=$1 crate patch
    rm -rf "$folder"
    mkdir -p "$folder"
    for crate in lsm-tree fjall; do
        cp -r "$(published $crate)" "$folder/$crate"
        chmod -R u+w "$folder/$crate"
        mv "$folder/$crate/Cargo.toml.orig" "$folder/$crate/Cargo.toml"
        rm "$folder/$crate/Cargo.lock"
    done
    for patch in "${@:2}"; do
        patch --quiet --directory "$folder" --strip 1 --fuzz 0 <"$patch"
    done
    # The benchmarks are not in the registry, and two packages have the same name and version.
    sed -i -e '/^\[\[bench\]\]/,$d' -e '/^criterion/d' "$folder/lsm-tree/Cargo.toml"
    sed -i 's/^lsm-tree = {/lsm-tree = { path = "..\/lsm-tree",/' "$folder/fjall/Cargo.toml"
}

# Runs the tests of both crates in a folder that `prepare` made, except those that sometimes fail
# without a patch: on one core, or if other programs take the CPU.
flaky=(--skip write_buffer_size --skip snapshot_tracker_prevent_watermark
    --skip write_during_read)
own_tests() { # folder, features
    local targets=--lib
    cat >"$1/Cargo.toml" <<END
[workspace]
members = ["lsm-tree", "fjall"]
resolver = "2"

[patch.crates-io]
blocked-bloom = { path = "$root" }

[profile.dev]
debug = false
END
    if [ -n "${LSM_TREE_REPOSITORY:-}" ] && [ -n "${FJALL_REPOSITORY:-}" ]; then
        cp -r "$LSM_TREE_REPOSITORY"/{tests,test_fixture} "$1/lsm-tree"
        cp -r "$FJALL_REPOSITORY"/{tests,test_fixture} "$1/fjall"
        targets=--tests
    else
        echo "only unit tests: LSM_TREE_REPOSITORY and FJALL_REPOSITORY name no checkouts"
    fi
    cargo test --manifest-path "$1/Cargo.toml" --target-dir target/own --workspace $targets \
        --features "$2" --no-fail-fast -- "${flaky[@]}" >target/own.log 2>&1 ||
        { grep -E '^error|^test .*FAILED|panicked' target/own.log | head -n 40 >&2; return 1; }
    echo "own tests of lsm-tree and fjall in $1, features $2:" \
        "$(awk '/^test result/ { n += $4 } END { print n }' target/own.log) pass, none fails"
}

# One line of context around each change: more would make a patch fit fewer versions.
for patch in "${patches[@]}"; do
    awk '/^ / { if (++lines > 2) bad = 1 } !/^ / { lines = 0 } END { exit bad }' "$patch" ||
        { echo "$patch: more than one line of context" >&2; exit 1; }
done
mkdir -p target
export CARGO_TARGET_DIR=$PWD/target

if [ "${1:-}" = --patched ]; then
    states=("${@:2}")
    [ $# -gt 1 ] || states=(0 1 2 3 all)
    for state in "${states[@]}"; do
        features=lsm-tree/metrics
        [ "$state" != all ] || features=fjall/metrics,fjall/blocked_bloom
        prepare target/state "${patches[@]:0:${state/all/3}}"
        echo "patches: $state"
        own_tests target/state $features
    done
    exit
fi

prepare target/patched "${patches[@]}"
if [ "${1:-}" = --prepare ]; then exit; fi
if [ "${1:-}" = --bench ]; then
    cargo bench --locked --manifest-path patched/Cargo.toml --no-default-features \
        --bench engine -- "${@:2}"
    exit
fi
for manifest in Cargo.toml patched/Cargo.toml; do cargo fmt --manifest-path $manifest --check; done
cargo clippy --locked --manifest-path patched/Cargo.toml --all-targets -- -D warnings
cargo test --locked --manifest-path patched/Cargo.toml
prepare target/state "${patches[@]}"
own_tests target/state fjall/metrics,fjall/blocked_bloom
../../tools/if-changed.sh record "${tested[@]}"
