#!/bin/sh
# The main job, on the sample address books and calendars, or on a book of one's own: take in, see what was left out, ask.
# `demo.sh [FILE.vcf]`
set -eu
cd "$(dirname "$0")/.."

if [ $# -gt 0 ] && [ ! -e "$1" ]; then
    echo "error: $1: there is no such file; make demo BOOK=FILE.vcf" >&2
    exit 1
fi
echo "building (the first time takes a few minutes) ..."
cargo build --quiet --release --package larder
PATH="${CARGO_TARGET_DIR:-$PWD/target}/release:$PATH"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/larder-demo.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM
export LARDER_DIR="$scratch/store"

# Shows a command, runs it, and prints the time and memory it took. The exit code of a search that finds
# nothing, or of an import that left something out, is part of what is shown.
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
    # A week of the past, and the same everywhere.
    export TZ=Europe/Berlin LC_ALL=C.UTF-8
    show larder import samples/calendars
    show larder agenda 2026-W10
    show larder find when:2026-03 dentist
    show larder find --alarms 2026-03-01..2026-03-07
fi
if [ -s rejects.vcf ]; then
    printf '\n$ head -n 6 rejects.vcf\n'
    head -n 6 rejects.vcf
fi
show larder check
