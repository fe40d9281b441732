#!/usr/bin/env bash
# tools/emulated/test.sh                the tests whose outcome depends on the machine, on machines
#                                       that this one emulates: NEON, a big-endian machine, x86-64
#                                       without AVX2; records what was tested in `tested`, to be
#                                       committed
# tools/emulated/test.sh --if-changed   the same, unless `tested` records that this code passed
# tools/emulated/test.sh full           all tests, on these and more machines
set -euo pipefail
cd "$(dirname "$0")/../.."

# The code under test: the kernels and the stored formats. The tests and their dependencies are not
# included, since the nightly workflow runs all tests.
tested=(src tools/cross-test.sh)
for package in formats removable ribbon split-block planes lsm scalable file-index range; do
    tested+=("crates/$package/src")
done

# All packages in one call of cargo per target, and no debug information: most of the time goes into
# compiling what the tests need. What was built for this machine has what its caller wanted.
here_debug=${CARGO_PROFILE_TEST_DEBUG:-line-tables-only}
export CARGO_PROFILE_TEST_DEBUG=0
kernels=(--package blocked-bloom --package blocked-bloom-formats --package blocked-bloom-removable \
    --package blocked-bloom-ribbon --package blocked-bloom-split --test suite)
stored=("${kernels[@]}" --package blocked-bloom-planes --package blocked-bloom-lsm \
    --package blocked-bloom-scalable --package blocked-bloom-file-index \
    --package blocked-bloom-range)
all=("${stored[@]}" --package blocked-bloom-resident --lib)
# NEON and its alignments; and on a big-endian machine the bytes of everything that is stored, and
# the kernels of the portable scheme. The other tests, and those inside the libraries, run there in
# the nightly workflow.
neon=(kernels:: insert_new:: atomic:: shared:: threads::)
big_endian=(kernels:: insert_new:: format:: compact:: golden:: partition_format:: ranged:: \
    classical:: stored::filters_read_back stored::the_golden_file)
# Files of other systems that are not part of the repository are read where they are to be had. What
# takes a minute here takes an hour there, and an emulated process cannot start itself.
outside=()
if [ -n "${BLOCKED_BLOOM_FIXTURES:-}" ]; then
    outside=(--include-ignored --skip lookups_never_miss_keys --skip kernel::tests::times)
    outside+=(--skip kernels::the_environment)
fi

run() { # kernels that must be found, target, arguments of cargo test
    printf '\n-- %s %s: %s (%d s)\n' "$2" "${CROSS_TEST_CPU:-}" "$1" $SECONDS
    EXPECT_KERNELS=$1 tools/cross-test.sh "${@:2}"
}

case ${1:-} in
    "" | --if-changed)
        if [ -n "${1:-}" ] && tools/if-changed.sh passed tools/emulated "${tested[@]}"; then
            exit
        fi
        run neon,portable,scalar aarch64-unknown-linux-gnu "${kernels[@]}" -- "${neon[@]}"
        run portable,scalar s390x-unknown-linux-gnu "${stored[@]}" -- "${outside[@]}" \
            "${big_endian[@]}"
        # What `cargo test --workspace --all-features` has built for this machine, on one without
        # AVX2.
        qemu=$(tools/cross-test.sh x86_64-unknown-linux-gnu path)/qemu-x86_64
        printf '\n-- x86-64 qemu64: portable,scalar (%d s)\n' $SECONDS
        EXPECT_KERNELS=portable,scalar CARGO_PROFILE_TEST_DEBUG=$here_debug \
            CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$qemu -cpu qemu64" \
            cargo test --locked --workspace --all-features --test suite -- kernels::
        tools/if-changed.sh record tools/emulated "${tested[@]}"
        ;;
    full)
        run neon,portable,scalar aarch64-unknown-linux-gnu "${all[@]}" -- "${outside[@]}"
        run portable,scalar s390x-unknown-linux-gnu "${all[@]}" -- "${outside[@]}"
        run avx2,portable,scalar i686-unknown-linux-gnu "${all[@]}" -- "${outside[@]}"
        CROSS_TEST_CPU=Haswell run avx2,portable,scalar x86_64-unknown-linux-gnu "${all[@]}" \
            -- "${outside[@]}"
        CROSS_TEST_CPU=qemu64 run portable,scalar x86_64-unknown-linux-gnu "${all[@]}" \
            -- "${outside[@]}"
        # no threads, no unwinding, no files
        CROSS_TEST_RUSTFLAGS=-Ctarget-feature=+simd128 run portable,scalar wasm32-wasip1 \
            --package blocked-bloom --lib --test suite -- kernels:: params:: hash::
        ;;
    *) echo "usage: tools/emulated/test.sh [--if-changed | full]" >&2; exit 2 ;;
esac
