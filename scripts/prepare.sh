#!/bin/sh
# Installs the missing programs needed to build (`prepare.sh build`) and to test (`prepare.sh test`). For Rust, and
# for programs that this user may not install, it prints the command to run instead.
set -eu
cd "$(dirname "$0")/.."

has() { command -v "$1" >/dev/null 2>&1; }

# fail PROBLEM COMMAND
fail() {
    printf 'error: %s; run this command and then make again:\n    %s\n' "$1" "$2" >&2
    exit 1
}

# may_install: succeeds if packages can be installed without a password. Sets as_root to the prefix of commands.
may_install() {
    as_root=
    [ "$(id -u)" = 0 ] && return
    as_root="sudo -n"
    has sudo && sudo -n true 2>/dev/null
}

# need COMMAND NAME DEBIAN FEDORA ARCH ALPINE: installs the package of a command; the last four are its names in
# the distributions.
need() {
    has "$1" && return
    if has apt-get; then
        install="apt-get install -y --no-install-recommends $3"
    elif has dnf; then
        install="dnf install -y $4"
    elif has pacman; then
        install="pacman -S --noconfirm --needed $5"
    elif has apk; then
        install="apk add $6"
    else
        echo "error: $2 is missing; install the package with the command $1 and run make again" >&2
        exit 1
    fi
    if ! may_install; then
        has sudo && fail "$2 is missing" "sudo $install"
        fail "$2 is missing" "su - -c '$install'"
    fi
    echo "installing $2, which is missing ..." >&2
    if ! log=$(run_install 2>&1 </dev/null) || ! has "$1"; then
        printf '%s\n' "$log" | tail -n 6 >&2
        echo "error: $2 is still missing because this command failed, as shown above; fix the cause and run make again:" >&2
        echo "    $as_root${as_root:+ }$install" >&2
        exit 1
    fi
}

# want FILE NAME DEBIAN: installs a package that only some tests need, if that is possible without a password.
want() {
    [ -e "$1" ] && return
    has apt-get && may_install || return 0
    echo "installing $2, which is missing ..." >&2
    install="apt-get install -y --no-install-recommends $3"
    log=$(run_install 2>&1 </dev/null) || { echo "note: $2 could not be installed; the tests that need it will be left out" >&2; }
}

# shellcheck disable=SC2086  # split into words on purpose
run_install() {
    noninteractive="$as_root env DEBIAN_FRONTEND=noninteractive"
    $noninteractive $install || { has apt-get && $noninteractive apt-get update && $noninteractive $install; }
}

# need_rust PROBLEM
need_rust() {
    home=${CARGO_HOME:-${HOME:-}/.cargo}
    if [ -x "$home/bin/cargo" ] && [ "$(command -v cargo)" != "$home/bin/cargo" ]; then
        fail "$1 (there is one in $home/bin)" "export PATH=\"$home/bin:\$PATH\""
    elif has rustup; then
        fail "$1" "rustup update stable && rustup default stable"
    fi
    need curl "curl (which brings Rust)" "curl ca-certificates" curl curl curl
    fail "$1" "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . \"$home/env\""
}

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
has cargo || need_rust "Rust $wanted or newer is needed, and none is on the PATH"
found=$(rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
[ -n "$found" ] || need_rust "Rust $wanted or newer is needed, and \"rustc --version\" does not work"
if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
    need_rust "Rust $wanted or newer is needed, and this is $found"
fi

need cc "a C compiler" "gcc libc6-dev" gcc base-devel build-base
if [ "${1:-build}" = test ]; then
    need c++ "a C++ compiler (for the fuzz targets)" g++ gcc-c++ base-devel build-base
    need setpriv "setpriv (tests run as another user)" util-linux util-linux util-linux setpriv
    need python3 "Python (for torture/run.py)" python3 python3 python python3
    need git "git (whose commits are indexed)" git git git git
    want /sbin/mkfs.ext4 "mkfs.ext4 (a full disk with small blocks)" e2fsprogs
    want /usr/bin/dbus-run-session "a D-Bus daemon" dbus
    want /usr/share/installed-tests/evolution-data-server "the test programs of evolution-data-server" evolution-data-server-tests
    want /usr/bin/mu "mu (answers to compare with)" maildir-utils
    want /usr/bin/notmuch "notmuch (answers to compare with)" notmuch
    want /usr/bin/hg "Mercurial (repositories and answers to compare with)" mercurial
    want /usr/bin/chromium "Chromium (which draws the pages of the instruments)" chromium
    want /usr/share/i18n/locales/en_US "the definitions of locales" locales
    # One of the test programs needs this locale.
    if has localedef && [ "$(id -u)" = 0 ] && ! locale -a 2>/dev/null | grep -qi '^en_us\.utf-\{0,1\}8$'; then
        localedef -i en_US -f UTF-8 en_US.UTF-8 >/dev/null 2>&1 || true
    fi
    if has rustup && ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; then
        fail "rustfmt or clippy is missing" "rustup component add rustfmt clippy"
    fi
    need cargo-fmt "rustfmt" rustfmt rustfmt rust rustfmt
    need cargo-clippy "clippy" rust-clippy clippy rust rust-clippy
fi
