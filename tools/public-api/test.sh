#!/usr/bin/env bash
# tools/public-api/test.sh   changes fixture.rs in every way that its callers could notice, and in
#                            some that they could not: the listing must change with the first and
#                            with no other
set -euo pipefail
cd "$(dirname "$0")"
fail() { echo "public-api: $*" >&2; exit 1; }

target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")/public-api/tool
tool=$target/debug/public-api
cargo build --quiet --locked --target-dir "$target"
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

list() { # a source file
    rustdoc +nightly --edition 2024 --crate-name fixture -Z unstable-options \
        --output-format json --out-dir "$scratch" "$1"
    "$tool" "$scratch/fixture.json" 2>"$scratch/err"
}

list fixture.rs >"$scratch/before"
changes=0
while read -r expected edit; do
    sed "$edit" fixture.rs >"$scratch/fixture.rs"
    ! cmp -s fixture.rs "$scratch/fixture.rs" || fail "this changes nothing: $edit"
    list "$scratch/fixture.rs" >"$scratch/after"
    found=same
    cmp -s "$scratch/before" "$scratch/after" || found=differs
    [ $found = "$expected" ] || fail "the listing $found after this change: $edit"
    changes=$((changes + 1))
done <<'EDITS'
differs s/^    Absent,$//
differs s/^    Unknown,$//
differs s/Damaged { at: usize, /Damaged { /
differs s/found: u8/found: u16/
differs s/Maybe(u32, /Maybe(u64, /
differs s/Unknown,/Unknown, New,/
differs s/^    Absent,$//;s/Unknown,/Unknown, Absent,/
differs s/#\[non_exhaustive\]//
differs s/pub second: u32/pub second: u64/
differs s/pub second: u32/second: u32/
differs s/\[T; N\]/[T]/
differs s/pub(crate) sum: u64,//
differs s/T: Ord, /T: Ord + Copy, /
differs s/#\[derive(Clone, Debug)\]/#[derive(Clone)]/
differs s/repr(C, align(8))/repr(C)/
differs s/\[u8; BYTES\]/[u8; 32]/
differs s/BYTES: usize = 64/BYTES: usize = 32/
differs s/LIMIT: usize = 8/LIMIT: usize = 9/
differs s/#\[must_use\]//
differs s/sum(&self, factor: u32)/sum(\&mut self, factor: u32)/
differs s/factor: u32)/factor: u64)/
differs s/-> Option<u64>/-> Option<u32>/
differs s/pub use hidden::Counts;/pub mod deeper { pub use super::hidden::*; } use hidden::Counts;/
differs s/pub use std::time::Duration;/pub use std::time::Instant;/
differs s/pub use std::time::Duration;//
differs s/trait Query: Send/trait Query: Sync/
differs s/trait Query: Send/trait Query: Send + Sized/
differs s/type Error: std::error::Error;/type Error;/
differs s/Result<Answer, Self::Error>;/Result<Answer, Self::Error> { todo!() }/
differs s/Item = K/Item = (K, K)/
differs s/HashMap<K, Answer>/HashMap<K, Vec<Answer>>/
differs s/Hash + Eq,/Hash + Eq + Send,/
differs s/T, 1>/T, 2>/
differs s/const unsafe fn/unsafe fn/
differs s/const unsafe fn/const fn/
differs s/\*const Block {/*mut Block {/
same s/pub(crate) sum: u64/pub(crate) sum: u128/
same s/checked_mul/saturating_mul/
same s/Defined where/Written where/
same s/mod hidden/mod within/;s/use hidden/use within/
same s/pub mod guide {}/pub mod other {}/
EDITS

# Of the formats of rustdoc the newest that is known is read, and the next is refused with a reason.
list fixture.rs >/dev/null
sed -E 's/"format_version":[0-9]+/"format_version":61/' "$scratch/fixture.json" >"$scratch/61.json"
"$tool" "$scratch/61.json" 2>/dev/null | cmp - "$scratch/before" ||
    fail "format 61 is read otherwise"
sed 's/"format_version":61/"format_version":62/' "$scratch/61.json" >"$scratch/62.json"
if "$tool" "$scratch/62.json" >"$scratch/after" 2>"$scratch/err"; then fail "format 62 is read"; fi
grep -q "unsupported format_version 62" "$scratch/err" || fail "format 62: $(cat "$scratch/err")"

"$tool" --most-types 5 "$scratch/fixture.json" >/dev/null 2>&1 ||
    fail "five public types are not five"
! "$tool" --most-types 4 "$scratch/fixture.json" >/dev/null 2>&1 ||
    fail "five public types are four"
! "$tool" --examples "$scratch/fixture.json" >/dev/null 2>"$scratch/err" ||
    fail "examples are not missed"
grep -q "without an example that is compiled: fixture, fixture::Answer, " "$scratch/err" ||
    fail "$(cat "$scratch/err")"

echo "public-api: $changes changes"
