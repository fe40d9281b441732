#!/usr/bin/env bash
# tools/expected-kernels.sh   prints EXPECT_KERNELS for the tests of this machine, which then fail
#                             if a kernel is no longer found: what the variable says already, else
#                             on x86-64 Linux what the CPU's flags say; nothing elsewhere
set -euo pipefail
if [ -n "${EXPECT_KERNELS:-}" ]; then
    echo "$EXPECT_KERNELS"
elif [ "$(uname -sm)" = "Linux x86_64" ]; then
    expected=portable,scalar
    if grep -qw avx2 /proc/cpuinfo; then expected=avx2,$expected; fi
    missing=$(
        for flag in avx512f avx512bw avx512dq avx512vl avx512vbmi avx512_vbmi2 gfni bmi2; do
            grep -qw "$flag" /proc/cpuinfo || echo "$flag"
        done
    )
    [ -n "$missing" ] || expected=avx512,$expected
    echo "$expected"
fi
