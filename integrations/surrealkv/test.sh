#!/usr/bin/env bash
# integrations/surrealkv/test.sh                format, lints and tests of this integration; records
#                                               what was tested in `tested`, to be committed
# integrations/surrealkv/test.sh --if-changed   the same, unless `tested` says that these files and
#                                               this interface of the core passed before
# integrations/surrealkv/test.sh --engine       also the engine's own unit tests, of the published
#                                               source: once with its default filter and once with
#                                               this policy as the default. The same tests must pass
set -euo pipefail
cd "$(dirname "$0")"
tested=(integrations/surrealkv tools/public-api/blocked-bloom.txt)

if [ "${1:-}" = --if-changed ] && ../../tools/if-changed.sh passed "${tested[@]}"; then exit; fi
cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked

if [ "${1:-}" = --engine ]; then
    source=$(cargo metadata --locked --format-version 1 |
        grep -o '"manifest_path":"[^"]*/surrealkv-1[^"]*"' | head -n 1 | cut -d '"' -f 4)
    engine=$PWD/target/engine
    rm -rf "$engine"
    cp -r "$(dirname "$source")" "$engine"
    chmod -R u+w "$engine"
    cp src/policy.rs "$engine/src/blocked_bloom_policy.rs"
    # The policy becomes a module of the engine, and an environment variable makes it the default.
    module='mod blocked_bloom_policy;\nextern crate self as surrealkv;'
    sed -i -e "s/^mod batch;\$/mod batch;\n$module/" \
        -e 's/^\t\t\tfilter_policy: Some(Arc::new(bf)),$/\t\t\tfilter_policy: Some(choose(bf)),/' \
        "$engine/src/lib.rs"
    cat >>"$engine/src/lib.rs" <<'END'

fn choose(default: LevelDBBloomFilter) -> Arc<dyn FilterPolicy> {
	if std::env::var_os("BLOCKED_BLOOM").is_none() {
		return Arc::new(default);
	}
	let sizing = ::blocked_bloom::Sizing::BitsPerKey(10.0);
	Arc::new(blocked_bloom_policy::BlockedBloomPolicy::new(sizing).expect("ten bits per key"))
}
END
    grep -q 'filter_policy: Some(choose(bf))' "$engine/src/lib.rs"
    cat >>"$engine/Cargo.toml" <<END

[dependencies.blocked-bloom]
path = "$(cd ../.. && pwd)"
default-features = false
features = ["std"]

[workspace]
END
    # Many of the 3,103 tests wait, so more run at a time than there are cores.
    export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_TEST_OPT_LEVEL=1
    for policy in default blocked-bloom; do
        [ $policy = default ] || export BLOCKED_BLOOM=1
        cargo test --manifest-path "$engine/Cargo.toml" --target-dir target --lib --no-fail-fast \
            -- --test-threads 6 >"target/$policy.log" || true
        unset BLOCKED_BLOOM
        # A test's output can stand between its name and its result.
        sed -n '/^failures:$/,$p' "target/$policy.log" | grep '^    [a-z_:0-9]*$' | sort -u \
            >"target/$policy.failed" || true
        passed=$(grep -o '[0-9]* passed' "target/$policy.log") ||
            { tail -n 20 "target/$policy.log"; echo "the engine's tests did not end" >&2; exit 1; }
        echo "engine's unit tests with the filter '$policy':" \
            "$passed, $(wc -l <"target/$policy.failed") failed"
    done
    # A test that fails only with the policy is the policy's fault, except two that expect the bytes
    # of the default filter: the 150 of a filter, and the 647 of a table.
    new=$(comm -13 target/default.failed target/blocked-bloom.failed |
        grep -v -e 'compaction_tests::test_table_properties_population' \
            -e 'sstable_tests::test_table_builder' || true)
    if [ -n "$new" ]; then
        printf 'these tests fail only with the policy:\n%s\n' "$new" >&2
        exit 1
    fi
fi
../../tools/if-changed.sh record "${tested[@]}"
