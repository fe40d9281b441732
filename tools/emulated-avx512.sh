#!/usr/bin/env bash
# tools/emulated-avx512.sh                                    the tests of all kernels, of every
#                                                             package that has kernels
# tools/emulated-avx512.sh [--package NAME]... FILTER...      tests whose names contain a FILTER; of
#                                                             the core if no package is named
#
# Runs tests on an emulated CPU with AVX-512, GFNI, VBMI and VPOPCNTDQ: Bochs, since QEMU has no
# AVX-512. Needs no KVM, no root, and no such CPU. It emulates 110 to 140 million instructions a
# second: booting takes 15 s of CPU time, the default tests minutes.
#
#   EMULATED_CPU      what follows `cpu: model=` in Bochs's configuration: corei7_icelake_u
#                     (default), sapphire_rapids, tigerlake, corei7_skylake_x (AVX-512, but neither
#                     VBMI2 nor GFNI), corei7_haswell_4770 (none); `corei7_icelake_u,
#                     exclude_features="gfni"` has one feature less. With another CPU, give
#                     EXPECT_KERNELS too.
#   EXPECT_KERNELS    the kernels that must be found, if not avx512,avx2,portable,scalar
#   EMULATED_SECONDS  when to give up: 3600, of the emulator's CPU time
#   EMULATED_CACHE    where the emulator is kept (130 MB): /var/cache/emulated-avx512 as root, else
#                     ~/.cache/emulated-avx512
#   EMULATED_SUITE    the Debian release that Bochs and Linux come from: trixie. The first run
#                     downloads 90 MB from the Debian mirror of this machine's apt, or from
#                     EMULATED_MIRROR, and unpacks them in the cache; nothing is installed.
#
# Test files other than sources (tests/golden and the like) are at their places in the emulated
# machine; the rest of the repository is not.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
die() { echo "emulated-avx512: $*" >&2; exit 97; }
say() { echo "emulated-avx512: $*" >&2; }

packages=()
while [ $# -gt 0 ]; do
    case $1 in
        -p | --package)
            [ $# -ge 2 ] || die "$1 needs a name"
            packages+=(--package "$2")
            shift 2
            ;;
        -*) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
        *) break ;;
    esac
