#!/usr/bin/env bash
# tools/if-changed.sh passed FOLDER INPUT...   succeeds if the tests of FOLDER passed before with
#                                              the files that are there now
# tools/if-changed.sh record FOLDER INPUT...   notes in FOLDER/tested, which is to be committed,
#                                              that they passed
#
# For tests that take long, of folders outside the workspace: what they depend on are the files of
# FOLDER, as git knows them, and the INPUTs, files or folders outside of it: the listings of the
# public interfaces of what it links (tools/public-api), and code whose behaviour they test. Paths
# are relative to the root of the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "if-changed: $*" >&2; exit 2; }
[ $# -ge 2 ] || fail "usage: tools/if-changed.sh passed|record FOLDER INPUT..."
command=$1 folder=$2
shift 2

list() { git ls-files -z --cached --others --exclude-standard -- "$@"; }
for input in "$folder" "$@"; do
    # Git finds no file under a wrong name, and all is as it was.
    [ -n "$(list "$input" | tr -d '\0')" ] || fail "$folder depends on $input, which is not there"
done
state=$(list "$folder" "$@" ":!$folder/tested" | LC_ALL=C sort -zu | xargs -0 sha256sum \
    | sha256sum | cut -c1-64)

case $command in
    passed)
        [ "$(cat "$folder/tested" 2>/dev/null)" = "$state" ] || exit 1
        echo "$folder: these files passed before, with this state of: $*"
        ;;
    record) echo "$state" >"$folder/tested" ;;
    *) fail "unknown command $command (supported: passed, record)" ;;
esac
