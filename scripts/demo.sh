#!/bin/sh
# Imports and searches the sample address books and calendars, or an address book of the user.
# `demo.sh [FILE.vcf]`
set -eu
cd "$(dirname "$0")/.."

if [ $# -gt 0 ] && [ ! -e "$1" ]; then
    echo "error: $1: no such file; use make demo BOOK=FILE.vcf" >&2
    exit 1
fi
echo "building (the first time takes a few minutes) ..."
cargo build --quiet --release --package larder
for name in git-remote-hg git-cinnabar; do
    ln -sf larder "${CARGO_TARGET_DIR:-$PWD/target}/release/$name"
done
PATH="${CARGO_TARGET_DIR:-$PWD/target}/release:$PATH"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/larder-demo.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM
export LARDER_DIR="$scratch/store"

# Prints a command, runs it, and prints its time and memory. Exit codes up to 3 are expected: nothing found,
# or some input left out.
show() {
    printf '\n$ %s\n' "$*"
    code=0
    larder measure run --show -- "$@" 2>&1 || code=$?
    [ $code -le 3 ] || exit $code
}

if [ $# -gt 0 ]; then
    book=$(readlink -f "$1")
    cd "$scratch"
    show larder import "$book" --rejects rejects.vcf
    show larder find --limit 10
    show larder find --explain a
else
    ln -s "$PWD/samples" "$scratch/samples"
    cd "$scratch"
    show larder import samples/contacts --rejects rejects.vcf
    show larder find helene
    show larder find --explain helene
    show larder find 小
    show larder find 5550120
    show larder import --quiet samples/contacts/nextcloud.vcf
    # A past week in a fixed zone, so that the output is always the same.
    export TZ=Europe/Berlin LC_ALL=C.UTF-8
    show larder import samples/calendars
    show larder agenda 2026-W10
    show larder find when:2026-03 dentist
    show larder find --alarms 2026-03-01..2026-03-07
    mkdir -p mail/INBOX/cur mail/INBOX/new mail/INBOX/tmp
    cp samples/mail/*.eml mail/INBOX/cur/
    show larder sources add mail
    show larder sync
    show larder find --kind message audit --threads
    show larder find walrus
fi
if [ -s rejects.vcf ]; then
    printf '\n$ head -n 6 rejects.vcf\n'
    head -n 6 rejects.vcf
fi
show larder check
