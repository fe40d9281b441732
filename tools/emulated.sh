#!/usr/bin/env bash
# tools/emulated.sh        the tests whose outcome depends on the machine, on machines that this one emulates: NEON, a big-endian
#                          machine, x86-64 without AVX2
# tools/emulated.sh full   all tests, on these and more machines
set -euo pipefail
cd "$(dirname "$0")/.."

# Of the core: kernels, bytes, alignment; of the formats: the kernels of split blocks and the readers of bytes.
core=(--package blocked-bloom --lib --test suite -- kernels:: set:: format:: golden:: partition_format:: filter:: atomic::)
formats=(--package blocked-bloom-formats --test suite -- parquet::kernels parquet::threads rocksdb:: cassandra:: classical::)
# The lines and bytes of the removable filter.
removable=(--package blocked-bloom-removable --lib --test suite -- tests:: kernels:: golden:: format:: shared::)

run() { # kernels that must be found, target, arguments of cargo test
    printf '\n-- %s %s: %s (%d s)\n' "$2" "${CROSS_TEST_CPU:-}" "$1" $SECONDS
    EXPECT_KERNELS=$1 tools/cross-test.sh "${@:2}"
}

case ${1:-} in
    "")
        run neon,portable,scalar aarch64-unknown-linux-gnu "${core[@]}"
        run neon,portable,scalar aarch64-unknown-linux-gnu "${formats[@]}"
        run neon,portable,scalar aarch64-unknown-linux-gnu "${removable[@]}"
        run portable,scalar s390x-unknown-linux-gnu "${core[@]}"
        run portable,scalar s390x-unknown-linux-gnu "${formats[@]}"
        run portable,scalar s390x-unknown-linux-gnu "${removable[@]}"
        CROSS_TEST_CPU=qemu64 run portable,scalar x86_64-unknown-linux-gnu --package blocked-bloom --lib --test suite -- kernels:: set::
        ;;
    full)
        all=(--package blocked-bloom --package blocked-bloom-formats --package blocked-bloom-removable --lib --test suite)
        run neon,portable,scalar aarch64-unknown-linux-gnu "${all[@]}"
        run portable,scalar s390x-unknown-linux-gnu "${all[@]}"
        run avx2,portable,scalar i686-unknown-linux-gnu "${all[@]}"
        CROSS_TEST_CPU=Haswell run avx2,portable,scalar x86_64-unknown-linux-gnu "${all[@]}"
        CROSS_TEST_CPU=qemu64 run portable,scalar x86_64-unknown-linux-gnu "${all[@]}"
        # no threads, no unwinding, no files
        CROSS_TEST_RUSTFLAGS=-Ctarget-feature=+simd128 run portable,scalar wasm32-wasip1 --package blocked-bloom --lib --test suite -- kernels:: params:: set::
        ;;
    *) echo "usage: tools/emulated.sh [full]" >&2; exit 2 ;;
esac
