#!/bin/bash -eu
# OSS-Fuzz runs this in its container: every target, its seeds and its dictionary go to $OUT, under
# the names that it looks for.
cd "$SRC/blocked-bloom"
# With overflow checks and debug assertions.
cargo fuzz build -O --debug-assertions
for target in $(cargo fuzz list); do
    cp "${CARGO_TARGET_DIR:-fuzz/target}/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    zip -jqr "$OUT/${target}_seed_corpus.zip" "fuzz/seeds/$target"
    [ ! -f "fuzz/dict/$target.dict" ] || cp "fuzz/dict/$target.dict" "$OUT/"
done
