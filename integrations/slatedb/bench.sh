#!/usr/bin/env bash
# integrations/slatedb/bench.sh [FILTER]   SlateDB's own benchmark of `scan_prefix`: as published,
#                                          then with each policy of this crate instead of SlateDB's.
#                                          100 tables, each read delayed by 10 ms. FILTER selects
#                                          cases by name, as in `cargo bench`
#
# The source is that of the published crate. Only its profiler is left out.
set -euo pipefail
cd "$(dirname "$0")"
root=$PWD
manifest=$(cargo metadata --locked --format-version 1 |
    grep -o '"manifest_path":"[^"]*/slatedb-0[^"]*"' | head -n 1 | cut -d '"' -f 4)

folder=target/scan_prefix
rm -rf "$folder"
mkdir -p "$folder/benches"
sed -e '/pprof/d' -e '/with_profiler/d' -e 's/Criterion::default()/&;/' \
    "$(dirname "$manifest")/benches/scan_prefix_bench.rs" >"$folder/benches/slatedb.rs"

# Copies the benchmark with another policy.
replace() { # name, its expression, which can use `extractor`
    {
        sed -e 's/BloomFilterPolicy, //' -e "s/\"prefix_bloom\"/\"$1\"/" \
            -e 's/BloomFilterPolicy::new(10).with_prefix_extractor(/policy(/' \
            "$folder/benches/slatedb.rs"
        echo 'use blocked_bloom_slatedb::*;'
        echo "fn policy(extractor: Arc<FixedPrefixExtractor>) -> impl FilterPolicy { $2 }"
    } >"$folder/benches/$1.rs"
    grep -q 'Arc::new(policy(' "$folder/benches/$1.rs"
}
replace blocked 'BlockedBloomPolicy::new(blocked_bloom::Sizing::BitsPerKey(10.0)).unwrap()
    .prefixes(extractor)'
# The longest keys have 16 bytes, and a unit is one prefix of 6.
replace ranges 'drop(extractor);
    RangePolicy::new(blocked_bloom_range::RangeOptions::new(10.0).with_unit(80)).unwrap()'

cat >"$folder/Cargo.toml" <<END
[package]
name = "scan-prefix"
version = "0.0.0"
edition = "2024"
autobenches = false

[workspace]

[lib]
path = "lib.rs"

[dev-dependencies]
blocked-bloom = { path = "$root/../.." }
blocked-bloom-range = { path = "$root/../../crates/range" }
blocked-bloom-slatedb = { path = "$root" }
bytes = "1"
criterion = { version = "0.5", default-features = false, features = ["async_tokio"] }
object_store = "0.14"
slatedb = { version = "=0.18.0", default-features = false, features = ["foyer"] }
tokio = { version = "1", features = ["rt-multi-thread"] }
END
for name in slatedb blocked ranges; do
    printf '\n[[bench]]\nname = "%s"\nharness = false\n' $name >>"$folder/Cargo.toml"
done
touch "$folder/lib.rs"
cp Cargo.lock "$folder"
CARGO_TARGET_DIR=$root/target cargo bench --manifest-path "$folder/Cargo.toml" --benches -- "$@"