done
filters=("$@")
if [ ${#packages[@]} = 0 ]; then
    packages=(--package blocked-bloom)
    [ ${#filters[@]} -gt 0 ] || packages+=(--package blocked-bloom-formats \
        --package blocked-bloom-removable --package blocked-bloom-ribbon \
        --package blocked-bloom-split)
fi
[ ${#filters[@]} -gt 0 ] || filters=(kernels::)

[ "$(uname -sm)" = "Linux x86_64" ] || die "the host must be x86-64 Linux"
for command in apt-get apt-cache dpkg-deb as objcopy cargo flock; do
    command -v $command >/dev/null ||
        die "$command is missing: this needs Debian or a relative of it, binutils and Rust"
done

# Bochs, its libraries, and a kernel, unpacked into $root.
if [ "$(id -u)" = 0 ]; then cache=/var/cache; else cache=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=${EMULATED_CACHE:-$cache/emulated-avx512}
suite=${EMULATED_SUITE:-trixie}
seconds=${EMULATED_SECONDS:-3600}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)
root=$cache/root
version="emulated-avx512 1 $suite"

debian() { APT_CONFIG=$cache/apt.conf "$@" -o Dir::Bin::dpkg=/bin/false; }

unpack() {
    local mirror=${EMULATED_MIRROR:-} key= kernel apt=$cache/apt
    # The first repository of a Debian release that an update would read.
    [ -n "$mirror" ] || mirror=$(apt-get update --print-uris \
        | sed -nE "s|^'(.*/)dists/[a-z]+/InRelease'.*|\1|p" | head -1)
    [ -n "$mirror" ] ||
        die "no Debian mirror in this machine's apt configuration: set EMULATED_MIRROR"
    [ ! -f /usr/share/keyrings/debian-archive-keyring.gpg ] \
        || key=" signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
    rm -rf "$apt" "$root" "$cache/version"
    mkdir -p "$apt"/{lists,archives}/partial "$root"
    : > "$apt/status"
    echo "deb [arch=amd64$key] $mirror $suite main" > "$apt/sources.list"
    cat > "$cache/apt.conf" <<EOF
Dir::State "$apt"; Dir::State::lists "$apt/lists"; Dir::State::status "$apt/status";
Dir::Cache "$apt"; Dir::Cache::archives "$apt/archives"; Dir::Log "$apt";
Dir::Etc::sourcelist "$apt/sources.list"; Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64"; APT::Architectures:: "amd64"; APT::Sandbox::User "";
APT::Install-Recommends "false"; Acquire::Languages "none"; Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
EOF
    debian apt-get -q update
    kernel=$(debian apt-cache depends linux-image-cloud-amd64 \
        | sed -n 's/.*Depends: \(linux-image-[^ ]*\)/\1/p')
    debian apt-get -qy --download-only install bochs bochs-term vgabios ncurses-base busybox-static
    (cd "$apt/archives" && debian apt-get -q download "$kernel")
    for package in "$apt"/archives/*.deb; do
        # tar's status is not looked at: most packages lack most of these
        dpkg-deb --fsys-tarfile "$package" \
            | tar -x -C "$root" --no-same-owner --keep-directory-symlink --wildcards \
            './usr/lib/x86_64-linux-gnu/*' ./usr/lib64 './usr/lib64/*' ./usr/bin/bochs-bin \
            ./usr/bin/busybox './usr/share/bochs/*' \
            './usr/share/vgabios/*' './usr/lib/terminfo/*' './usr/share/terminfo/*' \
            './boot/vmlinuz*' 2>/dev/null || true
    done
    rm -rf "$apt"
    for file in usr/bin/bochs-bin usr/bin/busybox usr/share/vgabios/vgabios.bin \
        usr/lib64/ld-linux-x86-64.so.2 boot/vmlinuz-*; do
        # shellcheck disable=SC2086 # the kernel's name is a pattern
        [ -s "$(echo "$root"/$file)" ] || die "Debian $suite has no $file where it was"
    done
    echo "$version" > "$cache/version"
}
is_unpacked() { [ "$(cat "$cache/version" 2>/dev/null)" = "$version" ]; }
exec 9> "$cache/lock"
flock -s 9    # no other run unpacks it anew while this one uses it
if ! is_unpacked; then
    flock 9
    if ! is_unpacked; then
        say "unpacking Bochs and Linux of Debian $suite"
        # Not `unpack || ...`, which would switch set -e off inside.
        set +e
        (set -e; unpack) >"$cache/unpack.log" 2>&1
        unpacked=$?
        set -e
        [ $unpacked = 0 ] || { tail -n 5 "$cache/unpack.log" >&2; die \
            "no emulator: see $cache/unpack.log"; }
    fi
    flock -s 9
fi

# The tests, linked to nothing that the emulated machine would have to have.
say "building"
tests=$(CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_TEST_STRIP=symbols \
    RUSTFLAGS="-C target-feature=+crt-static" cargo test --locked --no-run \
    --target x86_64-unknown-linux-gnu --target-dir "${CARGO_TARGET_DIR:-target}/emulated-avx512" \
    "${packages[@]}" --lib --test suite \
    --message-format=json-render-diagnostics | sed -nE 's/.*"executable":"([^"]+)".*/\1/p')
[ -n "$tests" ] || die "cargo has built no tests"

work=$(mktemp -d)
emulator=
trap '[ -z "$emulator" ] || kill -KILL "$emulator" 2>/dev/null || true; rm -rf "$work"' EXIT
fs=$work/fs
mkdir -p "$fs"/{bin,dev,proc,tmp,tests,"$PWD"}
cp "$root/usr/bin/busybox" "$fs/bin/"
find tests crates/*/tests -type f ! -name '*.rs' -exec cp --parents -t "$fs/$PWD" {} +
{
    cat <<'EOF'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
# Some tests reserve more addresses than there is memory.
echo 1 > /proc/sys/vm/overcommit_memory
status=0
EOF
    printf 'export EXPECT_KERNELS=%q\ncd %q\n' "${EXPECT_KERNELS:-avx512,avx2,portable,scalar}" \
        "$PWD"
    for test in $tests; do
        cp "$test" "$fs/tests/"
        printf '%q ' "/tests/${test##*/}" --test-threads 1 "${filters[@]}"
        echo '|| status=$?'
    done
    echo 'echo "emulated-avx512: exit status $status"'
    # The emulator is ended from outside, when this line has come through the serial port.
    echo 'while :; do sleep 1000; done'
} > "$fs/init"
chmod +x "$fs/init"

cd "$work"
cp "$root"/boot/vmlinuz-* vmlinuz
tail -c +$((($(od -An -tu1 -j $((0x1f1)) -N 1 vmlinuz) + 1) * 512 + 1)) vmlinuz > kernel
(cd fs && find . | "$root/usr/bin/busybox" cpio -o -H newc) > initramfs 2>/dev/null
truncate -s %512 kernel initramfs
megabytes=$((512 + $(stat -c %s initramfs) / 500000))
as --defsym parameter_sectors=9 --defsym kernel_sectors=$(($(stat -c %s kernel) / 512)) \
    --defsym initramfs_sectors=$(($(stat -c %s initramfs) / 512)) \
    --defsym memory_bytes=$((megabytes << 20)) \
    "$OLDPWD/tools/emulated-avx512/boot.s" -o boot.o
for section in rom parameters; do objcopy -O binary -j .$section boot.o $section; done
[ "$(stat -c %s parameters)" = $((9 * 512)) ] || die "boot.s: the parameters are not 9 sectors"
cat parameters kernel initramfs > disk
truncate -s %$((16 * 63 * 512)) disk    # whole cylinders

: > serial
cat > bochsrc <<EOF
config_interface: textconfig
display_library: term
plugin_ctrl: usb_uhci=0, parallel=0, gameport=0, speaker=0
memory: guest=$megabytes, host=$megabytes
cpu: model=${EMULATED_CPU:-corei7_icelake_u}, count=1, ips=100000000, reset_on_triple_fault=0
romimage: file=rom
vgaromimage: file=$root/usr/share/vgabios/vgabios.bin
ata0-master: type=disk, path=disk, mode=flat
boot: disk
com1: enabled=1, mode=file, dev=serial
clock: sync=none
panic: action=fatal
log: bochs.log
EOF
say "emulating ${EMULATED_CPU:-corei7_icelake_u}"
libraries=$root/usr/lib/x86_64-linux-gnu
LTDL_LIBRARY_PATH=$libraries/bochs/plugins BXSHARE=$root/usr/share/bochs TERM=linux \
    TERMINFO_DIRS=$root/usr/lib/terminfo:$root/usr/share/terminfo \
    bash -c "ulimit -t $seconds; exec \"\$@\"" bash \
    "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/pulseaudio" \
    "$root/usr/bin/bochs-bin" -q -f bochsrc </dev/null >bochs.out 2>&1 &
emulator=$!
disown $emulator    # bash need not tell how it ends
# Without `|| true` the end of `sed` would be a failure of `tail`.
tail -n +1 -f --pid=$emulator serial | sed '/^emulated-avx512: exit status/q' || true

status=$(tr -d '\r' < serial | sed -n 's/^emulated-avx512: exit status //p')
if [ -z "$status" ]; then
    tail -n 20 bochs.out bochs.log >&2 || true
    die "the emulator ended before the tests did, or was ended after $seconds s of CPU time"
fi
[ "$status" = 0 ] || exit "$status"
passed=$(awk '/^test result: / { passed += $4 } END { print passed + 0 }' serial)
[ "$passed" -gt 0 ] || die "no test is named ${filters[*]}"
say "$passed tests passed ($SECONDS s)"
