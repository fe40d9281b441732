#!/usr/bin/env bash
# tools/public-api.sh           compares the public interface of the core with its listing, docs/public-api.txt
# tools/public-api.sh --write   writes the listing
#
# One line for each public item, with its signature, by source file. A change of the interface shows in a diff; and integrations, whose
# tests take long, are tested again where the listing changed.
set -euo pipefail
cd "$(dirname "$0")/.."
listing=docs/public-api.txt

list() {
    # The guides are modules of the documentation only.
    for file in $(find src -name '*.rs' ! -name guides.rs | LC_ALL=C sort); do
        # Signatures on one line, without bodies, tests and what is public inside the crate only.
        sed '/^#\[cfg(test)\]/,$d; /^#\[cfg(all(doc,/,+1d; s|^ *//.*||' "$file" | tr '\n' ' ' | sed -E 's/ +/ /g; s/([;{}]|#\[[^]]*\])/\n\1\n/g' |
            grep -E '^ *pub (const |unsafe )*(fn|struct|enum|trait|const|type|use|mod) |^ *impl.* for ' |
            sed -E "s|^ *|${file#src/}: |; s/ +$//" || true
        # Variants of enums, methods of traits, public fields, and what is exported again.
        sed '/^#\[cfg(test)\]/,$d; s|^ *//.*||' "$file" | awk -v file="${file#src/}" '
            /^pub enum / || /^pub use [^;]*$/ { all = 1 }
            /^pub trait / { methods = 1 }
            all || (methods && / fn /) || /^ +pub [a-z_]+: / || /^pub use / { sub(/^ +/, ""); if ($0 != "") print file ": . " $0 }
            /^}/ { all = methods = 0 }
        '
    done
}

case ${1:-} in
    --write) list >"$listing" ;;
    "") diff -u "$listing" <(list) || { echo "public-api: the core's interface changed: look at the difference, then tools/public-api.sh --write" >&2; exit 1; } ;;
    *) echo "usage: tools/public-api.sh [--write]" >&2; exit 2 ;;
esac
