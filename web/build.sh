#!/usr/bin/env bash
# web/build.sh   makes the page: web/target/blocked-bloom.html, one file that needs nothing else
#
# It needs Rust's standard library for WebAssembly: `rustup target add wasm32-unknown-unknown`.
# Without it, on Debian, Debian's own is used (tools/cross-test.sh), as root or with user
# namespaces. Beside it bash, awk, gzip, base64, od and sha256sum.
set -euo pipefail
cd "$(dirname "$0")"
target=wasm32-unknown-unknown
out=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$out"
out=$(cd "$out" && pwd -P)

# Some of what the crates have has no use on this target; ./check looks at their warnings.
flags="-A unused"
# Messages of panics name files: the same names, and short ones, wherever the repository lies.
for folder in "$(cd .. && pwd -P)/"{,crates/} "${CARGO_HOME:-$HOME/.cargo}/registry/src/"; do
    case $folder in
        *[[:space:]]*) ;; # These flags cannot have it.
        *) flags+=" --remap-path-prefix=$folder=" ;;
    esac
done
if [ -d "$(rustc --print target-libdir --target $target)" ]; then
    RUSTFLAGS=$flags cargo build --quiet --locked --release --target $target --target-dir "$out"
elif command -v apt-get >/dev/null; then
    CROSS_TEST_RUSTFLAGS=$flags CROSS_TEST_TARGET_DIR=$out/debian \
        ../tools/cross-test.sh $target build --quiet --locked --release
    mkdir -p "$out/$target/release"
    cp "$out/debian/$target/release/blocked_bloom_page.wasm" "$out/$target/release/"
else
    echo "web/build.sh: no standard library for WebAssembly: rustup target add $target" >&2
    exit 1
fi

parts=$out/page
rm -rf "$parts"
mkdir -p "$parts"
wasm=$out/$target/release/blocked_bloom_page.wasm
gzip -9n <"$wasm" >"$parts/wasm.gz"
# Its length, then five characters for each four bytes: 85 of the printable ones, without those that
# mean something in HTML. It is 6 % shorter than base64.
{
    printf '%d ' "$(wc -c <"$parts/wasm.gz")"
    od -An -v -tu1 -w4 "$parts/wasm.gz" | awk '
        BEGIN {
            for (code = 33; code < 127; code++) {
                if (index("\"$&\047<>\\`~", sprintf("%c", code)) == 0)
                    digits[count++] = sprintf("%c", code)
            }
        }
        {
            number = (($1 * 256 + $2) * 256 + $3) * 256 + $4
            text = ""
            for (i = 0; i < 5; i++) {
                text = digits[number % 85] text
                number = int(number / 85)
            }
            printf "%s", text
        }'
} >"$parts/wasm.base85"
# A JavaScript or style sheet's indentation and lines of comments are a tenth of the page without
# the module.
lean() { sed -E 's/^ +//; /^(\/\/.*)?$/d' "$@"; }
# The style sheet has no text in which a space beside a sign counts.
lean page/style.css | sed -E 's/ *([{};,]) */\1/g; s/: /:/g; s/;\}/}/g' >"$parts/style.css"
lean page/module.js page/worker.js >"$parts/worker.js"
lean page/{module,page,size,plot,levels,inspect,lookup,main}.js >"$parts/main.js"
# The page may run this script and no other, by its hash, and may connect to nothing.
hash() { # the file as it is between its tags: with a line feed before and after
    local digest
    digest=$( (echo; cat "$1") | sha256sum | cut -d ' ' -f 1 | sed 's/../\\x&/g')
    printf 'sha256-%s' "$(printf '%b' "$digest" | base64)"
}
lean page/index.html |
    sed -e "s|@@SCRIPT@@|$(hash "$parts/main.js")|" -e "s|@@STYLE@@|$(hash "$parts/style.css")|" |
    awk -v parts="$parts" '
        /^@@.*@@$/ {
            file = parts "/" substr($0, 3, length($0) - 4)
            while ((getline line < file) > 0) print line
            close(file)
            next
        }
        { print }' >"$out/blocked-bloom.html"

size() { wc -c <"$1"; }
echo "web: $out/blocked-bloom.html: $(size "$out/blocked-bloom.html") bytes, of which" \
    "$(size "$parts/wasm.gz") are the module by gzip ($(size "$wasm") bytes)"
check_size() { # what, its size, the limit
    [ "$2" -le "$3" ] || { echo "web/build.sh: $1: $2 bytes (at most $3)" >&2; exit 1; }
}
check_size "the module by gzip" "$(size "$parts/wasm.gz")" 260000
check_size "the page" "$(size "$out/blocked-bloom.html")" 400000
