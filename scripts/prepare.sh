#!/bin/sh
# Installs what is missing to build (`prepare.sh build`) and to test (`prepare.sh test`), or says what
# to install where it may not.
set -eu
cd "$(dirname "$0")/.."

# Runs a package manager as root, if that is allowed without asking.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

# install DEBIAN FEDORA ARCH ALPINE: the same package under the names that distributions give it.
install() {
    if command -v apt-get >/dev/null 2>&1; then
        # shellcheck disable=SC2086  # a name may be several packages
        as_root apt-get install -y -qq $1 >/dev/null 2>&1 ||
            { as_root apt-get update -qq >/dev/null 2>&1 && as_root apt-get install -y -qq $1 >/dev/null; }
    elif command -v dnf >/dev/null 2>&1; then
        as_root dnf install -y -q "$2" >/dev/null
    elif command -v pacman >/dev/null 2>&1; then
        as_root pacman -S --noconfirm --needed "$3" >/dev/null
    elif command -v apk >/dev/null 2>&1; then
        as_root apk add -q "$4" >/dev/null
    else
        return 1
    fi
}

need() {
    command -v "$1" >/dev/null 2>&1 && return
    echo "installing $2, which is missing ..." >&2
    if ! install "$3" "$4" "$5" "$6"; then
        echo "error: $2 is missing, and this user may not install it; as root:" >&2
        echo "    apt-get install $3    (Debian, Ubuntu)    dnf install $4    (Fedora)" >&2
        exit 1
    fi
}

if ! command -v cargo >/dev/null 2>&1; then
    if [ -x "$HOME/.cargo/bin/cargo" ]; then
        echo "error: Rust is installed but not on the PATH; run:  . \"\$HOME/.cargo/env\"" >&2
    else
        echo "error: Rust is missing; this command brings it:" >&2
        echo "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . \"\$HOME/.cargo/env\"" >&2
    fi
    exit 1
fi
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
found=$(rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
    echo "error: Rust $wanted or newer is needed, and this is $found; this command brings it:" >&2
    echo "    rustup update stable" >&2
    exit 1
fi

need cc "a C compiler" "gcc libc6-dev" gcc base-devel build-base
if [ "${1:-build}" = test ]; then
    need c++ "a C++ compiler (for the fuzz targets)" g++ gcc-c++ base-devel build-base
    need setpriv "setpriv (tests run as another user)" util-linux util-linux util-linux setpriv
fi
